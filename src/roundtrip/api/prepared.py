"""Plain requests to the tool server, and the protocol library's answers to them, kept.

The library reads and writes a message several times over. What it wrote for one request it would write for
another of the same kind, but for the id: so its own bytes are kept, and sent again with that id. Anything
that is not exactly plain is the library's to answer.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import mcp_types as types
import msgspec
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import Message, Send

_TAKES_JSON = {b"application/json", b"*/*", b"application/*"}
_PLAIN_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_OPENING = b'{"jsonrpc":"2.0","id":'
_RESULT = b',"result":'
_CLIENT = {"name", "version"}


class _Params(msgspec.Struct, forbid_unknown_fields=True):
    name: str | msgspec.UnsetType = msgspec.UNSET
    arguments: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    meta: dict[str, Any] | msgspec.UnsetType = msgspec.field(name="_meta", default=msgspec.UNSET)


class _Request(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/list", "tools/call"]
    params: _Params | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(_Request)


@dataclass(frozen=True, slots=True)
class Plain:
    """A request for the listing, or for a tool's call (``tool`` is its name then). ``version``: of the
    protocol. ``id``: encoded."""

    version: str
    id: bytes
    tool: str | None
    arguments: dict[str, Any]


def plain_request(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Plain | None:
    """The request, if nothing about it is out of the ordinary."""
    told = _told(headers)
    if told is None:
        return None
    try:
        request = _decoder.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if isinstance(request.id, str) and not _PLAIN_ID.fullmatch(request.id):
        return None
    params = request.params if isinstance(request.params, _Params) else _Params()
    calls = request.method == "tools/call"
    if calls is isinstance(params.name, msgspec.UnsetType) or (params.arguments and not calls):
        return None
    version = told.get(b"mcp-protocol-version", types.DEFAULT_NEGOTIATED_VERSION.encode()).decode("latin-1")
    if version in MODERN_PROTOCOL_VERSIONS:
        named = (request.method, params.name if calls else None)
        if not _agrees(told, named, version, params.meta):
            return None
    elif version not in HANDSHAKE_PROTOCOL_VERSIONS or not isinstance(params.meta, msgspec.UnsetType):
        return None
    arguments = params.arguments if isinstance(params.arguments, dict) else {}
    tool = params.name if isinstance(params.name, str) else None
    return Plain(version, msgspec.json.encode(request.id), tool, arguments)


def _told(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes] | None:
    """The headers that matter, each said once; None where one is said twice, or is not plain."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in (b"accept", b"content-type") or name.startswith(b"mcp-"):
            if name in found or name.startswith(b"mcp-param-"):
                return None
            found[name] = value
    accepted = {one.split(b";")[0].strip().lower() for one in found.get(b"accept", b"").split(b",")}
    if accepted.isdisjoint(_TAKES_JSON):
        return None
    return found if found.get(b"content-type", b"").split(b";")[0] == b"application/json" else None


def _agrees(
    told: dict[bytes, bytes], named: tuple[str, Any], version: str, meta: dict[str, Any] | msgspec.UnsetType
) -> bool:
    """Whether headers and envelope of the newest protocol say the same, and no more than they have to."""
    method, tool = named
    if not isinstance(meta, dict) or told.get(b"mcp-method") != method.encode():
        return False
    if told.get(b"mcp-name") != (None if tool is None else tool.encode()):
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


class Recording:
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
    length = len(_OPENING) + len(request_id) + len(kept)
    headers = [(b"content-length", b"%d" % length), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"%b%b%b" % (_OPENING, request_id, kept)})
