"""The service on a real port, over a context that a test made."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping

from starlette.applications import Starlette

from roundtrip.app.http_server import build_application, build_http_server, listen
from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.connections import DATABASE_FAULTS

_WAIT_S = 60.0


@contextlib.asynccontextmanager
async def serve_apart(environment: Mapping[str, str], *flags: str) -> AsyncIterator[str]:
    """Runs ``roundtrip serve`` in another process; its url. ``environment``: beside the test's own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "roundtrip", "serve", *flags, env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_WAIT_S):
            answer = (await process.stdout.readline()).decode()
        assert answer.startswith("roundtrip is at "), answer
        yield answer.split()[-1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(_WAIT_S):
            await process.communicate()


@contextlib.asynccontextmanager
async def service(ctx: Context, settings: Settings | None = None) -> AsyncIterator[str]:
    """Serves in this process; gives the base url. Nobody called before."""
    with contextlib.suppress(*DATABASE_FAULTS):
        # Calls outlive the service that counted them, and all tests call from one address.
        await ctx.pool.execute("DELETE FROM accounts.call")
    settings = settings or Settings(anon_per_minute=10_000, views_per_minute=10_000)
    async with served(build_application(settings, ctx), settings.most_connections) as url:
        yield url


@contextlib.asynccontextmanager
async def served(app: Starlette, most_connections: int = 100) -> AsyncIterator[str]:
    """The same of any application. Waits, bounded, for start and end."""
    with listen("127.0.0.1", 0, "a port") as listening:
        server = build_http_server(app, most_connections)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            async with asyncio.timeout(10):
                # uvicorn tells of its start by a flag only.
                while not server.started:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            async with asyncio.timeout(15):
                await task
