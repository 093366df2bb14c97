"""Discord's incoming webhooks."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import msgspec

from .message_lines import format_lines, format_lines_with_links, utf16_length
from .post import PostReply
from .targets import Target

MAX_ROWS = 10
MAX_CHARACTERS = 2000
HOSTS = frozenset(
    f"{build}{host}:443" for build in ("", "canary.", "ptb.") for host in ("discord.com", "discordapp.com")
)
"""Also those that the Canary and Public Test Build clients copy."""
_SUPPRESS_EMBEDS = 1 << 2
_PATH = re.compile(r"/api(?:/v[0-9]{1,2})?/webhooks/[0-9]{1,20}/[A-Za-z0-9_-]{1,100}/?")
_MARKUP = re.compile(r"([\\*_~`|>\[\]()#<:@-])")
_GONE = (10015, 50027)
"""Discord's error codes: unknown webhook, invalid webhook token."""


def is_discord(to: Target, hosts: frozenset[str] = HOSTS) -> bool:
    """Whether the target is a webhook on Discord's own host. ``hosts``: with their ports; a test server's
    too."""
    return f"{to.host}:{to.port}" in hosts and _PATH.fullmatch(urlsplit(to.url).path) is not None


def build_message(texts: Sequence[str], links: Sequence[str | None] = ()) -> tuple[bytes, dict[str, str]]:
    """Body and headers: plain text without mentions, one line a row, within Discord's limits. ``links``: one
    a row, made by this service; none is sent if not all of them fit."""
    content = format_lines_with_links(texts, links, MAX_ROWS, MAX_CHARACTERS, _escape)
    content = content or _escape(format_lines(texts, MAX_ROWS, MAX_CHARACTERS))
    if utf16_length(content) > MAX_CHARACTERS:
        # Escaping at most doubles the length. Cutting after escaping could split an escape sequence.
        content = _escape(format_lines(texts, MAX_ROWS, MAX_CHARACTERS // 2))
    body = {"content": content, "allowed_mentions": {"parse": []}, "flags": _SUPPRESS_EMBEDS}
    return msgspec.json.encode(body), {"content-type": "application/json"}


def _escape(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


def read_discord_reply(reply: PostReply) -> PostReply:
    """The reply with Discord's meaning: status 410 for a deleted webhook, and the wait from the body of a
    429."""
    if reply.status == 429 and (wait_s := _decode_body(reply).get("retry_after")) is not None:
        return replace(reply, retry_after_s=_seconds(wait_s, reply.retry_after_s))
    if reply.status in (401, 404) and _decode_body(reply).get("code") in _GONE:
        return replace(reply, status=410)
    return reply


def _decode_body(reply: PostReply) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(reply.read)
    except (msgspec.DecodeError, UnicodeError):
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(value: object, default: float | None) -> float | None:
    is_valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if is_valid else default  # type: ignore[arg-type]
