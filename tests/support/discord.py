"""Discord's incoming webhooks on loopback, with what it refuses and how it says so."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from support.loopback import OnLoopback, on_loopback

PATH = "/api/webhooks/1234567890/stand-in_of-a-token"


@dataclass
class DiscordApi(OnLoopback):
    """``told``: the messages it took. ``wait_s``: the next one is refused with it. ``deleted``: the webhook
    is gone."""

    taken: list[dict[str, Any]] = field(default_factory=list)
    wait_s: float | None = None
    deleted: bool = False

    @property
    def url(self) -> str:
        return f"http://{self.at}{PATH}"

    async def serve(self, request: web.Request) -> web.Response:
        if self.deleted or request.path != PATH:
            return web.json_response({"message": "Unknown Webhook", "code": 10015}, status=404)
        if self.wait_s is not None:
            wait_s, self.wait_s = self.wait_s, None
            answer = {"message": "You are being rate limited.", "retry_after": wait_s, "global": False}
            return web.json_response(answer, status=429, headers={"retry-after": str(int(wait_s) + 1)})
        reply = await request.json()
        content = reply.get("content", "")
        if not content.strip() or len(content.encode("utf-16-le")) // 2 > 2000:
            return web.json_response({"message": "Invalid Form Body", "code": 50035}, status=400)
        self.taken.append(reply)
        return web.Response(status=204)


@contextlib.asynccontextmanager
async def discord_api() -> AsyncIterator[DiscordApi]:
    made = DiscordApi()
    app = web.Application()
    app.router.add_post("/{path:.*}", made.serve)
    async with on_loopback(app, shutdown_timeout=1) as made.port:
        yield made
