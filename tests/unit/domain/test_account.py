"""What logs mean, by hand: whose trade it was, what is a part of what, and what nobody is to believe."""

from dataclasses import replace

import pytest

from roundtrip.domain.account import (
    Account,
    Allowed,
    Doing,
    Market,
    Moved,
    OperationEnded,
    Said,
    Wrapped,
    account,
    net_tokens,
    told_eth,
)
from roundtrip.domain.events import (
    CurveTraded,
    Executing,
    HookFeeTaken,
    Launched,
    LaunchMoved,
    LiquidityMoved,
    Operated,
    Swapped,
    Transferred,
)
from roundtrip.domain.types import ZERO_ADDRESS, Address


def at(number: int) -> Address:
    return Address(f"0x{number:040x}")


ALICE, BOB, ROUTER, ENTRY, HOOK, LAUNCHER = (at(n) for n in range(0xA1, 0xA7))
TOKEN, OTHER, WETH, POOL, CURVE = (at(n) for n in range(0xB1, 0xB6))
V4 = "0x" + "44" * 32
IN_V3 = Market(POOL, "amm_v3", TOKEN, WETH, True)
IN_V4 = Market(V4, "launchpad_pool", TOKEN, ZERO_ADDRESS, True)
ON_CURVE = Market(CURVE, "launchpad_curve", TOKEN, ZERO_ADDRESS, True)
MARKETS = {one.at: one for one in (IN_V3, IN_V4, ON_CURVE)}


def swap(place: str, token_raw: int, quote_raw: int, sender: Address = ROUTER) -> Swapped:
    """As the pool sees it: above zero paid in. Its token is the lower address but against eth."""
    pair = (quote_raw, token_raw) if place == V4 else (token_raw, quote_raw)
    return Swapped(place, *pair, 2**96, 1, 0, sender, None)


def on_curve(buys: bool, wallet: Address, recipient: Address, quote_raw: int, token_raw: int) -> CurveTraded:
    return CurveTraded(CURVE, buys, wallet, recipient, quote_raw, token_raw, 0, 0)


def doing(*said: Said, value_wei: int = 0, to: Address | None = ROUTER, has_data: bool = True) -> Doing:
    return Doing(
        ALICE, to, value_wei, has_data, None, list(enumerate(said, 5)), frozenset({ROUTER, WETH}), LAUNCHER,
        HOOK, frozenset({ENTRY}),
    )  # fmt: skip


def of(*said: Said) -> Account:
    return account(doing(*said), MARKETS)


def test_a_buy_is_one_step_and_its_parts_are_none() -> None:
    found = of(
        Wrapped(ROUTER, 100, True),
        Transferred(WETH, ROUTER, POOL, 100),
        Transferred(TOKEN, POOL, ALICE, 900),
        swap(POOL, -900, 100),
    )
    (step,) = found.steps
    assert (found.kind, step.kind, step.who, step.at) == ("trade", "buy", ALICE, POOL)
    assert (step.paid, step.got) == (Moved(WETH, 100), Moved(TOKEN, 900))


def test_what_a_token_keeps_of_a_sell_is_a_step_of_its_own() -> None:
    found = of(
        Transferred(TOKEN, ALICE, BOB, 5),
        Transferred(TOKEN, ALICE, POOL, 95),
        Allowed(TOKEN, ALICE, ROUTER, 0),
        swap(POOL, 95, -40),
    )
    assert [step.kind for step in found.steps] == ["transfer", "sell"]
    assert found.steps[0].to == BOB


def test_an_unlimited_right_within_a_trade_is_told() -> None:
    found = of(Allowed(TOKEN, ALICE, ROUTER, 2**256 - 1), swap(POOL, 95, -40))
    assert [step.kind for step in found.steps] == ["approval", "sell"]


