"""Telegram's bot API as far as it is used, on loopback, with what it refuses and how it says so."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from support.loopback import OnLoopback, on_loopback

TOKEN = "12345:AAH-stand_in-of-a-token"


@dataclass
class TelegramApi(OnLoopback):
    """``told``: what was sent to whom. ``blocked``: chats whose person wants no more. ``wait_s``: the next
    message is refused with it. ``broken``: what every method answers instead."""

    token: str = TOKEN
    bot_name: str = "stand_in_bot"
    taken: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    chats: set[int] = field(default_factory=set)
    blocked: set[int] = field(default_factory=set)
    wait_s: int | None = None
    broken: web.Response | None = None
    updates: list[dict[str, Any]] = field(default_factory=list)
    next_update_id: int = 700
    polling: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"http://{self.at}"

    async def says(self, chat_id: int, text: str, kind: str = "private", **more: Any) -> int:
        """Somebody writes to the bot. The update's number."""
        self.chats.add(chat_id)
        chat = {"id": chat_id, "type": kind, "first_name": "Ann", "last_name": "Lee"}
        return await self.happens({"message": {"message_id": 1, "chat": chat, "text": text, **more}})

    async def happens(self, update: dict[str, Any]) -> int:
        number = self.next_update_id
        async with self._changed:
            self.updates.append({"update_id": number, **update})
            self.next_update_id += 1
            self._changed.notify_all()
        return number

    async def polled(self) -> None:
        """Waits until somebody waits for an update."""
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: self.polling > 0)

    async def told_to(self, count: int) -> list[dict[str, Any]]:
        """Waits until so many messages were sent; the messages."""
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: len(self.taken) >= count)
        return self.taken

    async def serve(self, request: web.Request) -> web.Response:
        if self.broken is not None:
            broken, self.broken = self.broken, None
            return broken
        if request.match_info["token"] != self.token:
            return _refused(401, "Unauthorized")
        is_form = request.content_type == "multipart/form-data"
        asked = await _form(request) if is_form else await request.json()
        self.asked.append(asked)
        match request.match_info["method"]:
            case "getMe":
                me = {"id": 12345, "is_bot": True, "first_name": "Stand-in", "username": self.bot_name}
                return _done(me)
            case "sendMessage":
                return await self._send(asked, asked["text"], 4096)
            case "sendPhoto":
                if not asked["photo"].startswith(b"\x89PNG"):
                    return _refused(400, "Bad Request: IMAGE_PROCESS_FAILED")
                return await self._send(asked, asked["caption"], 1024)
            case "getUpdates":
                return await self._updates(asked)
        return _refused(404, "Not Found")

    async def _send(self, asked: dict[str, Any], text: str, most: int) -> web.Response:
        chat_id = asked["chat_id"]
        if self.wait_s is not None:
            wait_s, self.wait_s = self.wait_s, None
            return _refused(429, f"Too Many Requests: retry after {wait_s}", {"retry_after": wait_s})
        if chat_id in self.blocked:
            return _refused(403, "Forbidden: bot was blocked by the user")
        if chat_id not in self.chats:
            return _refused(400, "Bad Request: chat not found")
        if not text.strip():
            return _refused(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > most:
            return _refused(400, "Bad Request: message is too long")
        async with self._changed:
            self.taken.append(asked)
            self._changed.notify_all()
        return _done({"message_id": len(self.taken), "chat": {"id": chat_id}, "text": text})

    async def _updates(self, asked: dict[str, Any]) -> web.Response:
        """An offset confirms what lies before it, and only then is that gone."""
        if self.polling:
            return _refused(409, "Conflict: terminated by other getUpdates request")
        offset = asked.get("offset")
        if offset is not None:
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
        async with self._changed:
            self.polling += 1
            self._changed.notify_all()
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(asked.get("timeout", 0)):
                        await self._changed.wait_for(lambda: bool(self.updates))
            finally:
                self.polling -= 1
        return _done(self.updates[: asked.get("limit", 100)])


async def _form(request: web.Request) -> dict[str, Any]:
    form = await request.post()
    found: dict[str, Any] = {
        name: value.file.read() if isinstance(value, web.FileField) else value for name, value in form.items()
    }
    return {**found, "chat_id": int(found["chat_id"])}


def _done(result: Any) -> web.Response:
    return web.json_response({"ok": True, "result": result})


def _refused(status: int, why: str, parameters: dict[str, Any] | None = None) -> web.Response:
    answer: dict[str, Any] = {"ok": False, "error_code": status, "description": why}
    if parameters is not None:
        answer["parameters"] = parameters
    return web.json_response(answer, status=status)


@contextlib.asynccontextmanager
async def telegram_api() -> AsyncIterator[TelegramApi]:
    made = TelegramApi()
    app = web.Application()
    app.router.add_post("/bot{token}/{method}", made.serve)
    async with on_loopback(app, shutdown_timeout=1) as made.port:
        yield made
