"""Operations: practice trading with pretend eth at real prices; the practice league, and the tag that marks
agents in it."""

from roundtrip.api.operations.operation import AnyOperation, Operation, account_operation, service_operation
from roundtrip.services.practice.account import practice_account, practice_trades
from roundtrip.services.practice.buy import practice_buy
from roundtrip.services.practice.league import league, mark_as_agent
from roundtrip.services.practice.schema import (
    PracticeBought,
    PracticeBuyParams,
    PracticeSellParams,
    PracticeSold,
)
from roundtrip.services.practice.sell import practice_sell

PRACTICE: tuple[AnyOperation, ...] = (
    account_operation(
        practice_account,
        title="Practice account",
        description=(
            "Returns the account's practice eth, its open positions with cost and what each would sell for "
            "at this block, and the profit of this week's sells (since Monday 00:00 UTC). A position that "
            "cannot be sold or valued has worth null, and why says so; the total leaves it out. An account "
            "starts with 1 practice eth; none of it is real."
        ),
        lane="checks",
        errors=("upstream", "budget_spent"),
    ),
    # No account_operation: the handler takes the idempotency key.
    Operation(
        name="practice_buy",
        title="Practice buy",
        description=(
            "Buys a token with at least 0.001 practice eth at this block's price, by the route of a real "
            "buy; nothing is sent and gas is free. sellsBack says whether it could be sold straight back: "
            "no and unknown are bought too. Buys of one token within ten minutes are priced as one, and all "
            "trades of a position use the venue of its first buy."
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
            "Sells a share of a practice position (all, unless percent says less) for what its venue would "
            "pay at this block, and books profit or loss. It refuses what cannot be sold for real or could "
            "not be found out (would_fail), and a part worth less than 0.001 eth (too_small). Sells of one "
            "token within ten minutes are priced as one."
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
    account_operation(
        practice_trades,
        title="Practice trades",
        description=(
            "Returns the last 50 lines of the account's practice ledger, the newest first: buys and sells "
            "with block, price and profit, Monday's gifts, and written-off positions."
        ),
    ),
)


LEAGUE: tuple[AnyOperation, ...] = (
    service_operation(
        league,
        title="Practice league",
        description=(
            "Returns this week's practice league: at most 100 accounts by the profit (in practice eth) of "
            "their practice sells since Monday 00:00 UTC, and last week's first three. A sell counts if its "
            "token is a day old, was bought by at least 20 people (estimated), and the account's wallet is "
            "not tied to its deployer; three such sells make an entry. Agents' names are their owners' words."
        ),
        shared_by=lambda params: params.who,  # all, agents or people
    ),
    account_operation(
        mark_as_agent,
        title="Mark as an agent",
        description=(
            "Puts an agent tag on the account's league entry, with a name if one is given; off removes tag "
            "and name. Limits, trades and profit stay the same."
        ),
        writes=True,
        repeatable=True,
    ),
)
