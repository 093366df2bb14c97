"""Replies on their way out over HTTP."""

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
"""Of what anybody's page may read."""
_PREFLIGHT = (
    (b"access-control-allow-methods", b"GET, HEAD"),
    (b"access-control-allow-headers", b"authorization, x-api-key, content-type, x-min-block"),
    (b"access-control-max-age", b"86400"),
)
NO_STORE = (b"cache-control", b"no-store")
"""Of every answer that is not a document: it holds for its moment, and may be for its caller alone."""
HSTS = (b"strict-transport-security", b"max-age=31536000")
"""A year. Of this host alone: what other hosts of the domain do is not ours to say."""
MOST_BRACKETS = 1000
"""No request needs more; what reads JSON by recursion is never let near the end of its stack."""
LARGE_BYTES = 64 * 1024
"""Beyond it an answer is compressed for who reads that; proofs are as large, and become a twentieth."""

_JSON_RANGES = {b"application/json", b"application/*", b"*/*"}

_WORTH_SQUEEZING = 1024
"""Bytes of a document from which it is kept compressed, too."""


class BodyUnread(CallerFault):
    """Nothing more is read of this request, so its connection is of no more use."""

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


async def send_options(methods: Iterable[str], send: Send, cors: bool) -> None:
    """Tells which methods a path has; a page that may read what they give is told so (preflight)."""
    headers = [(b"allow", ", ".join(methods).encode()), (b"content-length", b"0")]
    if cors:
        headers += (*CORS[:1], *_PREFLIGHT)
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def takes_gzip(asked: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether these request headers accept gzip; by name only, and not with the weight zero."""
    told = b",".join(value for name, value in asked if name == b"accept-encoding")
    for one in told.lower().split(b","):
        coding, _, weight = one.partition(b";")
        if coding.strip() == b"gzip":
            return not re.fullmatch(rb"\s*q\s*=\s*0(\.0*)?\s*", weight)
    return False


def takes_json(accepted: bytes) -> bool:
    """Whether an Accept header takes JSON, by name only; an empty one takes anything."""
    named = {one.split(b";")[0].strip().lower() for one in accepted.split(b",")} - {b""}
    return not named or not named.isdisjoint(_JSON_RANGES)


@dataclass(frozen=True, slots=True)
class Document:
    """An answer that never changes, as an ASGI application for GET, HEAD and OPTIONS. ``cors``: anybody's
    page may read it."""

    body: bytes
    media_type: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cors: bool = True
    _squeezed: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        large = len(self.body) > _WORTH_SQUEEZING
        object.__setattr__(self, "_squeezed", compress(self.body, 9, mtime=0) if large else b"")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["method"] == "OPTIONS":
            await send_options(("GET", "HEAD", "OPTIONS"), send, self.cors)
            return
        body, headers = self.body, [(b"content-type", self.media_type.encode()), *self.headers]
        if self._squeezed:
            headers.append((b"vary", b"accept-encoding"))
            if takes_gzip(scope["headers"]):
                body = self._squeezed
                headers.append((b"content-encoding", b"gzip"))
        if self.cors:
            headers += CORS
        headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
