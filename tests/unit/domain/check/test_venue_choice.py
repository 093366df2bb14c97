"""Which of several venues decides a check."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.evidence import VenueEvidence
from roundtrip.domain.check.verdict import Judgement, judge
from unit.domain.builders import LIQUID, NO_MONEY, bought, buys, cells, evidence, refused_cells, venue

ETH = 10**18
HOOK = Address("0x" + "c0" * 20)


def pool(
    number: int = 1,
    kind: VenueKind = "amm_v3",
    loss_bps: int = 60,
    more_raw: int = 0,
    money_wei: int = 10 * ETH,
    refused: str = "",
    hook: Address | None = None,
) -> VenueEvidence:
    """A pool with this address or id. ``more_raw``: what a buy brings beyond the usual. ``refused``: a
    sell."""
    usual = bought()
    probe = replace(usual, received_raw=usual.received_raw + more_raw)
    sells = refused_cells() if refused == "all" else cells(loss_bps, **{refused: NO_MONEY} if refused else {})
    found = venue(sells, all_buys=buys(probe), facts=replace(LIQUID, quote_reserve_raw=money_wei))
    at = f"0x{number:040x}"
    address, pool_id = (None, at) if kind == "amm_v4" else (Address(at), None)
    return replace(found, venue=replace(found.venue, kind=kind, pool=address, pool_id=pool_id, hook=hook))


def chosen(*venues: VenueEvidence) -> tuple[Judgement, VenueEvidence | None]:
    judgement = judge(evidence(*venues), POLICY)
    return judgement, None if judgement.best is None else venues[judgement.best]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        # A smaller loss, then more money, then v3 before v4, then the lower address or id.
        (pool(9, "amm_v4", loss_bps=60, money_wei=ETH), pool(1, "amm_v3", loss_bps=90)),
        (pool(9, "amm_v4", money_wei=11 * ETH), pool(1, "amm_v3")),
        (pool(9, "amm_v3"), pool(1, "amm_v4")),
        (pool(1), pool(2)),
        # One unit more, by rounding, decides nothing: the pool in which every sell goes through does.
        (pool(9, "amm_v4"), pool(1, "amm_v3", more_raw=1, refused="half")),
        (pool(9, "amm_v4"), pool(1, "amm_v3", more_raw=1, refused="half", money_wei=90 * ETH)),
        # What is more than rounding counts.
        (pool(2, refused="half", loss_bps=58), pool(1)),
        # A stranger's hook has to win by more than a margin.
        (pool(2, "amm_v4"), pool(1, "amm_v4", hook=HOOK)),
    ],
)
def test_which_of_two_venues_decides(better: VenueEvidence, worse: VenueEvidence) -> None:
    assert chosen(better, worse)[1] == better
    assert chosen(worse, better)[1] == better


pools = st.builds(
    pool,
    kind=st.sampled_from(["amm_v3", "amm_v4"]),
    loss_bps=st.sampled_from([60, 61, 1499, 1500, 5000]),
    more_raw=st.sampled_from([0, 1, 10**20]),
    money_wei=st.sampled_from([ETH, 2 * ETH]),
    refused=st.sampled_from(["", "half", "day", "all"]),
)


@given(st.lists(pools, min_size=2, max_size=4), st.data())
def test_the_order_of_the_venues_decides_nothing(found: list[VenueEvidence], data: st.DataObject) -> None:
    numbered = []
    for number, one in enumerate(found):
        at = Address(f"0x{number:040x}")
        place = replace(one.venue, pool=one.venue.pool and at, pool_id=one.venue.pool_id and at)
        numbered.append(replace(one, venue=place))
    mixed = data.draw(st.permutations(numbered))
    (first, venue_first), (second, venue_second) = chosen(*numbered), chosen(*mixed)
    assert venue_first == venue_second
    assert first.verdict == second.verdict
