"""Stand-ins for other people's services, on loopback."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

_MAX_BATCH_BYTES = 64 * 2**20


@dataclass
class OnLoopback:
    """A stand-in that is served at ``port``."""

    port: int = 0

    @property
    def at(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.port}"


@contextlib.asynccontextmanager
async def on_loopback(app: web.Application, **manner: Any) -> AsyncIterator[int]:
    """Serves it; the port. ``manner``: as the runner takes it."""
    runner = web.AppRunner(app, access_log=None, **manner)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port: int = runner.addresses[0][1]
        yield port
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def node_on_loopback(
    serve: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """Serves the batches that are posted to a node, at any path; its url."""
    app = web.Application(client_max_size=_MAX_BATCH_BYTES)
    app.router.add_post("/{rest:.*}", serve)
    async with on_loopback(app, shutdown_timeout=0.1) as port:
        yield f"http://127.0.0.1:{port}"
