"""What a swap, a curve's log and the hook's fee say of a trade; and whose it was."""

import pytest

from roundtrip.domain.base.events import TradeEvent
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from support.told_blocks import (
    HOOK,
    ROUTER,
    USDG,
    WETH,
    LoggedTransaction,
    bought,
    hook_fee,
    launched,
    sent,
    sold,
    v1_launched,
    v3_at,
    v3_opened,
    v3_swap,
    v4_at,
    v4_opened,
    v4_swap,
)
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH, LOW, SyncStory, traders

POOL = v4_at(HIGH, ZERO_ADDRESS, HOOK)
"""A launchpad's: eth is currency 0."""


def traded(*transactions: LoggedTransaction, story: SyncStory | None = None) -> list[TradeEvent]:
    """The trades of a block, once every place is there."""
    story = story or SyncStory()
    openings = (
        launched(HIGH, CURVE, DEV), v4_opened(HIGH, ZERO_ADDRESS, HOOK), v3_opened(HIGH, WETH),
        v3_opened(LOW, WETH), v4_opened(LOW, WETH), v3_opened(WETH, USDG), v4_opened(ZERO_ADDRESS, USDG),
        v4_opened(ZERO_ADDRESS, WETH),
    )  # fmt: skip
    story.block(sent(*openings))
    return story.block(*transactions).trades


def figures(trade: TradeEvent) -> tuple[bool, int, int]:
    return trade.buys, trade.token_raw, trade.quote_raw


# --- signs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "amounts", "figure"),
    [
        # A v3 pool's view: what is above zero was paid in. Weth is currency 0, or 1.
        (HIGH, (7, -5), (True, 5, 7)),
        (HIGH, (-7, 5), (False, 5, 7)),
        (LOW, (-5, 7), (True, 5, 7)),
        (LOW, (5, -7), (False, 5, 7)),
    ],
)
def test_v3_buys_and_sells(token: Address, amounts: tuple[int, int], figure: tuple[bool, int, int]) -> None:
    (trade,) = traded(sent(v3_swap(v3_at(token, WETH), *amounts)))
    assert figures(trade) == figure
    assert (trade.token, trade.quote, trade.at) == (token, WETH, v3_at(token, WETH))


@pytest.mark.parametrize(
    ("token", "amounts", "figure"),
    [
        # The swapper's view: what is above zero was paid out.
        (HIGH, (-7, 5), (True, 5, 7)),
        (HIGH, (7, -5), (False, 5, 7)),
        (LOW, (5, -7), (True, 5, 7)),
        (LOW, (-5, 7), (False, 5, 7)),
    ],
)
def test_v4_buys_and_sells(token: Address, amounts: tuple[int, int], figure: tuple[bool, int, int]) -> None:
    at = POOL if token == HIGH else v4_at(token, WETH)
    (trade,) = traded(sent(v4_swap(at, *amounts)))
    assert figures(trade) == figure


def test_curve_buys_and_sells() -> None:
    buy, sell = traded(sent(bought(CURVE, ALICE, ALICE, 7, 5)), sent(sold(CURVE, ALICE, ALICE, 6, 4)))
    assert (figures(buy), figures(sell)) == ((True, 5, 7), (False, 4, 6))
    assert (buy.token, buy.quote, buy.at) == (HIGH, ZERO_ADDRESS, CURVE)


@pytest.mark.parametrize(
    ("token", "amounts", "figure"),
    [
        (HIGH, (0, 5), (False, 5, 0)),
        (LOW, (5, 0), (False, 5, 0)),
        (HIGH, (0, -5), (True, 5, 0)),
        (LOW, (-5, 0), (True, 5, 0)),
    ],
)
def test_a_token_that_moves_for_nothing_is_sold_or_bought_for_nothing(
    token: Address, amounts: tuple[int, int], figure: tuple[bool, int, int]
) -> None:
    """Else who owns a pool could sell at a loss that nobody sees, and show only what he gains."""
    (trade,) = traded(sent(v3_swap(v3_at(token, WETH), *amounts)))
    assert (figures(trade), trade.eth_wei) == (figure, 0)


@pytest.mark.parametrize("amounts", [(0, 0), (7, 0), (-7, 0), (7, 5), (-7, -5)])
def test_swaps_of_no_token_or_of_both_sides_one_way_are_no_trades(amounts: tuple[int, int]) -> None:
    """Weth is currency 0."""
    assert traded(sent(v3_swap(v3_at(HIGH, WETH), *amounts))) == []


def test_money_for_money_is_no_trade() -> None:
    swaps = (
        v3_swap(v3_at(WETH, USDG), 5, -7), v4_swap(v4_at(ZERO_ADDRESS, USDG), 5, -7),
        v4_swap(v4_at(ZERO_ADDRESS, WETH), 5, -5),
    )  # fmt: skip
    assert traded(sent(*swaps)) == []


def test_a_token_trades_in_the_transaction_that_launches_it() -> None:
    (trade,) = (
        SyncStory()
        .block(sent(launched(HIGH, CURVE, DEV), bought(CURVE, ROUTER, ALICE, 7, 5), to=ROUTER, sender=DEV))
        .trades
    )
    assert (trade.token, trade.trader, figures(trade)) == (HIGH, DEV, (True, 5, 7))


def test_a_first_generation_token_trades_in_its_pool_before_its_launch_is_told() -> None:
    """The factory opens the pool, buys, and then tells."""
    at = v3_at(LOW, WETH)
    batch = SyncStory().block(
        sent(v3_opened(LOW, WETH), v3_swap(at, -5, 7), v1_launched(LOW, DEV, at), sender=DEV)
    )
    (pool,) = batch.pools
    assert pool.kind == "amm_v3"
    (launch,) = batch.launches
    assert (launch.launched.generation, launch.launched.at, launch.launched.threshold_raw) == (1, at, None)
    assert [figures(trade) for trade in batch.trades] == [(True, 5, 7)]


