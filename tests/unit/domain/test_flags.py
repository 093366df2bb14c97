"""Each flag fires on what it names and is silent beside it."""

from dataclasses import replace

import pytest

from roundtrip.domain.evidence import Evidence, VenueEvidence
from roundtrip.domain.flags import FLAGS, Judged, raised
from roundtrip.domain.policy import POLICY
from roundtrip.domain.types import Address
from roundtrip.domain.verdict import judge
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

ZERO = Address("0x" + "0" * 40)
DEAD = Address("0x000000000000000000000000000000000000dead")


def flags(found: Evidence) -> tuple[str, ...]:
    return raised(Judged(found, judge(found, POLICY), POLICY))


def owned(**changes: object) -> Evidence:
    return evidence(venue(), facts=replace(TOKEN_FACTS, **changes))  # type: ignore[arg-type]


def worth(quote_raw: int, quote: str = "weth") -> VenueEvidence:
    return venue(facts=replace(LIQUID, quote_reserve_raw=quote_raw), quote=quote)  # type: ignore[arg-type]


def keeping(keep_bps: int) -> VenueEvidence:
    return venue(cells(keep_bps), fee_pips=fee_that_keeps(keep_bps))


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
    whole = evidence(
        worth(0), keeping(1000), venue(cells(90), impact_bps=2000), facts=replace(TOKEN_FACTS, owner=OWNER)
    )
    assert flags(whole) == tuple(FLAGS)
