"""How far facts were read for alerts, and what was counted on the way. Each function takes the caller's
connection and ends no transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import asyncpg

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.chain_stats import DAY_S
from roundtrip.domain.watch.alerts import BAG, MINUTE_S
from roundtrip.store.server.hex import as_address
from roundtrip.store.server.rows import Connection

from .happenings import IndexedBlock

Kind = Literal["rule", "follow", "bag_guard"]
BEFORE_ALL = IndexedBlock(-1, 0)
MINUTES_KEPT = 1440
"""After so many nothing is counted back any more. Of a real chain at most four may be reorganised."""


@dataclass(frozen=True, slots=True)
class AlertCursor:
    """``at``: the last block that was read. ``rewound``: the last reorganisation that was undone."""

    at: IndexedBlock
    rewound: int


class MinuteKey(NamedTuple):
    """A rule, a follow or a token that an account holds (domain/watch/bag_guard.py ``guard_source_id``), in
    one minute of the chain's clock: seconds since 1970 / 60."""

    kind: Kind
    source_id: int
    minute: int
    account_id: int


@dataclass(slots=True)
class MinuteCount:
    """``raised`` rows, ``beyond`` them so many that became none, of which ``told`` were told together."""

    raised: int = 0
    beyond: int = 0
    told: int = 0


@dataclass(frozen=True, slots=True)
class Rewinds:
    """Reorganisations: the last one's id, and the lowest block that one went back to."""

    last: int
    to: IndexedBlock


async def take(connection: Connection) -> AlertCursor | None:
    """Nobody else's until the transaction ends. None: another has it, or there is none."""
    row = await connection.fetchrow(
        "SELECT number, at_s, rewound FROM accounts.alert_cursor FOR UPDATE SKIP LOCKED"
    )
    return None if row is None else AlertCursor(IndexedBlock(row["number"], row["at_s"]), row["rewound"])


async def is_there(connection: Connection) -> bool:
    """Whether it began."""
    found: bool = await connection.fetchval("SELECT EXISTS (SELECT FROM accounts.alert_cursor)")
    return found


async def begin(connection: Connection, known: IndexedBlock, rewound: int) -> bool:
    """Begins where the index stands, or before that where something that is watched was set before: what is
    older raises nothing. False: another did meanwhile. ``known``: the index's last block; ``rewound``: the
    last reorganisation."""
    first: int | None = await connection.fetchval(
        "SELECT min(from_number) FROM (SELECT from_number FROM accounts.rule WHERE ended_at IS NULL"
        " UNION ALL SELECT from_number FROM accounts.follow WHERE ended_at IS NULL) AS watched"
    )
    at = known
    if first is not None and first < at.number:
        row = await connection.fetchrow(
            "SELECT number, at_s FROM facts.block WHERE number <= $1 ORDER BY number DESC LIMIT 1", first
        )
        at = BEFORE_ALL if row is None else IndexedBlock(row["number"], row["at_s"])
    done: str = await connection.execute(
        "INSERT INTO accounts.alert_cursor (number, at_s, rewound) VALUES ($1, $2, $3)"
        " ON CONFLICT DO NOTHING",
        at.number,
        at.at_s,
        rewound,
    )
    return done != "INSERT 0 0"


async def move(connection: Connection, to: AlertCursor) -> None:
    """The caller has it."""
    await connection.execute(
        "UPDATE accounts.alert_cursor SET number = $1, at_s = $2, rewound = $3",
        to.at.number,
        to.at.at_s,
        to.rewound,
    )


async def last_rewound(connection: Connection) -> int:
    """The last reorganisation that there was, or is known of."""
    found: int = await connection.fetchval("SELECT coalesce(max(id), 0) FROM facts.rewound")
    return found


async def rewinds_after(connection: Connection, rewound: int) -> Rewinds | None:
    """Reorganisations after that one."""
    row = await connection.fetchrow(
        "SELECT to_number, to_s, max(id) OVER () AS last FROM facts.rewound WHERE id > $1"
        " ORDER BY to_number LIMIT 1",
        rewound,
    )
    return None if row is None else Rewinds(row["last"], IndexedBlock(row["to_number"], row["to_s"]))


async def place_after(
    connection: Connection, after: IndexedBlock, most: int, last: IndexedBlock
) -> IndexedBlock:
    """A block at most ``most`` further, of which the time is known; of older ones only every so many is kept,
    and then it is the next that is. Never beyond ``last``."""
    if last.number <= after.number + most:
        return last
    row = await connection.fetchrow(
        "(SELECT number, at_s FROM facts.block WHERE number > $1 AND number <= $2"
        " ORDER BY number DESC LIMIT 1) UNION ALL"
        " (SELECT number, at_s FROM facts.block WHERE number > $2 ORDER BY number LIMIT 1) LIMIT 1",
        after.number,
        after.number + most,
    )
    return last if row is None else IndexedBlock(row["number"], row["at_s"])


