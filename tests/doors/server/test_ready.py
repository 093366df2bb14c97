"""What a balancer is told, and ``roundtrip drain``: who comes is answered, who would come goes elsewhere."""

import asyncio
import contextlib
import http.client
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from roundtrip.api.http.app import ReadyEndpoint
from roundtrip.api.server.drain import DRAINS, ENDING, DrainRequest, EndlessAnswers, drain_mark
from roundtrip.app.http_server import listen, take_port
from roundtrip.cli import drain
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import CannotRun
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.node import free_port
from support.databases import database
from support.faulty_node import FaultyNode
from support.fixtures import closed_database
from support.nodes import node_of, over
from support.serving import serve_apart, service

pytestmark = pytest.mark.timeout(300)
WAIT_S = 60
PORT = 5
"""Of the settings: a test's own socket has another one."""


async def read(session: aiohttp.ClientSession, url: str) -> tuple[int, str | None, str | None]:
    """Status, when to come again, and whether the connection ends."""
    async with session.get(url) as response:
        await response.read()
        return response.status, response.headers.get("retry-after"), response.headers.get("connection")


async def until(session: aiohttp.ClientSession, url: str, status: int) -> None:
    """The file is looked at four times a second."""
    async with asyncio.timeout(WAIT_S):
        while (await read(session, url))[0] != status:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_while_it_drains_callers_are_answered_and_balancers_sent_elsewhere(
    ctx: Context, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    settings = Settings(var=tmp_path, port=PORT)
    async with service(ctx, settings) as url:
        assert await read(session, f"{url}/ready") == (200, None, None)
        assert await read(session, f"{url}/v1/tools.json") == (200, None, None)
        mark = drain_mark(tmp_path, PORT)
        mark.parent.mkdir()
        mark.touch()
        await until(session, f"{url}/ready", 503)
        assert await read(session, f"{url}/ready") == (503, "5", "close")
        async with session.get(f"{url}/ready") as response:
            assert await response.json() == {"error": {"code": "busy", "message": DRAINS}}
        assert await read(session, f"{url}/v1/tools.json") == (200, None, "close")
        mark.unlink()
        await until(session, f"{url}/ready", 200)
        assert await read(session, f"{url}/v1/tools.json") == (200, None, None)


async def test_nothing_that_fails_for_all_processes_takes_them_out(
    ctx: Context, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    """A balancer that asks more often than an address may is told so."""
    async with FaultyNode(node_of(ctx).url).running() as node:
        broken = replace(over(ctx, node.url), pool=closed_database())
        node.fault = "status 500"
        settings = Settings(
            var=tmp_path, redis_url="redis://127.0.0.1:1/0", requests_per_address=6, limit_loopback=True
        )
        async with service(broken, settings) as url:
            assert [(await read(session, f"{url}/ready"))[0] for _ in range(5)] == [200] * 5
            assert (await read(session, f"{url}/v1/health"))[0] == 200
            assert (await read(session, f"{url}/ready"))[0] == 429


async def test_a_process_that_ends_is_not_ready() -> None:
    """It may be asked on a connection that was open before."""
    sent: list[int] = []

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            sent.append(int(str(message["status"])))

    ending = EndlessAnswers()
    scope = {"type": "http", "method": "GET", "path": "/ready", "state": {ENDING: ending}}
    ready = ReadyEndpoint(lambda: False)
    await ready(scope, None, send)  # type: ignore[arg-type]
    ending.end_all()
    await ready(scope, None, send)  # type: ignore[arg-type]
    assert sent == [200, 503]


def test_the_file_is_looked_for_four_times_a_second(tmp_path: Path) -> None:
    now_s = 7.0
    request = DrainRequest(tmp_path / "mark", lambda: now_s)
    assert not request.is_made()
    (tmp_path / "mark").touch()
    now_s = 7.24
    assert not request.is_made()
    now_s = 7.25
    assert request.is_made()


def test_a_file_that_cannot_be_looked_for_ends_no_request(tmp_path: Path) -> None:
    name = "x" * 300
    with pytest.raises(OSError, match="too long"):
        (tmp_path / name).exists()
    assert not DrainRequest(tmp_path / name, lambda: 7.0).is_made()


# --- waiting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("busy", "waited_s"),
    [
        (lambda now_s: False, 5),
        (lambda now_s: True, 10),
        # Somebody came in the fourth second.
        (lambda now_s: 3 < now_s < 4, 9),
        (lambda now_s: now_s < 8, 10),
    ],
)
def test_it_waits_until_nobody_came_for_a_while_and_no_longer_than_told(
    busy: Callable[[float], bool], waited_s: int
) -> None:
    now_s = 0.0

    def wait(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    left = drain.wait_until_quiet(lambda: 3 * busy(now_s), 10, lambda: now_s, wait)
    assert round(now_s) == waited_s
    assert left == 3 * busy(now_s)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_connections_of_callers_are_counted(host: str) -> None:
    with listen(host, 0, "a port") as listening, contextlib.ExitStack() as stack:
        port = listening.getsockname()[1]
        assert drain.count_connections(port) == 0
        first, second = (http.client.HTTPConnection(host, port, timeout=WAIT_S) for _ in range(2))
        for client in (first, second):
            stack.callback(client.close)
            client.connect()
        assert drain.count_connections(port) == 2
        # It has asked, and waits for its answer.
        first.sock.shutdown(1)
        assert drain.count_connections(port) == 2


# --- the command ------------------------------------------------------------------------------------


async def run(environment: dict[str, str], *words: str) -> tuple[int | None, str]:
    """Exit code, and what was said."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "roundtrip", *words,
        env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(WAIT_S):
        result, _ = await process.communicate()
    return process.returncode, result.decode()


async def test_all_processes_of_a_port_drain_until_it_is_undone_or_begun_anew(
    database_url: str, tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    """No node is needed: there is none."""
    port = free_port()
    async with database(database_url, f"drained_{os.getpid()}") as url:
        environment = {
            **os.environ,
            "ROUNDTRIP_NETWORK": "robinhood",
            "ROUNDTRIP_RPC_URL": "http://127.0.0.1:9",
            "ROUNDTRIP_DATABASE_URL": url,
            "ROUNDTRIP_VAR": str(tmp_path),
            "ROUNDTRIP_PORT": str(port),
        }
        mark = drain_mark(tmp_path, port)
        assert await run(environment, "drain") == (
            1,
            f"roundtrip: The service on port {port} does not answer: nothing was drained.\n",
        )
        async with serve_apart(environment, "--processes", "2") as base_url:
            elsewhere = {**environment, "ROUNDTRIP_VAR": str(tmp_path / "elsewhere")}
            code, text = await run(elsewhere, "drain")
            assert (code, "does not look at this ROUNDTRIP_VAR" in text) == (1, True)
            assert not mark.exists()
            assert await run(environment, "drain", "--wait", "1") == (
                0,
                f"the service on port {port} drains\nnobody is connected\n",
            )
            # Each look is a connection of its own, which either of the two takes.
            for _ in range(20):
                assert (await read(session, f"{base_url}/ready"))[0] == 503
            code, text = await run(elsewhere, "drain", "--undo")
            assert (code, "it may still drain" in text) == (1, True)
            assert await run(environment, "drain", "--undo") == (
                0,
                f"the service on port {port} takes callers again\n",
            )
            await until(session, f"{base_url}/ready", 200)
            assert (await run(environment, "drain"))[0] == 0
        assert mark.exists()
        async with serve_apart(environment, "--processes", "2") as base_url:
            assert (await read(session, f"{base_url}/ready"))[0] == 200
            assert not mark.exists()


def test_a_drain_that_cannot_be_ended_ends_the_start(tmp_path: Path) -> None:
    settings = Settings(var=tmp_path, port=free_port())
    take_port(settings).close()
    mark = drain_mark(tmp_path, settings.port)
    mark.touch()
    take_port(settings).close()
    assert not mark.exists()
    # No file, which cannot be removed as one.
    mark.mkdir()
    with pytest.raises(CannotRun, match=f"{mark} cannot be removed"):
        take_port(settings)
    mark.rmdir()
    # The port was given back.
    take_port(settings).close()
