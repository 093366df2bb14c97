"""What logs mean, by hand: whose trade it was, what is a part of what, and what nobody is to believe."""

from dataclasses import replace
from typing import Any

import pytest

from roundtrip.domain.base.events import (
    CurveTraded,
    HookFeeTaken,
    LaunchedToken,
    LaunchMoved,
    LiquidityMoved,
    Operated,
    OperationsBegin,
    Swapped,
    Transferred,
)
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.transaction.account import (
    AllowanceGiven,
    DecodedLog,
    EthWrapped,
    KnownMarket,
    MovedAsset,
    OperationEnded,
    TransactionFacts,
    TransactionSummary,
    logs_all_eth,
    merge_wraps,
    sum_logged_eth,
    sum_net_changes,
)
from roundtrip.domain.transaction.reader import interpret_transaction


def at(number: int) -> Address:
    return Address(f"0x{number:040x}")


ALICE, BOB, ROUTER, ENTRY, HOOK, LAUNCHER, PERMIT2, EVIL, BOT = (at(n) for n in range(0xA1, 0xAA))
TOKEN, OTHER, WETH, POOL, CURVE, USDG = (at(n) for n in range(0xB1, 0xB7))
V4 = "0x" + "44" * 32
IN_V3 = KnownMarket(POOL, "amm_v3", TOKEN, WETH, True)
IN_V4 = KnownMarket(V4, "launchpad_pool", TOKEN, ZERO_ADDRESS, True)
ON_CURVE = KnownMarket(CURVE, "launchpad_curve", TOKEN, ZERO_ADDRESS, True)
MARKETS = {one.at: one for one in (IN_V3, IN_V4, ON_CURVE)}


def swap(place: str, token_raw: int, quote_raw: int, sender: Address = ROUTER) -> Swapped:
    """As the pool sees it: above zero paid in. Its token is the lower address but against eth."""
    pair = (quote_raw, token_raw) if place == V4 else (token_raw, quote_raw)
    return Swapped(place, *pair, 2**96, 1, 0, sender, None)


def on_curve(buys: bool, wallet: Address, recipient: Address, quote_raw: int, token_raw: int) -> CurveTraded:
    return CurveTraded(CURVE, buys, wallet, recipient, quote_raw, token_raw, 0, 0)


def doing(
    *expected: DecodedLog, value_wei: int = 0, to: Address | None = ROUTER, has_data: bool = True
) -> TransactionFacts:
    return TransactionFacts(
        sender=ALICE,
        to=to,
        value_wei=value_wei,
        has_data=has_data,
        created=None,
        logs=list(enumerate(expected, 5)),
        weth=WETH,
        usdg=USDG,
        machinery=frozenset({ROUTER, WETH, USDG, PERMIT2, LAUNCHER, HOOK}),
        permit2=PERMIT2,
        router=LAUNCHER,
        hook=HOOK,
        entry_points=frozenset({ENTRY}),
    )


def sold(raw: int, quote_raw: int, seller: Address = ALICE) -> list[DecodedLog]:
    """In the v3 pool, by the router."""
    return [Transferred(TOKEN, seller, POOL, raw), swap(POOL, raw, -quote_raw)]


def of(*expected: DecodedLog, value_wei: int = 0) -> TransactionSummary:
    return interpret_transaction(doing(*expected, value_wei=value_wei), MARKETS)


def test_a_buy_is_one_step_and_its_parts_are_none() -> None:
    found = of(
        EthWrapped(ROUTER, 100, True),
        Transferred(WETH, ROUTER, POOL, 100),
        Transferred(TOKEN, POOL, ALICE, 900),
        swap(POOL, -900, 100),
        value_wei=100,
    )
    (step,) = found.steps
    assert (found.kind, step.kind, step.actor, step.at) == ("trade", "buy", ALICE, POOL)
    assert (step.paid, step.got) == (MovedAsset(WETH, 100), MovedAsset(TOKEN, 900))


def test_what_a_token_keeps_of_a_sell_is_a_step_of_its_own() -> None:
    found = of(
        Transferred(TOKEN, ALICE, BOB, 5),
        Transferred(TOKEN, ALICE, POOL, 95),
        AllowanceGiven(TOKEN, ALICE, ROUTER, 0),
        swap(POOL, 95, -40),
    )
    assert [step.kind for step in found.steps] == ["transfer", "sell"]
    assert found.steps[0].to == BOB


