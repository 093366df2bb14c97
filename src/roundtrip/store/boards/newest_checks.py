"""The newest checks: of given tokens, and of all tokens."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.moving import CheckedLevel, TokenChecks
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch

from .exposures import read_exposures

_COLUMNS = (
    "one.verdict_code AS code, one.verdict_level AS level,"
    " extract(epoch FROM one.checked_at)::float8 AS at_s, one.loss_bps,"
    " extract(epoch FROM one.ends_at)::float8 AS ends_s"
)
_CHECKS = f"""
SELECT given.token, found.* FROM unnest($1::bytea[]) AS given (token)
CROSS JOIN LATERAL (
    (SELECT 'newest' AS which, {_COLUMNS} FROM facts.evidence AS one
        WHERE one.token = given.token ORDER BY one.id DESC LIMIT 1)
    UNION ALL
    (SELECT 'deep', {_COLUMNS} FROM facts.evidence AS one
        WHERE one.token = given.token AND one.deep ORDER BY one.id DESC LIMIT 1)
    UNION ALL
    (SELECT 'decided', {_COLUMNS} FROM facts.evidence AS one
        WHERE one.token = given.token AND one.deep AND one.holders > 0 AND one.verdict_level <> 'unknown'
        ORDER BY one.id DESC LIMIT 1)
) AS found
"""  # noqa: S608


class NewestCheck(NamedTuple):
    """A check. ``asked``: a user requested it."""

    token: Address
    block_number: int
    asked: bool


async def read_checks(connection: Connection, tokens: Collection[Address]) -> dict[Address, TokenChecks]:
    """The newest checks of each of the tokens."""
    found = dict(
        await fetch(
            connection,
            tuple[tuple[Address, str], CheckedLevel],
            _CHECKS,
            [as_bytes(token) for token in set(tokens)],
        )
    )
    return {
        token: TokenChecks(
            found.get((token, "newest")), found.get((token, "decided")), found.get((token, "deep"))
        )
        for token in tokens
    }


async def read_shown_checks(
    connection: Connection, tokens: Collection[Address]
) -> dict[Address, TokenChecks]:
    """The same, with what buyers of each token are exposed to."""
    checks = await read_checks(connection, tokens)
    exposed = await read_exposures(connection, tokens)
    return {token: replace(its, exposure=exposed[token]) for token, its in checks.items()}


async def read_newest(connection: Connection, limit: int) -> list[NewestCheck]:
    """The newest ``limit`` checks, the newest first."""
    return await fetch(
        connection,
        NewestCheck,
        "SELECT token, block_number, asked FROM facts.evidence ORDER BY id DESC LIMIT $1",
        limit,
    )
