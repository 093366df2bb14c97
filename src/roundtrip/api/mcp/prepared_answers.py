"""Plain requests to the tool server, and the protocol library's answers to them, kept.

The library reads and writes a message several times over. What it wrote for one request it would write for
another of the same kind, but for the id: so its own bytes are kept, and sent again with that id. Anything
that is not exactly plain is the library's to answer.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import msgspec
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import Message, Send

from .envelope import VERSION, Envelope

_OPENING = b'{"jsonrpc":"2.0","id":'
_RESULT = b',"result":'
_CLIENT = {"name", "version"}
_MESSAGE = {"jsonrpc", "id", "method", "params"}
_CALL = {"name", "arguments", "_meta"}
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"


@dataclass(frozen=True, slots=True)
class PreparableRequest:
    """A request for the listing, or for a tool's call (``tool`` is its name then). ``version``: of the
    protocol. ``id``: encoded."""

    version: str
    id: bytes
    tool: str | None
    arguments: Mapping[str, Any]


def plain_request(headers: Iterable[tuple[bytes, bytes]], message: Envelope) -> PreparableRequest | None:
    """The request, if it is a call about which nothing is out of the ordinary, or asks for the listing in any
    way that gives it: a listing counts against nobody's limit, so it must cost little."""
    if message.id is None or message.method not in ("tools/list", "tools/call"):
        return None
    told = _protocol_headers(headers)
    version = told.get(VERSION, types.DEFAULT_NEGOTIATED_VERSION.encode())
    if version is None:
        return None
    found = version.decode("latin-1")
    listing = message.method == "tools/list"
    fits = _lists(message, told, found) if listing else _calls(message, told, found)
    if not fits:
        return None
    tool, arguments = (None, {}) if listing else (message.params["name"], message.params.get("arguments", {}))
    return PreparableRequest(found, msgspec.json.encode(message.id), tool, arguments)


def canonical_listing(version: str) -> tuple[bytes, bytes]:
    """A body that asks for the listing, and the encoded id of its answer."""
    params: dict[str, Any] = {}
    if version in MODERN_PROTOCOL_VERSIONS:
        params["_meta"] = {types.PROTOCOL_VERSION_META_KEY: version, types.CLIENT_CAPABILITIES_META_KEY: {}}
    body = {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": params}
    return msgspec.json.encode(body), b"0"


def _protocol_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes | None]:
    """The protocol's own headers; None for one that is said twice."""
    found: dict[bytes, bytes | None] = {}
    for name, value in headers:
        if name.startswith(b"mcp-"):
            found[name] = None if name in found else value
    return found


def _lists(message: Envelope, told: Mapping[bytes, bytes | None], version: str) -> bool:
    """Whether the library would answer with the listing."""
    meta = message.params.get("_meta")
    if message.params.get("cursor") is not None:
        return False
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return meta is None or (isinstance(meta, dict) and _is_token(meta.get("progressToken")))
    return (
        version in MODERN_PROTOCOL_VERSIONS
        and isinstance(meta, dict)
        and told.get(b"mcp-method") == b"tools/list"
        and told.get(b"mcp-name", b"") is not None
        and meta.get(types.PROTOCOL_VERSION_META_KEY) == version
        and isinstance(meta.get(types.CLIENT_CAPABILITIES_META_KEY), dict)
        and isinstance(meta.get(types.CLIENT_INFO_META_KEY), dict | None)
        and _is_token(meta.get("progressToken"))
    )


def _is_token(told: object) -> bool:
    return isinstance(told, str | int | None) and not isinstance(told, bool)


def _calls(message: Envelope, told: Mapping[bytes, bytes | None], version: str) -> bool:
    """Whether the call has all that it needs, and no more."""
    params = message.params
    if not (
        message.whole.keys() <= _MESSAGE and params.keys() <= _CALL and isinstance(params.get("name"), str)
    ):
        return False
    if not isinstance(params.get("arguments", {}), dict):
        return False
    if version in MODERN_PROTOCOL_VERSIONS:
        if any(name.startswith(b"mcp-param-") for name in told):
            return False
        return _agrees(told, params["name"], version, params.get("_meta"))
    return version in HANDSHAKE_PROTOCOL_VERSIONS and "_meta" not in params


def _agrees(told: Mapping[bytes, bytes | None], tool: str, version: str, meta: object) -> bool:
    """Whether headers and envelope of the newest protocol say the same, and no more than they have to."""
    if not isinstance(meta, dict) or told.get(b"mcp-method") != b"tools/call":
        return False
    if told.get(b"mcp-name") != tool.encode():
        return False
    rest = dict(meta)
    client = rest.pop(types.CLIENT_INFO_META_KEY, None)
    if client is not None and not (
        isinstance(client, dict)
        and client.keys() == _CLIENT
        and all(isinstance(value, str) for value in client.values())
    ):
        return False
    return rest == {types.PROTOCOL_VERSION_META_KEY: version, types.CLIENT_CAPABILITIES_META_KEY: {}}


class SendRecorder:
    """A ``send`` that passes on what the library sends, and keeps what may be sent again."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send = send
        self._id = request_id
        self._is_plain = False
        self.kept: bytes | None = None
        """All behind the id, of a result; None for anything else."""

    async def __call__(self, message: Message) -> None:
        """One message of the answer."""
        await self._send(message)
        if message["type"] == "http.response.start":
            names = {name for name, _ in message["headers"]}
            self._is_plain = message["status"] == 200 and names == {b"content-type", b"content-length"}
        elif self._is_plain and not message.get("more_body", False):
            opening, body = _OPENING + self._id, bytes(message["body"])
            if body.startswith(opening + _RESULT):
                self.kept = body[len(opening) :]


async def send_kept(kept: bytes, request_id: bytes, send: Send) -> None:
    """What was kept, as the answer to another request."""
    body = b"%b%b%b" % (_OPENING, request_id, kept)
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True, slots=True)
class Listing:
    """The kept listing, compressed beside its plain form."""

    kept: bytes
    _deflated: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        squeezing = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        object.__setattr__(self, "_deflated", squeezing.compress(self.kept) + squeezing.flush())

    async def send(self, request_id: bytes, gzip: bool, send: Send) -> None:
        """The answer to a request for it. ``request_id``: encoded, of less than 64 KB."""
        opening = _OPENING + request_id
        body = self._gzip(opening) if gzip else opening + self.kept
        headers = [
            (b"content-length", b"%d" % len(body)),
            (b"content-type", b"application/json"),
            (b"vary", b"accept-encoding"),
        ]
        if gzip:
            headers.append((b"content-encoding", b"gzip"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _gzip(self, opening: bytes) -> bytes:
        """One member (RFC 1952): the opening is a stored block (RFC 1951, 3.2.4), the rest is from before."""
        size = len(opening)
        stored = struct.pack("<BHH", 0, size, size ^ 0xFFFF) + opening
        checksum = zlib.crc32(self.kept, zlib.crc32(opening))
        tail = struct.pack("<II", checksum, (size + len(self.kept)) & 0xFFFFFFFF)
        return b"%b%b%b%b" % (_GZIP_HEAD, stored, self._deflated, tail)
