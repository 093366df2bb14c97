"""The practice league: the result of each week's sells. Each function uses the caller's connection and does
not end the transaction."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address, BlockRef, Numeric
from roundtrip.domain.market.fairness import FAIRNESS, Fairness
from roundtrip.domain.practice import practice as league
from roundtrip.domain.practice.practice import MIN_SELLS, Who, monday_s
from roundtrip.store.accounts import accounts
from roundtrip.store.boards import fair_tokens
from roundtrip.store.boards.reference_pools import is_common
from roundtrip.store.index import cursor
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_one, fetch_optional
from roundtrip.venues.base import Contracts

LOOKING_S = 2.0
"""Timeout of each of the two queries about a token's buyers. The sync waits for neither."""


@dataclass(frozen=True, slots=True)
class LeagueRank:
    """One rank of a board: an account and the result of its sells of the week. ``best_token``: of the sell
    with the most profit."""

    designation: str
    is_agent: bool
    agent_name: str | None
    profit_wei: Numeric
    sells: int
    won: int
    best_token: Address
    best_profit_wei: Numeric


class LeagueCounts(NamedTuple):
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
) -> str | None:
    """Adds a practice sell to the account's week if it counts; otherwise returns why not, as part of a
    sentence. ``block``: where it was priced; ``venue``: on which pool or curve, by its address or the id of a
    v4 pool; ``bought_at``: where what was sold was bought, which the buyer could also have made; None: on
    ``venue``. Call it near the end of the transaction
    that stores the sell: from here on a change of the account's own tag waits. Each call adds one sell."""
    sale = _TokenSale(token, tuple(dict.fromkeys((venue, bought_at or venue))), block)
    why_not = await _reason_not_counted(connection, account.wallet, sale, contracts, fairness, timeout_s)
    if why_not is None:
        await _add(connection, account.id, token, profit_wei, int(now.timestamp()))
    return why_not


@dataclass(frozen=True, slots=True)
class _TokenSale:
    """The token sold, the venues where it was sold and bought, and the block at which it was priced."""

    token: Address
    venues: tuple[str | None, ...]
    block: BlockRef


async def _reason_not_counted(
    connection: Connection,
    wallet: Address,
    sale: _TokenSale,
    contracts: Contracts,
    fairness: Fairness,
    timeout_s: float,
) -> str | None:
    """Why a sell does not count; None: it does. A sell does not count where something is unknown."""
    index_cursor = await cursor.cursor(connection)
    if index_cursor is None:
        return league.NO_INDEX
    token_facts = await fair_tokens.read_fairness(connection, sale.token, wallet, fairness)
    if token_facts is None:
        return league.NOT_KNOWN
    if token_facts.is_kin:
        return league.KIN
    # Buyers count up to the index's block, which may be slightly before or after the sell's.
    at_s = min(sale.block.timestamp_s, index_cursor.block.timestamp_s)
    is_kept = token_facts.fair_from is not None and token_facts.fair_from <= sale.block.number
    if not is_kept and token_facts.begun_s is None:
        return league.NO_BEGINNING
    if not is_kept and token_facts.begun_s is not None and token_facts.begun_s > at_s - fairness.young_s:
        return league.YOUNG
    try:
        # A savepoint: a cancelled query does not abort the caller's transaction.
        async with connection.transaction():
            if not is_kept and not await fair_tokens.is_fair(
                connection, token_facts.token_id, at_s, fairness, timeout_s=timeout_s
            ):
                return league.FEW
            async with asyncio.timeout(timeout_s):
                newest_s = index_cursor.block.timestamp_s
                for venue in sale.venues:
                    if not await is_common(
                        connection, token_facts.token_id, venue, at_s, newest_s, contracts
                    ):
                        return league.ELSEWHERE
    except TimeoutError:
        return league.NO_TIME
    return None


# FOR SHARE waits for a tag that is being set: the row has it, or the transaction that sets it finds the row.
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
    sells, is_agent = await fetch_one(
        connection, tuple[int, bool], _ADD, week_s, account_id, profit_wei, as_bytes(token), now_s
    )
    # Most sells change neither count, and wait for no lock.
    if sells == 1:
        await connection.execute(_ADD_COUNTS, week_s, is_agent, 0, 1)
    elif sells == MIN_SELLS:
        await connection.execute(_MOVE_COUNTS, week_s, is_agent, 1, -1)


