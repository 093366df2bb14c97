"""For the page of the bag: what its tokens were worth in the last seven days, and what the guard knows."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.watch.bag_guard import GUARD
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing, reading, when
from roundtrip.services.support.money import ETH_DECIMALS
from roundtrip.services.support.shown_verdict import ShownVerdict, read_states
from roundtrip.store.boards.price_candles import main_pools
from roundtrip.store.index import tokens
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import bag_changes, bags
from roundtrip.store.watch.bag_changes import BagToken, OwnTrade, PastTrade, read_own_trades, read_past_trades

STEP_S, STEPS = 6 * 3600, 28
MAX_DRAWN = 20
"""Tokens whose past is read, the newest."""


class TokenPast(msgspec.Struct, frozen=True):
    """What the wallet held of a token, by its trades, at the price of the last trade then, in eth; null: not
    known."""

    address: str
    values: list[str | None]


class TokenGuard(msgspec.Struct, frozen=True, rename="camel"):
    """What the guard knows of a token. ``is_guarded``: a conclusive check was made, and changes from it are
    reported. ``is_doubted``: one check says otherwise, and waits for another. ``told_at`` None: no change was
    reported."""

    address: str
    verdict: ShownVerdict | None
    is_guarded: bool
    is_doubted: bool
    told_at: datetime | None


class BagPast(msgspec.Struct, frozen=True, rename="camel"):
    """``times``: those of the values, the oldest first. ``is_part``: the wallet holds more tokens than those,
    or trades too much for its past to be read."""

    times: list[datetime]
    tokens: list[TokenPast]
    is_part: bool
    guards: list[TokenGuard]


async def bag_past(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[BagPast]:
    """The account's bag over time. Raises ServiceFull (busy)."""
    async with reading(ctx) as (connection, cursor):
        newest_s = cursor.block.timestamp_s
        times_s = [newest_s - STEP_S * step for step in range(STEPS, -1, -1)]
        wallet_id = await tokens.id_of(connection, account.wallet) or 0
        held = await bag_changes.list_held(connection, wallet_id, GUARD.most_held)
        labels = await tokens.labels(connection, [token.token_id for token in held])
        guards = await _read_guards(connection, [label.address for label in labels.values()], ctx.now_s())
        drawn = [token for token in held if token.held_raw][:MAX_DRAWN]
        own = await read_own_trades(connection, wallet_id, [token.token_id for token in drawn], times_s[0])
        pasts = []
        for token in drawn if own is not None else ():
            pools = await main_pools(connection, token.token_id, newest_s, ctx.contracts)
            prices = await read_past_trades(connection, [pool.id for pool in pools], times_s, ctx.contracts)
            values = value_past(token, own or (), prices, times_s)
            pasts.append(TokenPast(labels[token.token_id].address, values))
    return UseCaseAnswer(BagPast([when(at_s) for at_s in times_s], pasts, len(pasts) < len(held), guards))


def value_past(
    token: BagToken, own: Sequence[OwnTrade], prices: Mapping[int, PastTrade], times_s: Sequence[int]
) -> list[str | None]:
    """What the wallet held at each time, counted back from what it holds now, at the price then."""
    trades = [trade for trade in own if trade.token_id == token.token_id]
    values: list[str | None] = []
    for at_s in times_s:
        raw = token.held_raw - sum(trade.raw for trade in trades if trade.at_s > at_s)
        price = prices.get(at_s)
        if raw <= 0:
            # It held none of what it bought. Below 0 it then sold what it got otherwise, which is not
            # counted.
            values.append("0")
        elif price is None:
            values.append(None)
        else:
            values.append(plain_decimal(raw * price.eth_wei // price.token_raw, ETH_DECIMALS))
    return values


async def _read_guards(connection: Connection, held: Sequence[Address], now_s: float) -> list[TokenGuard]:
    states, standings = (
        await read_states(connection, held, now_s),
        await bags.read_standings(connection, held),
    )
    guards = []
    for token in held:
        standing, state = standings.get(token), states[token]
        is_doubted = standing is not None and standing.next_level is not None
        told_at = None if standing is None else standing.told_at
        guards.append(TokenGuard(token, state.verdict, standing is not None, is_doubted, told_at))
    return guards
