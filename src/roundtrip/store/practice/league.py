"""The practice league: what each week's sells came to. Each function takes the caller's connection and ends
no transaction."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import asyncpg

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.market.fairness import FAIRNESS, Fairness
from roundtrip.domain.practice import league
from roundtrip.domain.practice.league import LEAST_SELLS, Who
from roundtrip.domain.practice.practice import monday_s
from roundtrip.store.accounts import accounts
from roundtrip.store.boards import fair_tokens
from roundtrip.store.boards.reference_pools import PoolAge, is_common
from roundtrip.store.index import cursor
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

LOOKING_S = 2.0
"""How long the database may take for each of two looks at who bought a token; the sync waits for neither."""


@dataclass(frozen=True, slots=True)
class LeagueEligibility:
    """Whether a sell counts for the league; ``why_not``: a sentence part for people, where it does not."""

    counts: bool
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class LeagueRank:
    """One rank of a board: an account and what its sells of the week came to. ``best_token``: of the sell
    with the most profit."""

    designation: str
    is_agent: bool
    agent_name: str | None
    profit_wei: int
    sells: int
    won: int
    best_token: Address
    best_profit_wei: int


@dataclass(frozen=True, slots=True)
class LeagueCounts:
    """How many accounts of a week are on the board, and how many have too few sells for it."""

    on_board: int
    too_few: int


# --- a sell ----------------------------------------------------------------------------------------


async def count_sell(
    connection: Connection,
    account: Account,
    token: Address,
    profit_wei: int,
    block: BlockRef,
    now: datetime,
    *,
    venue: str | None,
    contracts: Contracts,
    bought_at: str | None = None,
    fairness: Fairness = FAIRNESS,
    timeout_s: float = LOOKING_S,
) -> LeagueEligibility:
    """Adds a practice sell, priced at ``block`` on ``venue`` (the address of a pool or curve, or a v4 pool's
    id), to the account's week where it counts; in the transaction that books it, and near its end: the
    account's own tag waits from here on. Each call adds one sell. ``bought_at``: where what was sold was
    bought, which may be the buyer's to make as well; None: there."""
    sold = _SoldToken(token, tuple(dict.fromkeys((venue, bought_at or venue))), block)
    why_not = await _why_not(connection, account.wallet, sold, contracts, fairness, timeout_s)
    if why_not is not None:
        return LeagueEligibility(False, why_not)
    await _add(connection, account.id, token, profit_wei, int(now.timestamp()))
    return LeagueEligibility(True)


@dataclass(frozen=True, slots=True)
class _SoldToken:
    """What was sold, where it was sold and bought, and priced at which block."""

    token: Address
    venues: tuple[str | None, ...]
    block: BlockRef


async def _why_not(
    connection: Connection,
    wallet: Address,
    sold: _SoldToken,
    contracts: Contracts,
    fairness: Fairness,
    timeout_s: float,
) -> str | None:
    """Why a sell does not count; None: it does. Whatever cannot be found out is a reason."""
    stands = await cursor.cursor(connection)
    if stands is None:
        return league.NO_INDEX
    seen = await fair_tokens.read_fairness(connection, sold.token, wallet, fairness)
    if seen is None:
        return league.NOT_KNOWN
    if seen.is_kin:
        return league.KIN
    # Buyers are those up to the index's block, which may be a little before the sell's or after it.
    at_s = min(sold.block.timestamp_s, stands.block.timestamp_s)
    is_kept = seen.fair_from is not None and seen.fair_from <= sold.block.number
    if not is_kept and seen.begun_s is None:
        return league.NO_BEGINNING
    if not is_kept and seen.begun_s is not None and seen.begun_s > at_s - fairness.young_s:
        return league.YOUNG
    try:
        # What is cancelled takes nothing of the caller's along.
        async with connection.transaction():
            if not is_kept and not await fair_tokens.is_fair(
                connection, seen.token_id, at_s, fairness, timeout_s=timeout_s
            ):
                return league.FEW
            async with asyncio.timeout(timeout_s):
                when = PoolAge(at_s, stands.block.timestamp_s)
                for venue in sold.venues:
                    if not await is_common(connection, seen.token_id, venue, when, contracts):
                        return league.ELSEWHERE
    except TimeoutError:
        return league.NO_TIME
    return None


# A tag that is just being set is waited for: the row has it, or whoever sets it finds the row.
_ADD = """
INSERT INTO accounts.league_week AS week (
    week_s, account_id, is_agent, profit_wei, sells, won, best_token, best_profit_wei, last_s
) SELECT $1, account.id, account.is_agent, $3::numeric, 1, ($3::numeric > 0)::int, $4, $3::numeric, $5
FROM accounts.account AS account WHERE account.id = $2 FOR SHARE
ON CONFLICT (week_s, account_id) DO UPDATE SET
    profit_wei = week.profit_wei + excluded.profit_wei,
    sells = week.sells + 1,
    won = week.won + excluded.won,
    best_token = CASE WHEN excluded.best_profit_wei > week.best_profit_wei
        THEN excluded.best_token ELSE week.best_token END,
    best_profit_wei = greatest(week.best_profit_wei, excluded.best_profit_wei),
    last_s = greatest(week.last_s, excluded.last_s)
RETURNING week.sells, week.is_agent
"""


