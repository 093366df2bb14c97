"""Each flag fires on what it names and is silent beside it."""

import inspect
import re
from dataclasses import replace

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check import policy_tables
from roundtrip.domain.check.evidence import (
    DeployerRecord,
    Evidence,
    HookCarry,
    LaunchRecord,
    Missing,
    VenueEvidence,
)
from roundtrip.domain.check.flags import FLAGS, JudgedCheck, raised_flags
from roundtrip.domain.check.verdict import judge
from unit.domain.builders import (
    ABSENT,
    LIQUID,
    MARKET,
    NODE,
    OWNER,
    TOKEN,
    TOKEN_FACTS,
    cells,
    evidence,
    fee_that_keeps,
    no_trade,
    refused_buys,
    refused_cells,
    venue,
)
from unit.domain.launches import CURVE, IDLE, LAUNCHPAD_POOL, SWAPPING, at, gone, launch, launched, state, v4

ZERO = Address("0x" + "0" * 40)
DEAD = Address("0x000000000000000000000000000000000000dead")


def flags(found: Evidence) -> tuple[str, ...]:
    return raised_flags(JudgedCheck(found, judge(found, POLICY), POLICY))


def owned(**changes: object) -> Evidence:
    return evidence(venue(), facts=replace(TOKEN_FACTS, **changes))  # type: ignore[arg-type]


def worth(quote_raw: int, quote: str = "weth") -> VenueEvidence:
    return venue(facts=replace(LIQUID, quote_reserve_raw=quote_raw), quote=quote)  # type: ignore[arg-type]


def keeping(keep_bps: int) -> VenueEvidence:
    return venue(cells(keep_bps), fee_pips=fee_that_keeps(keep_bps))


def on(where: Venue) -> Evidence:
    """A sound token whose only venue is this one."""
    return evidence(at(where, carried=HookCarry(1, 1, 1)))


def by(launches: int = 1, graduated: int = 0, got_raw: int = 0, sold_raw: int = 0) -> Evidence:
    """A launch by a deployer with this record."""
    record = DeployerRecord(launches, graduated, 0, got_raw, sold_raw)
    return replace(launched(launch(), at(CURVE)), deployer=record)


def of(known: LaunchRecord | Missing | None) -> Evidence:
    """A launch that trades on its curve."""
    return launched(known, at(CURVE))


FIRES = (
    ("owner_active", owned(owner=OWNER), owned(owner=ZERO)),
    ("owner_active", owned(owner=OWNER), owned(owner=DEAD)),
    ("owner_active", owned(proxy_admin=OWNER), owned(proxy_admin=DEAD)),
    ("owner_active", owned(owner=ZERO, proxy_admin=OWNER), owned(owner=None, proxy_admin=None)),
    ("owner_active", owned(owner=OWNER, proxy_admin=NODE), owned(owner=NODE, proxy_admin=NODE)),
    ("toll_pool", evidence(venue(), keeping(1000)), evidence(venue(), keeping(999))),
    ("toll_pool", evidence(keeping(1000), venue()), evidence(keeping(1000))),
    ("thin_pool", evidence(venue(), venue(cells(90), impact_bps=1500)),
     evidence(venue(), venue(cells(90), impact_bps=1499))),
    ("thin_pool", evidence(venue(), venue(cells(90), impact_bps=4000)),
     evidence(venue(), venue(cells(5000), impact_bps=4000))),
    ("thin_pool", evidence(venue(), venue(cells(90), impact_bps=4000)), evidence(venue(impact_bps=4000))),
    ("thin_pool", evidence(venue(), venue(cells(90), impact_bps=4000)),
     evidence(venue(), venue(refused_cells(), impact_bps=4000))),
    ("no_liquidity", evidence(worth(10**17 - 1)), evidence(worth(10**17))),
    ("no_liquidity", evidence(worth(299_999_999, "usdg")), evidence(worth(300_000_000, "usdg"))),
    ("no_liquidity", evidence(worth(0)), evidence(worth(0, TOKEN))),
    ("no_liquidity", evidence(worth(0)), evidence(venue(facts=NODE))),
    ("no_liquidity", evidence(worth(0)), evidence(venue(), worth(0))),
    ("no_liquidity", evidence(worth(0)),
     evidence(worth(0, "usdg"), market=replace(MARKET, usdg_per_eth_raw=NODE))),
    ("hook", on(v4()), on(v4(None))),
    ("hook", on(v4()), on(v4(IDLE))),
    ("hook", on(v4()), on(LAUNCHPAD_POOL)),
    ("hook", evidence(venue(cells(400)), at(v4())), evidence(venue(), at(v4()))),
    ("hook", evidence(at(v4(), no_trade(LIQUID, refused_buys()))), evidence(at(v4(), no_trade(ABSENT)))),
    ("dynamic_fee", on(v4(IDLE, 0x800000)), on(v4(IDLE, 0x7FFFFF))),
    ("dynamic_fee", on(v4(SWAPPING, 0x800000)), on(replace(LAUNCHPAD_POOL, fee_pips=0x800000))),
    ("high_creator_tax", of(launch(creator_tax_bps=500)), of(launch(creator_tax_bps=499))),
    ("high_creator_tax", of(launch(None, creator_tax_bps=500, phase="pooled")), of(None)),
    ("high_creator_tax", of(launch(creator_tax_bps=1000)), of(NODE)),
    ("serial_deployer", by(5, 0), by(4, 0)),
    ("serial_deployer", by(6, 1), by(5, 1)),
    ("serial_deployer", by(11, 2), by(10, 2)),
    ("serial_deployer", by(5, 0), of(launch())),
    ("deployer_sold", by(got_raw=100, sold_raw=50), by(got_raw=100, sold_raw=49)),
    ("deployer_sold", by(got_raw=101, sold_raw=51), by(got_raw=101, sold_raw=50)),
    ("deployer_sold", by(got_raw=1, sold_raw=1), by(got_raw=0, sold_raw=0)),
    ("deployer_sold", by(got_raw=1, sold_raw=5), of(launch())),
    ("snipe_tax_active", of(launch(state(snipe_bps=1))), of(launch(state(snipe_bps=0)))),
    ("snipe_tax_active", of(launch(state(snipe_bps=9900))), of(launch(state(snipe_bps=9900, closed=True)))),
    ("snipe_tax_active", of(launch(state(snipe_bps=1))), of(launch(NODE))),
    ("snipe_tax_active", of(launch(state(snipe_bps=1))), of(None)),
    ("curve_closed", of(launch(state(closed=True))), of(launch())),
    ("curve_closed", of(gone("swept", 1)), of(gone("pooled", 1))),
    ("curve_closed", of(gone("rescued", 1)), of(launch(NODE))),
    ("curve_closed", of(gone("swept")), of(launch(None))),
    ("curve_closed", of(gone("swept")), of(NODE)),
)  # fmt: skip


