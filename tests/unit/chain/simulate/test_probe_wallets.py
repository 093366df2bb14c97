"""Every probe is traded by wallets of its own."""

import re
from dataclasses import replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.simulate.legs import VenuePlace, cast
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import Probe, Size
from unit.chain.samples import ENVIRONMENT
from unit.chain.trades import (
    BUYER,
    EVERY_PLACE,
    PLACES,
    PROBES,
    READER,
    RECEIVER,
    WETH,
    sold_by,
    steps_of,
    who_trades,
)
from unit.venues.network import address

GRID = [
    Probe(size, delay_s, share_bps, environment, seller)
    for size in get_args(Size)
    for delay_s in (13, 3600, 86_400)
    for share_bps in (BPS, 5000, 100)
    for environment in (0, 1)
    for seller in ("buyer", "receiver")
]


def test_every_probe_of_an_environment_is_traded_by_the_same_two_wallets() -> None:
    """Then only the sell differs between two of them."""
    other = replace(ENVIRONMENT, buyer=address(0xD0), receiver=address(0xD1), reader=address(0xD2))
    environments = (ENVIRONMENT, other)
    wallets = {
        (probe.environment, who_trades(sold_by(WETH, probe, environment=environments[probe.environment])))
        for probe in GRID
    }
    assert len(wallets) == len(environments)
    known = {a for env in environments for a in (env.buyer, env.receiver, env.reader)}
    assert known.isdisjoint(wallet for _, pair in wallets for wallet in pair)


@EVERY_PLACE
@PROBES
def test_the_environments_own_wallets_are_nowhere_in_a_probes_plan(place: VenuePlace, probe: Probe) -> None:
    telling = replace(ENVIRONMENT, buyer=address(0xB0B << 140), receiver=address(0xACE << 140))
    plan = sold_by(place, probe, environment=telling)
    for first in (telling.buyer, telling.receiver):
        assert first not in {step.sender for step in steps_of(plan)}
        assert not any(first[2:] in step.call.data for step in steps_of(plan))
        assert first not in {who for who, _ in (*plan.blocks[0].balances, *plan.blocks[0].nonces)}
    assert set(who_trades(plan)) <= {who for who, _ in plan.blocks[0].balances}


@PLACES
@PROBES
def test_the_same_probe_has_the_same_plan_every_time(place: VenuePlace, probe: Probe) -> None:
    assert sold_by(place, probe) == sold_by(place, replace(probe))


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_part_fixes_its_wallets_and_nothing_else(part: str, other: str) -> None:
    found = cast(ENVIRONMENT, part)
    assert found == cast(ENVIRONMENT, part)
    assert replace(found, buyer=BUYER, receiver=RECEIVER) == ENVIRONMENT
    assert len({found.buyer, found.receiver, BUYER, RECEIVER, READER}) == 5
    for wallet in (found.buyer, found.receiver):
        assert re.fullmatch("0x[0-9a-f]{40}", wallet)
    assert (found.buyer == cast(ENVIRONMENT, other).buyer) is (part == other)
    assert (found.receiver == cast(ENVIRONMENT, other).receiver) is (part == other)
