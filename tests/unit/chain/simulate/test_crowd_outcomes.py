"""What a wallet of the crowd met, read from hand-made balances and the pool's own events."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from roundtrip.chain.simulate.crowd_outcomes import (
    MemberBuys,
    VenueAmounts,
    read_attempts,
    read_buys,
    read_trade,
    venue_amounts,
)
from roundtrip.chain.simulate.crowd_plans import Attempt, CrowdTrader
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.outcomes import NO_ROUTE
from roundtrip.chain.simulate.request import Results, StepResult
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.base.venue import DYNAMIC_FEE_FLAG
from roundtrip.domain.check.evidence import CrowdSale, Missing, RefusedCall, Sold
from roundtrip.venues import amm_v3, amm_v4, launchpad_curve
from unit.chain.crowds import logs_of, swap_log, traded, trader
from unit.chain.samples import GAS_PRICE_WEI, did, error_string, refused
from unit.chain.trades import ETH, EVERY_PLACE, SETTING, TOKEN, USDG, WETH, renamed
from unit.services.engine.crowds import CURVE
from unit.venues.logs import CURVE_BUY, CURVE_SELL, STRANGER, TRANSFER
from unit.venues.network import ABOVE, CONTRACTS, address

GIVEN, PAID_OUT = 5 * 10**20, 9 * 10**16
BUY_GAS, SELL_GAS = 151_000, 122_000
BUYS = MemberBuys(GIVEN, GIVEN, BUY_GAS)
BEFORE_WEI = 10**18
NO_BALANCES = Missing("token", "the token does not return balances")
NO_MONEY_READ = Missing("node", "a balance of the money side could not be read")


def trade(
    place: VenuePlace = WETH,
    back: int = PAID_OUT,
    left: int = 0,
    taken: int = GIVEN,
    paid: int = PAID_OUT,
    tip_wei: int = 0,
    **changes: StepResult,
) -> Results:
    """A buy and a sell of all of it: the pool pays ``paid``, of which ``back`` arrives."""
    gas_wei = 0 if place is USDG else SELL_GAS * (100 + tip_wei)
    actual = {
        "m0-buy": traded(place, GIVEN, 10**17, BUY_GAS),
        "m0-approve-0": did(gas=46_000),
        "m0-before-quote": did(BEFORE_WEI),
        "m0-sell-0": traded(place, taken, paid, SELL_GAS, buys=False),
        "m0-after-quote": did(BEFORE_WEI + back - gas_wei),
        "m0-token": did(left),
    }
    return actual | renamed({f"m0_{name}": result for name, result in changes.items()})


def met(
    results: Results,
    of: CrowdTrader | None = None,
    buys: MemberBuys = BUYS,
    amounts: tuple[int, ...] = (GIVEN,),
    measured: bool = True,
) -> object:
    return read_trade(results, of or trader(), buys, list(amounts), measured)


# --- what the venue says ------------------------------------------------------------------------------


@EVERY_PLACE
@pytest.mark.parametrize("buys", [True, False])
def test_the_pools_own_event_says_what_it_gave_and_took(place: VenuePlace, buys: bool) -> None:
    result = traded(place, 7_000, 33, 1, buys)
    assert venue_amounts(result, place, SETTING) == VenueAmounts(7_000, 33)


def test_a_token_above_its_quote_is_read_the_other_way_round() -> None:
    above = VenuePlace(amm_v3.pool(ABOVE, CONTRACTS.weth, 3000, CONTRACTS), amm_v3)
    assert above.venue.pool is not None
    log = swap_log(WETH, 1, 1)._replace(address=above.venue.pool)
    data = (10**17).to_bytes(32, "big") + (-9).to_bytes(32, "big", signed=True) + log.data[64:]
    result = structs.replace(did(), logs=logs_of(log._replace(data=data)))
    assert venue_amounts(result, above, replace(SETTING, token=ABOVE)) == VenueAmounts(9, 10**17)


def test_a_curves_own_event_says_what_it_gave_and_took() -> None:
    assert CURVE.venue.pool is not None
    wallets = address(1), address(2)
    bought = CURVE_BUY.log(CURVE.venue.pool, *wallets, 10**17, 5_000, 10**15, 0)
    sold = CURVE_SELL.log(CURVE.venue.pool, *wallets, 5_000, 9 * 10**16, 10**15, 0)
    assert venue_amounts(structs.replace(did(), logs=logs_of(bought)), CURVE, SETTING) == VenueAmounts(
        5_000, 10**17
    )
    result = structs.replace(did(), logs=logs_of(sold))
    assert venue_amounts(result, CURVE, SETTING) == VenueAmounts(5_000, 9 * 10**16)
    assert CURVE.file is launchpad_curve


def test_of_several_trades_the_last_on_this_venue_counts() -> None:
    other = swap_log(USDG, 1, 1)
    transfer = TRANSFER.log(TOKEN, address(1), address(2), 5)
    result = structs.replace(did(), logs=logs_of(swap_log(WETH, 1, 1), swap_log(WETH, 8, 9), other, transfer))
    assert venue_amounts(result, WETH, SETTING) == VenueAmounts(8, 9)


@pytest.mark.parametrize(
    ("place", "logs"),
    [
        (WETH, ()),
        (WETH, (swap_log(USDG, 1, 1),)),
        (WETH, (TRANSFER.log(TOKEN, address(1), address(2), 5),)),
        (WETH, (swap_log(WETH, 1, 1)._replace(topics=()),)),
        # A pool's contract is known by its address, a v4 pool by the manager's.
        (WETH, (swap_log(WETH, 1, 1)._replace(address=STRANGER),)),
        (ETH, (swap_log(ETH, 1, 1)._replace(address=STRANGER),)),
    ],
    ids=["no logs", "another pool", "a transfer", "no topics", "a stranger's v3", "a stranger's v4"],
)
def test_what_others_say_of_a_trade_does_not_count(place: VenuePlace, logs: tuple[object, ...]) -> None:
    result = structs.replace(did(), logs=logs_of(*logs))  # type: ignore[arg-type]
    assert venue_amounts(result, place, SETTING) is None


# --- a trade in company -------------------------------------------------------------------------------


@EVERY_PLACE
def test_a_trade_is_read_to_the_wei(place: VenuePlace) -> None:
    expected = CrowdSale(GIVEN, GIVEN, GIVEN, GIVEN, PAID_OUT, PAID_OUT)
    assert met(trade(place), trader(place)) == expected


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**10), st.integers(0, 10**18))
def test_the_sells_gas_is_added_back_with_the_wallets_tip(tip_wei: int, back: int) -> None:
    actual = met(trade(back=back, tip_wei=tip_wei), trader(tip_wei=tip_wei))
    assert isinstance(actual, CrowdSale)
    assert actual.back_raw == back
    assert trader().environment.base_fee_wei + trader().environment.tip_wei == GAS_PRICE_WEI


def test_a_price_above_the_most_that_the_wallet_offers_is_not_paid() -> None:
    """Its most is the environment's without its tip, plus the wallet's own."""
    low = replace(trader().environment, max_fee_wei=60, tip_wei=7)
    actual = met(trade(back=PAID_OUT), structs.replace(trader(tip_wei=5), environment=low))
    assert isinstance(actual, CrowdSale)
    assert actual.back_raw == PAID_OUT - SELL_GAS * 100 + SELL_GAS * 58


def test_for_dollars_no_gas_is_added() -> None:
    actual = met(trade(USDG, back=7), trader(USDG))
    assert isinstance(actual, CrowdSale)
    assert actual.back_raw == 7


def test_a_token_that_takes_a_part_on_its_way_in_and_out_is_seen_in_pairs() -> None:
    planned = GIVEN * 9 // 10
    results = trade(back=8 * 10**16, taken=planned * 8 // 10)
    assert met(results, buys=MemberBuys(GIVEN, planned, 1), amounts=(planned,)) == CrowdSale(
        given_raw=GIVEN,
        received_raw=planned,
        planned_raw=planned,
        taken_raw=planned * 8 // 10,
        paid_raw=PAID_OUT,
        back_raw=8 * 10**16,
    )


def test_what_is_left_arrived_too() -> None:
    """Of half that is sold, the other half is left; of a sale that moves less, more is left."""
    half = met(trade(left=GIVEN // 2, taken=GIVEN // 2), amounts=(GIVEN // 2,))
    assert half == CrowdSale(GIVEN, GIVEN, GIVEN // 2, GIVEN // 2, PAID_OUT, PAID_OUT)
    short = met(trade(left=GIVEN * 3 // 4, taken=GIVEN // 4))
    assert short == CrowdSale(GIVEN, GIVEN * 7 // 4, GIVEN, GIVEN // 4, PAID_OUT, PAID_OUT)


def test_a_token_that_charges_twice_leaves_less_than_arrived() -> None:
    """It takes all of it for a sale of half."""
    actual = met(trade(left=0, taken=GIVEN // 2), amounts=(GIVEN // 2,))
    assert actual == CrowdSale(GIVEN, GIVEN // 2, GIVEN // 2, GIVEN // 2, PAID_OUT, PAID_OUT)


def test_two_buys_are_given_together() -> None:
    again = traded(WETH, 3, 1, BUY_GAS)
    actual = met(trade(again=again, left=3))
    assert actual == CrowdSale(GIVEN + 3, GIVEN + 3, GIVEN, GIVEN, PAID_OUT, PAID_OUT)


def test_a_sell_that_the_venue_does_not_report_took_and_paid_nothing() -> None:
    actual = met(trade(sell_0=did(gas=SELL_GAS)))
    assert actual == CrowdSale(GIVEN, GIVEN, GIVEN, 0, 0, PAID_OUT)


HOOKED = amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, DYNAMIC_FEE_FLAG, 60, address(0xC4))
DYNAMIC = VenuePlace(HOOKED, amm_v4)
STEADY = VenuePlace(replace(HOOKED, fee_pips=3000), amm_v4)


@pytest.mark.parametrize(("place", "taken_bps"), [(DYNAMIC, 4030), (STEADY, 0)], ids=["each swap", "steady"])
def test_the_fee_that_a_hook_sets_for_each_swap_counts(place: VenuePlace, taken_bps: int) -> None:
    """A buy at 0.5 % and a sell at 40 %: a steady fee is in the main wallet's loss, too."""
    buy = structs.replace(did(gas=BUY_GAS), logs=logs_of(swap_log(place, GIVEN, 10**17, fee_pips=5000)))
    sell = structs.replace(did(gas=SELL_GAS), logs=logs_of(swap_log(place, GIVEN, PAID_OUT, False, 400_000)))
    actual = met(trade(place, buy=buy, sell_0=sell), trader(place))
    assert isinstance(actual, CrowdSale)
    assert actual.pool_bps == taken_bps