async def place_before(connection: Connection, at_s: int) -> IndexedBlock:
    """A block that is older than ``at_s``."""
    row = await connection.fetchrow(
        "SELECT number, at_s FROM facts.block WHERE at_s < $1 ORDER BY number DESC LIMIT 1", at_s
    )
    return BEFORE_ALL if row is None else IndexedBlock(row["number"], row["at_s"])


# --- minutes ---------------------------------------------------------------------------------------


async def minutes(connection: Connection, keys: Collection[MinuteKey]) -> dict[MinuteKey, MinuteCount]:
    """What was counted so far."""
    rows = await connection.fetch(
        "SELECT counted.* FROM accounts.alert_minute AS counted"
        " JOIN unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[])"
        " AS given (kind, source_id, minute, account_id) USING (kind, source_id, minute, account_id)",
        *_columns(list(keys)),
    )
    return _read_counts(rows)


async def put_minutes(connection: Connection, counts: dict[MinuteKey, MinuteCount]) -> None:
    """Keeps them as they are now."""
    if not counts:
        return
    keys = sorted(counts)
    found = [counts[key] for key in keys]
    await connection.execute(
        "INSERT INTO accounts.alert_minute AS counted"
        " (kind, source_id, minute, account_id, raised, beyond, told) SELECT * FROM"
        " unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[], $5::int[], $6::int[], $7::int[])"
        " ON CONFLICT (kind, source_id, minute, account_id) DO UPDATE SET raised = excluded.raised,"
        " beyond = excluded.beyond, told = excluded.told",
        *_columns(keys),
        [one.raised for one in found],
        [one.beyond for one in found],
        [one.told for one in found],
    )


async def take_minutes(connection: Connection, minute: int) -> dict[MinuteKey, MinuteCount]:
    """Takes away what was counted in that minute and later, and gives it."""
    rows = await connection.fetch("DELETE FROM accounts.alert_minute WHERE minute >= $1 RETURNING *", minute)
    return _read_counts(rows)


@dataclass(frozen=True, slots=True)
class UntoldMinute:
    """A minute of which not all was told. ``name``: the rule's canonical text, or of a follow as the account
    calls the wallet, empty where it does not; of a bag BAG; None: it was ended. ``wallet``: of a follow;
    ``token``: of a bag."""

    key: MinuteKey
    counted: MinuteCount
    name: str | None
    wallet: Address | None
    token: Address | None


async def untold(connection: Connection, before_minute: int, most: int) -> list[UntoldMinute]:
    """Minutes before that one of which more happened than was told, the earliest first."""
    rows = await connection.fetch(
        "SELECT counted.*, coalesce(rule.said, follow.name, CASE WHEN counted.kind = 'bag_guard' THEN $3 END)"
        " AS name, follow.wallet, token.address AS token FROM ("
        "SELECT * FROM accounts.alert_minute WHERE minute < $1 AND beyond > told"
        " ORDER BY minute, kind, source_id, account_id LIMIT $2) AS counted"
        " LEFT JOIN accounts.rule AS rule ON counted.kind = 'rule' AND rule.id = counted.source_id"
        " AND rule.ended_at IS NULL"
        " LEFT JOIN accounts.follow AS follow ON counted.kind = 'follow' AND follow.id = counted.source_id"
        " AND follow.ended_at IS NULL"
        " LEFT JOIN facts.address AS token ON counted.kind = 'bag_guard'"
        " AND token.id = abs(counted.source_id)"
        " ORDER BY counted.minute, counted.kind, counted.source_id, counted.account_id",
        before_minute,
        most,
        BAG,
    )
    return [
        UntoldMinute(key, counted, row["name"], _address(row["wallet"]), _address(row["token"]))
        for (key, counted), row in zip(_read_counts(rows).items(), rows, strict=True)
    ]


async def forget(connection: Connection) -> None:
    """Takes away reorganisations that were undone, but for those of the chain's last day, which the status
    page tells of; and counts of old minutes."""
    await connection.execute(
        "DELETE FROM facts.rewound USING accounts.alert_cursor AS told"
        " WHERE facts.rewound.id <= told.rewound AND facts.rewound.to_s < told.at_s - $1::int",
        DAY_S,
    )
    await connection.execute(
        "DELETE FROM accounts.alert_minute WHERE beyond <= told"
        " AND minute < (SELECT at_s FROM accounts.alert_cursor) / $1::int - $2::int",
        MINUTE_S,
        MINUTES_KEPT,
    )


def _columns(keys: Sequence[MinuteKey]) -> tuple[list[str], list[int], list[int], list[int]]:
    return (
        [key.kind for key in keys],
        [key.source_id for key in keys],
        [key.minute for key in keys],
        [key.account_id for key in keys],
    )


def _read_counts(rows: Sequence[asyncpg.Record]) -> dict[MinuteKey, MinuteCount]:
    return {
        MinuteKey(row["kind"], row["source_id"], row["minute"], row["account_id"]): MinuteCount(
            row["raised"], row["beyond"], row["told"]
        )
        for row in rows
    }


def _address(found: bytes | None) -> Address | None:
    return None if found is None else as_address(found)
