"""Connections and pools, with session settings under which statements behave the same on every server.
Exceptions that mean the database is unavailable."""

import contextlib
import inspect
import re
import time
import urllib.parse
from collections.abc import Awaitable, Generator, Mapping
from types import MappingProxyType
from typing import Any

import asyncpg

from roundtrip.domain.base.metrics import Measures
from roundtrip.store.server.rows import Connection

DATABASE_FAULTS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # Raised by a connection that its server is just closing.
    asyncpg.InternalClientError,
)
"""Whatever the cause, the caller goes on without the database."""


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
"""A limit for opening a connection: a stopped server process accepts one and does not answer."""

HOST_S = 1.0
"""The same for each host of a url with several, so that one that is gone leaves time for the next."""

_URL = re.compile(r"(postgres(?:ql)?://(?:[^/?#]*@)?)([^/?#]*)([^?]*)\??(.*)", re.DOTALL)

IDLE_MS = "10000"
"""How long a process that hangs in a transaction may keep its row locks. Not for the sync, which computes
longer between two statements and whose rows no other process waits for."""


async def connect(
    url: str, command_timeout: float | None = None, more: Mapping[str, str] = _NO_SETTINGS
) -> Connection:
    """Opens a connection outside of any pool. ``command_timeout``: seconds for one statement; None: no limit.
    ``more``: further PostgreSQL settings. Raises one of DATABASE_FAULTS."""
    settings = {**SESSION, **more}
    return await HostList(url).connect(
        timeout=CONNECTING_S, command_timeout=command_timeout, server_settings=settings
    )


def split_hosts(url: str) -> list[str]:
    """One url for each host of a url, in its order."""
    match = _URL.match(url)
    if match is None:
        return [url]
    start, places, path, query = match.groups()
    if "," in places:
        return [f"{start}{place}{path}?{query}" for place in places.split(",")]
    options = urllib.parse.parse_qsl(query, keep_blank_values=True)
    hosts = [host for name, value in options if name == "host" for host in value.split(",")]
    ports = [port for name, value in options if name == "port" for port in value.split(",")]
    if places or len(hosts) < 2:
        return [url]
    others = [option for option in options if option[0] not in ("host", "port")]
    urls = []
    for number, host in enumerate(hosts):
        port = ports[number : number + 1] if len(ports) == len(hosts) else ports[:1]
        own = [("host", host), *(("port", value) for value in port), *others]
        urls.append(f"{start}{path}?{urllib.parse.urlencode(own, quote_via=urllib.parse.quote)}")
    return urls


class HostList:
    """The hosts of a url. They are tried in turn, first the one that accepted the last connection. The driver
    alone would give a silent host the time that is meant for all."""

    def __init__(self, url: str) -> None:
        self._urls = split_hosts(url)

    async def connect(self, *_: Any, timeout: float = CONNECTING_S, **options: Any) -> asyncpg.Connection:  # noqa: ASYNC109
        """A connection; ``options`` as in asyncpg. Raises one of DATABASE_FAULTS: the last host's."""
        within_s = timeout if len(self._urls) == 1 else min(timeout, HOST_S)
        *others, last = self._urls
        for url in others:
            with contextlib.suppress(*DATABASE_FAULTS):
                return self._begin_with(url, await asyncpg.connect(url, timeout=within_s, **options))
        return self._begin_with(last, await asyncpg.connect(last, timeout=within_s, **options))

    def _begin_with(self, url: str, connection: asyncpg.Connection) -> asyncpg.Connection:
        self._urls = [url, *(other for other in self._urls if other != url)]
        return connection


def create_pool(
    url: str, measures: Measures | None = None, name: str = "requests", **options: Any
) -> asyncpg.Pool:
    """A pool that is not open yet, and opens connections as needed; ``options`` as in asyncpg. Reports to
    ``measures`` under ``name`` how long callers wait for a connection, and how many connections are in
    use. A connection that goes back is reset by asyncpg's own statement: without it, the caller after one
    that was cancelled met a fault now and then."""
    settings = {**SESSION, "idle_in_transaction_session_timeout": IDLE_MS}
    pool_options = {
        "min_size": 0, "timeout": CONNECTING_S, "server_settings": settings, "connect": HostList(url).connect,
        **options,
    }  # fmt: skip
    if measures is None:
        return asyncpg.create_pool(url, **pool_options)
    return _MeasuredPool(url, measures=measures, name=name, **{**_DEFAULTS, **pool_options})


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
        with self._measures.span("database", self._name) as note:
            try:
                connection = await acquiring
                outcome = "lent"
            finally:
                self._measures.observe("database", self._name, outcome, time.perf_counter() - started_s)
                note("ended", outcome)
        return connection
