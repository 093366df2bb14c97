"""Practice accounts, what they hold and what they did. Each function takes the caller's connection and ends
no transaction. Whoever changes an account has locked it before."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import asyncpg

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.practice.practice import PracticePosition, PracticePurse, PracticeTrade, SellsBack, Side
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection

REPEATS_KEPT = timedelta(days=7)
_MOST_FORGOTTEN = 10_000


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a token keeps its balances: how its keys are hashed, and the mapping's own slot."""

    layout: Literal["solidity", "vyper", "solady"]
    base: int


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """A position as it is kept. ``bought_at``: when it was last bought. ``at``: the pool, the curve or the id
    of the pool where it is sold. ``failed_at``: when all of it was first to be sold and that failed, if no
    sell went through since; ``stuck_at``: since when it cannot be sold. ``slot``, ``at`` None: not known."""

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
    """What goes with a trade. ``block``, ``venue``: where it was priced; the others as in the table."""

    block: BlockRef | None = None
    venue: str | None = None
    sells_back: SellsBack | None = None
    counted: bool | None = None
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class KeptTrade:
    """A line of the ledger; ``symbol`` as a stranger wrote it."""

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
    """What was just bought and sold of one token: wei paid, base units sold."""

    bought_wei: int = 0
    sold_raw: int = 0


@dataclass(frozen=True, slots=True)
class WeekResult:
    """What the sells of a span took, losses taken off, and how many they were."""

    profit_wei: int
    sells: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """The answer that a request was given, and what it had asked."""

    asked_hash: bytes
    answer: bytes


# --- accounts --------------------------------------------------------------------------------------


async def account(connection: Connection, account_id: int) -> PracticePurse | None:
    """None: it did nothing yet."""
    row = await connection.fetchrow(
        "SELECT * FROM accounts.practice_account WHERE account_id = $1", account_id
    )
    return None if row is None else _account(row)


async def lock(connection: Connection, account_id: int, first: PracticePurse) -> PracticePurse:
    """The account, made as ``first`` where there was none, and nobody else's to change until the transaction
    ends."""
    await connection.execute(
        "INSERT INTO accounts.practice_account (account_id, eth_wei, given_wei, week_s, apart_wei)"
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
        account_id,
        first.eth_wei,
        first.given_wei,
        first.week_s,
        first.apart_wei,
    )
    row = await connection.fetchrow(
        "SELECT * FROM accounts.practice_account WHERE account_id = $1 FOR UPDATE", account_id
    )
    return _account(row)


async def keep_account(connection: Connection, account_id: int, kept: PracticePurse) -> None:
    """As it is from now on."""
    await connection.execute(
        "UPDATE accounts.practice_account SET eth_wei = $2, given_wei = $3, week_s = $4, apart_wei = $5"
        " WHERE account_id = $1",
        account_id,
        kept.eth_wei,
        kept.given_wei,
        kept.week_s,
        kept.apart_wei,
    )


def _account(row: asyncpg.Record) -> PracticePurse:
    return PracticePurse(int(row["eth_wei"]), int(row["given_wei"]), row["week_s"], int(row["apart_wei"]))


# --- positions -------------------------------------------------------------------------------------


async def open_positions(connection: Connection, account_id: int) -> list[StoredPosition]:
    """The oldest first."""
    rows = await connection.fetch(
        "SELECT * FROM accounts.practice_position WHERE account_id = $1 AND state = 'open'"
        " ORDER BY opened_at, token",
        account_id,
    )
    return [_read_position(row) for row in rows]


async def keep_position(connection: Connection, account_id: int, kept: StoredPosition) -> None:
    """As it is from now on."""
    position, slot = kept.position, kept.slot
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
        kept.decimals,
        None if slot is None else slot.layout,
        None if slot is None else slot.base,
        kept.opened_at,
        kept.bought_at,
        kept.at,
        kept.failed_at if position.state == "open" else None,
        kept.stuck_at if position.is_stuck else None,
    )


def _read_position(row: asyncpg.Record) -> StoredPosition:
    slot = None if row["slot_layout"] is None else Slot(row["slot_layout"], int(row["slot_base"]))
    position = PracticePosition(
        as_address(row["token"]),
        row["state"],
        int(row["held_raw"]),
        int(row["cost_wei"]),
        row["stuck_at"] is not None,
    )
    return StoredPosition(
        position,
        row["decimals"],
        slot,
        row["opened_at"],
        row["bought_at"],
        row["at"],
        row["failed_at"],
        row["stuck_at"],
    )


# --- the ledger ------------------------------------------------------------------------------------


async def add_trade(
    connection: Connection, account_id: int, trade: PracticeTrade, told: TradeNotes, now: datetime
) -> int:
    """One more line; its id."""
    block = told.block
    made: int = await connection.fetchval(
        "INSERT INTO accounts.practice_trade (account_id, token, side, token_raw, eth_wei, cost_wei, "
        "profit_wei,"
        " block_number, block_hash, venue, made_at, sells_back, counted, why_not)"
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
        told.venue,
        now,
        told.sells_back,
        told.counted,
        told.why_not,
    )
    return made


