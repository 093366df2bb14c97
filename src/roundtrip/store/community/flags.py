"""Flags on tokens, and the controls drawn with them (``domain/community/flag_calls.py``). Each function uses
the caller's connection and does not end the transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from roundtrip.domain.base.types import Address, HexBytes, Numeric, TxHash
from roundtrip.domain.community.flag_calls import (
    MAX_A_DAY,
    MAX_OPEN,
    By,
    FlagReading,
    FlagScore,
    FlagWeek,
    Kind,
    State,
)
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_one, fetch_value


@dataclass(frozen=True, slots=True)
class FlagBasis:
    """The state that a flag is judged against: the tokens that 0.1 eth bought, and where the token keeps
    balances (layout and base of ``chain/simulate/balance_slots.py``); the pool or curve where it was traded
    most, and the liquidity there; what its deployer held. None: not of its kind, or there is none."""

    held_raw: Numeric | None = None
    slot: tuple[str, Numeric] | None = None
    pool: HexBytes | None = None
    liquidity: Numeric | None = None
    deployer_raw: Numeric | None = None


@dataclass(frozen=True, slots=True)
class NewFlag:
    """A new flag. ``at_s``, ``block_number``: the index's last block."""

    token: Address
    kind: Kind
    at_s: int
    block_number: int
    ends_s: int
    basis: FlagBasis


@dataclass(frozen=True, slots=True)
class WaitingFlag:
    """A flag that is not settled. ``by``: the account's wallet; None: a control. ``seen_s``: of a flag of
    kind runs, when its tokens first sold for enough; None: not yet."""

    id: int
    by: Address | None
    token: Address
    kind: Kind
    state: State
    block_number: int
    week: FlagWeek
    basis: FlagBasis
    seen_s: int | None


@dataclass(frozen=True, slots=True)
class FlagProof:
    """The proof of a flag: what was found, in which block, at which time of the chain. ``tx_hash``: its
    largest transaction; ``wei``: what the flag's tokens sold for."""

    by: By
    block_number: int
    at_s: int
    tx_hash: TxHash | None = None
    wei: Numeric | None = None


@dataclass(frozen=True, slots=True)
class FlagReview:
    """The result of a review: the flag's state before and after, the reading that makes it ``seen``,
    ``answered_s`` as in ``FlagWeek``, and the proof where it was proved."""

    id: int
    before: State
    state: State
    answered_s: int | None
    seen: FlagReading | None = None
    proof: FlagProof | None = None


class TooManyFlags(Exception):
    """The account has as many flags as it may have."""

    def __init__(self, why: Literal["open", "day", "same"]) -> None:
        super().__init__(why)
        self.why = why


async def check_room(
    connection: Connection, account_id: int, token: Address, kind: Kind, day: datetime
) -> None:
    """Raises TooManyFlags where the account may not flag the token now. ``day``: the start of the day of
    UTC."""
    open_flags, today, same = await fetch_one(
        connection,
        tuple[int, int, int],
        "SELECT count(*) FILTER (WHERE state IN ('open', 'seen')) AS open, count(*) FILTER (WHERE made_at >= "
        "$2) AS today, count(*) FILTER (WHERE state IN ('open', 'seen') AND token = $3 AND kind = $4) AS "
        "same FROM accounts.flag WHERE account_id = $1",
        account_id,
        day,
        as_bytes(token),
        kind,
    )
    if same:
        raise TooManyFlags("same")
    if open_flags >= MAX_OPEN:
        raise TooManyFlags("open")
    if today >= MAX_A_DAY:
        raise TooManyFlags("day")


