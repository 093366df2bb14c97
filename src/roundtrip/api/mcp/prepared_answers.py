"""Caches the protocol library's answers to plain requests.

The library parses and encodes a message several times. Equal requests get equal answers except for the
id, so the library's own bytes are recorded and sent again with the new id. The library answers every
request that is not exactly plain.

Also validates the envelope of a message to the tool server before the protocol's library sees it.

The library's error messages quote its input, which may contain a key. So malformed messages are answered
here, with fixed texts."""

import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import msgspec
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import Message, Send

from roundtrip.api.request.param_errors import MAX_BRACKETS
from roundtrip.api.server.responses import NO_STORE, accepts_json

METHODS = frozenset(
    {"initialize", "ping", "prompts/get", "prompts/list", "server/discover", "tools/call", "tools/list"}
)
"""The methods that this server answers. The library decides which protocol version has which."""
MAX_UNCOUNTED_BYTES = 8 * 1024
"""The longest message of a method other than tools/call: those methods do not count against a rate limit."""
VERSION = b"mcp-protocol-version"

_NO_METHOD = f"There is no such method. The methods are {', '.join(sorted(METHODS))}."
_BAD_PROMPT = (
    "prompts/get takes a name, and arguments whose values are texts, such as "
    '{"name": "check_before_you_buy", "arguments": {"token": "0x..."}}.'
)
_VERSION = re.compile(rb"[0-9A-Za-z.-]{1,32}")
"""A value of ``mcp-protocol-version``. The library's answer repeats an unknown one, so a key that was sent in
this header must not match: it has an underscore."""


