"""How the database is connected to: our statements mean the same on everybody's server."""

import inspect
import time
from collections.abc import Awaitable, Generator, Mapping
from types import MappingProxyType
from typing import Any

import asyncpg

from roundtrip.domain.base.metrics import Measures
from roundtrip.store.server.rows import Connection

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
) -> Connection:
    """A connection of its own. ``command_timeout``: seconds for one statement; None: as long as it takes.
    ``more``: settings of PostgreSQL. Raises one of DATABASE_FAULTS."""
    return await asyncpg.connect(
        url, command_timeout=command_timeout, timeout=CONNECTING_S, server_settings={**SESSION, **more}
    )


def create_pool(
    url: str, measures: Measures | None = None, name: str = "requests", **options: Any
) -> asyncpg.Pool:
    """A pool that is not open yet, and opens what is needed; ``options`` as asyncpg has them. ``measures``:
    where it is told under ``name`` how long its connections are waited for, and how many are lent."""
    settings = {**SESSION, "idle_in_transaction_session_timeout": IDLE_MS}
    given = {"min_size": 0, "timeout": CONNECTING_S, "server_settings": settings, **options}
    if measures is None:
        return asyncpg.create_pool(url, **given)
    return _MeasuredPool(url, measures=measures, name=name, **_DEFAULTS, **given)


_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        name: parameter.default
        for name, parameter in inspect.signature(asyncpg.create_pool).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in ("min_size", "max_size")
    }
)
"""What the library's own function gives a pool, and the pool itself has no defaults for."""


class _MeasuredPool(asyncpg.Pool):  # type: ignore[misc]
    __slots__ = ("_measures", "_name")

    def __init__(self, url: str, *, measures: Measures, name: str, **given: Any) -> None:
        super().__init__(url, **given)
        self._measures = measures
        self._name = name
        measures.watch("connections_lent", name, lambda: self.get_size() - self.get_idle_size())
        measures.watch("connections_most", name, self.get_max_size)

    def acquire(self, *, timeout: float | None = None) -> "_Acquiring":
        """As the library's, and measured."""
        return _Acquiring(super().acquire(timeout=timeout), self._measures, self._name)


class _Acquiring:
    """A connection that is to be lent, for an ``await`` or an ``async with``."""

    __slots__ = ("_acquiring", "_measures", "_name")

    def __init__(self, acquiring: Any, measures: Measures, name: str) -> None:
        self._acquiring = acquiring
        self._measures = measures
        self._name = name

    async def __aenter__(self) -> Connection:
        return await self._acquire_measured(self._acquiring.__aenter__())

    async def __aexit__(self, *given: Any) -> None:
        await self._acquiring.__aexit__(*given)

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._acquire_measured(self._acquiring).__await__()

    async def _acquire_measured(self, acquiring: Awaitable[Connection]) -> Connection:
        began_s, ended = time.perf_counter(), "failed"
        with self._measures.span("database", self._name) as span:
            try:
                lent = await acquiring
                ended = "lent"
            finally:
                self._measures.observe("database", self._name, ended, time.perf_counter() - began_s)
                span.note("ended", ended)
        return lent
