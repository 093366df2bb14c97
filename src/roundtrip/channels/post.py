"""One POST to a stranger's server, which may answer what and when it likes."""

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

from .address_policy import is_global
from .connect import AnswerTooLarge, NotGlobal, session
from .dns import Lookups, NoTurn
from .targets import Target

TIMEOUT_S = 10.0
MOST_READ = 16 * 1024

_SECONDS = re.compile(r"[0-9]{1,9}")


class PostNotTried(Exception):
    """Nothing was sent, for a reason of ours; the text says it."""


@dataclass(frozen=True, slots=True)
class PostReply:
    """``status`` None: there was no answer, and ``error`` says why in words of ours. ``retry_after_s``: as
    the answer wishes, at least 0. ``read``: the beginning of the answer's body."""

    status: int | None
    error: str | None
    retry_after_s: float | None
    took_ms: int
    read: bytes = b""

    @property
    def ok(self) -> bool:
        """Only 2xx is success."""
        return self.status is not None and 200 <= self.status < 300


def retry_after_s(text: str | None, now_s: float) -> float | None:
    """What a Retry-After header says: seconds, or a date as HTTP writes it. None: nothing to be read."""
    if text is None:
        return None
    if _SECONDS.fullmatch(text.strip()) is not None:
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


class Poster:
    """``loopback``: as in ``targets.target``. A context manager: it owns its connections, one a POST. How
    many go at once is the caller's matter. ``now_s``: seconds since 1970. ``resolver``: who is asked for
    addresses; None: the system, by ``Lookups``."""

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
        self._out: aiohttp.ClientSession | None = None
        self._here: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Poster":
        resolver = self._resolver or Lookups(self._timeout_s)
        # It loads the certificates: not while others wait for the loop.
        trust = await asyncio.to_thread(ssl.create_default_context)
        self._out = session(resolver, trust, lambda address, port: is_global(address))
        ports = {int(at.rpartition(":")[2]) for at in self.loopback}
        if ports:
            self._here = session(resolver, trust, lambda address, port: address.is_loopback and port in ports)
        return self

    async def __aexit__(self, *_: object) -> None:
        for opened in (self._out, self._here):
            if opened is not None:
                await opened.close()
        self._out = self._here = None

    async def post(
        self,
        to: Target,
        body: bytes,
        headers: Mapping[str, str],
        most_read: int = MOST_READ,
        timeout_s: float | None = None,
    ) -> PostReply:
        """Never raises for what the other side does; NotTried for what is ours. No redirect is followed; the
        address really connected to is looked at, at every connect. ``timeout_s``: over everything; None: this
        poster's own."""
        asked = self._here if f"{to.host}:{to.port}" in self.loopback else self._out
        if asked is None:
            raise RuntimeError("a poster is entered before it posts")
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        began = time.perf_counter()
        try:
            reply = await self._send(asked, to, body, headers, most_read, limit_s)
        except aiohttp.ClientConnectorDNSError as error:
            if isinstance(error.os_error, NoTurn):
                raise PostNotTried("there was no turn to look the name up") from None
            reply = PostReply(None, _why(error, limit_s), None, 0)
        except Exception as error:  # a stranger's answer is behind it: whatever it broke, it is no answer
            reply = PostReply(None, _why(error, limit_s), None, 0)
        return replace(reply, took_ms=round((time.perf_counter() - began) * 1000))

    async def _send(
        self,
        asked: aiohttp.ClientSession,
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
                answer = await asked.post(
                    URL(to.url, encoded=True), data=body, headers=headers, allow_redirects=False
                )
                while len(read) < most_read and (part := await answer.content.read(most_read - len(read))):
                    read += part
        except Exception:
            # Once there is a status, what becomes of the body changes nothing about it.
            if answer is None:
                raise
        finally:
            if answer is not None:
                _hang_up(answer)
        wished_s = retry_after_s(answer.headers.get("retry-after"), self._now_s())
        return PostReply(answer.status, None, wished_s, 0, bytes(read))


def _hang_up(answer: aiohttp.ClientResponse) -> None:
    """At once, though there may be more to come, and whether or not the other side agrees."""
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    answer.close()


def _why(error: Exception, limit_s: float) -> str:
    """In words of ours: a stranger's text, and the url with its secrets, stay out."""
    if isinstance(error, TimeoutError):
        return f"no answer within {limit_s:g} s"
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, NotGlobal):
        return "its address is not one of the internet"
    return next((said for kind, said in _SAID if isinstance(error, kind)), "its answer is not HTTP")


_SAID: tuple[tuple[type[Exception], str], ...] = (
    (AnswerTooLarge, "it answered too much"),
    (aiohttp.ClientConnectorDNSError, "its name leads to no address"),
    (aiohttp.ClientConnectorCertificateError, "its certificate is not one to trust for that host"),
    (aiohttp.ClientSSLError, "no TLS could be agreed with it"),
    (aiohttp.ClientConnectorError, "it could not be connected to"),
    (aiohttp.ServerDisconnectedError, "it hung up without an answer"),
    (aiohttp.ClientOSError, "the connection broke before an answer"),
)
"""The first that fits."""
