"""Sends one POST to an untrusted server, whose answer may be anything and may come at any time."""

import asyncio
import email.utils
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from roundtrip.channels.connect import AnswerTooLarge, Lookups, NotGlobal, NoTurn, open_session
from roundtrip.channels.targets import Target, is_global

TIMEOUT_S = 10.0
MAX_READ = 16 * 1024
"""Bytes of an answer's body that are read."""

_SECONDS = re.compile(r"[0-9]{1,9}")


class PostNotTried(Exception):
    """Nothing was sent, because of a limit of this service; the text says which."""


@dataclass(frozen=True, slots=True)
class PostReply:
    """``status`` None: there was no answer; ``error`` is then a fixed text that says why. ``retry_after_s``:
    from the answer, at least 0; None: it names none. ``read``: the beginning of the answer's body."""

    status: int | None
    error: str | None
    retry_after_s: float | None
    took_ms: int
    read: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return self.status is not None and 200 <= self.status < 300


def retry_after_s(text: str | None, now_s: float) -> float | None:
    """The wait of a Retry-After header, which holds seconds or an HTTP date; None if it cannot be read."""
    if text is None:
        return None
    if _SECONDS.fullmatch(text.strip()) is not None:
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


class Poster:
    """A context manager that owns its connections, one a POST. The caller bounds the number of concurrent
    POSTs. ``loopback``: as in ``targets.parse_target``. ``now_s``: seconds since 1970. ``resolver`` None: the
    system's resolver, with ``Lookups``."""

    def __init__(
        self,
        loopback: frozenset[str] = frozenset(),
        timeout_s: float = TIMEOUT_S,
        now_s: Callable[[], float] = time.time,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self.loopback = loopback
        self._timeout_s = timeout_s
        self._now_s = now_s
        self._resolver = resolver
        self._internet: aiohttp.ClientSession | None = None
        self._loopback: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Poster":
        resolver = self._resolver or Lookups(self._timeout_s)
        # In a thread: loading the certificates would block the event loop.
        trust = await asyncio.to_thread(ssl.create_default_context)
        self._internet = open_session(resolver, trust, lambda address, port: is_global(address))
        ports = {int(host.rpartition(":")[2]) for host in self.loopback}
        if ports:
            self._loopback = open_session(
                resolver, trust, lambda address, port: address.is_loopback and port in ports
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        for opened in (self._internet, self._loopback):
            if opened is not None:
                await opened.close()
        self._internet = self._loopback = None

    async def post(
        self,
        to: Target,
        body: bytes,
        headers: Mapping[str, str],
        most_read: int = MAX_READ,
        timeout_s: float | None = None,
    ) -> PostReply:
        """Sends one POST. Never raises for what the server does; raises PostNotTried for a limit of this
        service. Follows no redirect, and checks the address at every connect. ``timeout_s``: for the whole
        exchange; None: this poster's timeout."""
        http = self._loopback if f"{to.host}:{to.port}" in self.loopback else self._internet
        if http is None:
            raise RuntimeError("the poster must be entered before it posts")
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        began_s = time.perf_counter()
        try:
            reply = await self._send(http, to, body, headers, most_read, limit_s)
        except aiohttp.ClientConnectorDNSError as error:
            if isinstance(error.os_error, NoTurn):
                raise PostNotTried("too many name lookups are waiting") from None
            reply = PostReply(None, _why(error, limit_s), None, 0)
        except Exception as error:  # an untrusted answer may cause any error: it counts as no answer
            reply = PostReply(None, _why(error, limit_s), None, 0)
        return replace(reply, took_ms=round((time.perf_counter() - began_s) * 1000))

    async def _send(
        self,
        http: aiohttp.ClientSession,
        to: Target,
        body: bytes,
        headers: Mapping[str, str],
        most_read: int,
        limit_s: float,
    ) -> PostReply:
        answer: aiohttp.ClientResponse | None = None
        read = bytearray()
        try:
            async with asyncio.timeout(limit_s):
                answer = await http.post(
                    URL(to.url, encoded=True), data=body, headers=headers, allow_redirects=False
                )
                while len(read) < most_read and (part := await answer.content.read(most_read - len(read))):
                    read += part
        except Exception:
            # Once there is a status, an error in the body does not change the result.
            if answer is None:
                raise
        finally:
            if answer is not None:
                _hang_up(answer)
        wait_s = retry_after_s(answer.headers.get("retry-after"), self._now_s())
        return PostReply(answer.status, None, wait_s, 0, bytes(read))


def _hang_up(answer: aiohttp.ClientResponse) -> None:
    """Closes the connection at once, without reading the rest or a TLS shutdown."""
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    answer.close()


def _why(error: Exception, limit_s: float) -> str:
    """A fixed text for the error: it never contains text from the server, or the url with its secrets."""
    if isinstance(error, TimeoutError):
        return f"no answer within {limit_s:g} s"
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, NotGlobal):
        return "the host's address is not on the public internet"
    return next((text for kind, text in _ERROR_TEXTS if isinstance(error, kind)), "the answer is not HTTP")


_ERROR_TEXTS: tuple[tuple[type[Exception], str], ...] = (
    (AnswerTooLarge, "the answer is too large"),
    (aiohttp.ClientConnectorDNSError, "the host name has no address"),
    (aiohttp.ClientConnectorCertificateError, "the TLS certificate is not valid for this host"),
    (aiohttp.ClientSSLError, "the TLS handshake failed"),
    (aiohttp.ClientConnectorError, "the connection failed"),
    (aiohttp.ServerDisconnectedError, "the host closed the connection without an answer"),
    (aiohttp.ClientOSError, "the connection broke before an answer"),
)
"""The first class that matches gives the text."""
