"""A practice account, read without a lock, priced, and booked in one transaction."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault, RoundtripError, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.practice import practice
from roundtrip.domain.practice.practice import MondayTurn, PracticePurse, PracticeTrade
from roundtrip.services.accounts.database import accounts
from roundtrip.services.runtime.context import Context
from roundtrip.store.practice import practice as store
from roundtrip.store.practice.practice import RecentTrades, Repeat, StoredPosition, TradeNotes
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

A = TypeVar("A", bound=msgspec.Struct)

_DATABASE_S = 5.0
_AT_ONCE = timedelta(seconds=practice.AT_ONCE_S)
_GIVEN_UP = timedelta(seconds=practice.GIVEN_UP_S)


class StalePrice(ServiceFull):
    """What a price stood on is no more."""

    def __init__(self) -> None:
        super().__init__("busy", "The account traded the same token meanwhile: ask again.", 1)


@dataclass(frozen=True, slots=True)
class RepeatKey:
    """A request that may be repeated: the hash of its name, and of all that it asks."""

    key_hash: bytes
    asked_hash: bytes


def once_for(key: str | None, *asked: object) -> RepeatKey | None:
    """``key``: as the caller gave it; ``asked``: tool and parameters, in a form that is the same for the
    same request. None: it is not to be repeated."""
    if key is None:
        return None
    said = msgspec.json.encode([str(one) for one in asked])
    return RepeatKey(hashlib.sha256(key.encode()).digest(), hashlib.sha256(said).digest())


@dataclass(frozen=True, slots=True)
class TradeRequest:
    """A trade as it is asked for: whose, of which token, when; it is priced at this block or a later one.
    ``answer``: the type of what it is answered with."""

    account: Account
    token: Address
    at: datetime
    block_number: int
    once: RepeatKey | None
    answer: type[msgspec.Struct]


@dataclass(frozen=True, slots=True)
class AccountPage:
    """An account as it stands, the last Monday looked at. ``kept``: its open positions; ``own``: what it
    holds of the token that is asked about, None: nothing; ``recent``: what it just traded of it;
    ``turned``: what that Monday did and is not written yet."""

    account: PracticePurse
    kept: tuple[StoredPosition, ...]
    own: StoredPosition | None
    recent: RecentTrades
    turned: MondayTurn

    def stands_on(self) -> tuple[object, ...]:
        """What a price of the token was made from."""
        if self.own is None:
            return None, self.recent
        position = self.own.position
        return position.held_raw, position.cost_wei, self.own.at, self.recent


async def read_page(
    connection: Connection, account: Account, token: Address | None, at: datetime, block_number: int
) -> AccountPage:
    """As it stands, whether it was written before or not."""
    now_s = int(at.timestamp())
    found = await store.account(connection, account.id) or practice.open_account(now_s)
    kept = await store.open_positions(connection, account.id)
    turned = practice.turn_week(found, [one.position for one in kept], now_s)
    gone = {one.token for one in turned.lost}
    left = tuple(one for one in kept if one.position.token not in gone)
    recent = RecentTrades()
    if token is not None:
        recent = await store.recent(connection, account.id, token, at - _AT_ONCE, block_number)
    own = next((one for one in left if one.position.token == token), None)
    return AccountPage(turned.account, left, own, recent, turned)


def moment(ctx: Context) -> datetime:
    """Now, by our clock: weeks and what was just traded go by it."""
    return datetime.fromtimestamp(ctx.now_s(), UTC)


async def begin(ctx: Context, asked: TradeRequest) -> AccountPage | msgspec.Struct:
    """What a price stands on; of a request that was answered before, that answer. One state of the database.
    Raises CallerFault (bad_input), ServiceFull."""
    try:
        async with (
            ctx.pool.acquire(timeout=_DATABASE_S) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            answered = await _earlier_answer(connection, asked)
            if answered is not None:
                return answered
            return await read_page(connection, asked.account, asked.token, asked.at, asked.block_number)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Accounts cannot be reached just now.", 5) from error


async def _earlier_answer(connection: Connection, asked: TradeRequest) -> msgspec.Struct | None:
    if asked.once is None:
        return None
    found = await store.repeat(connection, asked.account.id, asked.once.key_hash)
    if found is None:
        return None
    if found.asked_hash != asked.once.asked_hash:
        raise CallerFault("bad_input", "This idempotency key was used for another request.")
    answer: msgspec.Struct = msgspec.json.decode(found.answer, type=asked.answer)
    return answer


Fill = Callable[[Connection, AccountPage], Awaitable[A]]
"""Writes a trade onto the page as it is under the lock, and says what was done. Raises RoundtripError."""


async def book_trade(ctx: Context, asked: TradeRequest, page: AccountPage, fill: Fill[A]) -> A:
    """One transaction: the account locked, its Monday, the trade, its answer. Nothing of it stands where any
    of it fails. Raises ServiceFull (busy), Stale where what the price stood on is no more, and what ``fill``
    raises."""
    async with accounts(ctx) as connection:
        await store.lock(connection, asked.account.id, practice.open_account(int(asked.at.timestamp())))
        answered = await _earlier_answer(connection, asked)
        if answered is not None:
            return answered  # type: ignore[return-value]
        now = await read_page(connection, asked.account, asked.token, asked.at, asked.block_number)
        if now.stands_on() != page.stands_on():
            raise StalePrice
        await _write_turn(connection, asked.account, now.turned, asked.at)
        answer = await fill(connection, now)
        if asked.once is not None:
            kept = Repeat(asked.once.asked_hash, msgspec.json.encode(answer))
            await store.keep_repeat(connection, asked.account.id, asked.once.key_hash, kept, asked.at)
        return answer


async def _write_turn(connection: Connection, account: Account, turned: MondayTurn, at: datetime) -> None:
    """Writes what the last Monday did."""
    lost = {one.token for one in turned.lost}
    if lost:
        for kept in await store.open_positions(connection, account.id):
            if kept.position.token in lost:
                gone, _ = practice.write_off(kept.position)
                await store.keep_position(connection, account.id, replace(kept, position=gone))
    for trade in turned.trades:
        await store.add_trade(connection, account.id, trade, TradeNotes(), at)
    await store.keep_account(connection, account.id, turned.account)


async def write(
    connection: Connection,
    asked: TradeRequest,
    account: PracticePurse,
    kept: StoredPosition,
    trade: PracticeTrade,
    told: TradeNotes,
) -> int:
    """Writes one trade and what it left; the trade's id."""
    await store.keep_account(connection, asked.account.id, account)
    await store.keep_position(connection, asked.account.id, kept)
    return await store.add_trade(connection, asked.account.id, trade, told, asked.at)


