"""HTTP connections to untrusted servers. Every address is checked when it is connected to, and the size of
whatever comes back is bounded."""

import functools
import socket
import ssl
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler

from .address_policy import parse_address

MAX_HEADERS = 100
MAX_LINE = 8 * 1024
"""Bytes of the answer's first line, and of each header."""
MAX_HEARD = 512 * 1024
"""All bytes received on one connection. aiohttp bounds lines and headers, but not the number of interim
answers, trailers or chunk extensions."""
ADDRESSES_KEPT_S = 60
"""How long resolved addresses are cached; they are still checked at every connect."""
USER_AGENT = "roundtrip"
_READ_BUFFER = 16 * 1024
_SEND_BUFFER = 256 * 1024

Address = IPv4Address | IPv6Address
AddrInfo = tuple[int, int, int, str, tuple[Any, ...]]


class NotGlobal(OSError):
    """The address to connect to is not allowed."""


class AnswerTooLarge(aiohttp.ClientError):
    """The connection received more than ``MAX_HEARD`` bytes."""


class _BoundedHandler(ResponseHandler):
    """Aborts a connection that sends more than ``MAX_HEARD`` bytes."""

    _received_bytes = 0

    def data_received(self, data: bytes) -> None:
        self._received_bytes += len(data)
        if self._received_bytes <= MAX_HEARD:
            super().data_received(data)
        elif self.transport is not None:
            self.set_exception(AnswerTooLarge())
            self.transport.abort()


class _Connector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # aiohttp has no public API for this bound; the flood tests in tests/channels show whether it works.
        self._factory: Any = functools.partial(_BoundedHandler, loop=self._loop)


def open_session(
    resolver: AbstractResolver, trust: ssl.SSLContext, may_reach: Callable[[Address, int], bool]
) -> aiohttp.ClientSession:
    """A session that connects only to addresses that ``may_reach`` allows, and accepts only certificates that
    ``trust`` accepts. The caller must disable redirects for each request."""

    def open_checked(info: AddrInfo) -> socket.socket:
        """Called for every connect with the exact address that is then connected to. Raises NotGlobal."""
        family, kind, protocol, _, (host, port, *_) = info
        address = parse_address(str(host))
        if address is None or not may_reach(address, port):
            raise NotGlobal("not a public internet address")
        opened = socket.socket(family, kind, protocol)
        # The buffer holds a whole message, so a server that does not read leaves no pending write behind.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        return opened

    connector = _Connector(
        resolver=resolver, ssl=trust, socket_factory=open_checked, force_close=True, limit=0,
        ttl_dns_cache=ADDRESSES_KEPT_S,
    )  # fmt: skip
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"user-agent": USER_AGENT, "accept-encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        auto_decompress=False,
        trust_env=False,
        read_bufsize=_READ_BUFFER,
        max_line_size=MAX_LINE,
        max_field_size=MAX_LINE,
        max_headers=MAX_HEADERS,
    )
