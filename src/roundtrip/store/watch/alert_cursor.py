"""The position up to which facts were read for alerts, and counts of alerts per minute. Each function uses
the caller's connection and does not end the transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.chain_stats import DAY_S
from roundtrip.domain.watch.alerts import BAG, MINUTE_S
from roundtrip.store.server.rows import Connection, fetch, fetch_optional, fetch_row, fetch_value

from .happenings import IndexedBlock

Kind = Literal["rule", "follow", "bag_guard"]
BEFORE_ALL = IndexedBlock(-1, 0)
"""Stands for the position before the first block."""
MINUTES_KEPT = 1440
"""Minutes after which a count is deleted. A reorganisation of a real chain reaches back four minutes at
most."""


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
    """``raised``: alerts created. ``beyond``: alerts over the limit, not created. ``told``: how many of
    ``beyond`` a summary alert has reported."""

    raised: int = 0
    beyond: int = 0
    told: int = 0


async def lock(connection: Connection) -> AlertCursor | None:
    """Locks the cursor until the transaction ends. None: another transaction holds it, or there is none."""
    return await fetch_row(
        connection,
        AlertCursor,
        "SELECT number, at_s, rewound FROM accounts.alert_cursor FOR UPDATE SKIP LOCKED",
    )


async def exists(connection: Connection) -> bool:
    """Whether there is a cursor."""
    return await fetch_value(connection, bool, "SELECT EXISTS (SELECT FROM accounts.alert_cursor)")


async def create(connection: Connection, known: IndexedBlock, rewound: int) -> bool:
    """Creates the cursor at ``known``, the index's last block, or earlier where a live rule or follow counts
    from an earlier block; older facts raise no alert. ``rewound``: the last reorganisation. False: another
    transaction created it first."""
    first_number = await fetch_optional(
        connection,
        int,
        "SELECT min(from_number) FROM (SELECT from_number FROM accounts.rule WHERE ended_at IS NULL"
        " UNION ALL SELECT from_number FROM accounts.follow WHERE ended_at IS NULL) AS watched",
    )
    at = known
    if first_number is not None and first_number < at.number:
        block = await fetch_row(
            connection,
            IndexedBlock,
            "SELECT number, at_s FROM facts.block WHERE number <= $1 ORDER BY number DESC LIMIT 1",
            first_number,
        )
        at = block or BEFORE_ALL
    status = await connection.execute(
        "INSERT INTO accounts.alert_cursor (number, at_s, rewound) VALUES ($1, $2, $3)"
        " ON CONFLICT DO NOTHING",
        at.number,
        at.at_s,
        rewound,
    )
    return status != "INSERT 0 0"


async def update(connection: Connection, to: AlertCursor) -> None:
    """Moves the cursor; the caller has locked it."""
    await connection.execute(
        "UPDATE accounts.alert_cursor SET number = $1, at_s = $2, rewound = $3",
        to.at.number,
        to.at.at_s,
        to.rewound,
    )


async def last_rewind(connection: Connection) -> int:
    """The id of the last reorganisation that is kept; 0: none."""
    return await fetch_value(connection, int, "SELECT coalesce(max(id), 0) FROM facts.rewound")


async def rewinds_after(connection: Connection, rewound: int) -> tuple[int, IndexedBlock] | None:
    """Of the reorganisations after ``rewound``: the id of the last one, and the lowest block that any of them
    went back to; None: there are none."""
    return await fetch_row(
        connection,
        tuple[int, IndexedBlock],
        "SELECT max(id) OVER () AS last, to_number AS number, to_s AS at_s FROM facts.rewound WHERE id > $1"
        " ORDER BY to_number LIMIT 1",
        rewound,
    )


async def block_after(
    connection: Connection, after: IndexedBlock, max_blocks: int, last: IndexedBlock
) -> IndexedBlock:
    """A block whose time is known, at most ``max_blocks`` after ``after`` and never beyond ``last``. Of old
    blocks only some are kept: where none is that near, the next one that is kept."""
    if last.number <= after.number + max_blocks:
        return last
    block = await fetch_row(
        connection,
        IndexedBlock,
        "(SELECT number, at_s FROM facts.block WHERE number > $1 AND number <= $2"
        " ORDER BY number DESC LIMIT 1) UNION ALL"
        " (SELECT number, at_s FROM facts.block WHERE number > $2 ORDER BY number LIMIT 1) LIMIT 1",
        after.number,
        after.number + max_blocks,
    )
    return block or last


async def block_before(connection: Connection, at_s: int) -> IndexedBlock:
    """The newest kept block that is older than ``at_s``."""
    block = await fetch_row(
        connection,
        IndexedBlock,
        "SELECT number, at_s FROM facts.block WHERE at_s < $1 ORDER BY number DESC LIMIT 1",
        at_s,
    )
    return block or BEFORE_ALL


# --- minutes ---------------------------------------------------------------------------------------


_COUNT_COLUMNS = (
    "counted.kind, counted.source_id, counted.minute, counted.account_id, counted.raised, counted.beyond,"
    " counted.told"
)


async def read_minutes(connection: Connection, keys: Collection[MinuteKey]) -> dict[MinuteKey, MinuteCount]:
    """The counts of these minutes; a minute without one is missing."""
    rows = await fetch(
        connection,
        tuple[MinuteKey, MinuteCount],
        f"SELECT {_COUNT_COLUMNS} FROM accounts.alert_minute AS counted"  # noqa: S608
        " JOIN unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[])"
        " AS given (kind, source_id, minute, account_id) USING (kind, source_id, minute, account_id)",
        *_columns_of(list(keys)),
    )
    return dict(rows)


async def write_minutes(connection: Connection, counts: dict[MinuteKey, MinuteCount]) -> None:
    """Writes the counts, over those that are there."""
    if not counts:
        return
    keys = sorted(counts)
    minute_counts = [counts[key] for key in keys]
    await connection.execute(
        "INSERT INTO accounts.alert_minute AS counted (kind, source_id, minute, account_id, raised, beyond, "
        "told) SELECT * FROM unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[], $5::int[], $6::int[], "
        "$7::int[]) ON CONFLICT (kind, source_id, minute, account_id) DO UPDATE SET raised = "
        "excluded.raised, beyond = excluded.beyond, told = excluded.told",
        *_columns_of(keys),
        [count.raised for count in minute_counts],
        [count.beyond for count in minute_counts],
        [count.told for count in minute_counts],
    )


async def delete_minutes(connection: Connection, minute: int) -> dict[MinuteKey, MinuteCount]:
    """Deletes the counts of that minute and of later ones, and returns them."""
    rows = await fetch(
        connection,
        tuple[MinuteKey, MinuteCount],
        f"DELETE FROM accounts.alert_minute AS counted WHERE minute >= $1 RETURNING {_COUNT_COLUMNS}",  # noqa: S608
        minute,
    )
    return dict(rows)


@dataclass(frozen=True, slots=True)
class UntoldMinute:
    """A minute with alerts over the limit that no summary has reported. ``name``: of a rule its canonical
    text, of a follow the account's name for the wallet, empty where it has none, of a bag BAG; None: the rule
    or follow has ended. ``wallet``: of a follow; ``token``: of a bag."""

    key: MinuteKey
    counted: MinuteCount
    name: str | None
    wallet: Address | None
    token: Address | None


async def read_unreported(connection: Connection, before_minute: int, limit: int) -> list[UntoldMinute]:
    """Minutes before ``before_minute`` with unreported alerts, the earliest first."""
    return await fetch(
        connection,
        UntoldMinute,
        f"SELECT {_COUNT_COLUMNS},"  # noqa: S608
        " coalesce(rule.said, follow.name, CASE WHEN counted.kind = 'bag_guard' THEN $3 END) AS name, "
        "follow.wallet, token.address AS token FROM (SELECT * FROM accounts.alert_minute WHERE minute < $1 "
        "AND beyond > told ORDER BY minute, kind, source_id, account_id LIMIT $2) AS counted LEFT JOIN "
        "accounts.rule AS rule ON counted.kind = 'rule' AND rule.id = counted.source_id AND rule.ended_at IS "
        "NULL LEFT JOIN accounts.follow AS follow ON counted.kind = 'follow' AND follow.id = "
        "counted.source_id AND follow.ended_at IS NULL LEFT JOIN facts.address AS token ON counted.kind = "
        "'bag_guard' AND token.id = abs(counted.source_id) ORDER BY counted.minute, counted.kind, "
        "counted.source_id, counted.account_id",
        before_minute,
        limit,
        BAG,
    )


async def forget(connection: Connection) -> None:
    """Deletes reorganisations whose alerts were retracted, but for those of the chain's last day, which the
    status page shows; and counts of old minutes."""
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


def _columns_of(keys: Sequence[MinuteKey]) -> tuple[list[str], list[int], list[int], list[int]]:
    return (
        [key.kind for key in keys],
        [key.source_id for key in keys],
        [key.minute for key in keys],
        [key.account_id for key in keys],
    )
