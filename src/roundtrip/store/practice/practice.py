"""Practice accounts, their positions and their ledger. Each function uses the caller's connection and does
not end the transaction. The caller locks an account before it changes it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.practice.practice import (
    PracticePosition,
    PracticePurse,
    PracticeTrade,
    SellsBack,
    Side,
    State,
)
from roundtrip.store.server.hex import as_address, as_bytes, as_optional_address, as_text
from roundtrip.store.server.rows import Connection, fetch, fetch_one, fetch_row, fetch_value, optional_int

Layout = Literal["solidity", "vyper", "solady"]
REPEATS_KEPT = timedelta(days=7)
_MOST_FORGOTTEN = 10_000


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a token keeps its balances: how keys are hashed, and the slot of the mapping."""

    layout: Layout
    base: int


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """A stored position. ``bought_at``: when it was last bought. ``at``: the pool, the curve or the id of the
    pool where it is sold. ``failed_at``: when selling all of it first failed, if no sell succeeded since;
    ``stuck_at``: since when it cannot be sold. ``slot``, ``at`` None: not known."""

    position: PracticePosition
    decimals: int
    slot: Slot | None
    opened_at: datetime
    bought_at: datetime
    at: str | None = None
    failed_at: datetime | None = None
    stuck_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TradeNotes:
    """Further columns of a trade. ``block``, ``venue``: where it was priced; the others as in the table."""

    block: BlockRef | None = None
    venue: str | None = None
    sells_back: SellsBack | None = None
    counted: bool | None = None
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class KeptTrade:
    """A line of the ledger; ``symbol``: untrusted text of the token."""

    id: int
    side: Side
    token: Address | None
    symbol: str | None
    decimals: int
    token_raw: int
    eth_wei: int
    cost_wei: int
    profit_wei: int | None
    block_number: int | None
    block_hash: str | None
    venue: str | None
    made_at: datetime
    sells_back: SellsBack | None
    counted: bool | None
    why_not: str | None


@dataclass(frozen=True, slots=True)
class RecentTrades:
    """What was recently bought and sold of a token: wei paid, base units sold."""

    bought_wei: int = 0
    sold_raw: int = 0


@dataclass(frozen=True, slots=True)
class WeekResult:
    """The profit of the sells of a span, net of losses, and their number."""

    profit_wei: int
    sells: int


class Repeat(NamedTuple):
    """The answer to an earlier request, and the hash of that request."""

    asked_hash: bytes
    answer: bytes


# --- accounts --------------------------------------------------------------------------------------


class _PurseRow(NamedTuple):
    eth_wei: Decimal
    given_wei: Decimal
    week_s: int
    apart_wei: Decimal


_PURSE = "SELECT eth_wei, given_wei, week_s, apart_wei FROM accounts.practice_account WHERE account_id = $1"


async def account(connection: Connection, account_id: int) -> PracticePurse | None:
    """The practice account; None: it does not exist yet."""
    row = await fetch_row(connection, _PurseRow, _PURSE, account_id)
    return None if row is None else _read_purse(row)


async def lock(connection: Connection, account_id: int, first: PracticePurse) -> PracticePurse:
    """Creates the account as ``first`` where there is none, and locks it until the transaction ends."""
    await connection.execute(
        "INSERT INTO accounts.practice_account (account_id, eth_wei, given_wei, week_s, apart_wei)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
        account_id,
        first.eth_wei,
        first.given_wei,
        first.week_s,
        first.apart_wei,
    )
    return _read_purse(await fetch_one(connection, _PurseRow, f"{_PURSE} FOR UPDATE", account_id))


async def keep_account(connection: Connection, account_id: int, purse: PracticePurse) -> None:
    """Updates the account."""
    await connection.execute(
        "UPDATE accounts.practice_account SET eth_wei = $2, given_wei = $3, week_s = $4, apart_wei = $5"
        " WHERE account_id = $1",
        account_id,
        purse.eth_wei,
        purse.given_wei,
        purse.week_s,
        purse.apart_wei,
    )


def _read_purse(row: _PurseRow) -> PracticePurse:
    return PracticePurse(int(row.eth_wei), int(row.given_wei), row.week_s, int(row.apart_wei))


# --- positions -------------------------------------------------------------------------------------


class _PracticePositionRow(NamedTuple):
    token: bytes
    state: State
    held_raw: Decimal
    cost_wei: Decimal
    decimals: int
    slot_layout: Layout | None
    slot_base: Decimal | None
    opened_at: datetime
    bought_at: datetime
    at: str | None
    failed_at: datetime | None
    stuck_at: datetime | None


