"""Practice accounts, their positions and their ledger. Each function uses the caller's connection and does
not end the transaction. The caller locks an account before it changes it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from roundtrip.domain.base.types import Address, BlockRef, HexBytes, Numeric
from roundtrip.domain.practice.practice import PracticePosition, PracticePurse, PracticeTrade, SellsBack, Side
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_one, fetch_row, fetch_value

Layout = Literal["solidity", "vyper", "solady"]
REPEATS_KEPT = timedelta(days=7)
"""How long the answer to a request is kept for its repeats."""
_MAX_FORGOTTEN = 10_000


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a token keeps its balances: how keys are hashed, and the slot of the mapping."""

    layout: Layout
    base: Numeric


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
    """Further columns of a trade. ``block``, ``venue``: where it was priced; the others as in
    accounts.practice_trade."""

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
    token_raw: Numeric
    eth_wei: Numeric
    cost_wei: Numeric
    profit_wei: Numeric | None
    block_number: int | None
    block_hash: HexBytes | None
    venue: str | None
    made_at: datetime
    sells_back: SellsBack | None
    counted: bool | None
    why_not: str | None


@dataclass(frozen=True, slots=True)
class RecentTrades:
    """What was recently bought and sold of a token: wei paid, base units sold."""

    bought_wei: Numeric = 0
    sold_raw: Numeric = 0


@dataclass(frozen=True, slots=True)
class WeekResult:
    """The profit of the sells since a given time, net of losses, and their number."""

    profit_wei: Numeric
    sells: int


class Repeat(NamedTuple):
    """The answer to an earlier request, and the hash of that request."""

    asked_hash: bytes
    answer: bytes


# --- accounts --------------------------------------------------------------------------------------


_PURSE = "SELECT eth_wei, given_wei, week_s, apart_wei FROM accounts.practice_account WHERE account_id = $1"


async def account(connection: Connection, account_id: int) -> PracticePurse | None:
    """The practice account; None: it does not exist yet."""
    return await fetch_row(connection, PracticePurse, _PURSE, account_id)


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
    return await fetch_one(connection, PracticePurse, f"{_PURSE} FOR UPDATE", account_id)


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


# --- positions -------------------------------------------------------------------------------------


async def open_positions(connection: Connection, account_id: int) -> list[StoredPosition]:
    """The account's open positions, the oldest first."""
    return await fetch(
        connection,
        StoredPosition,
        "SELECT token, state, held_raw, cost_wei, stuck_at IS NOT NULL AS is_stuck, decimals, slot_layout AS "
        "layout, slot_base AS base, opened_at, bought_at, at, failed_at, stuck_at FROM "
        "accounts.practice_position WHERE account_id = $1 AND state = 'open' ORDER BY opened_at, token",
        account_id,
    )


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


async def recent(
    connection: Connection, account_id: int, token: Address, since: datetime, block_number: int
) -> RecentTrades:
    """What was bought and sold of a token after ``since``, or at ``block_number`` or a later block."""
    return await fetch_one(
        connection,
        RecentTrades,
        "SELECT coalesce(sum(eth_wei) FILTER (WHERE side = 'buy'), 0) AS bought_wei, coalesce(sum(token_raw) "
        "FILTER (WHERE side = 'sell'), 0) AS sold_raw FROM accounts.practice_trade WHERE account_id = $1 AND "
        "token = $2 AND (made_at > $3 OR block_number >= $4)",
        account_id,
        as_bytes(token),
        since,
        block_number,
    )


async def trades(connection: Connection, account_id: int, limit: int) -> list[KeptTrade]:
    """The account's last trades, the newest first."""
    return await fetch(
        connection,
        KeptTrade,
        "SELECT trade.id, trade.side, token, token.symbol, coalesce(position.decimals, 0) AS decimals, "
        "trade.token_raw, trade.eth_wei, trade.cost_wei, trade.profit_wei, trade.block_number, "
        "trade.block_hash, trade.venue, trade.made_at, trade.sells_back, trade.counted, trade.why_not FROM "
        "accounts.practice_trade AS trade LEFT JOIN accounts.practice_position AS position USING "
        "(account_id, token) LEFT JOIN facts.token AS token USING (token) WHERE trade.account_id = $1 ORDER "
        "BY trade.id DESC LIMIT $2",
        account_id,
        limit,
    )


@dataclass(frozen=True, slots=True)
class PracticeClosing:
    """A sell or a write-off. ``total_wei``: the total profit up to and with it."""

    at: datetime
    profit_wei: Numeric
    total_wei: Numeric


async def closings(connection: Connection, account_id: int, limit: int) -> list[PracticeClosing]:
    """The account's last closings, the newest first."""
    return await fetch(
        connection,
        PracticeClosing,
        "SELECT made_at AS at, profit_wei, sum(profit_wei) OVER (ORDER BY id) AS total_wei FROM "
        "accounts.practice_trade WHERE account_id = $1 AND profit_wei IS NOT NULL ORDER BY id DESC LIMIT $2",
        account_id,
        limit,
    )


async def week(connection: Connection, account_id: int, since: datetime) -> WeekResult:
    """The result of the sells since ``since``."""
    return await fetch_one(
        connection,
        WeekResult,
        "SELECT coalesce(sum(profit_wei), 0) AS profit_wei, count(*) AS sells FROM accounts.practice_trade"
        " WHERE account_id = $1 AND side = 'sell' AND made_at >= $2",
        account_id,
        since,
    )


async def symbols(connection: Connection, tokens: list[Address]) -> dict[Address, str | None]:
    """The symbols of those tokens that were read, untrusted text."""
    rows = await fetch(
        connection,
        tuple[Address, str | None],
        "SELECT token, symbol FROM facts.token WHERE token = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    return dict(rows)


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
        _MAX_FORGOTTEN,
    )
    return status == f"DELETE {_MAX_FORGOTTEN}"
