"""Flags on tokens and the controls drawn with them. Each function takes the caller's connection and ends no
transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, cast

import asyncpg

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.community.flag_calls import (
    MOST_A_DAY,
    MOST_OPEN,
    By,
    FlagReading,
    FlagScore,
    FlagWeek,
    Kind,
    State,
)
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection


@dataclass(frozen=True, slots=True)
class FlagBasis:
    """What a flag is held against: so many tokens (what 0.1 eth bought) and where the token keeps balances
    (layout and base of ``chain/simulate/balance_slots.py``); the pool or curve that it was traded in most
    and the liquidity there; what its deployer held. None: not of its kind, or there is none."""

    held_raw: int | None = None
    slot: tuple[str, int] | None = None
    pool: str | None = None
    liquidity: int | None = None
    deployer_raw: int | None = None


@dataclass(frozen=True, slots=True)
class NewFlag:
    """A flag to be made. ``at_s``, ``block_number``: where the index stood."""

    token: Address
    kind: Kind
    at_s: int
    block_number: int
    ends_s: int
    basis: FlagBasis


@dataclass(frozen=True, slots=True)
class WaitingFlag:
    """A flag that is not settled. ``by``: the account's wallet; None: a control. ``seen_s``: of runs, when it
    first paid enough."""

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
    """What proved a flag: what was found, in which block, at which second of the chain. ``tx_hash``: the
    largest transaction of it; ``wei``: what its tokens sold for."""

    by: By
    block_number: int
    at_s: int
    tx_hash: TxHash | None = None
    wei: int | None = None


@dataclass(frozen=True, slots=True)
class FlagReview:
    """What looking at a flag came to: its state before and after, ``seen``: the reading that it is seen by,
    ``answered_s`` as in ``Week``, and the proof where it was proved."""

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
    """Raises Full where an account may not flag so now. ``day``: when the day of UTC began."""
    row = await connection.fetchrow(
        "SELECT count(*) FILTER (WHERE state IN ('open', 'seen')) AS open,"
        " count(*) FILTER (WHERE made_at >= $2) AS today,"
        " count(*) FILTER (WHERE state IN ('open', 'seen') AND token = $3 AND kind = $4) AS same"
        " FROM accounts.flag WHERE account_id = $1",
        account_id,
        day,
        as_bytes(token),
        kind,
    )
    if row["same"]:
        raise TooManyFlags("same")
    if row["open"] >= MOST_OPEN:
        raise TooManyFlags("open")
    if row["today"] >= MOST_A_DAY:
        raise TooManyFlags("day")


async def add(
    connection: Connection,
    account_id: int,
    new: NewFlag,
    control: NewFlag | None,
    now: datetime,
    day: datetime,
) -> int:
    """Makes a flag, with its control, and gives its id. Raises Full. Of one account that flags twice at once
    one waits for the other."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)
    await check_room(connection, account_id, new.token, new.kind, day)
    flag_id = await _insert(connection, new, now, account_id, None)
    if control is not None:
        await _insert(connection, control, now, None, flag_id)
    return flag_id


async def _insert(
    connection: Connection,
    new: NewFlag,
    now: datetime,
    account_id: int | None,
    control_of: int | None,
) -> int:
    basis, slot = new.basis, new.basis.slot
    flag_id: int = await connection.fetchval(
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
        _decimal(basis.held_raw),
        None if slot is None else slot[0],
        None if slot is None else Decimal(slot[1]),
        None if basis.pool is None else as_bytes(basis.pool),
        _decimal(basis.liquidity),
        _decimal(basis.deployer_raw),
    )
    return flag_id


async def waiting(connection: Connection, most: int) -> list[WaitingFlag]:
    """Flags that are not settled, controls among them: those that nobody looked at for longest first."""
    rows = await connection.fetch(
        "SELECT flag.*, account.wallet FROM accounts.flag AS flag"
        " LEFT JOIN accounts.account AS account ON account.id = flag.account_id"
        " WHERE flag.state IN ('open', 'seen') ORDER BY flag.looked_at NULLS FIRST, flag.id LIMIT $1",
        most,
    )
    return [_waiting(row) for row in rows]


def _waiting(row: asyncpg.Record) -> WaitingFlag:
    slot = None
    if row["slot_layout"] is not None:
        slot = row["slot_layout"], int(row["slot_base"])
    return WaitingFlag(
        row["id"],
        None if row["wallet"] is None else as_address(row["wallet"]),
        as_address(row["token"]),
        cast(Kind, row["kind"]),
        cast(State, row["state"]),
        row["block_number"],
        FlagWeek(row["at_s"], row["ends_s"], row["answered_s"]),
        FlagBasis(
            _maybe(row["held_raw"]),
            slot,
            None if row["pool"] is None else as_text(row["pool"]),
            _maybe(row["liquidity"]),
            _maybe(row["deployer_raw"]),
        ),
        row["seen_s"],
    )


