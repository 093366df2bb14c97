"""Stand-ins for other people's services, on loopback."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web


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
