"""Telegram's bot API."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import msgspec

from .message_lines import cut_text, format_lines, format_lines_with_links, utf16_length
from .post import TIMEOUT_S, Poster, PostNotTried, PostReply
from .targets import Target, parse_target

_T = TypeVar("_T")
MAX_ROWS = 10
MAX_CHARACTERS = 4096
MAX_CAPTION = 1024
MAX_READ = 384 * 1024
"""Bytes of one answer: it holds some updates with whatever users sent; one text may take 24 KiB."""
_MAX_UPDATES = 4
_MAX_NAME = 64
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")
_START = re.compile(r"/start(?:@[A-Za-z0-9_]{1,64})? ([A-Za-z0-9_-]{1,64})")
_CHECK = re.compile(r"/check(?:@[A-Za-z0-9_]{1,64})?(?:\s+(.*))?", re.DOTALL)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_QUOTED = re.compile(r'"[^"\n]+"?')
"""Strangers' text. The closing quote is missing where the text was cut."""
_MAX_ENTITIES = 100
_BOT_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")


@dataclass(frozen=True, slots=True)
class StartedChat:
    """A user sent the bot ``/start code`` in a private chat. ``name``: untrusted text."""

    update_id: int
    chat_id: int
    code: str
    name: str


@dataclass(frozen=True, slots=True)
class ChatCheck:
    """A user sent the bot ``/check`` in a private chat. ``address``: None: no address follows."""

    update_id: int
    chat_id: int
    address: str | None


@dataclass(frozen=True, slots=True)
class ChatText:
    """A user sent the bot any other text in a private chat."""

    update_id: int
    chat_id: int


ChatMessage = StartedChat | ChatCheck | ChatText


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
    """The answer of every API method. ``result``: its shape depends on the method."""

    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    parameters: _Parameters | None = None


class Telegram:
    """A client of the bot API. ``api_url``: ``https://api.telegram.org``, or a test server's. The token is
    secret and appears in no error. Raises ValueError for an invalid token, BadTarget for an invalid url."""

    def __init__(self, poster: Poster, token: str, api_url: str) -> None:
        if _TOKEN.fullmatch(token) is None:
            raise ValueError("a Telegram token must be a number, a colon, and letters and digits")
        self._poster = poster
        self._api = parse_target(api_url.rstrip("/"), poster.loopback)
        self._url = f"{api_url.rstrip('/')}/bot{token}/"
        self._confirmed: int | None = None

    async def send_rows(
        self, chat_id: int, texts: Sequence[str], links: Sequence[str | None] = ()
    ) -> PostReply:
        """Sends plain text, one line a row, within Telegram's limits; what is in quotes makes no links.
        ``links``: as in ``discord.build_message``. Status 403, of a blocked bot, is returned as 410: the chat
        is gone."""
        text = format_lines_with_links(texts, links, MAX_ROWS, MAX_CHARACTERS, str)
        text = text or format_lines(texts, MAX_ROWS, MAX_CHARACTERS)
        params = {"chat_id": chat_id, "text": text, "link_preview_options": {"is_disabled": True}}
        if entities := _mark_quoted(text):
            params["entities"] = entities
        return _read_sent(await self._call("sendMessage", params))

    async def send_photo(self, chat_id: int, picture: bytes, caption: str) -> PostReply:
        """Sends a PNG with plain text below it, cut to Telegram's limit. Quotes and replies as
        ``send_rows``."""
        fields = {"chat_id": str(chat_id), "caption": cut_text(caption, MAX_CAPTION)}
        if entities := _mark_quoted(fields["caption"]):
            fields["caption_entities"] = msgspec.json.encode(entities).decode()
        boundary = hashlib.sha256(picture + caption.encode()).hexdigest()
        parts = [
            f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in fields.items()
        ]
        head = 'content-disposition: form-data; name="photo"; filename="card.png"\r\ncontent-type: image/png'
        parts.append(f"--{boundary}\r\n{head}\r\n\r\n".encode() + picture + b"\r\n")
        body = b"".join([*parts, f"--{boundary}--\r\n".encode()])
        return _read_sent(
            await self._poster.post(
                Target(self._url + "sendPhoto", self._api.host, self._api.port),
                body,
                {"content-type": f"multipart/form-data; boundary={boundary}"},
                MAX_READ,
            )
        )

    async def name(self) -> str | None:
        """The bot's user name; None if Telegram did not return it."""
        try:
            me = _decode_result(await self._call("getMe", {}), _BotName)
        except (OSError, PostNotTried):
            return None
        return me.username if _BOT_NAME.fullmatch(me.username) else None

    async def read_messages(self, after: int, wait_s: int) -> tuple[list[ChatMessage], int]:
        """The texts of private chats since the update ``after``, and the newest update's id. Waits up to
        ``wait_s`` for an update. Raises OSError when the call fails."""
        params: dict[str, Any] = {"timeout": wait_s, "limit": _MAX_UPDATES, "allowed_updates": ["message"]}
        if after != self._confirmed and after > 0:
            # Sent only once: after a week without updates Telegram continues from a random id, which may be
            # lower.
            params["offset"] = after + 1
        reply = await self._call("getUpdates", params, wait_s + TIMEOUT_S)
        updates = [_decode_update(raw) for raw in _decode_result(reply, list[msgspec.Raw])]
        self._confirmed = after
        newest = updates[-1].update_id if updates else after
        return [message for update in updates if (message := _read_message(update)) is not None], newest

    async def _call(
        self, method: str, params: Mapping[str, Any], timeout_s: float | None = None
    ) -> PostReply:
        return await self._poster.post(
            Target(self._url + method, self._api.host, self._api.port),
            msgspec.json.encode(params),
            {"content-type": "application/json"},
            MAX_READ,
            timeout_s,
        )


