"""Telegram's bot API."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from .message_lines import lines, lines_with_links
from .post import TIMEOUT_S, Poster, PostNotTried, PostReply
from .targets import Target, target

_T = TypeVar("_T")
MOST_ROWS = 10
MOST_CHARACTERS = 4096
MOST_READ = 384 * 1024
"""Of one answer: some updates, each with whatever somebody sent; the longest text alone may take 24 KiB."""
_MOST_UPDATES = 4
_MOST_NAME = 64
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")
_START = re.compile(r"/start(?:@[A-Za-z0-9_]{1,64})? ([A-Za-z0-9_-]{1,64})")
_BOT_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")


@dataclass(frozen=True, slots=True)
class StartedChat:
    """Somebody sent the bot ``/start code`` in a chat of two. ``name``: a stranger's text."""

    update_id: int
    chat_id: int
    code: str
    name: str


class _Chat(msgspec.Struct):
    id: int
    type: str
    first_name: str = ""
    last_name: str = ""


class _Message(msgspec.Struct):
    chat: _Chat
    text: str = ""


class _Update(msgspec.Struct):
    update_id: int
    message: _Message | None = None


class _UpdateNumber(msgspec.Struct):
    update_id: int


class _BotName(msgspec.Struct):
    username: str = ""


class _Parameters(msgspec.Struct):
    retry_after: int | None = None


class _TelegramAnswer(msgspec.Struct):
    """Of every method. ``result``: as the method says."""

    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    parameters: _Parameters | None = None


class Telegram:
    """``api_url``: ``https://api.telegram.org``, or a stand-in's. The token is secret: no error has it.
    Raises ValueError for what is no token, BadTarget for what is no url."""

    def __init__(self, poster: Poster, token: str, api_url: str) -> None:
        if _TOKEN.fullmatch(token) is None:
            raise ValueError("a Telegram token is a number, a colon, and letters and digits")
        self._poster = poster
        self._api = target(api_url.rstrip("/"), poster.loopback)
        self._url = f"{api_url.rstrip('/')}/bot{token}/"
        self._confirmed: int | None = None

    async def tell(self, chat_id: int, texts: Sequence[str], links: Sequence[str | None] = ()) -> PostReply:
        """Sends plain text, a row a line, within what Telegram takes. ``links``: as Discord's. 403 of a bot
        that was blocked comes as status 410: it is gone."""
        said = lines_with_links(texts, links, MOST_ROWS, MOST_CHARACTERS, str)
        said = said or lines(texts, MOST_ROWS, MOST_CHARACTERS)
        asked = {"chat_id": chat_id, "text": said, "link_preview_options": {"is_disabled": True}}
        reply = await self._ask("sendMessage", asked)
        if reply.status == 403:
            return replace(reply, status=410)
        answer = _answer(reply)
        if reply.ok and (answer is None or not answer.ok):
            return replace(reply, status=None, error="its answer is not Telegram's")
        wait_s = answer.parameters.retry_after if answer and answer.parameters else None
        if reply.status == 429 and wait_s is not None:
            return replace(reply, retry_after_s=float(max(0, wait_s)))
        return reply

    async def name(self) -> str | None:
        """What the bot is called; None: it did not say."""
        try:
            me = _result(await self._ask("getMe", {}), _BotName)
        except (OSError, PostNotTried):
            return None
        return me.username if _BOT_NAME.fullmatch(me.username) else None

    async def read_started(self, after: int, wait_s: int) -> tuple[list[StartedChat], int]:
        """Who sent ``/start`` since the update ``after``, and the newest update; waits up to ``wait_s`` for
        one. Raises OSError when it could not be asked."""
        asked: dict[str, Any] = {
            "timeout": wait_s,
            "limit": _MOST_UPDATES,
            "allowed_updates": ["message"],
        }
        if after != self._confirmed and after > 0:
            # Only once: after a quiet week Telegram counts on from a random number, which may be a lower one.
            asked["offset"] = after + 1
        reply = await self._ask("getUpdates", asked, wait_s + TIMEOUT_S)
        updates = [_update(raw) for raw in _result(reply, list[msgspec.Raw])]
        self._confirmed = after
        newest = updates[-1].update_id if updates else after
        return [found for update in updates if (found := _read_start(update)) is not None], newest

    async def _ask(self, method: str, asked: Mapping[str, Any], timeout_s: float | None = None) -> PostReply:
        return await self._poster.post(
            Target(self._url + method, self._api.host, self._api.port),
            msgspec.json.encode(asked),
            {"content-type": "application/json"},
            MOST_READ,
            timeout_s,
        )


def _answer(reply: PostReply) -> _TelegramAnswer | None:
    try:
        return msgspec.json.decode(reply.read, type=_TelegramAnswer)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _result(reply: PostReply, kind: type[_T]) -> _T:
    """Raises OSError."""
    answer = _answer(reply)
    if not reply.ok or answer is None or not answer.ok:
        raise OSError(f"Telegram could not be asked: {reply.error or f'status {reply.status}'}")
    try:
        return msgspec.json.decode(answer.result, type=kind)
    except (msgspec.DecodeError, UnicodeError):
        raise OSError("Telegram could not be asked: its answer is of another shape") from None


def _update(raw: msgspec.Raw) -> _Update:
    """Raises OSError only where it has no number: any other could never be got past."""
    try:
        return msgspec.json.decode(raw, type=_Update)
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        return _Update(msgspec.json.decode(raw, type=_UpdateNumber).update_id)
    except (msgspec.DecodeError, UnicodeError):
        raise OSError("Telegram could not be asked: its answer is of another shape") from None


def _read_start(update: _Update) -> StartedChat | None:
    said = update.message
    found = _START.fullmatch(said.text) if said is not None else None
    if said is None or found is None or said.chat.type != "private":
        return None
    name = f"{said.chat.first_name} {said.chat.last_name}".strip()[:_MOST_NAME]
    return StartedChat(update.update_id, said.chat.id, found[1], name)
