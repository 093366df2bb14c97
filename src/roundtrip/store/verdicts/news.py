"""Rows that are new since a position. Each function uses the caller's connection and does not end the
transaction."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_one


class NewestIds(NamedTuple):
    """The newest ids of checks, reorgs and alerts; 0: there is none."""

    evidence: int
    rewound: int
    alert: int


async def newest_ids(connection: Connection) -> NewestIds:
    """The newest ids."""
    return await fetch_one(
        connection,
        NewestIds,
        "SELECT coalesce((SELECT max(id) FROM facts.evidence), 0) AS evidence, coalesce((SELECT max(id) FROM "
        "facts.rewound), 0) AS rewound, coalesce((SELECT max(id) FROM accounts.alert), 0) AS alert",
    )


class CheckNews(NamedTuple):
    """A check, and the verdict of the token's check before it; None: it was the first."""

    id: int
    checked_at: datetime
    token: Address
    block_number: int
    code: str
    level: str
    loss_bps: int | None
    code_before: str | None
    level_before: str | None
    loss_before_bps: int | None

    def is_change(self) -> bool:
        """Whether the verdict differs from the check before; True for a token's first check."""
        return (self.code, self.level) != (self.code_before, self.level_before)


_CHECKS = """
SELECT new.id, new.checked_at, new.token, new.block_number, new.verdict_code AS code,
    new.verdict_level AS level, new.loss_bps, before.verdict_code AS code_before,
    before.verdict_level AS level_before, before.loss_bps AS loss_before_bps
FROM {new} LEFT JOIN LATERAL (
    SELECT verdict_code, verdict_level, loss_bps FROM facts.evidence
    WHERE token = new.token AND id < new.id ORDER BY id DESC LIMIT 1
) AS before ON true
"""


_NEXT = """(
    SELECT unnest($2::bigint[]) AS id UNION (SELECT id FROM {table} WHERE id > $1 ORDER BY id LIMIT $3)
) AS wanted JOIN {table} AS new USING (id)"""
"""Rows of a table after an id, and those of a list. OR in place of UNION would read the whole table."""


async def checks_after(
    connection: Connection, after_id: int, late: Collection[int], limit: int
) -> list[CheckNews]:
    """The first ``limit`` checks after id ``after_id``, and those of ``late``, by id. ``late``: ids up to
    ``after_id`` whose rows were not visible yet."""
    return await fetch(
        connection,
        CheckNews,
        _CHECKS.format(new=_NEXT.format(table="facts.evidence")) + " ORDER BY new.id",
        after_id,
        list(late),
        limit,
    )


async def changes_between(
    connection: Connection,
    after_id: int,
    to_id: int,
    tokens: Collection[Address] | None,
    since: datetime,
    limit: int,
) -> list[CheckNews]:
    """The first ``limit`` checks after id ``after_id`` up to ``to_id``, made at ``since`` or later, that
    changed a verdict, of these tokens (None: of all), by id. A token's first check is a change."""
    return await fetch(
        connection,
        CheckNews,
        _CHECKS.format(new="facts.evidence AS new")
        + " WHERE new.id > $1 AND new.id <= $2 AND ($3::bytea[] IS NULL OR new.token = ANY($3))"
        " AND (new.verdict_code, new.verdict_level)"
        " IS DISTINCT FROM (before.verdict_code, before.verdict_level) AND new.checked_at >= $4"
        " ORDER BY new.id LIMIT $5",
        after_id,
        to_id,
        None if tokens is None else [as_bytes(token) for token in tokens],
        since,
        limit,
    )


class Rewound(NamedTuple):
    """A reorg: facts above ``to_number``, a block of ``to_s``, were taken away."""

    id: int
    to_number: int
    to_s: int


async def reorgs_after(connection: Connection, after_id: int) -> list[Rewound]:
    """The reorgs after id ``after_id``, by id."""
    return await fetch(
        connection,
        Rewound,
        "SELECT id, to_number, to_s FROM facts.rewound WHERE id > $1 ORDER BY id",
        after_id,
    )


async def alerts_after(
    connection: Connection, after_id: int, late: Collection[int], limit: int
) -> list[tuple[int, int]]:
    """The first ``limit`` alerts after id ``after_id``, and those of ``late``, by id: their ids and accounts;
    as ``checks_after``."""
    return await fetch(
        connection,
        tuple[int, int],
        f"SELECT new.id, new.account_id FROM {_NEXT.format(table='accounts.alert')} ORDER BY new.id",  # noqa: S608
        after_id,
        list(late),
        limit,
    )


async def alerts_between(
    connection: Connection, after_id: int, to_id: int, account_id: int, limit: int
) -> list[tuple[int, int]]:
    """The first ``limit`` alerts of an account after id ``after_id`` up to ``to_id``, by id: their ids and
    accounts."""
    return await fetch(
        connection,
        tuple[int, int],
        "SELECT id, account_id FROM accounts.alert WHERE account_id = $3 AND id > $1 AND id <= $2"
        " ORDER BY id LIMIT $4",
        after_id,
        to_id,
        account_id,
        limit,
    )