def test_money_that_goes_elsewhere_beside_a_trade_is_told() -> None:
    """Whatever it is, and also where it goes through the router."""
    moves: list[DecodedLog] = [
        Transferred(USDG, BOB, EVIL, 5),
        Transferred(WETH, ALICE, EVIL, 6),
        Transferred(USDG, ROUTER, EVIL, 7),
        Transferred(OTHER, BOB, ROUTER, 8),
        AllowanceGiven(TOKEN, ALICE, EVIL, 9),
        AllowanceGiven(TOKEN, ALICE, ROUTER, 9),
    ]
    found = of(*moves, *sold(95, 40))
    assert [(step.kind, step.token, step.to) for step in found.steps] == [
        ("transfer", USDG, EVIL),
        ("transfer", WETH, EVIL),
        ("transfer", USDG, EVIL),
        ("transfer", OTHER, ROUTER),
        ("approval", TOKEN, EVIL),
        ("sell", TOKEN, None),
    ]
    assert found.losers == (BOB,)


def test_what_only_hands_on_is_a_part_and_who_keeps_is_none() -> None:
    """As an aggregator does that no list has."""
    through: list[DecodedLog] = [
        Transferred(TOKEN, ALICE, BOT, 95),
        *sold(95, 40, BOT),
        Transferred(WETH, POOL, BOT, 40),
        Transferred(WETH, BOT, ALICE, 40),
    ]
    (step,) = of(*through).steps
    assert (step.actor, step.to) == (ALICE, None)
    kept = of(*through[:-1], Transferred(WETH, BOT, ALICE, 30))
    assert [step.kind for step in kept.steps] == ["sell", "transfer", "transfer"]


def test_a_trade_is_whose_who_paid_it() -> None:
    victims = of(*sold(95, 40, BOB), Transferred(WETH, POOL, ALICE, 40))
    trade = victims.steps[-1]
    assert (trade.kind, trade.actor, trade.to) == ("sell", None, ALICE)
    assert victims.losers == (BOB,)
    half = of(Transferred(TOKEN, ALICE, POOL, 5), *sold(95, 40, BOB)[:1], swap(POOL, 100, -40))
    assert [step.actor for step in half.steps if step.kind == "sell"] == [None]


@pytest.mark.parametrize("value_wei", [99, 100])
def test_a_buy_is_the_senders_only_where_it_sent_enough(value_wei: int) -> None:
    found = of(Transferred(TOKEN, POOL, ALICE, 900), swap(POOL, -900, 100), value_wei=value_wei)
    assert found.steps[0].actor == (ALICE if value_wei == 100 else None)
    twice: list[DecodedLog] = [Transferred(TOKEN, POOL, ALICE, 900), swap(POOL, -900, 60)] * 2
    assert [step.actor for step in of(*twice, value_wei=value_wei).steps] == [ALICE, None]


def test_an_account_pays_eth_unseen_unless_somebody_is_seen_paying() -> None:
    def bought(*more: DecodedLog) -> TransactionSummary:
        logs = [*more, Transferred(TOKEN, POOL, BOB, 900), swap(POOL, -900, 100)]
        return of(OperationsBegin(ENTRY), *logs, Operated(ENTRY, BOB))

    assert [step.actor for step in bought().steps] == [BOB]
    for payer in (EthWrapped(EVIL, 100, True), Transferred(WETH, EVIL, POOL, 100)):
        assert bought(payer).steps[-1].actor is None


@pytest.mark.parametrize("backwards", [False, True])
def test_a_way_over_pools_is_of_who_went_it_however_it_is_told(backwards: bool) -> None:
    second = replace_market(IN_V3, quote=TOKEN, is_money=True)._replace(at=OTHER, token=at(0xB0))
    hops: list[DecodedLog] = [swap(POOL, -900, 100), swap(OTHER, -70, 900)]
    if backwards:
        hops.reverse()
    moves = [Transferred(WETH, ALICE, POOL, 100), Transferred(at(0xB0), OTHER, ALICE, 70)]
    found = interpret_transaction(doing(*moves, *hops), {POOL: IN_V3, OTHER: second})
    assert [(step.actor, step.to) for step in found.steps] == [(ALICE, None)] * 2


def test_an_unlimited_right_within_a_trade_is_told() -> None:
    found = of(AllowanceGiven(TOKEN, ALICE, ROUTER, 2**256 - 1), *sold(95, 40))
    assert [step.kind for step in found.steps] == ["approval", "sell"]


