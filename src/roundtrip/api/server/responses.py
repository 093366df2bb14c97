"""Writes replies over HTTP."""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from gzip import compress

from starlette.types import Receive, Scope, Send

from roundtrip.api.dispatch import DoorReply
from roundtrip.domain.base.errors import CallerFault

CORS = (
    (b"access-control-allow-origin", b"*"),
    (
        b"access-control-expose-headers",
        b"x-ratelimit-limit, x-ratelimit-remaining, x-cache, retry-after, x-request-id",
    ),
)
"""Headers of answers that any web page may read."""
_PREFLIGHT = (
    (b"access-control-allow-methods", b"GET, HEAD"),
    (b"access-control-allow-headers", b"authorization, x-api-key, content-type, x-min-block"),
    (b"access-control-max-age", b"86400"),
)
NO_STORE = (b"cache-control", b"no-store")
"""A header of every answer that is not a document: it is soon outdated, and may be private to its caller."""
HSTS = (b"strict-transport-security", b"max-age=31536000")
"""One year, without includeSubDomains: other hosts of the domain are not this service's to decide on."""
WORTH_COMPRESSING_BYTES = 1024
"""Larger answers, pages and documents are compressed for clients that accept it."""
_IN_THREAD_BYTES = 64 * 1024
"""Larger bodies are compressed in a thread. Proofs are that large, and shrink to a twentieth."""
_FAST, _BEST = 1, 9

_JSON_RANGES = {b"application/json", b"application/*", b"*/*"}

_VARY_BY_CODING = (b"vary", b"accept-encoding")


class BodyUnread(CallerFault):
    """The rest of this request's body is not read, so its connection must be closed."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_input", message)


async def send_reply(reply: DoorReply, send: Send, cors: bool) -> None:
    """Writes a reply as JSON."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(reply.body))]
    headers += [NO_STORE, *((name.encode(), value.encode()) for name, value in reply.headers.items())]
    if isinstance(reply.error, BodyUnread):
        headers.append((b"connection", b"close"))
    if cors:
        headers += CORS
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


async def compress_body(body: bytes) -> bytes:
    """The body in gzip, as fast as that goes; a long one in a thread."""
    if len(body) > _IN_THREAD_BYTES:
        return await asyncio.to_thread(compress, body, _FAST, mtime=0)
    return compress(body, _FAST, mtime=0)


async def send_options(methods: Iterable[str], send: Send, cors: bool) -> None:
    """Answers OPTIONS: the path's methods, and with ``cors`` the preflight headers."""
    headers = [(b"allow", ", ".join(methods).encode()), (b"content-length", b"0")]
    if cors:
        headers += (*CORS[:1], *_PREFLIGHT)
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def accepts_gzip(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the request headers accept gzip: by name only (no ``*``), with a weight other than zero."""
    accepted = b",".join(value for name, value in headers if name == b"accept-encoding")
    for part in accepted.lower().split(b","):
        coding, _, weight = part.partition(b";")
        if coding.strip() == b"gzip":
            return not re.fullmatch(rb"\s*q\s*=\s*0(\.0*)?\s*", weight)
    return False


def accepts_json(accepted: bytes) -> bool:
    """Whether an Accept header accepts JSON, by name only; an empty one accepts anything."""
    ranges = {part.split(b";")[0].strip().lower() for part in accepted.split(b",")} - {b""}
    return not ranges or not ranges.isdisjoint(_JSON_RANGES)


def accepts_only_text(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the request headers accept plain text and no other type."""
    accepted = b",".join(value for name, value in headers if name == b"accept")
    return {part.split(b";")[0].strip().lower() for part in accepted.split(b",")} - {b""} == {b"text/plain"}


@dataclass(frozen=True, slots=True)
class Document:
    """A constant answer as an ASGI application for GET, HEAD and OPTIONS. ``cors``: any web page may read
    it."""

    body: bytes
    media_type: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cors: bool = True
    _compressed: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        large = len(self.body) > WORTH_COMPRESSING_BYTES
        object.__setattr__(self, "_compressed", compress(self.body, _BEST, mtime=0) if large else b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["method"] == "OPTIONS":
            await send_options(("GET", "HEAD", "OPTIONS"), send, self.cors)
            return
        body, headers = self.body, [(b"content-type", self.media_type.encode()), *self.headers]
        if self._compressed:
            headers.append(_VARY_BY_CODING)
            if accepts_gzip(scope["headers"]):
                body = self._compressed
                headers.append((b"content-encoding", b"gzip"))
        if self.cors:
            headers += CORS
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