class MalformedMessage(Exception):
    """A message that is refused with a JSON-RPC error. ``id``: the message's, if it is valid."""

    def __init__(self, code: int, message: str, status: int = 400, id_: int | str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.id = id_


@dataclass(frozen=True, slots=True)
class Envelope:
    """A valid JSON-RPC message. ``id`` None: a notification. ``whole``: the decoded message."""

    id: int | str | None
    method: str
    params: Mapping[str, Any]
    whole: Mapping[str, Any]


def read_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers for the library, with exactly one Content-Type and Accept. A missing or empty Accept
    accepts anything (RFC 9110, 12.5.1). Raises MalformedMessage."""
    kept_headers, accepted, versions = [], [], []
    for name, raw_value in headers:
        # The HTTP parser keeps trailing blanks of values, which the newest protocol version refuses.
        value = raw_value.strip(b" \t")
        if name == b"accept":
            accepted.append(value)
        elif name != b"content-type":
            kept_headers.append((name, value))
        if name == VERSION:
            versions.append(value)
    if not accepts_json(b",".join(accepted)):
        message = "Accept must allow application/json, such as application/json, text/event-stream."
        raise MalformedMessage(types.INVALID_REQUEST, message, 406)
    if len(versions) > 1 or not all(_VERSION.fullmatch(version) for version in versions):
        raise MalformedMessage(
            types.INVALID_REQUEST,
            "mcp-protocol-version must be sent once, with one version such as 2025-06-18.",
        )
    return [*kept_headers, (b"content-type", b"application/json"), (b"accept", b"application/json")]


def read_envelope(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Envelope:
    """Parses a body. Raises MalformedMessage."""
    if body.count(b"[") + body.count(b"{") > MAX_BRACKETS:
        raise MalformedMessage(
            types.INVALID_REQUEST, f"The body may contain at most {MAX_BRACKETS} brackets and braces."
        )
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise MalformedMessage(types.PARSE_ERROR, "The body is not valid JSON.") from None
    if isinstance(decoded, list):
        raise MalformedMessage(types.INVALID_REQUEST, "Batches are not supported. Send one request object.")
    if not isinstance(decoded, dict):
        raise MalformedMessage(
            types.INVALID_REQUEST,
            'The body must be a JSON object such as {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}.',
        )
    envelope = _check_envelope(decoded)
    _check_version(headers, envelope)
    if envelope.method != "tools/call" and len(body) > MAX_UNCOUNTED_BYTES:
        most = MAX_UNCOUNTED_BYTES // 1024
        raise MalformedMessage(
            types.INVALID_REQUEST,
            f"The body is too large: only tools/call may exceed {most} KiB.",
            id_=envelope.id,
        )
    if envelope.id is not None and envelope.method not in METHODS:
        # Protocol versions with a handshake answer errors with status 200; the newest answers this one with
        # 404.
        version = next((value.decode("latin-1") for name, value in headers if name == VERSION), None)
        status = 200 if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS else 404
        raise MalformedMessage(types.METHOD_NOT_FOUND, _NO_METHOD, status, envelope.id)
    if envelope.method == "prompts/get" and not _names_prompt(envelope.params):
        raise MalformedMessage(types.INVALID_PARAMS, _BAD_PROMPT, id_=envelope.id)
    return envelope


def _check_version(headers: Iterable[tuple[bytes, bytes]], envelope: Envelope) -> None:
    """Raises MalformedMessage for a version that nobody knows. Of a message that has a version of its own in
    ``_meta``, the library says it."""
    meta = envelope.params.get("_meta")
    if isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta:
        return
    known = (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)
    if any(name == VERSION and value.decode("latin-1") not in known for name, value in headers):
        message = f"This server does not know that mcp-protocol-version. It knows {', '.join(known)}."
        raise MalformedMessage(types.INVALID_REQUEST, message, id_=envelope.id)


def _names_prompt(params: Mapping[str, Any]) -> bool:
    arguments = params.get("arguments")
    if not isinstance(arguments, dict | None):
        return False
    values = (arguments or {}).values()
    return isinstance(params.get("name"), str) and all(isinstance(value, str | None) for value in values)


def _check_envelope(message: dict[str, Any]) -> Envelope:
    id_ = message.get("id")
    is_valid_id = isinstance(id_, int | str) and not isinstance(id_, bool)
    if "id" in message and not is_valid_id:
        raise MalformedMessage(types.INVALID_REQUEST, "id must be a string or an integer, such as 1.")
    if message.get("jsonrpc") != "2.0":
        raise MalformedMessage(types.INVALID_REQUEST, 'jsonrpc must be "2.0".', id_=id_)
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise MalformedMessage(
            types.INVALID_REQUEST, 'method must be a string, such as "tools/call".', id_=id_
        )
    # Some clients send null for missing params, and the library accepts it.
    if not isinstance(params, dict | None):
        raise MalformedMessage(
            types.INVALID_REQUEST,
            'params must be an object, such as {"name": "check_token", "arguments": {}}.',
            id_=id_,
        )
    return Envelope(id_, method, params or {}, message)


async def send_malformed(malformed: MalformedMessage, send: Send) -> None:
    """Answers with the JSON-RPC error."""
    error = {"code": malformed.code, "message": malformed.message}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": malformed.id, "error": error})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), NO_STORE]
    await send({"type": "http.response.start", "status": malformed.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_OPENING = b'{"jsonrpc":"2.0","id":'
_RESULT = b',"result":'
_CLIENT = {"name", "version"}
_MESSAGE = {"jsonrpc", "id", "method", "params"}
_CALL = {"name", "arguments", "_meta"}
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"


@dataclass(frozen=True, slots=True)
class PreparableRequest:
    """A plain request for the tool listing (``tool`` None), or for a call of ``tool``. ``version``: the
    protocol's. ``id``: JSON-encoded."""

    version: str
    id: bytes
    tool: str | None
    arguments: Mapping[str, Any]


def read_plain_request(headers: Iterable[tuple[bytes, bytes]], message: Envelope) -> PreparableRequest | None:
    """The request, if it is a plain tool call, or any valid request for the listing: a listing counts against
    no limit, so it must cost little. None: the library has to answer."""
    if message.id is None or message.method not in ("tools/list", "tools/call"):
        return None
    protocol_headers = _protocol_headers(headers)
    raw_version = protocol_headers.get(VERSION, types.DEFAULT_NEGOTIATED_VERSION.encode())
    if raw_version is None:
        return None
    version = raw_version.decode("latin-1")
    is_listing = message.method == "tools/list"
    is_plain = (
        _is_valid_listing(message, protocol_headers, version)
        if is_listing
        else _is_plain_call(message, protocol_headers, version)
    )
    if not is_plain:
        return None
    tool, arguments = (
        (None, {}) if is_listing else (message.params["name"], message.params.get("arguments", {}))
    )
    return PreparableRequest(version, msgspec.json.encode(message.id), tool, arguments)


def listing_request(version: str) -> tuple[bytes, bytes]:
    """The body of a request for the listing, and its JSON-encoded id."""
    params: dict[str, Any] = {}
    if version in MODERN_PROTOCOL_VERSIONS:
        params["_meta"] = {types.PROTOCOL_VERSION_META_KEY: version, types.CLIENT_CAPABILITIES_META_KEY: {}}
    body = {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": params}
    return msgspec.json.encode(body), b"0"


def _protocol_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes | None]:
    """The protocol's own headers; the value of a repeated one is None."""
    by_name: dict[bytes, bytes | None] = {}
    for name, value in headers:
        if name.startswith(b"mcp-"):
            by_name[name] = None if name in by_name else value
    return by_name


def _is_valid_listing(message: Envelope, headers: Mapping[bytes, bytes | None], version: str) -> bool:
    """Whether the library would answer with the listing."""
    meta = message.params.get("_meta")
    if message.params.get("cursor") is not None:
        return False
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return meta is None or (isinstance(meta, dict) and _is_progress_token(meta.get("progressToken")))
    return (
        version in MODERN_PROTOCOL_VERSIONS
        and isinstance(meta, dict)
        and headers.get(b"mcp-method") == b"tools/list"
        and headers.get(b"mcp-name", b"") is not None
        and meta.get(types.PROTOCOL_VERSION_META_KEY) == version
        and isinstance(meta.get(types.CLIENT_CAPABILITIES_META_KEY), dict)
        and isinstance(meta.get(types.CLIENT_INFO_META_KEY), dict | None)
        and _is_progress_token(meta.get("progressToken"))
    )


def _is_progress_token(value: object) -> bool:
    return isinstance(value, str | int | None) and not isinstance(value, bool)


def _is_plain_call(message: Envelope, headers: Mapping[bytes, bytes | None], version: str) -> bool:
    """Whether the call has all required fields and no others."""
    params = message.params
    if not (
        message.whole.keys() <= _MESSAGE and params.keys() <= _CALL and isinstance(params.get("name"), str)
    ):
        return False
    if not isinstance(params.get("arguments", {}), dict):
        return False
    if version in MODERN_PROTOCOL_VERSIONS:
        if any(name.startswith(b"mcp-param-") for name in headers):
            return False
        return _is_consistent(headers, params["name"], version, params.get("_meta"))
    return version in HANDSHAKE_PROTOCOL_VERSIONS and "_meta" not in params


def _is_consistent(headers: Mapping[bytes, bytes | None], tool: str, version: str, meta: object) -> bool:
    """Whether headers and ``_meta`` of a newest-protocol call agree, and have only the required fields."""
    if not isinstance(meta, dict) or headers.get(b"mcp-method") != b"tools/call":
        return False
    if headers.get(b"mcp-name") != tool.encode():
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
    """A ``send`` that forwards the library's answer and records it if it can be sent again."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send = send
        self._id = request_id
        self._is_plain = False
        self.recorded: bytes | None = None
        """The bytes after the id, if the answer is a plain result; else None."""

    async def __call__(self, message: Message) -> None:
        """Forwards one ASGI message."""
        await self._send(message)
        if message["type"] == "http.response.start":
            names = {name for name, _ in message["headers"]}
            self._is_plain = message["status"] == 200 and names == {b"content-type", b"content-length"}
        elif self._is_plain and not message.get("more_body", False):
            opening, body = _OPENING + self._id, bytes(message["body"])
            if body.startswith(opening + _RESULT):
                self.recorded = body[len(opening) :]


async def send_prepared(recorded: bytes, request_id: bytes, send: Send) -> None:
    """Sends a recorded answer with another request's id."""
    body = b"%b%b%b" % (_OPENING, request_id, recorded)
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True, slots=True)
class Listing:
    """The recorded listing, plain and compressed."""

    recorded: bytes
    _deflated: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        object.__setattr__(self, "_deflated", compressor.compress(self.recorded) + compressor.flush())

    async def send(self, request_id: bytes, gzip: bool, send: Send) -> None:
        """Answers a request. ``request_id``: JSON-encoded, shorter than 64 KB."""
        opening = _OPENING + request_id
        body = self._gzip(opening) if gzip else opening + self.recorded
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
        """One gzip member (RFC 1952): the opening as a stored block (RFC 1951, 3.2.4), then the deflated
        rest."""
        size = len(opening)
        stored = struct.pack("<BHH", 0, size, size ^ 0xFFFF) + opening
        checksum = zlib.crc32(self.recorded, zlib.crc32(opening))
        tail = struct.pack("<II", checksum, (size + len(self.recorded)) & 0xFFFFFFFF)
        return b"%b%b%b%b" % (_GZIP_HEAD, stored, self._deflated, tail)