async def add(
    connection: Connection,
    account_id: int,
    new: NewFlag,
    control: NewFlag | None,
    now: datetime,
    day: datetime,
) -> int:
    """Adds a flag and its control, and returns the flag's id. Raises TooManyFlags. Two calls for one account
    run one after the other."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)
    await check_room(connection, account_id, new.token, new.kind, day)
    flag_id = await _insert(connection, new, now, account_id, None)
    if control is not None:
        await _insert(connection, control, now, None, flag_id)
    return flag_id


async def _insert(
    connection: Connection, new: NewFlag, now: datetime, account_id: int | None, control_of: int | None
) -> int:
    basis, slot = new.basis, new.basis.slot
    return await fetch_value(
        connection,
        int,
        "INSERT INTO accounts.flag (account_id, control_of, token, kind, made_at, at_s, block_number, ends_s,"
        " held_raw, slot_layout, slot_base, pool, liquidity, deployer_raw)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING id",
        account_id,
        control_of,
        as_bytes(new.token),
        new.kind,
        now,
        new.at_s,
        new.block_number,
        new.ends_s,
        basis.held_raw,
        None if slot is None else slot[0],
        None if slot is None else slot[1],
        None if basis.pool is None else as_bytes(basis.pool),
        basis.liquidity,
        basis.deployer_raw,
    )


async def waiting(connection: Connection, limit: int) -> list[WaitingFlag]:
    """Flags that are not settled, controls included, those whose last review is longest ago first."""
    return await fetch(
        connection,
        WaitingFlag,
        "SELECT flag.id, account.wallet AS by, flag.token, flag.kind, flag.state, flag.block_number,"
        " flag.at_s, flag.ends_s, flag.answered_s, flag.held_raw, flag.slot_layout, flag.slot_base,"
        " flag.pool, flag.liquidity, flag.deployer_raw, flag.seen_s FROM accounts.flag AS flag"
        " LEFT JOIN accounts.account AS account ON account.id = flag.account_id"
        " WHERE flag.state IN ('open', 'seen') ORDER BY flag.looked_at NULLS FIRST, flag.id LIMIT $1",
        limit,
    )


async def write_reviews(
    connection: Connection, reviews: Sequence[FlagReview], now: datetime, newest_s: int
) -> int:
    """Writes reviews, and returns how many were written: a flag whose state has changed since its review is
    left as it is."""
    written = 0
    for review in reviews:
        proof, is_settled = review.proof, review.state in ("proved", "failed", "void")
        status = await connection.execute(
            "UPDATE accounts.flag SET state = $3, looked_at = $4, answered_s = $5, seen_s = CASE WHEN $3 = "
            "'open' THEN NULL ELSE coalesce(seen_s, $6::int) END, seen_block = CASE WHEN $3 = 'open' THEN "
            "NULL ELSE coalesce(seen_block, $7::int) END, seen_wei = CASE WHEN $3 = 'open' THEN NULL ELSE "
            "coalesce(seen_wei, $8::numeric) END, settled_at = CASE WHEN $9 THEN $4::timestamptz END, "
            "settled_s = $10, settled_block = $11, settled_tx = $12, settled_by = $13, settled_wei = $14 "
            "WHERE id = $1 AND state = $2",
            review.id,
            review.before,
            review.state,
            now,
            review.answered_s,
            None if review.seen is None else review.seen.at_s,
            None if review.seen is None else review.seen.block_number,
            None if review.seen is None else review.seen.pays_wei,
            is_settled,
            (newest_s if proof is None else proof.at_s) if is_settled else None,
            None if proof is None else proof.block_number,
            None if proof is None or proof.tx_hash is None else as_bytes(proof.tx_hash),
            None if proof is None else proof.by,
            None if proof is None else proof.wei,
        )
        written += status != "UPDATE 0"
    return written


# --- what is shown ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PublicFlag:
    """A flag as it is public. ``symbol``, ``name``: untrusted text of the token. ``proof`` None: it is not
    proved yet."""

    token: Address
    symbol: str | None
    name: str | None
    kind: Kind
    account_id: int
    designation: str
    is_agent: bool
    made_at: datetime
    at_s: int
    ends_s: int
    proof: FlagProof | None
    seen_wei: Numeric | None
    held_raw: Numeric | None


_SHOWN = """
SELECT flag.token, token.symbol, token.name, flag.kind, flag.account_id, account.designation,
    account.is_agent, flag.made_at, flag.at_s, flag.ends_s, flag.settled_by AS by,
    flag.settled_block AS block_number, flag.settled_s AS at_s, flag.settled_tx AS tx_hash,
    flag.settled_wei AS wei, flag.seen_wei, flag.held_raw
FROM accounts.flag AS flag JOIN accounts.account AS account ON account.id = flag.account_id
LEFT JOIN facts.token AS token ON token.token = flag.token
"""


async def list_proved(connection: Connection, token: Address | None, limit: int) -> list[PublicFlag]:
    """Proved flags, of a token or (None) of all, the latest first."""
    return await fetch(
        connection,
        PublicFlag,
        f"{_SHOWN} WHERE flag.state = 'proved' AND ($1::bytea IS NULL OR flag.token = $1)"
        " ORDER BY flag.settled_at DESC, flag.id DESC LIMIT $2",
        None if token is None else as_bytes(token),
        limit,
    )


async def list_waiting(connection: Connection, token: Address, limit: int) -> list[PublicFlag]:
    """A token's flags that are not settled, the latest first."""
    return await fetch(
        connection,
        PublicFlag,
        f"{_SHOWN} WHERE flag.state IN ('open', 'seen') AND flag.token = $1"
        " ORDER BY flag.made_at DESC, flag.id DESC LIMIT $2",
        as_bytes(token),
        limit,
    )