# --- refused ------------------------------------------------------------------------------------------

SAYS_NO = refused(error_string("not you"), gas=61_000)


@pytest.mark.parametrize(("label", "step"), [("buy", "buy"), ("buy_allow_0", "approve")])
def test_the_first_refused_step_is_named(label: str, step: str) -> None:
    results = trade(**{label: SAYS_NO})  # type: ignore[arg-type]
    assert met(results) == RefusedCall(step, "not you", 61_000)  # type: ignore[arg-type]


def test_a_refused_approval_counts_where_the_sell_needs_it() -> None:
    """Some tokens refuse to approve Permit2 what they let it take anyway."""
    assert met(trade(approve_0=SAYS_NO, sell_0=refused(), left=GIVEN)) == RefusedCall(
        "approve", "not you", 61_000
    )
    assert isinstance(met(trade(approve_0=SAYS_NO)), CrowdSale)
    assert alone(alone_results(*[refused()] * 3, approve_0=SAYS_NO)) == RefusedCall(
        "approve", "not you", 61_000
    )
    assert isinstance(alone(alone_results(SOLD, SOLD, SOLD, approve_0=SAYS_NO)), Sold)


def test_a_buy_comes_before_its_approval() -> None:
    assert met(trade(buy=SAYS_NO, approve_0=refused())) == RefusedCall("buy", "not you", 61_000)