@pytest.mark.parametrize("buys", [True, False])
def test_the_hooks_fee_is_off_what_a_trade_brought(buys: bool) -> None:
    sign = -1 if buys else 1
    currency = TOKEN if buys else ZERO_ADDRESS
    traded = swap(V4, sign * 900, -sign * 100)
    own = swap(V4, 7, -1, HOOK)
    (step,) = of(traded, own, HookFeeTaken(V4, currency, 10)).steps
    paid, got = (
        (MovedAsset(ZERO_ADDRESS, 100), MovedAsset(TOKEN, 890))
        if buys
        else (MovedAsset(TOKEN, 900), MovedAsset(ZERO_ADDRESS, 90))
    )
    assert (step.paid, step.got) == (paid, got)


def test_pools_that_nobody_knows_are_counted_and_not_believed() -> None:
    strange = swap(str(BOB), -900, 100)
    found = of(
        strange, on_curve(True, ALICE, ALICE, 1, 1)._replace(at=OTHER), Transferred(TOKEN, BOB, ALICE, 9)
    )
    assert found.strange_swaps == 2
    assert (found.kind, [step.kind for step in found.steps]) == ("transfer", ["transfer"])


def test_a_v3_swap_said_to_be_of_a_curve_is_not_believed() -> None:
    found = of(swap(str(CURVE), -900, 100), CurveTraded(POOL, True, ALICE, ALICE, 1, 1, 0, 0))
    assert (found.strange_swaps, found.kind) == (2, "call")


def test_neither_side_money_is_a_swap() -> None:
    market = replace_market(IN_V3, quote=OTHER, is_money=False)
    (step,) = interpret_transaction(doing(swap(POOL, -900, 100)), {POOL: market}).steps
    assert (step.kind, step.paid, step.got) == ("swap", MovedAsset(OTHER, 100), MovedAsset(TOKEN, 900))


def replace_market(market: KnownMarket, quote: Address, is_money: bool) -> KnownMarket:
    return market._replace(quote=quote, is_money=is_money)


def test_a_launch_that_buys_for_somebody() -> None:
    found = of(
        Transferred(TOKEN, ZERO_ADDRESS, CURVE, 10**9),
        LaunchedToken(TOKEN, ALICE, ZERO_ADDRESS, CURVE, 2, 1),
        Transferred(TOKEN, CURVE, BOB, 90),
        on_curve(True, LAUNCHER, BOB, 10, 90),
    )
    assert (found.kind, [step.kind for step in found.steps]) == ("launch", ["launch", "buy"])
    assert (found.steps[1].actor, found.steps[1].to, found.recipients) == (BOB, None, (BOB,))


def test_anybody_else_who_is_paid_did_not_trade() -> None:
    """A famous wallet may be paid by whoever wants it to seem a buyer: it is named and did nothing."""
    found = of(on_curve(True, ALICE, BOB, 10, 90))
    assert (found.steps[0].actor, found.steps[0].to, found.recipients) == (ALICE, BOB, (BOB,))


def test_what_a_graduation_moves_to_its_pool_is_a_part_of_it() -> None:
    found = of(Transferred(TOKEN, at(0xC1), HOOK, 7), LaunchMoved(TOKEN, "swept", 1, 2))
    assert (found.kind, [step.kind for step in found.steps]) == ("graduation", ["graduation"])


def test_what_is_paid_out_beside_a_graduation_is_told() -> None:
    found = of(Transferred(USDG, BOB, EVIL, 5), LaunchMoved(TOKEN, "swept", 1, 2))
    assert [step.kind for step in found.steps] == ["transfer", "graduation"]
    assert found.losers == (BOB,)


def test_liquidity_has_its_sides_in_order() -> None:
    added, taken = (LiquidityMoved(POOL, ALICE, -10, 10, sign * 5, sign * 3, sign * 4) for sign in (1, -1))
    found = of(added, taken)
    assert [step.kind for step in found.steps] == ["liquidity_added", "liquidity_taken"]
    assert {(step.paid, step.got) for step in found.steps} == {(MovedAsset(TOKEN, 3), MovedAsset(WETH, 4))}
    counted = LiquidityMoved(POOL, ALICE, -10, 10, 0, 0, 0)
    assert of(counted).kind == "call"


def test_an_operations_trades_are_its_accounts() -> None:
    found = of(
        Transferred(TOKEN, ALICE, POOL, 1),
        swap(POOL, 1, -1),
        OperationsBegin(ENTRY),
        Transferred(TOKEN, POOL, BOB, 900),
        swap(POOL, -900, 100),
        Operated(ENTRY, BOB),
        OperationEnded(BOB, True),
    )
    assert [step.actor for step in found.steps] == [ALICE, BOB, BOB]
    assert (found.kind, found.accounts) == ("trade", (BOB,))