async def put(connection: Connection, looked: Sequence[FlagReview], now: datetime, newest_s: int) -> int:
    """Writes what looking came to, once each: a flag that is no longer as it was stays as it is. How many
    were written."""
    written = 0
    for one in looked:
        proof, is_settled = one.proof, one.state in ("proved", "failed", "void")
        done: str = await connection.execute(
            "UPDATE accounts.flag SET state = $3, looked_at = $4, answered_s = $5,"
            " seen_s = CASE WHEN $3 = 'open' THEN NULL ELSE coalesce(seen_s, $6::int) END,"
            " seen_block = CASE WHEN $3 = 'open' THEN NULL ELSE coalesce(seen_block, $7::int) END,"
            " seen_wei = CASE WHEN $3 = 'open' THEN NULL ELSE coalesce(seen_wei, $8::numeric) END,"
            " settled_at = CASE WHEN $9 THEN $4::timestamptz END, settled_s = $10, settled_block = $11,"
            " settled_tx = $12, settled_by = $13, settled_wei = $14"
            " WHERE id = $1 AND state = $2",
            one.id,
            one.before,
            one.state,
            now,
            one.answered_s,
            None if one.seen is None else one.seen.at_s,
            None if one.seen is None else one.seen.block_number,
            None if one.seen is None else Decimal(one.seen.pays_wei),
            is_settled,
            (newest_s if proof is None else proof.at_s) if is_settled else None,
            None if proof is None else proof.block_number,
            None if proof is None or proof.tx_hash is None else as_bytes(proof.tx_hash),
            None if proof is None else proof.by,
            None if proof is None else _decimal(proof.wei),
        )
        written += done != "UPDATE 0"
    return written


# --- what is shown ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PublicFlag:
    """A flag as everybody may see it. ``symbol``, ``name``: a stranger's words. ``proof`` None: it waits."""

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
    seen_wei: int | None
    held_raw: int | None


_SHOWN = """
SELECT flag.*, account.designation, account.is_agent, token.symbol, token.name
FROM accounts.flag AS flag JOIN accounts.account AS account ON account.id = flag.account_id
LEFT JOIN facts.token AS token ON token.token = flag.token
"""


async def list_proved(connection: Connection, token: Address | None, most: int) -> list[PublicFlag]:
    """Flags that were proved, of a token or (None) of all, the latest first."""
    rows = await connection.fetch(
        f"{_SHOWN} WHERE flag.state = 'proved' AND ($1::bytea IS NULL OR flag.token = $1)"
        " ORDER BY flag.settled_at DESC, flag.id DESC LIMIT $2",
        None if token is None else as_bytes(token),
        most,
    )
    return [_read_shown(row) for row in rows]


async def still_waiting(connection: Connection, token: Address, most: int) -> list[PublicFlag]:
    """A token's flags that wait, the latest first."""
    rows = await connection.fetch(
        f"{_SHOWN} WHERE flag.state IN ('open', 'seen') AND flag.token = $1"
        " ORDER BY flag.made_at DESC, flag.id DESC LIMIT $2",
        as_bytes(token),
        most,
    )
    return [_read_shown(row) for row in rows]


def _read_shown(row: asyncpg.Record) -> PublicFlag:
    proof = None
    if row["settled_by"] is not None:
        tx_hash = None if row["settled_tx"] is None else TxHash(as_text(row["settled_tx"]))
        by, wei = cast(By, row["settled_by"]), _maybe(row["settled_wei"])
        proof = FlagProof(by, row["settled_block"], row["settled_s"], tx_hash, wei)
    return PublicFlag(
        as_address(row["token"]),
        row["symbol"],
        row["name"],
        cast(Kind, row["kind"]),
        row["account_id"],
        row["designation"],
        row["is_agent"],
        row["made_at"],
        row["at_s"],
        row["ends_s"],
        proof,
        _maybe(row["seen_wei"]),
        _maybe(row["held_raw"]),
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


async def scores(connection: Connection, account_ids: Collection[int]) -> dict[int, FlagScore]:
    """Of these accounts; who flagged nothing has an empty one."""
    found = dict.fromkeys(account_ids, FlagScore())
    rows = await connection.fetch(_SCORES, list(account_ids))
    of_all: dict[str, tuple[int, int]] = {}
    if any(row["drawn"] is None and row["decided"] for row in rows):
        of_all = {row[0]: (row[1], row[2]) for row in await connection.fetch(_CHANCE)}
    for row in rows:
        by_chance, drawn = row["by_chance"], row["drawn"]
        if drawn is None:
            of_kinds = [of_all.get(kind, (0, 0)) for kind in row["kinds"] or ()]
            by_chance, drawn = (sum(part) for part in zip(*of_kinds, strict=True)) if of_kinds else (0, 0)
        found[row["account_id"]] = FlagScore(row["proved"], row["decided"], by_chance, drawn)
    return found


def _decimal(value: int | None) -> Decimal | None:
    return None if value is None else Decimal(value)


def _maybe(value: Decimal | None) -> int | None:
    return None if value is None else int(value)