async def open_positions(connection: Connection, account_id: int) -> list[StoredPosition]:
    """The account's open positions, the oldest first."""
    rows = await fetch(
        connection,
        _PracticePositionRow,
        "SELECT token, state, held_raw, cost_wei, decimals, slot_layout, slot_base, opened_at, bought_at, at,"
        " failed_at, stuck_at FROM accounts.practice_position WHERE account_id = $1 AND state = 'open'"
        " ORDER BY opened_at, token",
        account_id,
    )
    return [_read_position(row) for row in rows]


async def keep_position(connection: Connection, account_id: int, stored: StoredPosition) -> None:
    """Inserts or updates the position."""
    position, slot = stored.position, stored.slot
    await connection.execute(
        "INSERT INTO accounts.practice_position (account_id, token, state, held_raw, cost_wei, decimals,"
        " slot_layout, slot_base, opened_at, bought_at, at, failed_at, stuck_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
        " ON CONFLICT (account_id, token) DO UPDATE SET state = excluded.state, held_raw = excluded.held_raw,"
        " cost_wei = excluded.cost_wei, decimals = excluded.decimals, slot_layout = excluded.slot_layout,"
        " slot_base = excluded.slot_base, opened_at = excluded.opened_at, bought_at = excluded.bought_at,"
        " at = excluded.at, failed_at = excluded.failed_at, stuck_at = excluded.stuck_at",
        account_id,
        as_bytes(position.token),
        position.state,
        position.held_raw,
        position.cost_wei,
        stored.decimals,
        None if slot is None else slot.layout,
        None if slot is None else slot.base,
        stored.opened_at,
        stored.bought_at,
        stored.at,
        stored.failed_at if position.state == "open" else None,
        stored.stuck_at if position.is_stuck else None,
    )


def _read_position(row: _PracticePositionRow) -> StoredPosition:
    slot = None
    if row.slot_layout is not None and row.slot_base is not None:
        slot = Slot(row.slot_layout, int(row.slot_base))
    position = PracticePosition(
        as_address(row.token), row.state, int(row.held_raw), int(row.cost_wei), row.stuck_at is not None
    )
    return StoredPosition(
        position, row.decimals, slot, row.opened_at, row.bought_at, row.at, row.failed_at, row.stuck_at
    )


# --- the ledger ------------------------------------------------------------------------------------


async def add_trade(
    connection: Connection, account_id: int, trade: PracticeTrade, notes: TradeNotes, now: datetime
) -> int:
    """Adds a line and returns its id."""
    block = notes.block
    return await fetch_value(
        connection,
        int,
        "INSERT INTO accounts.practice_trade (account_id, token, side, token_raw, eth_wei, cost_wei,"
        " profit_wei, block_number, block_hash, venue, made_at, sells_back, counted, why_not)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING id",
        account_id,
        None if trade.token is None else as_bytes(trade.token),
        trade.side,
        trade.token_raw,
        trade.eth_wei,
        trade.cost_wei,
        trade.profit_wei,
        None if block is None else block.number,
        None if block is None else as_bytes(block.hash),
        notes.venue,
        now,
        notes.sells_back,
        notes.counted,
        notes.why_not,
    )


class _RecentTradesRow(NamedTuple):
    bought: Decimal
    sold: Decimal


async def recent(
    connection: Connection, account_id: int, token: Address, since: datetime, block_number: int
) -> RecentTrades:
    """What was bought and sold of a token after ``since``, or at ``block_number`` or a later block."""
    row = await fetch_one(
        connection,
        _RecentTradesRow,
        "SELECT coalesce(sum(eth_wei) FILTER (WHERE side = 'buy'), 0) AS bought,"
        " coalesce(sum(token_raw) FILTER (WHERE side = 'sell'), 0) AS sold"
        " FROM accounts.practice_trade WHERE account_id = $1 AND token = $2"
        " AND (made_at > $3 OR block_number >= $4)",
        account_id,
        as_bytes(token),
        since,
        block_number,
    )
    return RecentTrades(int(row.bought), int(row.sold))


class _LedgerRow(NamedTuple):
    id: int
    side: Side
    token: bytes | None
    symbol: str | None
    decimals: int
    token_raw: Decimal
    eth_wei: Decimal
    cost_wei: Decimal
    profit_wei: Decimal | None
    block_number: int | None
    block_hash: bytes | None
    venue: str | None
    made_at: datetime
    sells_back: SellsBack | None
    counted: bool | None
    why_not: str | None