def test_plain_eth_and_what_is_told_of_eth() -> None:
    plain = doing(value_wei=7, to=BOB, has_data=False)
    found = interpret_transaction(plain, {})
    (step,) = found.steps
    assert (found.kind, step.kind, step.paid, step.to) == (
        "transfer",
        "transfer",
        MovedAsset(ZERO_ADDRESS, 7),
        BOB,
    )
    assert [sum_logged_eth(plain, found, who) for who in (ALICE, BOB)] == [-7, 7]
    itself = replace(plain, to=ALICE)
    assert sum_logged_eth(itself, interpret_transaction(itself, {}), ALICE) == 0


def test_eth_of_a_curve_and_of_weth_is_told() -> None:
    sold = doing(on_curve(False, ALICE, BOB, 10, 90), EthWrapped(ALICE, 3, False), value_wei=1)
    found = interpret_transaction(sold, MARKETS)
    assert [sum_logged_eth(sold, found, who) for who in (ALICE, BOB)] == [2, 10]


def test_of_eth_given_to_a_curve_only_what_it_kept_is_told() -> None:
    bought = doing(on_curve(True, ALICE, ALICE, 10, 90), value_wei=100, to=CURVE)
    assert sum_logged_eth(bought, interpret_transaction(bought, MARKETS), ALICE) == -10
    by_another = replace(bought, to=BOT)
    assert sum_logged_eth(by_another, interpret_transaction(by_another, MARKETS), ALICE) == -100
    assert [logs_all_eth(one, interpret_transaction(one, MARKETS)) for one in (bought, by_another)] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("expected", "more", "tells_all"),
    [
        (AllowanceGiven(TOKEN, ALICE, BOB, 1), {"to": TOKEN}, True),
        (AllowanceGiven(TOKEN, ALICE, BOB, 1), {"to": BOT}, False),
        (AllowanceGiven(TOKEN, ALICE, BOB, 1), {"to": TOKEN, "value_wei": 1}, False),
        (AllowanceGiven(TOKEN, ALICE, BOB, 1, True, 9), {"to": PERMIT2}, True),
        (Transferred(TOKEN, ALICE, BOB, 1), {"to": None}, False),
        (EthWrapped(ALICE, 5, True), {"to": WETH, "value_wei": 5}, True),
        (EthWrapped(ALICE, 5, False), {"to": BOT}, False),
        (OperationEnded(BOB, True), {"to": ENTRY}, False),
    ],
)
def test_eth_is_all_told_only_where_nobody_else_was_called(
    expected: DecodedLog, more: dict[str, Any], tells_all: bool
) -> None:
    one = doing(expected, **more)
    assert logs_all_eth(one, interpret_transaction(one, MARKETS)) is tells_all


def test_plain_eth_is_all_told_where_it_goes_to_no_contract() -> None:
    plain = doing(value_wei=5, to=BOB, has_data=False)
    for has_code in (True, False):
        one = replace(plain, to_has_code=has_code)
        assert logs_all_eth(one, interpret_transaction(one, {})) is not has_code


def test_weth_that_is_told_of_both_ways_is_made_once() -> None:
    made, burned = Transferred(WETH, ZERO_ADDRESS, ALICE, 5), Transferred(WETH, ALICE, ZERO_ADDRESS, 5)
    answer = EthWrapped(ALICE, 5, True)
    untold = EthWrapped(ALICE, 5, False)

    def once(*expected: DecodedLog) -> list[DecodedLog]:
        return [one for _, one in merge_wraps(list(enumerate(expected)), WETH)]

    assert once(made, answer) == once(answer, made) == once(made) == once(answer) == [answer]
    assert once(burned, untold, burned) == [untold] * 2
    assert once(made, answer, answer) == [answer] * 2
    assert once(made, untold) == [answer, untold]
    other = Transferred(TOKEN, ZERO_ADDRESS, ALICE, 5)
    assert once(other) == [other]


def test_tokens_net_out() -> None:
    moves: list[DecodedLog] = [
        Transferred(TOKEN, ALICE, BOB, 5),
        Transferred(TOKEN, BOB, ALICE, 5),
        Transferred(OTHER, ALICE, ALICE, 9),
        Transferred(OTHER, BOB, ALICE, 2),
        EthWrapped(ALICE, 4, True),
    ]
    assert sum_net_changes(enumerate(moves), WETH)[ALICE] == {OTHER: 2, WETH: 4}


def test_what_told_nothing_is_a_call() -> None:
    found = interpret_transaction(doing(value_wei=3, to=BOB), {})
    (step,) = found.steps
    assert (found.kind, step.kind, step.to, step.paid) == ("call", "call", BOB, MovedAsset(ZERO_ADDRESS, 3))
