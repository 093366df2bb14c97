"""Reads a practice account without a lock for pricing, then books the trade in one transaction."""

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
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import accounts
from roundtrip.store.practice import practice as store
from roundtrip.store.practice.practice import RecentTrades, Repeat, StoredPosition, TradeNotes
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

A = TypeVar("A", bound=msgspec.Struct)

_DATABASE_S = 5.0
_AT_ONCE = timedelta(seconds=practice.AT_ONCE_S)
_GIVEN_UP = timedelta(seconds=practice.GIVEN_UP_S)


class StalePrice(ServiceFull):
    """The account changed after the price was computed."""

    def __init__(self) -> None:
        super().__init__("busy", "You traded this token at the same time: ask again.", 1)


@dataclass(frozen=True, slots=True)
class RepeatKey:
    """The hashes of a request's idempotency key and of its content."""

    key_hash: bytes
    request_hash: bytes


def repeat_key(key: str | None, *request: object) -> RepeatKey | None:
    """Hashes an idempotency key of the caller; None if there is none. ``request``: tool and parameters, in a
    form that is the same for the same request."""
    if key is None:
        return None
    content = msgspec.json.encode([str(part) for part in request])
    return RepeatKey(hashlib.sha256(key.encode()).digest(), hashlib.sha256(content).digest())


@dataclass(frozen=True, slots=True)
class TradeRequest:
    """A requested trade. It is priced at ``block_number`` or a later block. ``answer``: the type of its
    answer."""

    account: Account
    token: Address
    at: datetime
    block_number: int
    key: RepeatKey | None
    answer: type[msgspec.Struct]


@dataclass(frozen=True, slots=True)
class AccountPage:
    """An account after last Monday's turn, which gives eth and writes off stuck positions. ``positions``: its
    open positions. ``own``: its position in the requested token, if any. ``recent``: its recent trades of
    that token. ``monday``: the changes of that turn that are not written yet."""

    account: PracticePurse
    positions: tuple[StoredPosition, ...]
    own: StoredPosition | None
    recent: RecentTrades
    monday: MondayTurn

    def price_inputs(self) -> tuple[object, ...]:
        """The values that a price of the requested token depends on."""
        if self.own is None:
            return None, self.recent
        position = self.own.position
        return position.held_raw, position.cost_wei, self.own.at, self.recent


async def read_page(
    connection: Connection, account: Account, token: Address | None, at: datetime, block_number: int
) -> AccountPage:
    """Reads an account; one that does not exist yet is read as newly opened."""
    now_s = int(at.timestamp())
    stored_account = await store.account(connection, account.id) or practice.open_account(now_s)
    open_positions = await store.open_positions(connection, account.id)
    monday = practice.turn_week(stored_account, [stored.position for stored in open_positions], now_s)
    lost = {position.token for position in monday.lost}
    positions = tuple(stored for stored in open_positions if stored.position.token not in lost)
    recent = RecentTrades()
    if token is not None:
        recent = await store.recent(connection, account.id, token, at - _AT_ONCE, block_number)
    own = next((stored for stored in positions if stored.position.token == token), None)
    return AccountPage(monday.account, positions, own, recent, monday)


def now_of(ctx: Context) -> datetime:
    """The time by the system clock, which weeks and recent trades go by."""
    return datetime.fromtimestamp(ctx.now_s(), UTC)