def _mark_quoted(text: str) -> list[dict[str, Any]]:
    """Entities that show what is in quotes as code: else apps make links of addresses, names and commands in
    it. Offsets are in UTF-16 units."""
    return [
        {"type": "code", "offset": utf16_length(text[: found.start()]), "length": utf16_length(found[0])}
        for found in islice(_QUOTED.finditer(text), _MAX_ENTITIES)
    ]


def _read_sent(reply: PostReply) -> PostReply:
    """The reply to a sent message, with Telegram's meaning."""
    if reply.status == 403:
        return replace(reply, status=410)
    answer = _decode_answer(reply)
    if reply.ok and (answer is None or not answer.ok):
        return replace(reply, status=None, error="the answer is not from Telegram")
    wait_s = answer.parameters.retry_after if answer and answer.parameters else None
    if reply.status == 429 and wait_s is not None:
        return replace(reply, retry_after_s=float(max(0, wait_s)))
    return reply


def _decode_answer(reply: PostReply) -> _TelegramAnswer | None:
    try:
        return msgspec.json.decode(reply.read, type=_TelegramAnswer)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _decode_result(reply: PostReply, kind: type[_T]) -> _T:
    """The result of a call. Raises OSError if the call failed or the result has another shape."""
    answer = _decode_answer(reply)
    if not reply.ok or answer is None or not answer.ok:
        raise OSError(f"the request to Telegram failed: {reply.error or f'status {reply.status}'}")
    try:
        return msgspec.json.decode(answer.result, type=kind)
    except (msgspec.DecodeError, UnicodeError):
        raise OSError("the request to Telegram failed: the answer has an unexpected form") from None


def _decode_update(raw: msgspec.Raw) -> _Update:
    """Raises OSError only if the update has no id: any other unreadable update must be skipped by its id."""
    try:
        return msgspec.json.decode(raw, type=_Update)
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        return _Update(msgspec.json.decode(raw, type=_UpdateNumber).update_id)
    except (msgspec.DecodeError, UnicodeError):
        raise OSError("the request to Telegram failed: the answer has an unexpected form") from None


def _read_message(update: _Update) -> ChatMessage | None:
    """The message of an update; None: it has no text of a private chat."""
    message = update.message
    if message is None or message.chat.type != "private" or not message.text:
        return None
    if (start := _START.fullmatch(message.text)) is not None:
        name = f"{message.chat.first_name} {message.chat.last_name}".strip()[:_MAX_NAME]
        return StartedChat(update.update_id, message.chat.id, start[1], name)
    if (check := _CHECK.fullmatch(message.text.strip())) is not None:
        address = (check[1] or "").strip()
        is_address = _ADDRESS.fullmatch(address) is not None
        return ChatCheck(update.update_id, message.chat.id, address if is_address else None)
    return ChatText(update.update_id, message.chat.id)