async def mark_stuck(ctx: Context, asked: TradeRequest) -> None:
    """It cannot be sold: on Monday it is written off, unless a sell goes through before. What is no more held
    by then is left as it is."""
    await _mark(ctx, asked, partial(_stuck, asked))


async def mark_failed(ctx: Context, asked: TradeRequest, held_raw: int) -> None:
    """All that is held was to be sold, ``held_raw``, and that failed, which may be for now. Where it fails
    again a week after the first time, or later, it is stuck. What is no more held as it was is left as it
    is."""
    await _mark(ctx, asked, partial(_mark_failed, asked, held_raw))


async def _mark(
    ctx: Context, asked: TradeRequest, marked: Callable[[StoredPosition], StoredPosition]
) -> None:
    async with accounts(ctx) as connection:
        await store.lock(connection, asked.account.id, practice.open_account(int(asked.at.timestamp())))
        now = await read_page(connection, asked.account, asked.token, asked.at, asked.block_number)
        await _write_turn(connection, asked.account, now.turned, asked.at)
        if now.own is not None:
            await store.keep_position(connection, asked.account.id, marked(now.own))


def _stuck(asked: TradeRequest, kept: StoredPosition) -> StoredPosition:
    if kept.stuck_at is not None:
        return kept
    return replace(kept, position=replace(kept.position, is_stuck=True), stuck_at=asked.at)


def _mark_failed(asked: TradeRequest, held_raw: int, kept: StoredPosition) -> StoredPosition:
    if kept.position.held_raw != held_raw:
        return kept
    first = kept.failed_at or asked.at
    kept = replace(kept, failed_at=first)
    return _stuck(asked, kept) if asked.at - first >= _GIVEN_UP else kept


async def twice(run: Callable[[], Awaitable[A]]) -> A:
    """What ``run`` gives; where what its price stood on was no more, what it gives now."""
    try:
        return await run()
    except StalePrice:
        return await run()


async def run_or_repeat(ctx: Context, asked: TradeRequest, run: Awaitable[A]) -> A:
    """What ``run`` gives. Where that fails while the same request, asked at the same time, was answered, that
    answer."""
    try:
        return await run
    except RoundtripError:
        if asked.once is None:
            raise
        found = await begin(ctx, asked)
        if isinstance(found, AccountPage):
            raise
        return found  # type: ignore[return-value]
