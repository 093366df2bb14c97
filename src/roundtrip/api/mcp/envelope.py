"""The envelope of a message to the tool server, looked at before the protocol's library sees it.

What the library cannot read it says in words of its own, with what it was sent; a key may be among that. So
whatever it would not take is answered here, in fixed words.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import msgspec
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Send

from roundtrip.api.server.responses import MOST_BRACKETS, NO_STORE, takes_json

METHODS = frozenset({"initialize", "ping", "server/discover", "tools/call", "tools/list"})
"""All that this server answers; which version has which is the library's to say."""
MOST_UNCOUNTED_BYTES = 8 * 1024
"""Only a tool's call may be longer: nothing else is counted against anybody's limit."""
VERSION = b"mcp-protocol-version"

_VERSION = re.compile(rb"[0-9A-Za-z.-]{1,32}")
"""No key reads so; an unknown version is named in the library's answer."""


class MalformedMessage(Exception):
    """A message that is refused: an error of JSON-RPC. ``id``: the message's, where it has a good one."""

    def __init__(self, code: int, message: str, status: int = 400, id_: int | str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.id = id_


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message that is one of JSON-RPC. ``id`` None: a notification. ``whole``: all of it, as decoded."""

    id: int | str | None
    method: str
    params: Mapping[str, Any]
    whole: Mapping[str, Any]


def read_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers as the library is given them: media types said once and plainly. A client that sends no
    Accept, or an empty one, takes anything (RFC 9110, 12.5.1). Raises Unfit."""
    found, accepted, versions = [], [], []
    for name, kept in headers:
        # The HTTP parser keeps blanks behind values, which the protocol's newest version refuses.
        value = kept.strip(b" \t")
        if name == b"accept":
            accepted.append(value)
        elif name != b"content-type":
            found.append((name, value))
        if name == VERSION:
            versions.append(value)
    if not takes_json(b",".join(accepted)):
        message = "The tool server answers with application/json, which this Accept header does not take."
        raise MalformedMessage(types.INVALID_REQUEST, message, 406)
    if len(versions) > 1 or not all(_VERSION.fullmatch(one) for one in versions):
        raise MalformedMessage(
            types.INVALID_REQUEST, "The mcp-protocol-version header has to be one version, once."
        )
    return [*found, (b"content-type", b"application/json"), (b"accept", b"application/json")]


def read_envelope(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Envelope:
    """The message of a body. Raises Unfit."""
    if body.count(b"[") + body.count(b"{") > MOST_BRACKETS:
        raise MalformedMessage(
            types.INVALID_REQUEST, "The body is nested deeper than anything this service reads."
        )
    try:
        sent = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise MalformedMessage(types.PARSE_ERROR, "The body is no JSON.") from None
    if isinstance(sent, list):
        raise MalformedMessage(types.INVALID_REQUEST, "Send one request at a time, no batch.")
    if not isinstance(sent, dict):
        raise MalformedMessage(types.INVALID_REQUEST, "A request is a JSON object.")
    found = _check_envelope(sent)
    if found.method != "tools/call" and len(body) > MOST_UNCOUNTED_BYTES:
        most = MOST_UNCOUNTED_BYTES // 1024
        raise MalformedMessage(
            types.INVALID_REQUEST, f"Only tools/call may be over {most} KiB.", id_=found.id
        )
    if found.id is not None and found.method not in METHODS:
        # Versions with a handshake give errors with the status 200, the newest this one with 404.
        version = next((value.decode("latin-1") for name, value in headers if name == VERSION), None)
        status = 200 if version is None or version in HANDSHAKE_PROTOCOL_VERSIONS else 404
        raise MalformedMessage(types.METHOD_NOT_FOUND, "There is no such method here.", status, found.id)
    return found


def _check_envelope(sent: dict[str, Any]) -> Envelope:
    told = sent.get("id")
    good = isinstance(told, int | str) and not isinstance(told, bool)
    if "id" in sent and not good:
        raise MalformedMessage(types.INVALID_REQUEST, "The id of a request is a string or an integer.")
    if sent.get("jsonrpc") != "2.0":
        raise MalformedMessage(types.INVALID_REQUEST, 'A request says "jsonrpc": "2.0".', id_=told)
    method, params = sent.get("method"), sent.get("params")
    if not isinstance(method, str):
        raise MalformedMessage(types.INVALID_REQUEST, "The method of a request is a string.", id_=told)
    # Some clients write null for what they leave out, and the library takes it.
    if not isinstance(params, dict | None):
        raise MalformedMessage(types.INVALID_REQUEST, "The params of a request are an object.", id_=told)
    return Envelope(told, method, params or {}, sent)


async def send_unfit(unfit: MalformedMessage, send: Send) -> None:
    """The refusal as an answer."""
    error = {"code": unfit.code, "message": unfit.message}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": unfit.id, "error": error})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        NO_STORE,
    ]
    await send({"type": "http.response.start", "status": unfit.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
