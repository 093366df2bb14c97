"""The command that has a balancer send callers elsewhere, before the service ends."""

import contextlib
import http.client
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from roundtrip.api.server.drain import DRAINS, READY, drain_mark
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import CannotRun

_CONFIRM_S = 5.0
"""Time for the service to answer that it drains, or that it does not."""
QUIET_S = 5.0
"""The wait ends after so long without a connection: a balancer that asks every 2 seconds has asked twice."""
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
    """Stops new traffic to the service on this machine, before it ends.

    Every process on ROUNDTRIP_PORT answers GET /ready with 503, and closes each connection after its next
    answer. Exit 1: no process says so; with --undo: none says that it takes callers."""
    settings = Settings()
    mark = drain_mark(settings.var, settings.port)
    if undo:
        mark.unlink(missing_ok=True)
        _confirm(settings.host, settings.port, drains=False)
        print(f"the service on port {settings.port} takes callers again")
        return
    mark.parent.mkdir(parents=True, exist_ok=True)
    # A mark that another user made cannot be touched, and need not be.
    if not mark.exists():
        mark.touch()
    try:
        _confirm(settings.host, settings.port, drains=True)
    except BaseException:
        mark.unlink(missing_ok=True)
        raise
    print(f"the service on port {settings.port} drains", flush=True)
    if wait_s:
        left = wait_until_quiet(lambda: count_connections(settings.port), wait_s, time.monotonic, time.sleep)
        print(f"{left} connections are open" if left else "nobody is connected")


def _confirm(host: str, port: int, drains: bool) -> None:
    """Raises CannotRun: for ``_CONFIRM_S``, no answer said that the service drains; ``drains`` False: that it
    takes callers."""
    until_s, answered = time.monotonic() + _CONFIRM_S, False
    while time.monotonic() < until_s:
        connection = http.client.HTTPConnection(host, port, timeout=_CONFIRM_S)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", READY)
            body, answered = connection.getresponse().read(), True
            if (DRAINS.encode() in body) == drains:
                return
        time.sleep(_LOOK_S)
    why = "does not look at this ROUNDTRIP_VAR" if answered else "does not answer"
    ends = "nothing was drained" if drains else "it may still drain"
    raise CannotRun(f"The service on port {port} {why}: {ends}.")


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
