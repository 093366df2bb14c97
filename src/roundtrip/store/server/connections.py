"""Connections and pools, with session settings under which statements behave the same on every server."""

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
"""Overrides the settings of a server, a database or a role. After waiting for a row lock a statement must see
the row's new version, which only read committed allows. The code sets its own timeouts. JIT compilation takes
longer than any statement here. The durability of commits stays as the server has it."""

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
CONNECTING_S = 5.0
"""A stopped server process accepts a connection and does not answer."""

IDLE_MS = "10000"
"""How long a process that hangs in a transaction may keep its row locks. Not for the sync, which computes
longer between two statements and whose rows no other process waits for."""


async def connect(
    url: str, command_timeout: float | None = None, more: Mapping[str, str] = _NO_SETTINGS
) -> Connection:
    """Opens a connection outside of any pool. ``command_timeout``: seconds for one statement; None: no limit.
    ``more``: further PostgreSQL settings. Raises one of DATABASE_FAULTS."""
    return await asyncpg.connect(
        url, command_timeout=command_timeout, timeout=CONNECTING_S, server_settings={**SESSION, **more}
    )


def create_pool(
    url: str, measures: Measures | None = None, name: str = "requests", **options: Any
) -> asyncpg.Pool:
    """A pool that is not open yet, and opens connections as needed; ``options`` as in asyncpg. Reports to
    ``measures`` under ``name`` how long callers wait for a connection, and how many connections are in
    use."""
    settings = {**SESSION, "idle_in_transaction_session_timeout": IDLE_MS}
    pool_options = {"min_size": 0, "timeout": CONNECTING_S, "server_settings": settings, **options}
    if measures is None:
        return asyncpg.create_pool(url, **pool_options)
    return _MeasuredPool(url, measures=measures, name=name, **_DEFAULTS, **pool_options)


_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        name: parameter.default
        for name, parameter in inspect.signature(asyncpg.create_pool).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name not in ("min_size", "max_size")
    }
)
"""The defaults of ``asyncpg.create_pool``: ``asyncpg.Pool`` itself has none."""


class _MeasuredPool(asyncpg.Pool):
    __slots__ = ("_measures", "_name")

    def __init__(self, url: str, *, measures: Measures, name: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._measures = measures
        self._name = name
        measures.watch("connections_lent", name, lambda: self.get_size() - self.get_idle_size())
        measures.watch("connections_most", name, self.get_max_size)

    def acquire(self, *, timeout: float | None = None) -> "_MeasuredAcquire":  # type: ignore[override]
        """As in asyncpg, and measured."""
        return _MeasuredAcquire(super().acquire(timeout=timeout), self._measures, self._name)


class _MeasuredAcquire:
    """A wait for a connection, for an ``await`` or an ``async with``."""

    __slots__ = ("_acquiring", "_measures", "_name")

    def __init__(self, acquiring: Any, measures: Measures, name: str) -> None:
        self._acquiring = acquiring
        self._measures = measures
        self._name = name

    async def __aenter__(self) -> Connection:
        return await self._acquire_measured(self._acquiring.__aenter__())

    async def __aexit__(self, *error: Any) -> None:
        await self._acquiring.__aexit__(*error)

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._acquire_measured(self._acquiring).__await__()

    async def _acquire_measured(self, acquiring: Awaitable[Connection]) -> Connection:
        started_s, outcome = time.perf_counter(), "failed"
        with self._measures.span("database", self._name) as span:
            try:
                connection = await acquiring
                outcome = "lent"
            finally:
                self._measures.observe("database", self._name, outcome, time.perf_counter() - started_s)
                span.note("ended", outcome)
        return connection