def test_where_the_money_could_not_be_had_nothing_is_known() -> None:
    assert met(trade(buy_fund=SAYS_NO, buy=refused())) == Missing("node", NO_ROUTE)


def test_a_second_buy_that_is_refused_is_no_refused_sell() -> None:
    actual = met(trade(again=SAYS_NO, sell_0=refused()))
    assert isinstance(actual, RefusedCall)
    assert actual.step == "buy"


def test_a_refused_sell_of_what_is_held_is_a_refusal() -> None:
    assert met(trade(sell_0=SAYS_NO, left=GIVEN)) == RefusedCall("sell", "not you", 61_000)
    assert met(trade(sell_0=refused(gas=399_000, out_of_gas=True), left=GIVEN)) == RefusedCall(
        "sell", "out of gas", 399_000
    )


@pytest.mark.parametrize("left", [0, GIVEN - 1])
def test_where_the_venue_gave_less_than_planned_there_is_no_result(left: int) -> None:
    less = traded(WETH, GIVEN - 1, 10**17, BUY_GAS)
    assert met(trade(buy=less, sell_0=SAYS_NO, left=left)) is None


def test_where_the_venue_gave_all_and_less_is_there_the_token_took_it() -> None:
    results = trade(sell_0=SAYS_NO, left=GIVEN // 3)
    assert met(results) == CrowdSale(GIVEN, GIVEN // 3, GIVEN, 0, 0, 0)


def test_a_sell_of_more_than_arrived_says_nothing_before_the_buys_were_measured() -> None:
    """A token that takes more of a second buy than of the main wallet's."""
    assert met(trade(sell_0=SAYS_NO, left=GIVEN // 3), measured=False) is None


def test_balances_that_cannot_be_read_are_missing() -> None:
    assert met(trade(token=refused())) == NO_BALANCES
    assert met(trade(before_quote=refused())) == NO_MONEY_READ
    assert met(trade(after_quote=did(b"\x01"))) == NO_MONEY_READ
    assert met(trade(after_quote=refused(), token=refused())) == NO_MONEY_READ


# --- pieces -------------------------------------------------------------------------------------------

PIECES = (GIVEN // 4,) * 4


def in_pieces(*sells: bool, left: int = 0) -> Results:
    """Four sells, each of which takes a quarter and pays a quarter."""
    actual = trade(left=left, back=0)
    after = BEFORE_WEI
    for n, ok in enumerate(sells):
        quarter = traded(WETH, GIVEN // 4, PAID_OUT // 4, SELL_GAS, buys=False)
        actual[f"m0-sell-{n}"] = quarter if ok else structs.replace(SAYS_NO, gas_used=SELL_GAS)
        after += (PAID_OUT // 4 if ok else 0) - SELL_GAS * 100
    return actual | {"m0-after-quote": did(after)}


def test_pieces_count_together() -> None:
    actual = met(in_pieces(True, True, True, True), amounts=PIECES)
    assert actual == CrowdSale(GIVEN, GIVEN, GIVEN, GIVEN, PAID_OUT, PAID_OUT)


def test_one_refused_piece_is_a_refusal() -> None:
    results = in_pieces(True, True, False, True, left=GIVEN // 4)
    assert met(results, amounts=PIECES) == RefusedCall("sell", "not you", SELL_GAS)


def test_a_refused_piece_of_what_is_gone_was_taken() -> None:
    results = in_pieces(True, False, True, True, left=0)
    assert met(results, amounts=PIECES) == CrowdSale(GIVEN, GIVEN * 3 // 4, GIVEN, 0, 0, 0)


def test_a_piece_that_charges_twice_is_seen_in_the_next() -> None:
    """The first takes two quarters: the last has nothing left to sell."""
    results = in_pieces(True, True, True, False, left=0)
    actual = met(results, amounts=PIECES)
    assert actual == CrowdSale(GIVEN, GIVEN * 3 // 4, GIVEN, 0, 0, 0)


# --- buys ---------------------------------------------------------------------------------------------


def test_measured_buys_have_what_was_given_what_arrived_and_the_most_gas() -> None:
    results = trade(again=traded(WETH, 7, 1, BUY_GAS + 5), token=did(GIVEN - 3))
    assert read_buys(results, trader()) == MemberBuys(GIVEN + 7, GIVEN - 3, BUY_GAS + 5)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"buy": SAYS_NO}, RefusedCall("buy", "not you", 61_000)),
        ({"again": SAYS_NO}, RefusedCall("buy", "not you", 61_000)),
        ({"again_allow_0": SAYS_NO}, RefusedCall("approve", "not you", 61_000)),
        ({"buy_fund": SAYS_NO}, Missing("node", NO_ROUTE)),
        ({"again_fund": SAYS_NO, "again": SAYS_NO}, Missing("node", NO_ROUTE)),
        ({"token": refused()}, NO_BALANCES),
        ({"token": did(0)}, RefusedCall("arrive", "nothing arrived for what was paid", BUY_GAS)),
    ],
    ids=["buy", "again", "approval", "fund", "second fund", "no balance", "nothing"],
)
def test_measured_buys_that_failed(changes: dict[str, StepResult], expected: object) -> None:
    assert read_buys(trade(**changes), trader()) == expected  # type: ignore[arg-type]


# --- alone --------------------------------------------------------------------------------------------

LIKE_MAIN = MemberBuys(GIVEN, GIVEN, BUY_GAS)
ATTEMPTS = (Attempt(13, GIVEN), Attempt(3600, GIVEN - 1), Attempt(86_400, GIVEN - 2))


def alone_results(*sells: StepResult, place: VenuePlace = WETH, **changes: StepResult) -> Results:
    price = 0 if place is USDG else 100
    had = 10**18
    actual = {
        "alone-buy": traded(place, GIVEN, 10**17, BUY_GAS),
        "alone-token": did(0 if any(sell.ok for sell in sells) else GIVEN),
        "alone-approve-0": did(),
    }
    for n, sell in enumerate(sells):
        back = PAID_OUT if sell.ok else 0
        actual |= {
            f"alone-before-{n}-quote": did(had),
            f"alone-sell-{n}": sell,
            f"alone-after-{n}-quote": did(had + back - sell.gas_used * price),
        }
    return actual | renamed({f"alone_{name}": result for name, result in changes.items()})


def alone(results: Results, place: VenuePlace = WETH, again_wei: int = 0) -> object:
    of = structs.replace(trader(place, again_wei=again_wei), label="alone")
    return read_attempts(results, of, ATTEMPTS, LIKE_MAIN, GIVEN)


SOLD = did(gas=SELL_GAS)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_alone_the_first_sell_that_succeeds_counts(first: int) -> None:
    sells = [SOLD if n >= first else SAYS_NO for n in range(3)]
    # What later sells took is not the first one's.
    sold_raw = GIVEN if first == 2 else GIVEN - first
    expected = Sold(10**17, GIVEN, GIVEN - first, sold_raw, PAID_OUT, BUY_GAS, SELL_GAS)
    assert alone(alone_results(*sells)) == expected


def test_alone_more_may_arrive_than_among_others() -> None:
    """Where nothing says what the main wallet kept of what the venue gave."""
    of, results = (
        structs.replace(trader(), label="alone"),
        alone_results(traded(WETH, GIVEN, 10**17, SELL_GAS)),
    )
    results["alone-token"] = did(GIVEN // 10)
    actual = read_attempts(results, of, ATTEMPTS[:1], structs.replace(LIKE_MAIN, given_raw=0), GIVEN)
    assert isinstance(actual, Sold)
    assert (actual.held_raw, actual.sold_raw) == (GIVEN + GIVEN // 10, GIVEN)
    kept = read_attempts(results, of, ATTEMPTS[:1], LIKE_MAIN, GIVEN)
    assert isinstance(kept, Sold)
    assert kept.held_raw == GIVEN


def test_alone_the_last_refusal_stays() -> None:
    last = refused(error_string("never"), gas=5)
    assert alone(alone_results(SAYS_NO, SAYS_NO, last)) == RefusedCall("sell", "never", 5)


def test_alone_two_buys_cost_together() -> None:
    results = alone_results(SAYS_NO, SAYS_NO, SOLD, again=did(gas=BUY_GAS + 9))
    expected = Sold(11 * 10**16, GIVEN, GIVEN - 2, GIVEN, PAID_OUT, BUY_GAS + 9, SELL_GAS)
    assert alone(results, again_wei=10**16) == expected


def test_alone_for_dollars_the_sizes_were_paid() -> None:
    actual = alone(alone_results(SOLD, SOLD, SOLD, place=USDG), USDG, again_wei=10**16)
    assert actual == Sold(385_000_000, GIVEN, GIVEN, GIVEN, PAID_OUT, BUY_GAS, SELL_GAS)


def test_alone_what_arrives_is_the_main_wallets_part_of_what_the_venue_gave() -> None:
    taxed, of = MemberBuys(GIVEN, GIVEN * 9 // 10, BUY_GAS), structs.replace(trader(), label="alone")
    actual = read_attempts(alone_results(SOLD), of, ATTEMPTS[:1], taxed, 7)
    assert isinstance(actual, Sold)
    assert actual.held_raw == GIVEN * 9 // 10
    untold = alone_results(SOLD, buy=did(gas=BUY_GAS))
    actual = read_attempts(untold, of, ATTEMPTS[:1], taxed, 7)
    assert isinstance(actual, Sold)
    assert actual.held_raw == 7


def test_alone_what_is_left_was_not_sold() -> None:
    actual = alone(alone_results(SOLD, SOLD, SOLD, token=did(GIVEN // 3)))
    assert isinstance(actual, Sold)
    assert (actual.held_raw, actual.sold_raw) == (GIVEN, GIVEN - GIVEN // 3)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"buy": SAYS_NO}, RefusedCall("buy", "not you", 61_000)),
        ({"buy_fund": SAYS_NO}, Missing("node", NO_ROUTE)),
        ({"token": refused()}, NO_BALANCES),
        ({"before_0_quote": refused()}, NO_MONEY_READ),
        ({"after_0_quote": refused()}, NO_MONEY_READ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_alone_what_failed_before_the_sell(changes: dict[str, StepResult], expected: object) -> None:
    assert alone(alone_results(SOLD, SOLD, SOLD, **changes)) == expected  # type: ignore[arg-type]
