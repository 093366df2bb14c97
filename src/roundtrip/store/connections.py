"""How the database is connected to: our statements mean the same on everybody's server."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import asyncpg

SESSION = {
    "default_transaction_isolation": "read committed",
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "jit": "off",
    "search_path": "public",
}
"""A server, a database or a role may be set otherwise. Whoever waits here for a row goes on with what it has
become, which no other level of isolation allows; every wait has a limit of ours; and compiling takes longer
than any statement of ours. How durable a commit is stays as the server has it."""

_NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
CONNECTING_S = 5.0
"""A server that is stopped takes a connection and says nothing."""

IDLE_MS = "10000"
"""A process that stands still in the middle of a transaction keeps others from its rows for so long. What
follows the chain makes more of a batch between two statements, and nobody waits for its rows."""


async def connect(
    url: str, command_timeout: float | None = None, more: Mapping[str, str] = _NOTHING_MORE
) -> asyncpg.Connection:
    """A connection of its own. ``command_timeout``: seconds for one statement; None: as long as it takes.
    ``more``: settings of PostgreSQL. Raises one of DATABASE_FAULTS."""
    return await asyncpg.connect(
        url, command_timeout=command_timeout, timeout=CONNECTING_S, server_settings={**SESSION, **more}
    )


def create_pool(url: str, **options: Any) -> asyncpg.Pool:
    """A pool that is not open yet; ``options`` as asyncpg has them."""
    settings = {**SESSION, "idle_in_transaction_session_timeout": IDLE_MS}
    return asyncpg.create_pool(url, timeout=CONNECTING_S, server_settings=settings, **options)