async def trades(connection: Connection, account_id: int, limit: int) -> list[KeptTrade]:
    """The account's last trades, the newest first."""
    rows = await fetch(
        connection,
        _LedgerRow,
        "SELECT trade.id, trade.side, token, token.symbol, coalesce(position.decimals, 0) AS decimals,"
        " trade.token_raw, trade.eth_wei, trade.cost_wei, trade.profit_wei, trade.block_number,"
        " trade.block_hash, trade.venue, trade.made_at, trade.sells_back, trade.counted, trade.why_not"
        " FROM accounts.practice_trade AS trade"
        " LEFT JOIN accounts.practice_position AS position USING (account_id, token)"
        " LEFT JOIN facts.token AS token USING (token)"
        " WHERE trade.account_id = $1 ORDER BY trade.id DESC LIMIT $2",
        account_id,
        limit,
    )
    return [_read_trade(row) for row in rows]


@dataclass(frozen=True, slots=True)
class PracticeClosing:
    """A sell or a write-off. ``total_wei``: the total profit up to and with it."""

    at: datetime
    profit_wei: int
    total_wei: int


class _PracticeClosingRow(NamedTuple):
    made_at: datetime
    profit_wei: Decimal
    total_wei: Decimal


async def closings(connection: Connection, account_id: int, limit: int) -> list[PracticeClosing]:
    """The account's last closings, the newest first."""
    rows = await fetch(
        connection,
        _PracticeClosingRow,
        "SELECT made_at, profit_wei, sum(profit_wei) OVER (ORDER BY id) AS total_wei"
        " FROM accounts.practice_trade WHERE account_id = $1 AND profit_wei IS NOT NULL"
        " ORDER BY id DESC LIMIT $2",
        account_id,
        limit,
    )
    return [PracticeClosing(row.made_at, int(row.profit_wei), int(row.total_wei)) for row in rows]


def _read_trade(row: _LedgerRow) -> KeptTrade:
    return KeptTrade(
        id=row.id,
        side=row.side,
        token=as_optional_address(row.token),
        symbol=row.symbol,
        decimals=row.decimals,
        token_raw=int(row.token_raw),
        eth_wei=int(row.eth_wei),
        cost_wei=int(row.cost_wei),
        profit_wei=optional_int(row.profit_wei),
        block_number=row.block_number,
        block_hash=None if row.block_hash is None else as_text(row.block_hash),
        venue=row.venue,
        made_at=row.made_at,
        sells_back=row.sells_back,
        counted=row.counted,
        why_not=row.why_not,
    )


class _WeekResultRow(NamedTuple):
    profit: Decimal
    sells: int


class _TokenSymbolRow(NamedTuple):
    token: bytes
    symbol: str | None


async def week(connection: Connection, account_id: int, since: datetime) -> WeekResult:
    """The result of the sells since ``since``."""
    row = await fetch_one(
        connection,
        _WeekResultRow,
        "SELECT coalesce(sum(profit_wei), 0) AS profit, count(*) AS sells FROM accounts.practice_trade"
        " WHERE account_id = $1 AND side = 'sell' AND made_at >= $2",
        account_id,
        since,
    )
    return WeekResult(int(row.profit), row.sells)


async def symbols(connection: Connection, tokens: list[Address]) -> dict[Address, str | None]:
    """The symbols of those tokens that were read, untrusted text."""
    rows = await fetch(
        connection,
        _TokenSymbolRow,
        "SELECT token, symbol FROM facts.token WHERE token = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    return {as_address(row.token): row.symbol for row in rows}


# --- repeats ---------------------------------------------------------------------------------------


async def repeat(connection: Connection, account_id: int, key_hash: bytes) -> Repeat | None:
    """The stored answer to a request with this key; None: there is none."""
    return await fetch_row(
        connection,
        Repeat,
        "SELECT asked_hash, answer FROM accounts.practice_repeat WHERE account_id = $1 AND key_hash = $2",
        account_id,
        key_hash,
    )


async def keep_repeat(
    connection: Connection, account_id: int, key_hash: bytes, repeat: Repeat, now: datetime
) -> None:
    """Stores the answer for a repeated request; the caller has locked the account, and none is stored."""
    await connection.execute(
        "INSERT INTO accounts.practice_repeat (account_id, key_hash, asked_hash, answer, made_at)"
        " VALUES ($1, $2, $3, $4, $5)",
        account_id,
        key_hash,
        repeat.asked_hash,
        repeat.answer,
        now,
    )


async def forget_repeats(connection: Connection, before: datetime) -> bool:
    """Deletes some answers older than ``before``. True: there may be more."""
    status = await connection.execute(
        "DELETE FROM accounts.practice_repeat WHERE (account_id, key_hash) IN (SELECT account_id, key_hash"
        " FROM accounts.practice_repeat WHERE made_at < $1 LIMIT $2)",
        before,
        _MOST_FORGOTTEN,
    )
    return status == f"DELETE {_MOST_FORGOTTEN}"
