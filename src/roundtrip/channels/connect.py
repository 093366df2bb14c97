"""HTTP connections to untrusted servers. Every address is checked when it is connected to, and the size of
whatever comes back is bounded. Resolves host names with the system's resolver, which blocks a thread for
as long as an untrusted name server does not answer."""

import asyncio
import functools
import socket
import ssl
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler

from roundtrip.channels.targets import parse_address

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


MAX_THREADS = 16
MAX_THREADS_OF_ONE = 4
"""For names that share their last two labels: limits the threads that one owner's slow name server blocks."""
MAX_ADDRESSES = 8
"""Addresses of one name that are tried."""

LookUp = Callable[[str, int], list[tuple[int, str]]]
"""From host and port to address families and addresses. Raises OSError, and UnicodeError for a text that is
not a name."""


def system_look_up(host: str, port: int) -> list[tuple[int, str]]:
    """Looks a name up with the system's resolver."""
    infos: list[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(info[0], info[4][0]) for info in infos if info[0] in (socket.AF_INET, socket.AF_INET6)]


class NoTurn(OSError):
    """No thread became free for the lookup: a limit of this service, not an answer about the name."""


class Lookups(AbstractResolver):
    """Runs at most ``MAX_THREADS`` lookups at once, ``MAX_THREADS_OF_ONE`` of them for one owner's names.
    Other lookups wait for half of ``timeout_s`` at most; waiting and lookup together take ``timeout_s`` at
    most. A stuck thread counts until it ends. The threads are daemons, so none keeps the process alive."""

    def __init__(self, timeout_s: float, look_up: LookUp = system_look_up) -> None:
        self._timeout_s = timeout_s
        self._look_up = look_up
        self._turns = asyncio.Semaphore(MAX_THREADS)
        self._turns_of: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The name's IPv4 and IPv6 addresses. Raises OSError, also on a timeout, and NoTurn."""
        try:
            async with asyncio.timeout(self._timeout_s):
                addresses = await self._look_up_in_turn(host, port)
        except TimeoutError:
            raise OSError(None, "looking up the name took too long") from None
        except UnicodeError:
            raise OSError(None, "this is not a valid host name") from None
        return [
            ResolveResult(hostname=host, host=address, port=port, family=version, proto=0, flags=0)
            for version, address in addresses[:MAX_ADDRESSES]
        ]

    async def close(self) -> None:
        """Does nothing: the threads end by themselves."""

    async def _look_up_in_turn(self, host: str, port: int) -> list[tuple[int, str]]:
        owner = ".".join(host.split(".")[-2:])
        of_owner = self._turns_of.get(owner)
        if of_owner is None:
            of_owner = self._turns_of[owner] = asyncio.Semaphore(MAX_THREADS_OF_ONE)
        try:
            async with asyncio.timeout(self._timeout_s / 2):
                await of_owner.acquire()
                try:
                    await self._turns.acquire()
                except BaseException:
                    of_owner.release()
                    raise
        except TimeoutError:
            raise NoTurn(None, "too many name lookups are waiting") from None
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[tuple[int, str]]] = loop.create_future()

        def finish(result: list[tuple[int, str]] | OSError | UnicodeError) -> None:
            self._turns.release()
            of_owner.release()
            if answer.done():
                return
            if isinstance(result, list):
                answer.set_result(result)
            else:
                answer.set_exception(result)

        def run() -> None:
            result: list[tuple[int, str]] | OSError | UnicodeError
            try:
                result = self._look_up(host, port)
            except (OSError, UnicodeError) as error:
                result = error
            with suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(finish, result)

        try:
            threading.Thread(target=run, name="lookup", daemon=True).start()
        except RuntimeError as error:  # the machine allows no more threads
            finish(OSError(str(error)))
        return await answer
