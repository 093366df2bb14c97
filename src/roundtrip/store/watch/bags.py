"""Tokens that accounts hold, and the verdicts sent to their holders. Each function uses the caller's
connection and does not end the transaction."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from roundtrip.domain.base.clock_age import age_s
from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, Numeric, TxHash
from roundtrip.domain.market.signals import NARROW_TICKS
from roundtrip.domain.watch.bag_guard import (
    GUARD,
    BagHolding,
    BagStanding,
    KnownVerdict,
    StoredLevel,
    fold_drained,
)
from roundtrip.domain.watch.rules import Happening
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_optional, fetch_values

from .happening_rows import LAUNCHED_RAW, PPM

MAX_CHECKS = 50
"""Checks of one token that one call of ``checks_after`` returns; the next call returns the others."""


class BagHolder(NamedTuple):
    """An account whose wallet holds a token. ``from_number``: it is alerted about later blocks.
    ``token_number``: the token's number in facts.address."""

    account_id: int
    wallet: Address
    from_number: int
    token_number: int


async def deployers(connection: Connection, tokens: Collection[Address]) -> dict[Address, Address]:
    """The deployer of each of these tokens that a launchpad launched."""
    rows = await fetch(
        connection,
        tuple[Address, Address],
        "SELECT token.address AS token, deployer.address AS deployer FROM facts.address AS token JOIN "
        "facts.launch AS launch ON launch.token_id = token.id JOIN facts.address AS deployer ON deployer.id "
        "= launch.deployer_id WHERE token.address = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    return dict(rows)


_SOLD = """
SELECT given.nth, (held.sold_raw - later.sold_raw)::text AS sold_raw
FROM unnest($1::bytea[], $2::bytea[], $3::int[], $4::int[], $5::int[]) WITH ORDINALITY
    AS given (token, wallet, block_number, log_index, at_s, nth)
JOIN facts.address AS token ON token.address = given.token
JOIN facts.address AS wallet ON wallet.address = given.wallet
CROSS JOIN LATERAL facts.position_of(wallet.id, token.id) AS held
CROSS JOIN LATERAL (
    SELECT coalesce(sum(trade.token_raw), 0) AS sold_raw
    FROM facts.trades_of(held.wallet_id, given.at_s) AS trade
    JOIN facts.pool AS pool ON pool.id = trade.pool_id
    WHERE held.last_s >= given.at_s AND pool.token_id = held.token_id AND NOT trade.buys
        AND (trade.block_number, trade.log_index) > (given.block_number, given.log_index)
) AS later
"""


async def read_sold_totals(connection: Connection, sales: Sequence[Happening]) -> list[int | None]:
    """For each sale, how much of the token its seller had sold in all up to and with it; None: not known."""
    totals: list[int | None] = [None] * len(sales)
    rows = await fetch(
        connection,
        tuple[int, Numeric],
        _SOLD,
        [as_bytes(sale.token) for sale in sales],
        [as_bytes(sale.wallet) for sale in sales],
        [sale.spot.block_number for sale in sales],
        [sale.spot.log_index for sale in sales],
        [sale.spot.at_s for sale in sales],
    )
    for nth, sold_raw in rows:
        totals[nth - 1] = sold_raw
    return totals


DRAINED_WITHIN_S = 86_400
_DRAINED_BEFORE = f"""
WITH own AS MATERIALIZED (
    SELECT given.nth, change.pool_id, change.sender_id, change.at_s, change.block_number, change.log_index
    FROM unnest($1::int[], $2::int[], $3::int[]) WITH ORDINALITY
        AS given (at_s, block_number, log_index, nth)
    JOIN facts.liquidity AS change USING (at_s, block_number, log_index)
), part AS (
    SELECT pool_id, sender_id, min(at_s) - {DRAINED_WITHIN_S} AS from_s, max(at_s) AS to_s
    FROM own GROUP BY pool_id, sender_id
)
SELECT part.pool_id, part.sender_id, change.at_s, lag(change.tx_hash) OVER (
        PARTITION BY part.pool_id, part.sender_id ORDER BY change.block_number, change.log_index
    ) IS DISTINCT FROM change.tx_hash AS begins,
    (CASE WHEN change.active_raw = 0 THEN 0 ELSE
        change.liquidity_delta * least(change.tick_upper - change.tick_lower, {NARROW_TICKS})
    END)::text AS raw, coalesce(own.nth, 0) AS nth
FROM part JOIN facts.liquidity AS change ON change.pool_id = part.pool_id
    AND change.sender_id = part.sender_id AND change.at_s BETWEEN part.from_s AND part.to_s
LEFT JOIN own ON own.at_s = change.at_s AND own.block_number = change.block_number
    AND own.log_index = change.log_index
ORDER BY part.pool_id, part.sender_id, change.block_number, change.log_index
"""  # noqa: S608


async def read_drained_before(connection: Connection, drains: Sequence[Happening]) -> list[int]:
    """For each removal, how far its wallet's part of the same pool had fallen already below the most that it
    was within ``DRAINED_WITHIN_S`` before: who adds and then takes out bit by bit is caught, who takes out
    and puts back is not. By the width of the ranges as in ``happening_moves.drains``; what lay out of range
    does not count, since dust there can be any amount of liquidity. Each wallet's changes in a pool are read
    once, for all of its removals."""
    before_raw = [0] * len(drains)
    if not drains:
        return before_raw
    spots = [drain.spot for drain in drains]
    rows = await fetch(
        connection,
        tuple[int, int, int, bool, Numeric, int],
        _DRAINED_BEFORE,
        [spot.at_s for spot in spots],
        [spot.block_number for spot in spots],
        [spot.log_index for spot in spots],
    )
    for _, part in groupby(rows, key=lambda row: row[:2]):
        changes = list(part)
        fallen = fold_drained(
            ((at_s, begins, raw) for _, _, at_s, begins, raw, _ in changes), DRAINED_WITHIN_S
        )
        for change, fallen_raw in zip(changes, fallen, strict=True):
            if change[-1]:
                before_raw[change[-1] - 1] = fallen_raw
    return before_raw


_LARGE_RAW = LAUNCHED_RAW * GUARD.given_ppm // PPM
"""Least amount of a transfer in ``transfer_given``, an index of facts.transfer, which has the same figure."""
MAX_GIVEN = 5_000
"""Accounts read per token, the oldest first, of those that received a thousandth of the supply in one
stored transfer. At most a thousand can hold so much at a time."""
_TOKENS = (
    "unnest($1::bytea[], $2::int[], $3::int[], $4::int[], $5::int[]) WITH ORDINALITY"
    " AS given (token, block_number, log_index, at_s, last_s, nth)"
)
_TRADED = f"""
WITH held AS MATERIALIZED (
    SELECT given.nth, given.block_number, given.log_index, given.at_s, own.token_id, own.wallet_id,
        own.held_raw, own.last_s, account.id, account.wallet, account.guarded_from
    FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
    JOIN facts.position AS own ON own.token_id = token.id
    JOIN facts.address AS wallet ON wallet.id = own.wallet_id
    JOIN accounts.account AS account ON account.wallet = wallet.address
    WHERE own.held_raw > 0 OR own.last_s >= given.at_s
), later AS MATERIALIZED (
    SELECT held.nth, held.id, sum(CASE WHEN trade.buys THEN trade.token_raw ELSE -trade.token_raw END) AS raw
    FROM held JOIN facts.trade AS trade ON trade.trader_id = held.wallet_id AND trade.at_s >= held.at_s
        AND (trade.block_number, trade.log_index) > (held.block_number, held.log_index)
    JOIN facts.pool AS pool ON pool.id = trade.pool_id AND pool.token_id = held.token_id
    WHERE held.last_s >= held.at_s GROUP BY held.nth, held.id
)
SELECT held.nth, held.id AS account_id, held.wallet, held.guarded_from AS from_number,
    held.token_id AS token_number,
    (held.held_raw - coalesce(later.raw, 0))::text AS held_raw
FROM held LEFT JOIN later ON later.nth = held.nth AND later.id = held.id
"""  # noqa: S608
_WALLETS = f"""
SELECT DISTINCT of.wallet_id FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
JOIN facts.launch AS launch ON launch.token_id = token.id
CROSS JOIN LATERAL (
    SELECT large.to_id AS wallet_id FROM (
        SELECT DISTINCT to_id FROM facts.large_transfers(token.id, {_LARGE_RAW}) OFFSET 0
    ) AS large JOIN facts.address AS wallet ON wallet.id = large.to_id
    JOIN accounts.account AS account ON account.wallet = wallet.address ORDER BY account.id LIMIT {MAX_GIVEN}
) AS of
"""  # noqa: S608
_MOVED = f"""
WITH side AS (
    SELECT to_id AS wallet_id, token_id, at_s, block_number, log_index, amount_raw AS raw
    FROM facts.transfer WHERE to_id = ANY($6::int[])
    UNION ALL SELECT from_id, token_id, at_s, block_number, log_index, -amount_raw
    FROM facts.transfer WHERE from_id = ANY($6::int[])
)
SELECT given.nth, account.id AS account_id, account.wallet, account.guarded_from AS from_number,
    token.id AS token_number,
    (coalesce(sum(side.raw) FILTER (WHERE side.at_s <= given.at_s
        AND (side.block_number, side.log_index) < (given.block_number, given.log_index)), 0)
    )::text AS held_raw
FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
JOIN facts.launch AS launch ON launch.token_id = token.id
JOIN side ON side.token_id = token.id
JOIN facts.address AS wallet ON wallet.id = side.wallet_id
JOIN accounts.account AS account ON account.wallet = wallet.address
GROUP BY given.nth, token.id, account.id
"""  # noqa: S608


_TRADES_SINCE = f"""
SELECT given.nth, account.id, trade.block_number, trade.log_index,
    (CASE WHEN trade.buys THEN trade.token_raw ELSE -trade.token_raw END)::text AS raw
FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
JOIN facts.pool AS pool ON pool.token_id = token.id
JOIN facts.trade AS trade ON trade.pool_id = pool.id
JOIN facts.address AS wallet ON wallet.id = trade.trader_id
JOIN accounts.account AS account ON account.wallet = wallet.address
WHERE trade.at_s BETWEEN $6 AND $7 AND trade.at_s BETWEEN given.at_s AND given.last_s
    AND (trade.block_number, trade.log_index) > (given.block_number, given.log_index)
"""  # noqa: S608
_MOVES_SINCE = f"""
SELECT given.nth, account.id, transfer.block_number, transfer.log_index,
    (CASE WHEN side.gets THEN transfer.amount_raw ELSE -transfer.amount_raw END)::text AS raw
FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
JOIN facts.transfer AS transfer ON transfer.token_id = token.id
CROSS JOIN LATERAL (VALUES (transfer.to_id, true), (transfer.from_id, false)) AS side (id, gets)
JOIN facts.address AS wallet ON wallet.id = side.id
JOIN accounts.account AS account ON account.wallet = wallet.address
WHERE transfer.at_s BETWEEN $6 AND $7 AND transfer.at_s BETWEEN given.at_s AND given.last_s
    AND (transfer.block_number, transfer.log_index) >= (given.block_number, given.log_index)
"""  # noqa: S608


class _HoldingChangeRow(NamedTuple):
    nth: int
    id: int
    block_number: int
    log_index: int
    raw: Numeric


async def holders(connection: Connection, happenings: Sequence[Happening]) -> list[list[BagHolder]]:
    """For each happening, the accounts that held its token, by account, just before it, or with a trade of
    their own at it: those that had bought more than they had sold, and those that had received enough of a
    launchpad's token, in one transfer at least once, within the days for which transfers are kept. Computed
    from what they hold now and what they have traded since: a wallet that later sells more than it bought
    held the token then, since it had received it elsewhere.

    Each token is read once, at its first happening; the later ones follow from what moved in between."""
    result: list[list[BagHolder]] = [[] for _ in happenings]
    numbers_of: dict[Address, list[int]] = {}
    for number in sorted(range(len(happenings)), key=lambda number: happenings[number].spot[:2]):
        numbers_of.setdefault(happenings[number].token, []).append(number)
    if not numbers_of:
        return result
    spans = [
        (token, happenings[numbers[0]].spot, happenings[numbers[-1]].spot)
        for token, numbers in numbers_of.items()
    ]
    bought = await _read_ledgers(connection, spans, _TRADED, _TRADES_SINCE)
    moved = await _read_ledgers(connection, spans, _MOVED, _MOVES_SINCE)
    for nth, numbers in enumerate(numbers_of.values()):
        ledgers = (bought[nth], 1), (moved[nth], _LARGE_RAW)
        token_holders: list[BagHolder] | None = None
        for number in numbers:
            changed = [ledger.advance(happenings[number].spot[:2]) for ledger, _ in ledgers]
            if token_holders is None or any(changed):
                by_account = {
                    account_id: ledger.holders[account_id]
                    for ledger, least_raw in ledgers
                    for account_id, raw in ledger.held_raw.items()
                    if raw >= least_raw
                }
                token_holders = [by_account[account_id] for account_id in sorted(by_account)]
            result[number] = token_holders
    return result


class _BagLedger:
    """What accounts hold of one token by one kind of fact, at a spot of the chain that advances. ``changes``:
    the spot from which a change counts, account, and amount, in order."""

    def __init__(self) -> None:
        self.holders: dict[int, BagHolder] = {}
        self.held_raw: dict[int, int] = {}
        self.changes: deque[tuple[tuple[int, int], int, int]] = deque()

    def advance(self, spot: tuple[int, int]) -> bool:
        """Applies the changes up to ``spot``. True: an amount changed."""
        changed = False
        while self.changes and self.changes[0][0] <= spot:
            _, account_id, raw = self.changes.popleft()
            if account_id in self.holders:
                self.held_raw[account_id] += raw
                changed = True
        return changed


async def _read_ledgers(
    connection: Connection, spans: Sequence[tuple[Address, Spot, Spot]], first: str, since: str
) -> list[_BagLedger]:
    ledgers = [_BagLedger() for _ in spans]
    given = (
        [as_bytes(token) for token, _, _ in spans],
        [spot.block_number for _, spot, _ in spans],
        [spot.log_index for _, spot, _ in spans],
        [spot.at_s for _, spot, _ in spans],
        [last.at_s for _, _, last in spans],
    )
    wallet_ids: list[list[int]] = []
    if first is _MOVED:
        # Passed as numbers: the planner assumes the worst of a subquery.
        wallet_ids = [await fetch_values(connection, int, _WALLETS, *given)]
    rows = await fetch(connection, tuple[int, BagHolder, Numeric], first, *given, *wallet_ids)
    for nth, holder, held_raw in rows:
        ledgers[nth - 1].holders[holder.account_id] = holder
        ledgers[nth - 1].held_raw[holder.account_id] = held_raw
    if any(spot[:2] != last[:2] for _, spot, last in spans):
        changes = await fetch(connection, _HoldingChangeRow, since, *given, min(given[3]), max(given[4]))
        for change in sorted(changes, key=lambda change: (change.block_number, change.log_index)):
            # A trade counts from its own position, a transfer only after it.
            log_index = change.log_index + (since is _MOVES_SINCE)
            ledgers[change.nth - 1].changes.append(((change.block_number, log_index), change.id, change.raw))
    return ledgers


async def rewind_accounts(connection: Connection, number: int) -> None:
    """After a reorganisation to block ``number``: accounts are alerted about the blocks that replace the
    later ones."""
    await connection.execute("UPDATE accounts.account SET guarded_from = $1 WHERE guarded_from > $1", number)


async def holders_now(connection: Connection, tokens: Sequence[Address]) -> dict[Address, list[BagHolder]]:
    """The accounts that hold each of these tokens now; a token that no account holds is left out."""
    # Of these happenings only the token and the spot are used.
    spot = Spot(_LAST, _LAST, _LAST, TxHash("0x"))
    ends = [Happening("draining", spot, ZERO_ADDRESS, token, None, None, None, None) for token in tokens]
    held_by = await holders(connection, ends)
    return {
        token: token_holders for token, token_holders in zip(tokens, held_by, strict=True) if token_holders
    }


_LAST = 2**31 - 1
"""A number and time after those of every block."""


# --- all that is held ------------------------------------------------------------------------------

_HELD = f"""
WITH wallet AS MATERIALIZED (
    SELECT account.id AS account_id, address.id FROM accounts.account AS account
    JOIN facts.address AS address ON address.address = account.wallet
), got AS MATERIALIZED (
    SELECT DISTINCT wallet.account_id, wallet.id, transfer.token_id
    FROM wallet JOIN facts.transfer AS transfer ON transfer.to_id = wallet.id
    WHERE transfer.amount_raw >= {_LARGE_RAW}
), given AS (
    SELECT got.account_id, got.id, got.token_id FROM got WHERE NOT EXISTS (
        SELECT FROM facts.position_of(got.id, got.token_id) AS bought WHERE bought.held_raw > 0
    ) AND (SELECT sum(raw) FROM facts.moves_of(got.token_id, got.id)) >= {_LARGE_RAW}
), held AS (
    SELECT wallet.account_id, traded.token_id, false AS is_given, to_timestamp(traded.last_s) AS since
    FROM wallet CROSS JOIN LATERAL facts.newest_positions(wallet.id, $1::int, 1) AS traded
    UNION ALL SELECT account_id, token_id, true, NULL FROM (
        SELECT given.*, row_number() OVER (PARTITION BY account_id ORDER BY token_id DESC) AS place FROM given
    ) AS one WHERE place <= $2
)
SELECT account_id, address AS token, is_given, since
FROM held JOIN facts.address AS address ON address.id = held.token_id
ORDER BY address, account_id
"""  # noqa: S608


async def held_by_accounts(connection: Connection) -> list[BagHolding]:
    """What accounts' wallets hold, by token: of each wallet the newest tokens that it bought and the newest
    that it received. Takes seconds where there are many accounts."""
    return await fetch(connection, BagHolding, _HELD, GUARD.most_held, GUARD.most_given)


# --- verdicts --------------------------------------------------------------------------------------


async def read_standings(connection: Connection, tokens: Collection[Address]) -> dict[Address, BagStanding]:
    """The verdict of each token that its holders know; a token without one is missing."""
    rows = await fetch(
        connection,
        tuple[Address, BagStanding],
        "SELECT token, level, code, policy_version, seen_id, next_level, next_at, told_at"
        " FROM accounts.bag_verdict WHERE token = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    return dict(rows)


async def put_standings(connection: Connection, standing_of: dict[Address, BagStanding]) -> None:
    """Writes the verdicts of these tokens, over those that are there."""
    await connection.executemany(
        "INSERT INTO accounts.bag_verdict (token, level, code, policy_version, seen_id, next_level, next_at,"
        " told_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (token) DO UPDATE SET"
        " level = excluded.level, code = excluded.code, policy_version = excluded.policy_version,"
        " seen_id = excluded.seen_id, next_level = excluded.next_level, next_at = excluded.next_at,"
        " told_at = excluded.told_at",
        [
            (as_bytes(token), standing.level, standing.code, standing.policy_version, standing.seen_id,
             standing.next_level, standing.next_at, standing.told_at)
            for token, standing in sorted(standing_of.items())
        ],
    )  # fmt: skip


async def delete_other_standings(connection: Connection, tokens: Collection[Address]) -> None:
    """Deletes the verdicts of all other tokens: no account holds or watches them any more. One that somebody
    began to watch after ``tokens`` were read stays."""
    await connection.execute(
        "DELETE FROM accounts.bag_verdict AS kept WHERE token <> ALL($1::bytea[])"
        " AND NOT EXISTS (SELECT FROM accounts.token_watch AS watched WHERE watched.token = kept.token)",
        [as_bytes(token) for token in tokens],
    )


_CHECKS = """
SELECT given.token, one.*
FROM unnest($1::bytea[], $2::bigint[], $3::timestamptz[]) AS given (token, seen_id, known_until)
CROSS JOIN LATERAL (
    (SELECT id, checked_at AS at, verdict_level AS level, verdict_code AS code, policy_version, deep
    FROM facts.evidence WHERE token = given.token AND id > given.seen_id AND given.seen_id > 0
    ORDER BY id LIMIT $4)
    UNION ALL
    (SELECT id, checked_at, verdict_level, verdict_code, policy_version, deep FROM facts.evidence
    WHERE token = given.token AND given.seen_id = 0 AND verdict_level <> 'unknown' AND id >= coalesce((
        SELECT id FROM facts.evidence WHERE token = given.token AND verdict_level <> 'unknown'
        AND checked_at <= given.known_until ORDER BY id DESC LIMIT 1
    ), 0) ORDER BY id LIMIT $4)
) AS one ORDER BY one.id
"""


async def checks_after(
    connection: Connection, seen_ids: Mapping[Address, int], until: Mapping[Address, datetime]
) -> dict[Address, list[StoredLevel]]:
    """The checks of each token after the one of that id, the oldest first. For id 0, those whose verdict is
    not unknown, from the newest one not after the token's ``until`` on; where none is that old, all."""
    rows = await fetch(
        connection,
        tuple[Address, StoredLevel],
        _CHECKS,
        [as_bytes(token) for token in seen_ids],
        list(seen_ids.values()),
        [until[token] for token in seen_ids],
        MAX_CHECKS,
    )
    return _group_checks(rows)


_NEWEST_CHECKS = """
SELECT given.token, one.* FROM unnest($1::bytea[], $2::timestamptz[]) AS given (token, since)
CROSS JOIN LATERAL (
    (SELECT id, checked_at AS at, verdict_level AS level, verdict_code AS code, policy_version, deep
    FROM facts.evidence WHERE token = given.token AND checked_at > given.since
    ORDER BY id DESC LIMIT $3)
    UNION ALL
    (SELECT id, checked_at, verdict_level, verdict_code, policy_version, deep FROM facts.evidence
    WHERE token = given.token AND verdict_level <> 'unknown' AND checked_at <= given.since
    ORDER BY id DESC LIMIT 1)
) AS one ORDER BY one.id
"""
_MAX_NEWEST = 200
"""Checks of one token after its time that ``read_newest_checks`` returns."""


async def read_newest_checks(
    connection: Connection, since: Mapping[Address, datetime]
) -> dict[Address, list[StoredLevel]]:
    """The last check of each token before its time whose verdict is not unknown, and the newest after it, the
    oldest first."""
    rows = await fetch(
        connection,
        tuple[Address, StoredLevel],
        _NEWEST_CHECKS,
        [as_bytes(token) for token in since],
        list(since.values()),
        _MAX_NEWEST,
    )
    return _group_checks(rows)


def _group_checks(rows: Sequence[tuple[Address, StoredLevel]]) -> dict[Address, list[StoredLevel]]:
    checks: dict[Address, list[StoredLevel]] = {}
    for token, check in rows:
        checks.setdefault(token, []).append(check)
    return checks


async def read_told(
    connection: Connection, holdings: Sequence[BagHolding]
) -> dict[tuple[int, Address], KnownVerdict]:
    """By account and token: the last alert of a verdict that the account got after ``since``."""
    rows = await fetch(
        connection,
        tuple[int, Address, KnownVerdict],
        "SELECT given.account_id, given.token, to_timestamp(told.at_s) AS at, told.level"
        " FROM unnest($1::bigint[], $2::bytea[], $3::timestamptz[]) AS given (account_id, token, since)"
        " CROSS JOIN LATERAL (SELECT alert.at_s, alert.level FROM accounts.alert AS alert"
        " WHERE alert.account_id = given.account_id AND alert.token = given.token"
        " AND alert.kind = 'bag_guard' AND alert.verb = 'verdict'"
        " AND alert.at_s > floor(extract(epoch FROM given.since))::int ORDER BY alert.at_s DESC LIMIT 1"
        ") AS told",
        [holding.account_id for holding in holdings],
        [as_bytes(holding.token) for holding in holdings],
        [holding.since for holding in holdings],
    )
    return {(account_id, token): known for account_id, token, known in rows}


async def checked_at(
    connection: Connection, tokens: Collection[Address], now: datetime
) -> dict[Address, datetime]:
    """The time of each token's last deep check, by any caller and with any verdict: one that tests less does
    not see what only deep checks find. A token without one is missing, and one whose check is later than
    ``now`` by more than clocks differ: ours was put back."""
    rows = await fetch(
        connection,
        tuple[Address, datetime],
        "SELECT given.token, newest.checked_at FROM unnest($1::bytea[]) AS given (token) CROSS JOIN LATERAL"
        " (SELECT checked_at FROM facts.evidence WHERE evidence.token = given.token AND deep"
        " ORDER BY id DESC LIMIT 1) AS newest",
        [as_bytes(token) for token in tokens],
    )
    now_s = now.timestamp()
    return {token: at for token, at in rows if age_s(at.timestamp(), now_s) is not None}


async def document(connection: Connection, evidence_id: int) -> bytes | None:
    """The stored document of a check; None: it is not kept."""
    return await fetch_optional(
        connection, bytes, "SELECT document FROM facts.evidence WHERE id = $1", evidence_id
    )