# $1 week_s, $2 is_agent, $3 more on the board, $4 more with too few
_ADD_COUNTS = """
INSERT INTO accounts.league_count AS count (week_s, is_agent, on_board, too_few) VALUES ($1, $2, $3, $4)
ON CONFLICT (week_s, is_agent) DO UPDATE SET
    on_board = count.on_board + excluded.on_board, too_few = count.too_few + excluded.too_few
"""
_MOVE_COUNTS = """
UPDATE accounts.league_count SET on_board = on_board + $3, too_few = too_few + $4
WHERE week_s = $1 AND is_agent = $2
"""


# --- a tag -----------------------------------------------------------------------------------------


async def tag(connection: Connection, account_id: int, name: str | None, now: datetime) -> Account:
    """Tags the account as an agent from now on, also on this week's board; a ``name`` of None keeps the name
    it has."""
    account = await accounts.tag_agent(connection, account_id, name)
    await _retag_week(connection, account, now)
    return account


async def untag(connection: Connection, account_id: int, now: datetime) -> Account:
    """Removes the account's agent tag and agent name from now on, also on this week's board."""
    account = await accounts.untag_agent(connection, account_id)
    await _retag_week(connection, account, now)
    return account


async def _retag_week(connection: Connection, account: Account, now: datetime) -> None:
    week_s = monday_s(int(now.timestamp()))
    sells = await fetch_optional(
        connection,
        int,
        "UPDATE accounts.league_week SET is_agent = $3"
        " WHERE week_s = $1 AND account_id = $2 AND is_agent <> $3 RETURNING sells",
        week_s,
        account.id,
        account.is_agent,
    )
    if sells is None:
        return
    # Two transactions that move an account between the two counts run one after the other.
    await connection.execute(
        "SELECT FROM accounts.league_count WHERE week_s = $1 ORDER BY is_agent FOR UPDATE", week_s
    )
    on_board = int(sells >= MIN_SELLS)
    await connection.execute(_MOVE_COUNTS, week_s, not account.is_agent, -on_board, on_board - 1)
    await connection.execute(_ADD_COUNTS, week_s, account.is_agent, on_board, 1 - on_board)


# --- a board ---------------------------------------------------------------------------------------

_ORDER = "week.profit_wei DESC, week.sells, week.last_s, week.account_id"
# The partial index has the condition "sells >= 3": a parameter here would not match it.
_IN = f"week.sells >= {MIN_SELLS}"


async def board(connection: Connection, week_s: int, who: Who, limit: int) -> tuple[LeagueRank, ...]:
    """The first ``limit`` ranks of a week, in the order of ``domain/practice/practice.py``."""
    ranks = await fetch(
        connection,
        LeagueRank,
        "SELECT account.designation, week.is_agent, CASE WHEN week.is_agent THEN account.agent_name END"  # noqa: S608
        " AS agent_name, week.profit_wei, week.sells, week.won, week.best_token, week.best_profit_wei FROM ( "
        f" SELECT * FROM accounts.league_week AS week WHERE {_IN} AND {_of(who)}  ORDER BY {_ORDER} LIMIT "
        f"$2) AS week JOIN accounts.account AS account ON account.id = week.account_id ORDER BY {_ORDER}",
        week_s,
        limit,
    )
    return tuple(ranks)


async def count_entered(connection: Connection, week_s: int, who: Who) -> LeagueCounts:
    """How many accounts of a week are on the board of ``who``, and how many have too few sells for it."""
    return await fetch_one(
        connection,
        LeagueCounts,
        "SELECT coalesce(sum(on_board), 0)::int AS on_board, coalesce(sum(too_few), 0)::int AS too_few"  # noqa: S608
        f" FROM accounts.league_count AS week WHERE {_of(who)}",
        week_s,
    )


def _of(who: Who) -> str:
    """The condition for the rows of week $1 that a board has."""
    tags = {"all": "", "agents": " AND week.is_agent = true", "people": " AND week.is_agent = false"}
    return f"week.week_s = $1{tags[who]}"