# --- the hook --------------------------------------------------------------------------------------


def test_what_the_hook_sells_is_nobodys_trade_and_others_in_the_transaction_are() -> None:
    swap, own = v4_swap(POOL, -7, 5), v4_swap(POOL, 3, -2, HOOK)
    found = traded(sent(own, swap, own))
    assert [(trade.spot.log_index, figures(trade)) for trade in found] == [(1, (True, 5, 7))]


@pytest.mark.parametrize(
    ("amounts", "currency", "figure"),
    [
        ((-700, 500), HIGH, (True, 490, 700)),  # bought for exactly so much: of the tokens
        ((-700, 500), ZERO_ADDRESS, (True, 500, 710)),  # bought exactly so many: on top
        ((700, -500), ZERO_ADDRESS, (False, 500, 690)),  # sold exactly so many: of what they brought
        ((700, -500), HIGH, (False, 510, 700)),  # sold for exactly so much: on top
        ((-700, 500), USDG, (True, 500, 700)),  # of neither side
    ],
)
def test_the_hooks_fee_and_tax_belong_to_the_trade_before_it(
    amounts: tuple[int, int], currency: Address, figure: tuple[bool, int, int]
) -> None:
    (trade,) = traded(sent(v4_swap(POOL, *amounts), hook_fee(POOL, currency, 7, 3)))
    assert figures(trade) == figure
    assert trade.eth_wei == trade.quote_raw


def test_a_fee_is_of_the_last_swap_of_that_pool_in_that_transaction_and_of_one_only() -> None:
    swap, fee = v4_swap(POOL, -700, 500), hook_fee(POOL, HIGH, 10)
    other = v4_swap(v4_at(LOW, WETH), 300, -200)
    found = traded(sent(swap), sent(swap, swap, other, fee, fee), sent(fee, swap))
    assert [trade.token_raw for trade in found] == [500, 500, 490, 300, 500]


def test_a_fee_after_a_swap_that_is_no_trade_changes_no_other() -> None:
    (trade,) = traded(sent(v4_swap(POOL, -700, 500), v4_swap(POOL, -1, 0), hook_fee(POOL, HIGH, 10)))
    assert trade.token_raw == 500


def test_what_the_hook_swaps_in_between_takes_no_fee_off_the_trade_around_it() -> None:
    own = v4_swap(POOL, -700, 500), v4_swap(POOL, 30, -20, HOOK), hook_fee(POOL, HIGH, 10)
    assert [figures(trade) for trade in traded(sent(*own))] == [(True, 490, 700)]


def test_a_fee_of_the_next_block_is_of_no_trade_before_it() -> None:
    story = SyncStory()
    story.block(sent(v4_opened(HIGH, ZERO_ADDRESS, HOOK)))
    swap, fee = v4_swap(POOL, -700, 500), hook_fee(POOL, HIGH, 10)
    found = story.read([story.chain.block(sent(swap)), story.chain.block(sent(fee))]).trades
    assert [trade.token_raw for trade in found] == [500]


def test_a_fee_of_more_than_the_trade_leaves_nothing_and_no_less() -> None:
    (buy,) = traded(sent(v4_swap(POOL, -700, 500), hook_fee(POOL, HIGH, 501)))
    (sell,) = traded(sent(v4_swap(POOL, 700, -500), hook_fee(POOL, ZERO_ADDRESS, 701)))
    assert (buy.token_raw, sell.quote_raw, sell.eth_wei) == (0, 0, 0)


# --- whose -----------------------------------------------------------------------------------------


def test_a_trade_is_the_senders_whoever_was_paid() -> None:
    swaps = bought(CURVE, BOB, CAROL, 7, 5), v3_swap(v3_at(HIGH, WETH), 7, -5, recipient=CAROL)
    found = traded(sent(*swaps, v4_swap(POOL, -7, 5, BOB), sender=ALICE))
    assert [trade.trader for trade in found] == [ALICE] * 3


@pytest.mark.parametrize("to", [ROUTER, BOB])
@pytest.mark.parametrize("paid", [ALICE, CAROL, ZERO_ADDRESS, ROUTER])
def test_a_buy_by_the_launch_router_is_the_senders_whoever_was_paid(to: Address, paid: Address) -> None:
    """Also where somebody's own contract calls the router: whoever launches may name any wallet."""
    (trade,) = traded(sent(bought(CURVE, ROUTER, paid, 7, 5), sender=ALICE, to=to))
    assert trade.trader == ALICE


def test_a_swap_in_a_transaction_to_the_launch_router_is_the_senders() -> None:
    """The router has a launch paid for in other money, too; whom a pool pays is for its caller to say."""
    at, sell = v3_at(HIGH, WETH), sold(CURVE, BOB, CAROL, 7, 5)
    own = v3_swap(at, 7, -5, recipient=CAROL), bought(CURVE, BOB, CAROL, 7, 5), sell
    assert [trade.trader for trade in traded(sent(*own, sender=ALICE, to=ROUTER))] == [ALICE] * 3


def test_who_traded_was_met() -> None:
    story = SyncStory()
    traded(sent(bought(CURVE, ROUTER, CAROL, 7, 5), sender=ALICE, to=ROUTER), story=story)
    assert ALICE in story.known.met
    assert CAROL not in story.known.met


def test_traders_are_told_in_order() -> None:
    story = SyncStory()
    story.block(sent(launched(HIGH, CURVE, DEV)))
    buy = bought(CURVE, ALICE, ALICE, 7, 5)
    assert traders(story.block(sent(buy, sender=BOB), sent(buy, sender=ALICE))) == [BOB, ALICE]
