"""Operations: practice trading with pretend eth at real prices."""

from roundtrip.services.practice.account import practice_account
from roundtrip.services.practice.buy import practice_buy
from roundtrip.services.practice.schema import (
    PracticeAccount,
    PracticeBought,
    PracticeBuyParams,
    PracticeSellParams,
    PracticeSold,
    PracticeTrades,
)
from roundtrip.services.practice.sell import practice_sell
from roundtrip.services.practice.trades import practice_trades
from roundtrip.services.support.index_reader import Nothing

from .operation import AnyOperation, Operation

PRACTICE: tuple[AnyOperation, ...] = (
    Operation(
        name="practice_account",
        title="Practice account",
        description=(
            "The account's practice eth, its open positions with what each cost and would sell for at "
            "this block, and the profit that this week's sells took (since Monday, 00:00 UTC). worth is "
            "null where a position cannot be sold or that could not be found out, and why says which; the"
            " total leaves it out. An account begins with 1 practice eth, and nothing of it is real."
        ),
        params=Nothing,
        answer=PracticeAccount,
        handler=lambda call: practice_account(call.ctx, call.params, call.owner()),
        lane="checks",
        key=True,
        errors=("upstream", "budget_spent"),
    ),
    Operation(
        name="practice_buy",
        title="Practice buy",
        description=(
            "Spends practice eth, at least 0.001, on a token at the price of this block, by the route "
            "that a real buy would take; gas is not charged, and nothing is sent. sellsBack says whether "
            "it could be sold straight back: no and unknown are bought all the same, and that is the "
            "lesson. Buys of one token within ten minutes are priced as one, and what is held of a token "
            "is traded in one place."
        ),
        params=PracticeBuyParams,
        answer=PracticeBought,
        handler=lambda call: practice_buy(call.ctx, call.params, call.owner(), call.idempotency_key),
        lane="checks",
        key=True,
        writes=True,
        once=True,
        errors=("not_a_token", "no_route", "would_fail", "too_small", "upstream", "budget_spent"),
    ),
    Operation(
        name="practice_sell",
        title="Practice sell",
        description=(
            "Sells a share of a practice position, all of it when percent is left out, at what the chain "
            "would pay at this block where it was bought, and books profit or loss. What cannot be sold for "
            "real is not sold here (would_fail), nor what could not be found out, nor a part that brings "
            "less than 0.001 eth (too_small). Sells of one token within ten minutes are priced as one."
        ),
        params=PracticeSellParams,
        answer=PracticeSold,
        handler=lambda call: practice_sell(call.ctx, call.params, call.owner(), call.idempotency_key),
        lane="checks",
        key=True,
        writes=True,
        once=True,
        errors=("nothing_to_sell", "would_fail", "too_small", "upstream", "budget_spent"),
    ),
    Operation(
        name="practice_trades",
        title="Practice trades",
        description=(
            "The last 50 lines of the account's practice ledger, the newest first: buys and sells with "
            "the block and the price that they were made at, the profit of each sell, Monday's gifts and "
            "what was written off."
        ),
        params=Nothing,
        answer=PracticeTrades,
        handler=lambda call: practice_trades(call.ctx, call.params, call.owner()),
        key=True,
    ),
)
