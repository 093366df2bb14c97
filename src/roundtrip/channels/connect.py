"""Connections to strangers' servers: every address is looked at as it is connected to, and what comes back is
bounded, whatever it is."""

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

MOST_HEADERS = 100
MOST_LINE = 8 * 1024
"""Of the answer's first line, and of each header."""
MOST_HEARD = 512 * 1024
"""Bytes of one connection, of whatever kind. aiohttp bounds lines and headers, not how many interim answers,
trailers or chunk extensions there are."""
ADDRESSES_KEPT_S = 60
"""They are looked at again at every connect."""
USER_AGENT = "roundtrip"
_BUFFER = 16 * 1024
_SENT_AT_ONCE = 256 * 1024

Address = IPv4Address | IPv6Address
AddrInfo = tuple[int, int, int, str, tuple[Any, ...]]


class NotGlobal(OSError):
    """The address that was about to be connected to is not one of the internet."""


class AnswerTooLarge(aiohttp.ClientError):
    """More came than any answer takes."""


class _BoundedHandler(ResponseHandler):
    """Hangs up on whoever says more than ``MOST_HEARD``."""

    _heard = 0

    def data_received(self, data: bytes) -> None:
        self._heard += len(data)
        if self._heard <= MOST_HEARD:
            super().data_received(data)
        elif self.transport is not None:
            self.set_exception(AnswerTooLarge())
            self.transport.abort()


class _Connector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # aiohttp has no public way to bound it; the floods of tests/channels tell should this one close.
        self._factory: Any = functools.partial(_BoundedHandler, loop=self._loop)


def session(
    resolver: AbstractResolver, trust: ssl.SSLContext, may_reach: Callable[[Address, int], bool]
) -> aiohttp.ClientSession:
    """One that reaches only what ``may_reach`` lets it, and believes only certificates that ``trust`` does.
    No redirects are asked for here: whoever posts does not follow them."""

    def open_checked(info: AddrInfo) -> socket.socket:
        """Called for every connect with the very address that is then connected to. Raises NotGlobal."""
        family, kind, protocol, _, (host, port, *_) = info
        address = parse_address(str(host))
        if address is None or not may_reach(address, port):
            raise NotGlobal("not an address of the internet")
        made = socket.socket(family, kind, protocol)
        # A whole message fits: whoever does not read it leaves nothing behind here once it is given up.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENT_AT_ONCE)
        return made

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
        read_bufsize=_BUFFER,
        max_line_size=MOST_LINE,
        max_field_size=MOST_LINE,
        max_headers=MOST_HEADERS,
    )