_SCORES = """
WITH own AS MATERIALIZED (
    SELECT id, account_id, kind, state FROM accounts.flag WHERE account_id = ANY($1::bigint[])
), score AS (
    SELECT account_id, count(*) FILTER (WHERE state = 'proved') AS proved,
        count(*) FILTER (WHERE state IN ('proved', 'failed')) AS decided,
        array_agg(DISTINCT kind) FILTER (WHERE state IN ('proved', 'failed')) AS kinds
    FROM own GROUP BY account_id
), chance AS (
    SELECT own.account_id, count(*) FILTER (WHERE control.state = 'proved') AS proved, count(*) AS decided
    FROM own JOIN accounts.flag AS control ON control.control_of = own.id
    WHERE control.state IN ('proved', 'failed') GROUP BY own.account_id
)
SELECT score.account_id, score.proved, score.decided, chance.proved AS by_chance, chance.decided AS drawn,
    score.kinds
FROM score LEFT JOIN chance USING (account_id)
"""
_CHANCE = """
SELECT kind, count(*) FILTER (WHERE state = 'proved') AS proved, count(*) AS decided
FROM accounts.flag WHERE account_id IS NULL AND state IN ('proved', 'failed') GROUP BY kind
"""


class _FlagScoreRow(NamedTuple):
    account_id: int
    proved: int
    decided: int
    by_chance: int | None
    drawn: int | None
    kinds: list[str] | None


async def scores(connection: Connection, account_ids: Collection[int]) -> dict[int, FlagScore]:
    """The scores of these accounts; an account without flags has an empty one. An account none of whose
    controls is decided is compared with all controls of its kinds."""
    scores_by_account = dict.fromkeys(account_ids, FlagScore())
    rows = await fetch(connection, _FlagScoreRow, _SCORES, list(account_ids))
    by_kind: dict[str, tuple[int, int]] = {}
    if any(row.drawn is None and row.decided for row in rows):
        by_kind = dict(await fetch(connection, tuple[str, tuple[int, int]], _CHANCE))
    for row in rows:
        by_chance, drawn = row.by_chance, row.drawn
        if by_chance is None or drawn is None:
            of_kinds = [by_kind.get(kind, (0, 0)) for kind in row.kinds or ()]
            by_chance = sum(proved for proved, _ in of_kinds)
            drawn = sum(decided for _, decided in of_kinds)
        scores_by_account[row.account_id] = FlagScore(row.proved, row.decided, by_chance, drawn)
    return scores_by_account


# --- an account's own flags ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnFlag:
    """A flag as its account sees it. ``symbol``, ``name``: untrusted text of the token. ``at_s``, ``ends_s``
    and ``settled_s`` are of the chain's clock. ``by``, ``tx_hash``, ``wei``: the proof, as in
    ``FlagProof``."""

    id: int
    token: Address
    symbol: str | None
    name: str | None
    kind: Kind
    state: State
    at_s: int
    ends_s: int
    settled_s: int | None
    by: By | None
    tx_hash: TxHash | None
    wei: Numeric | None


_OWN = """
SELECT flag.id, flag.token, token.symbol, token.name, flag.kind, flag.state, flag.at_s, flag.ends_s,
    flag.settled_s, flag.settled_by AS by, flag.settled_tx AS tx_hash, flag.settled_wei AS wei
FROM accounts.flag AS flag LEFT JOIN facts.token AS token ON token.token = flag.token
WHERE flag.account_id = $1
"""


async def list_own_waiting(connection: Connection, account_id: int) -> list[OwnFlag]:
    """Flags that are not settled, the latest first: an account has few."""
    return await fetch(
        connection,
        OwnFlag,
        f"{_OWN} AND flag.state IN ('open', 'seen') ORDER BY flag.made_at DESC, flag.id DESC",
        account_id,
    )


async def list_own_settled(
    connection: Connection, account_id: int, token: Address | None, limit: int
) -> list[OwnFlag]:
    """Settled flags, of a token or (None) of all, the last settled first."""
    return await fetch(
        connection,
        OwnFlag,
        f"{_OWN} AND ($2::bytea IS NULL OR flag.token = $2) AND flag.state IN ('proved', 'failed', 'void')"
        " ORDER BY flag.settled_at DESC, flag.id DESC LIMIT $3",
        account_id,
        None if token is None else as_bytes(token),
        limit,
    )


async def made_since(connection: Connection, account_id: int, day: datetime) -> int:
    """How many flags the account has made since ``day``."""
    return await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM accounts.flag WHERE account_id = $1 AND made_at >= $2",
        account_id,
        day,
    )