async def _add(connection: Connection, account_id: int, token: Address, profit_wei: int, now_s: int) -> None:
    week_s = monday_s(now_s)
    row = await connection.fetchrow(_ADD, week_s, account_id, Decimal(profit_wei), as_bytes(token), now_s)
    # Most sells change neither number, and wait for nobody.
    if row["sells"] == 1:
        await connection.execute(_NEWCOMER, week_s, row["is_agent"], 0, 1)
    elif row["sells"] == LEAST_SELLS:
        await connection.execute(_COUNT, week_s, row["is_agent"], 1, -1)


# $1 week_s, $2 is_agent, $3 more on the board, $4 more with too few
_NEWCOMER = """
INSERT INTO accounts.league_count AS count (week_s, is_agent, on_board, too_few) VALUES ($1, $2, $3, $4)
ON CONFLICT (week_s, is_agent) DO UPDATE SET
    on_board = count.on_board + excluded.on_board, too_few = count.too_few + excluded.too_few
"""
_COUNT = """
UPDATE accounts.league_count SET on_board = on_board + $3, too_few = too_few + $4
WHERE week_s = $1 AND is_agent = $2
"""


# --- a tag -----------------------------------------------------------------------------------------


async def tag(connection: Connection, account_id: int, name: str | None, now: datetime) -> Account:
    """The account is an agent from now on, also on this week's board; a name that is None leaves the one it
    has."""
    account = await accounts.tag_agent(connection, account_id, name)
    await _tag_week(connection, account, now)
    return account


async def untag(connection: Connection, account_id: int, now: datetime) -> Account:
    """The account is no agent from now on, and has no agent's name, also on this week's board."""
    account = await accounts.untag_agent(connection, account_id)
    await _tag_week(connection, account, now)
    return account


async def _tag_week(connection: Connection, account: Account, now: datetime) -> None:
    week_s = monday_s(int(now.timestamp()))
    sells = await connection.fetchval(
        "UPDATE accounts.league_week SET is_agent = $3"
        " WHERE week_s = $1 AND account_id = $2 AND is_agent <> $3 RETURNING sells",
        week_s,
        account.id,
        account.is_agent,
    )
    if sells is None:
        return
    # Of two that move from one number to the other and back, one waits.
    await connection.execute(
        "SELECT FROM accounts.league_count WHERE week_s = $1 ORDER BY is_agent FOR UPDATE", week_s
    )
    on_board = int(sells >= LEAST_SELLS)
    await connection.execute(_COUNT, week_s, not account.is_agent, -on_board, on_board - 1)
    await connection.execute(_NEWCOMER, week_s, account.is_agent, on_board, 1 - on_board)


# --- a board ---------------------------------------------------------------------------------------

_ORDER = "week.profit_wei DESC, week.sells, week.last_s, week.account_id"
# An index is of three sells: what is written otherwise does not find it.
_IN = f"week.sells >= {LEAST_SELLS}"


async def board(connection: Connection, week_s: int, who: Who, most: int) -> tuple[LeagueRank, ...]:
    """The first ``most`` ranks of a week, as ``domain/practice/league.py`` puts them in order."""
    rows = await connection.fetch(
        "SELECT week.*, account.designation, account.agent_name FROM ("  # noqa: S608
        f"  SELECT * FROM accounts.league_week AS week WHERE {_IN} AND {_of(who)}"
        f"  ORDER BY {_ORDER} LIMIT $2"
        f") AS week JOIN accounts.account AS account ON account.id = week.account_id ORDER BY {_ORDER}",
        week_s,
        most,
    )
    return tuple(_entry(row) for row in rows)


async def count_entered(connection: Connection, week_s: int, who: Who) -> LeagueCounts:
    """How many there are in a week."""
    row = await connection.fetchrow(
        "SELECT coalesce(sum(on_board), 0)::int AS on_board, coalesce(sum(too_few), 0)::int AS too_few"  # noqa: S608
        f" FROM accounts.league_count AS week WHERE {_of(who)}",
        week_s,
    )
    return LeagueCounts(row["on_board"], row["too_few"])


def _of(who: Who) -> str:
    """The rows of week $1 that a board is of."""
    tags = {"all": "", "agents": " AND week.is_agent = true", "people": " AND week.is_agent = false"}
    return f"week.week_s = $1{tags[who]}"


def _entry(row: asyncpg.Record) -> LeagueRank:
    return LeagueRank(
        designation=row["designation"],
        is_agent=row["is_agent"],
        agent_name=row["agent_name"] if row["is_agent"] else None,
        profit_wei=int(row["profit_wei"]),
        sells=row["sells"],
        won=row["won"],
        best_token=as_address(row["best_token"]),
        best_profit_wei=int(row["best_profit_wei"]),
    )
