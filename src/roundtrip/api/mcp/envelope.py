"""Validates the envelope of a message to the tool server before the protocol's library sees it.

The library's error messages quote its input, which may contain a key. So malformed messages are answered
here, with fixed texts.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import msgspec
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Send

from roundtrip.api.server.responses import MAX_BRACKETS, NO_STORE, accepts_json

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