@pytest.mark.parametrize("buys", [True, False])
def test_the_hooks_fee_is_off_what_a_trade_brought(buys: bool) -> None:
    sign = -1 if buys else 1
    currency = TOKEN if buys else ZERO_ADDRESS
    traded = swap(V4, sign * 900, -sign * 100)
    own = swap(V4, 7, -1, HOOK)
    (step,) = of(traded, own, HookFeeTaken(V4, currency, 10)).steps
    paid, got = (
        (Moved(ZERO_ADDRESS, 100), Moved(TOKEN, 890))
        if buys
        else (Moved(TOKEN, 900), Moved(ZERO_ADDRESS, 90))
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
    (step,) = account(doing(swap(POOL, -900, 100)), {POOL: market}).steps
    assert (step.kind, step.paid, step.got) == ("swap", Moved(OTHER, 100), Moved(TOKEN, 900))


def replace_market(market: Market, quote: Address, is_money: bool) -> Market:
    return market._replace(quote=quote, is_money=is_money)


def test_a_launch_that_buys_for_somebody() -> None:
    found = of(
        Transferred(TOKEN, ZERO_ADDRESS, CURVE, 10**9),
        Launched(TOKEN, ALICE, ZERO_ADDRESS, CURVE, 2, 1),
        Transferred(TOKEN, CURVE, BOB, 90),
        on_curve(True, LAUNCHER, BOB, 10, 90),
    )
    assert (found.kind, [step.kind for step in found.steps]) == ("launch", ["launch", "buy"])
    assert (found.steps[1].who, found.recipients) == (BOB, (BOB,))


def test_anybody_else_who_is_paid_did_not_trade() -> None:
    """A famous wallet may be paid by whoever wants it to seem a buyer: it is named and did nothing."""
    found = of(on_curve(True, ALICE, BOB, 10, 90))
    assert (found.steps[0].who, found.recipients) == (ALICE, (BOB,))


def test_what_a_graduation_pays_out_is_a_part_of_it() -> None:
    moves = [Transferred(OTHER, CURVE, BOB, 5), Transferred(TOKEN, BOB, OTHER, 7)]
    found = of(*moves, LaunchMoved(TOKEN, "swept", 1, 2))
    assert (found.kind, [step.kind for step in found.steps]) == ("graduation", ["graduation"])


def test_liquidity_has_its_sides_in_order() -> None:
    added, taken = (LiquidityMoved(POOL, ALICE, -10, 10, sign * 5, sign * 3, sign * 4) for sign in (1, -1))
    found = of(added, taken)
    assert [step.kind for step in found.steps] == ["liquidity_added", "liquidity_taken"]
    assert {(step.paid, step.got) for step in found.steps} == {(Moved(TOKEN, 3), Moved(WETH, 4))}
    counted = LiquidityMoved(POOL, ALICE, -10, 10, 0, 0, 0)
    assert of(counted).kind == "call"


def test_an_operations_trades_are_its_accounts() -> None:
    found = of(
        swap(POOL, -1, 1),
        Executing(ENTRY),
        swap(POOL, -900, 100),
        Operated(ENTRY, BOB),
        OperationEnded(BOB, True),
    )
    assert [step.who for step in found.steps] == [ALICE, BOB, BOB]
    assert (found.kind, found.accounts) == ("trade", (BOB,))


def test_plain_eth_and_what_is_told_of_eth() -> None:
    plain = doing(value_wei=7, to=BOB, has_data=False)
    found = account(plain, {})
    (step,) = found.steps
    assert (found.kind, step.kind, step.paid, step.to) == (
        "transfer",
        "transfer",
        Moved(ZERO_ADDRESS, 7),
        BOB,
    )
    assert [told_eth(plain, found, who) for who in (ALICE, BOB)] == [-7, 7]
    itself = replace(plain, to=ALICE)
    assert told_eth(itself, account(itself, {}), ALICE) == 0


def test_eth_of_a_curve_and_of_weth_is_told() -> None:
    sold = doing(on_curve(False, ALICE, BOB, 10, 90), Wrapped(ALICE, 3, False), value_wei=1)
    found = account(sold, MARKETS)
    assert [told_eth(sold, found, who) for who in (ALICE, BOB)] == [2, 10]


def test_tokens_net_out() -> None:
    moves: list[Said] = [
        Transferred(TOKEN, ALICE, BOB, 5),
        Transferred(TOKEN, BOB, ALICE, 5),
        Transferred(OTHER, ALICE, ALICE, 9),
        Transferred(OTHER, BOB, ALICE, 2),
        Wrapped(ALICE, 4, True),
    ]
    assert net_tokens(enumerate(moves), ALICE, WETH) == {OTHER: 2, WETH: 4}


def test_what_told_nothing_is_a_call() -> None:
    found = account(doing(value_wei=3, to=BOB), {})
    (step,) = found.steps
    assert (found.kind, step.kind, step.to, step.paid) == ("call", "call", BOB, Moved(ZERO_ADDRESS, 3))