async def read_request(ctx: Context, request: TradeRequest) -> AccountPage | msgspec.Struct:
    """Reads, in one snapshot of the database, the account for pricing; or the earlier answer if the request
    is a repetition. Raises CallerFault (bad_input), ServiceFull."""
    try:
        async with (
            ctx.pool.acquire(timeout=_DATABASE_S) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            answer = await _earlier_answer(connection, request)
            return answer if answer is not None else await _read_requested_page(connection, request)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Accounts are unavailable: ask again in 5 s.", 5) from error


async def _read_requested_page(connection: Connection, request: TradeRequest) -> AccountPage:
    return await read_page(connection, request.account, request.token, request.at, request.block_number)


async def _earlier_answer(connection: Connection, request: TradeRequest) -> msgspec.Struct | None:
    """The answer of an earlier request with the same key. Raises CallerFault (bad_input) if the content
    differs."""
    if request.key is None:
        return None
    earlier = await store.repeat(connection, request.account.id, request.key.key_hash)
    if earlier is None:
        return None
    if earlier.asked_hash != request.key.request_hash:
        raise CallerFault("bad_input", "This idempotency key was used for another request: give a new key.")
    answer: msgspec.Struct = msgspec.json.decode(earlier.answer, type=request.answer)
    return answer


Fill = Callable[[Connection, AccountPage], Awaitable[A]]
"""Writes a trade to the locked account, and returns the answer. Raises RoundtripError."""


async def book_trade(ctx: Context, request: TradeRequest, page: AccountPage, fill: Fill[A]) -> A:
    """In one transaction: locks the account, writes its Monday's turn, the trade and the stored answer.
    Raises ServiceFull (busy), StalePrice when the account changed after pricing, and what ``fill`` raises."""
    async with accounts(ctx) as connection:
        await _lock(connection, request)
        earlier = await _earlier_answer(connection, request)
        if earlier is not None:
            return earlier  # type: ignore[return-value]
        locked = await _read_requested_page(connection, request)
        if locked.price_inputs() != page.price_inputs():
            raise StalePrice
        await _write_monday(connection, request.account, locked.monday, request.at)
        answer = await fill(connection, locked)
        if request.key is not None:
            repeat = Repeat(request.key.request_hash, msgspec.json.encode(answer))
            key_hash = request.key.key_hash
            await store.keep_repeat(connection, request.account.id, key_hash, repeat, request.at)
        return answer


async def _lock(connection: Connection, request: TradeRequest) -> None:
    await store.lock(connection, request.account.id, practice.open_account(int(request.at.timestamp())))


async def _write_monday(connection: Connection, account: Account, monday: MondayTurn, at: datetime) -> None:
    """Writes last Monday's turn: lost positions, trades and the account."""
    lost = {position.token for position in monday.lost}
    if lost:
        for stored in await store.open_positions(connection, account.id):
            if stored.position.token in lost:
                written_off, _ = practice.write_off(stored.position)
                await store.keep_position(connection, account.id, replace(stored, position=written_off))
    for trade in monday.trades:
        await store.add_trade(connection, account.id, trade, TradeNotes(), at)
    await store.keep_account(connection, account.id, monday.account)


async def write_trade(
    connection: Connection,
    request: TradeRequest,
    account: PracticePurse,
    stored: StoredPosition,
    trade: PracticeTrade,
    notes: TradeNotes,
) -> int:
    """Writes one trade, and the account and position after it. Returns the trade's id."""
    await store.keep_account(connection, request.account.id, account)
    await store.keep_position(connection, request.account.id, stored)
    return await store.add_trade(connection, request.account.id, trade, notes, request.at)


async def mark_stuck(ctx: Context, request: TradeRequest) -> None:
    """Marks a position that cannot be sold: it is written off on Monday unless it is sold before. Does
    nothing when there is no position any more."""
    await _mark(ctx, request, partial(_with_stuck, request))


async def mark_failed(ctx: Context, request: TradeRequest, held_raw: int) -> None:
    """Records that selling the whole position, ``held_raw``, failed. A position whose sell fails again a week
    or more after the first failure is stuck. Does nothing when the position has changed."""
    await _mark(ctx, request, partial(_with_failure, request, held_raw))


async def _mark(
    ctx: Context, request: TradeRequest, change: Callable[[StoredPosition], StoredPosition]
) -> None:
    async with accounts(ctx) as connection:
        await _lock(connection, request)
        locked = await _read_requested_page(connection, request)
        await _write_monday(connection, request.account, locked.monday, request.at)
        if locked.own is not None:
            await store.keep_position(connection, request.account.id, change(locked.own))


def _with_stuck(request: TradeRequest, stored: StoredPosition) -> StoredPosition:
    if stored.stuck_at is not None:
        return stored
    return replace(stored, position=replace(stored.position, is_stuck=True), stuck_at=request.at)


def _with_failure(request: TradeRequest, held_raw: int, stored: StoredPosition) -> StoredPosition:
    if stored.position.held_raw != held_raw:
        return stored
    first = stored.failed_at or request.at
    stored = replace(stored, failed_at=first)
    return _with_stuck(request, stored) if request.at - first >= _GIVEN_UP else stored


async def retry_if_stale(run: Callable[[], Awaitable[A]]) -> A:
    """The result of ``run``, which is run once more if its price was stale."""
    try:
        return await run()
    except StalePrice:
        return await run()


async def run_or_repeat(ctx: Context, request: TradeRequest, run: Awaitable[A]) -> A:
    """The result of ``run``. If it fails while a concurrent request with the same key succeeded, that
    request's answer."""
    try:
        return await run
    except RoundtripError:
        if request.key is None:
            raise
        answer = await read_request(ctx, request)
        if isinstance(answer, AccountPage):
            raise
        return answer  # type: ignore[return-value]