async def recent(
    connection: Connection, account_id: int, token: Address, since: datetime, block_number: int
) -> RecentTrades:
    """What was bought and sold of a token later than ``since``, or priced at this block or a later one."""
    row = await connection.fetchrow(
        "SELECT coalesce(sum(eth_wei) FILTER (WHERE side = 'buy'), 0) AS bought,"
        " coalesce(sum(token_raw) FILTER (WHERE side = 'sell'), 0) AS sold"
        " FROM accounts.practice_trade WHERE account_id = $1 AND token = $2"
        " AND (made_at > $3 OR block_number >= $4)",
        account_id,
        as_bytes(token),
        since,
        block_number,
    )
    return RecentTrades(int(row["bought"]), int(row["sold"]))


async def trades(connection: Connection, account_id: int, most: int) -> list[KeptTrade]:
    """The newest first."""
    rows = await connection.fetch(
        "SELECT trade.*, token.symbol, coalesce(position.decimals, 0) AS decimals"
        " FROM accounts.practice_trade AS trade"
        " LEFT JOIN accounts.practice_position AS position USING (account_id, token)"
        " LEFT JOIN facts.token AS token USING (token)"
        " WHERE trade.account_id = $1 ORDER BY trade.id DESC LIMIT $2",
        account_id,
        most,
    )
    return [_trade(row) for row in rows]


@dataclass(frozen=True, slots=True)
class PracticeClosing:
    """A sell or a write-off. ``total_wei``: the profit of all up to it."""

    at: datetime
    profit_wei: int
    total_wei: int


async def closings(connection: Connection, account_id: int, most: int) -> list[PracticeClosing]:
    """The newest first."""
    rows = await connection.fetch(
        "SELECT made_at, profit_wei, sum(profit_wei) OVER (ORDER BY id) AS total_wei"
        " FROM accounts.practice_trade WHERE account_id = $1 AND profit_wei IS NOT NULL"
        " ORDER BY id DESC LIMIT $2",
        account_id,
        most,
    )
    return [PracticeClosing(row["made_at"], int(row["profit_wei"]), int(row["total_wei"])) for row in rows]


def _trade(row: asyncpg.Record) -> KeptTrade:
    profit, token, block_hash = row["profit_wei"], row["token"], row["block_hash"]
    return KeptTrade(
        id=row["id"],
        side=row["side"],
        token=None if token is None else as_address(token),
        symbol=row["symbol"],
        decimals=row["decimals"],
        token_raw=int(row["token_raw"]),
        eth_wei=int(row["eth_wei"]),
        cost_wei=int(row["cost_wei"]),
        profit_wei=None if profit is None else int(profit),
        block_number=row["block_number"],
        block_hash=None if block_hash is None else as_text(block_hash),
        venue=row["venue"],
        made_at=row["made_at"],
        sells_back=row["sells_back"],
        counted=row["counted"],
        why_not=row["why_not"],
    )


async def week(connection: Connection, account_id: int, since: datetime) -> WeekResult:
    """What sells took since then."""
    row = await connection.fetchrow(
        "SELECT coalesce(sum(profit_wei), 0) AS profit, count(*) AS sells FROM accounts.practice_trade"
        " WHERE account_id = $1 AND side = 'sell' AND made_at >= $2",
        account_id,
        since,
    )
    return WeekResult(int(row["profit"]), row["sells"])


async def symbols(connection: Connection, tokens: list[Address]) -> dict[Address, str | None]:
    """What these tokens say they are called, as strangers wrote it; those that were read."""
    rows = await connection.fetch(
        "SELECT token, symbol FROM facts.token WHERE token = ANY($1::bytea[])",
        [as_bytes(one) for one in tokens],
    )
    return {as_address(row["token"]): row["symbol"] for row in rows}


# --- repeats ---------------------------------------------------------------------------------------


async def repeat(connection: Connection, account_id: int, key_hash: bytes) -> Repeat | None:
    """What a request of this name was answered; None: there was none."""
    row = await connection.fetchrow(
        "SELECT asked_hash, answer FROM accounts.practice_repeat WHERE account_id = $1 AND key_hash = $2",
        account_id,
        key_hash,
    )
    return None if row is None else Repeat(row["asked_hash"], row["answer"])


async def keep_repeat(
    connection: Connection, account_id: int, key_hash: bytes, kept: Repeat, now: datetime
) -> None:
    """For whoever asks by this name again; the account is locked, and there was none."""
    await connection.execute(
        "INSERT INTO accounts.practice_repeat (account_id, key_hash, asked_hash, answer, made_at)"
        " VALUES ($1, $2, $3, $4, $5)",
        account_id,
        key_hash,
        kept.asked_hash,
        kept.answer,
        now,
    )


async def forget_repeats(connection: Connection, before: datetime) -> bool:
    """Takes away what is older; whether there was more of it than is taken away at once."""
    done: str = await connection.execute(
        "DELETE FROM accounts.practice_repeat WHERE (account_id, key_hash) IN (SELECT account_id, key_hash"
        " FROM accounts.practice_repeat WHERE made_at < $1 LIMIT $2)",
        before,
        _MOST_FORGOTTEN,
    )
    return done == f"DELETE {_MOST_FORGOTTEN}"
