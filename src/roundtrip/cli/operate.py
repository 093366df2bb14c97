"""The operator's commands: run jobs, migrate the schema, drain the service, examine the nodes."""

import asyncio
import contextlib
import http.client
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from roundtrip.api.http.app import DRAINS
from roundtrip.api.http.turned_away import READY
from roundtrip.api.server.drain import drain_mark
from roundtrip.app import build, supervisor
from roundtrip.chain.doctor import NEEDED
from roundtrip.config.networks import Network
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import CannotRun
from roundtrip.observability import prometheus, tracing

from .terminal import console, log_to_stderr, run


def work() -> None:
    """Runs only the background jobs and the alerts, on the configured network."""
    settings = Settings()
    log_to_stderr()
    build.spare_the_collector()
    run(_work(settings, build.select_network(settings)))


async def _work(settings: Settings, network: Network) -> None:
    context_args = (settings, build.node_urls(settings, network), network.contracts)
    async with (
        build.open_database(settings) as database_url,
        build.open_context(*context_args, database_url, network.look_back_blocks) as ctx,
        prometheus.serve_metrics(settings, ctx.measures, prometheus.service_metrics(ctx)),
        tracing.trace_to_collector(settings, ctx.measures, "work"),
    ):
        print(f"{supervisor.WORKS}{ctx.chain_id}. Press Ctrl-C to stop.", flush=True)
        await build.run_worker(replace(ctx, stock_tokens=network.stock_tokens))


def migrate() -> None:
    """Brings the database's schema up to date."""
    settings = Settings()
    run(_migrate(settings))


async def _migrate(settings: Settings) -> None:
    async with build.open_database(settings) as database_url:
        applied = await build.migrate_database(database_url)
    print(f"applied: {', '.join(map(str, applied)) or 'nothing; the schema is up to date'}")


_CONFIRM_S = 5.0
"""How long the service may take to answer that it drains."""
QUIET_S = 5.0
"""Nobody was connected for so long: a balancer that asks every two seconds has asked twice."""
_LOOK_S = 0.1
_OPEN_STATES = frozenset({"01", "08"})
"""ESTABLISHED; and CLOSE_WAIT: the caller sends no more, and may wait for an answer."""
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def drain(
    undo: Annotated[bool, typer.Option("--undo", help="Take callers again.")] = False,
    wait_s: Annotated[
        int,
        typer.Option(
            "--wait", min=0, max=3600,
            help="Wait up to so many seconds, until nobody was connected for five.",
        ),
    ] = 0,
) -> None:  # fmt: skip
    """Has every process on ROUNDTRIP_PORT answer GET /ready with 503, so that a balancer sends no more
    callers, and close each connection after its next answer. Exit 1: none of them does."""
    settings = Settings()
    mark = drain_mark(settings.var, settings.port)
    if undo:
        mark.unlink(missing_ok=True)
        print(f"the service on port {settings.port} takes callers again")
        return
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    try:
        _confirm_drain(settings.host, settings.port)
    except BaseException:
        mark.unlink(missing_ok=True)
        raise
    print(f"the service on port {settings.port} drains", flush=True)
    if wait_s:
        left = wait_until_quiet(lambda: count_connections(settings.port), wait_s, time.monotonic, time.sleep)
        print(f"{left} connections are open" if left else "nobody is connected")


def _confirm_drain(host: str, port: int) -> None:
    """Raises CannotRun: in ``_CONFIRM_S`` no answer said that the service drains."""
    until_s, answered = time.monotonic() + _CONFIRM_S, False
    while time.monotonic() < until_s:
        connection = http.client.HTTPConnection(host, port, timeout=_CONFIRM_S)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", READY)
            body, answered = connection.getresponse().read(), True
            if DRAINS.encode() in body:
                return
        time.sleep(_LOOK_S)
    why = "does not look at this ROUNDTRIP_VAR" if answered else "does not answer"
    raise CannotRun(f"The service on port {port} {why}: nothing was drained.")


def wait_until_quiet(
    count: Callable[[], int], within_s: float, clock: Callable[[], float], wait: Callable[[float], None]
) -> int:
    """Waits until ``count`` was zero for ``QUIET_S``, or for ``within_s``. Returns the last count."""
    start_s = busy_s = clock()
    while True:
        connections, now_s = count(), clock()
        busy_s = now_s if connections else busy_s
        if now_s - busy_s >= QUIET_S or now_s - start_s >= within_s:
            return connections
        wait(_LOOK_S)


def count_connections(port: int) -> int:
    """Connections of callers to a port of this machine, by Linux's own table of them."""
    rows = (
        line.split() for table in _TABLES if table.exists() for line in table.read_text().splitlines()[1:]
    )
    return sum(int(row[1].rpartition(":")[2], 16) == port and row[3] in _OPEN_STATES for row in rows)


def doctor() -> None:
    """Shows what works on each node and the network, what is missing, and what fails without it; exit 1: no
    token can be checked."""
    settings = Settings()
    findings = asyncio.run(build.examine_nodes(settings, build.select_network(settings)))
    for host, rows in findings:
        table = Table("", "state", "seen", "what fails without it", title=escape(host), title_justify="left")
        for row in rows:
            table.add_row(row.what, row.state, escape(row.seen), row.costs)
        console.print(table)
    usable = (not any(row.state == "missing" and row.what in NEEDED for row in rows) for _, rows in findings)
    raise SystemExit(0 if any(usable) else 1)
