"""What a round trip's cost is made of: what is not known is never nothing."""

from dataclasses import replace

import pytest

from evidence.corpus import documents
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.cost import Cost, cost_of
from roundtrip.domain.check.evidence import (
    CompletedBuy,
    Curve,
    Evidence,
    LaunchRecord,
    Missing,
    Sold,
    VenueEvidence,
)
from roundtrip.domain.check.verdict import judge, shown_index

GAP = Missing("node", "it took too long")


def kept(name: str) -> Evidence:
    return canonical_json.load(Evidence, documents()[name])


def cost(evidence: Evidence) -> Cost | None:
    judgement = judge(evidence, POLICY)
    index = shown_index(judgement)
    return None if index is None else cost_of(evidence, index, judgement.readings[index])


def known(evidence: Evidence) -> Cost:
    found = cost(evidence)
    assert found is not None
    return found


def only(evidence: Evidence) -> VenueEvidence:
    (venue,) = evidence.venues
    return venue


@pytest.mark.parametrize(
    ("name", "pool", "tax", "buy", "sell"),
    [
        ("plain", 60, 0, 0, 0),
        ("usdg_pool", 60, 0, 0, 0),
        ("both_versions", 10, 0, 0, 0),
        ("fee_on_buy", 60, 1988, 2000, 0),
        ("heavy_fee_on_buy", 60, 5964, 6000, 0),
        ("v4_fee_on_sell", 60, 994, 0, 1000),
        ("curve", 199, 0, 0, 0),
        ("curve_taxed", 199, 1520, 800, 800),
        ("graduated_taxed", 199, 965, 500, 500),
        ("first_graduated", 199, 0, 0, 0),
        ("hook_takes_tenth", 1949, 0, 0, 0),
        ("hook_harmless", 60, 0, 0, 0),
    ],
)
def test_what_each_sort_of_token_costs(name: str, pool: int, tax: int, buy: int, sell: int) -> None:
    """The taxes that the sample contracts take, to the hundredth of a percent."""
    found = known(kept(name))
    assert (found.pool_bps, found.tax_bps, found.buy_tax_bps, found.sell_tax_bps) == (pool, tax, buy, sell)
    assert found.taken_bps is not None
    assert abs(found.taken_bps - pool - tax) <= 1


@pytest.mark.parametrize("name", ["owner_only_sell", "blacklist_after_buy", "hook_allow_list", "fee_on_sell"])
def test_what_never_sold_has_no_taxes_that_are_known(name: str) -> None:
    found = known(kept(name))
    assert (found.round_trip_bps, found.taken_bps, found.tax_bps) == (None, None, None)
    assert (found.buy_tax_bps, found.sell_tax_bps) == (None, None)


def test_where_nothing_was_bought_nothing_costs() -> None:
    for name in ("no_pool", "empty_pool", "paused", "not_a_token", "plain_without_its_pool"):
        assert cost(kept(name)) is None


def test_what_a_hook_keeps_is_told_apart_only_where_transfers_were_seen() -> None:
    hooked = kept("hook_takes_tenth")
    venue = replace(only(hooked), carried=GAP)
    found = known(replace(hooked, venues=(venue,)))
    assert (found.pool_bps, found.tax_bps, found.buy_tax_bps) == (None, None, None)
    silent = known(kept("hook_allow_list"))
    assert silent.pool_bps is None


def test_more_than_the_launchpad_tells_is_of_no_known_way() -> None:
    result = kept("curve_taxed")
    assert isinstance(result.launch, LaunchRecord)
    found = known(replace(result, launch=replace(result.launch, creator_tax_bps=0)))
    assert (found.tax_bps, found.buy_tax_bps, found.sell_tax_bps) == (1520, None, None)


def test_the_tax_of_the_first_seconds_is_one_of_the_buy() -> None:
    result = kept("curve")
    assert isinstance(result.launch, LaunchRecord)
    state = result.launch.curve_state
    assert isinstance(state, Curve)
    launch = replace(result.launch, curve_state=replace(state, snipe_bps=3000))
    found = known(replace(result, launch=launch))
    assert (found.buy_tax_bps, found.sell_tax_bps, found.pool_bps) == (3000, 0, 199)
    # Of 69 % that are left of the buy 99 % are left of the sell: 31.69 % in all.
    assert found.tax_bps == 3169 - 199


def test_a_launch_that_was_not_told_costs_what_is_not_known() -> None:
    found = known(replace(kept("curve"), launch=GAP))
    assert (found.pool_bps, found.tax_bps, found.buy_tax_bps) == (None, None, None)


def test_what_does_not_fit_the_pools_formula_is_of_no_known_way() -> None:
    """A buy that brought more than the pool gives: the sum is known, what each way takes is not."""
    taxed = kept("v4_fee_on_sell")
    venue = only(taxed)
    buys = tuple(
        replace(buy, outcome=replace(buy.outcome, received_raw=buy.outcome.received_raw * 2))
        if buy.size == "thousandth" and isinstance(buy.outcome, CompletedBuy)
        else buy
        for buy in venue.buys
    )
    found = known(replace(taxed, venues=(replace(venue, buys=buys),)))
    assert (found.tax_bps, found.buy_tax_bps, found.sell_tax_bps) == (994, None, None)


def test_what_is_given_back_is_no_tax() -> None:
    plain = kept("plain")
    venue = only(plain)
    cells = tuple(
        replace(cell, outcome=replace(cell.outcome, back_raw=cell.outcome.paid_raw * 2))
        if cell.probe.size == "thousandth" and isinstance(cell.outcome, Sold)
        else cell
        for cell in venue.cells
    )
    found = known(replace(plain, venues=(replace(venue, cells=cells),)))
    assert (found.tax_bps, found.buy_tax_bps, found.sell_tax_bps) == (0, 0, 0)