@pytest.mark.parametrize(("name", "fires", "silent"), FIRES, ids=lambda v: v if isinstance(v, str) else "")
def test_a_flag_fires_and_is_silent(name: str, fires: Evidence, silent: Evidence) -> None:
    assert name in flags(fires)
    assert name not in flags(silent)


def test_every_flag_is_in_the_table() -> None:
    assert {name for name, _, _ in FIRES} == set(FLAGS)


def test_an_ordinary_token_has_no_flags() -> None:
    assert flags(evidence(venue())) == ()


def test_a_venue_that_does_not_trade_raises_nothing() -> None:
    found = evidence(
        venue(), no_trade(ABSENT), replace(no_trade(LIQUID, refused_buys()), venue=keeping(5000).venue)
    )
    assert flags(found) == ()


def test_without_a_venue_there_is_nothing_to_be_dry() -> None:
    assert flags(evidence()) == ()
    assert flags(evidence(no_trade(replace(LIQUID, quote_reserve_raw=0), refused_buys()))) == ()


def test_flags_come_in_the_order_of_the_table() -> None:
    hooked = at(v4(SWAPPING, 0x800000), worth(0), carried=HookCarry(1, 1, 1))
    whole = evidence(
        hooked, keeping(1000), venue(cells(990), impact_bps=2000), facts=replace(TOKEN_FACTS, owner=OWNER)
    )
    known = launch(state(snipe_bps=1), creator_tax_bps=500)
    every = replace(whole, launch=known, deployer=DeployerRecord(5, 0, 0, 2, 1))
    # A curve is either closed or still taxes its first buyers.
    assert flags(every) == tuple(name for name in FLAGS if name != "curve_closed")
    closed = replace(every, launch=replace(known, curve_state=state(snipe_bps=1, closed=True)))
    assert flags(closed) == tuple(name for name in FLAGS if name != "snipe_tax_active")


def test_the_lines_of_deployers_and_taxes_are_the_policys() -> None:
    strict = replace(POLICY, high_creator_tax_bps=1, serial_launches=2, serial_graduated_divisor=1)

    def strictly(found: Evidence) -> tuple[str, ...]:
        return raised_flags(JudgedCheck(found, judge(found, strict), strict))

    assert "serial_deployer" in strictly(by(2, 1))
    assert "serial_deployer" not in strictly(by(2, 2))
    assert "high_creator_tax" in strictly(of(launch(creator_tax_bps=1)))


def test_a_flag_with_a_line_in_the_policy_tells_that_line() -> None:
    """Another figure there is another one in the published table."""
    shown = {row.name: row.value for row in policy_tables.flags(POLICY)}
    lines = {
        (name, line)
        for name, holds in FLAGS.items()
        for line in re.findall(r"policy\.(\w+)", inspect.getsource(holds))
    }
    assert {name for name, _ in lines} == {name for name, value in shown.items() if value}
    for name, line in lines:
        moved = replace(POLICY, **{line: getattr(POLICY, line) + 1})
        assert {row.name: row.value for row in policy_tables.flags(moved)}[name] != shown[name], (name, line)
