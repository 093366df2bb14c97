"""The HTTP server's protocol with bounds: on request heads, which the parser keeps whatever comes; on how
many requests wait behind each other; on how long requests take to come and answers to go; on connections."""

import asyncio
import resource
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from roundtrip.api.request.callers import anonymous, parse_host
from roundtrip.domain.base.metrics import Measures

MOST_HEAD_BYTES = 512 * 1024
"""Above what one read from a socket can bring, so that a body that comes along never counts."""
HEAD_S = 10.0
BODY_S = 10.0
_BODY_GRACE_S = 5.0
"""After ``BODY_S`` the application says so itself, where it wants the body at all."""
ANSWER_S = 10.0
"""For what waits for a client to fall from over 64 KiB to 16; of a connection that is to be closed, to
nothing."""
MOST_QUEUED = 8
"""Requests behind the one that is being answered, on one connection."""
_LEAST_OF_ONE = 20
"""So many connections an address may always have."""
_OTHER_FILES = 200
"""Of the process: database, nodes, and what else."""


def _refusal(status: bytes, code: bytes, message: bytes) -> bytes:
    body = b'{"error":{"code":"%s","message":"%s"}}' % (code, message)
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n"
    return head % (status, len(body)) + b"retry-after: 1\r\n" * status.startswith(b"503") + b"\r\n" + body


_TOO_LARGE = _refusal(
    b"431 Request Header Fields Too Large", b"bad_input", b"The request has too many headers."
)
_TOO_SLOW = _refusal(b"400 Bad Request", b"bad_input", b"The request did not come within 10 seconds.")
_UNREADABLE = _refusal(b"400 Bad Request", b"bad_input", b"This is no HTTP request.")
_TOO_MANY = _refusal(b"503 Service Unavailable", b"busy", b"Too many connections; try again in a moment.")
_QUEUED = b"More than %d requests wait on this connection." % MOST_QUEUED


class _RequestTooLong(Exception):
    """Stops the parser: nothing more is read of this connection."""


async def _refuses_more(scope: Any, receive: Any, send: Any) -> None:
    """Answers the request that was one too many, when its turn comes."""
    body = b'{"error":{"code":"bad_input","message":"%s"}}' % _QUEUED
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def spare_files(most_connections: int) -> int:
    """Lets this process open as many files as so many connections take; how many connections that allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most_connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return (
        most_connections
        if soft == resource.RLIM_INFINITY
        else max(1, min(most_connections, soft - _OTHER_FILES))
    )


class ConnectionPlaces:
    """Who is connected. Of more than ``most`` connections, and of more than a tenth of that from one address,
    one that is idle makes room, else the one whose request has been awaited longest, else the newest is
    refused. ``proxies`` stand for many: for them only ``most`` counts. ``measures``: where it is told."""

    def __init__(
        self,
        most: int = 2_000,
        proxies: tuple[IPv4Network | IPv6Network, ...] = (),
        measures: Measures | None = None,
    ) -> None:
        self._most = most
        self._measures = measures or Measures()
        self._measures.watch("connections", "open", lambda: len(self._names))
        self._measures.watch("connections", "idle", lambda: len(self._idle))
        self._measures.watch("connections", "most", lambda: self._most)
        self._most_of_one = max(_LEAST_OF_ONE, most // 10)
        self._proxies = proxies
        self._names: dict[BoundedProtocol, str] = {}
        self._of_one: dict[str, dict[BoundedProtocol, None]] = {}
        self._idle: dict[BoundedProtocol, None] = {}
        self._awaited: dict[BoundedProtocol, None] = {}
        self.closing = False
        """Whether every answer from now on is its connection's last."""

    def enter(self, one: "BoundedProtocol", host: str | None) -> bool:
        """Whether there is a place for it, or could be made."""
        name = anonymous(host)
        of_one = self._of_one.get(name, {})
        if len(of_one) >= self._most_of_one and not self._is_proxy(host) and not self._made_room(of_one):
            return False
        if len(self._names) >= self._most and not self._made_room():
            return False
        self._names[one] = name
        self._of_one.setdefault(name, {})[one] = None
        self._awaited[one] = None
        return True

    def count_refused(self, why: str) -> None:
        """A connection was ended by us before its request was read."""
        self._measures.count("refused_connections", why)

    def leave(self, one: "BoundedProtocol") -> None:
        """It counts no more; also one that has still to be closed, so that it does not make room twice."""
        name = self._names.pop(one, None)
        if name is None:
            return
        self.settle(one, answering=True, idle=False)
        del self._of_one[name][one]
        if not self._of_one[name]:
            del self._of_one[name]

    def settle(self, one: "BoundedProtocol", answering: bool, idle: bool) -> None:
        """What it does now: ``answering``, ``idle`` between two requests, else its request is awaited."""
        if answering or idle or one not in self._names:
            self._awaited.pop(one, None)
        else:
            self._awaited.setdefault(one)
        if idle and not answering and one in self._names:
            self._idle.setdefault(one)
        else:
            self._idle.pop(one, None)

    def _is_proxy(self, host: str | None) -> bool:
        address = parse_host(host)
        return address is not None and any(address in network for network in self._proxies)

    def _made_room(self, among: "dict[BoundedProtocol, None] | None" = None) -> bool:
        for those in (self._idle, self._awaited):
            found = next((one for one in (those if among is None else among) if one in those), None)
            if found is not None:
                self.leave(found)
                found.make_room()
                return True
        return False


class _PausedFlow(FlowControl):
    """Reads nothing while requests wait: the application resumes reading with each answer."""

    def __init__(self, transport: asyncio.Transport, pipeline: Any) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """Once nothing waits."""
        if not self._pipeline:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """Ends a connection whose request head passes the bound, whose request does not come, behind which too
    many wait, whose answer is not taken, or for which there is no place in ``places``."""

    def __init__(self, *given: Any, places: ConnectionPlaces, **named: Any) -> None:
        super().__init__(*given, **named)
        self._places = places
        self._head_bytes = 0
        self._in_head = True
        self._begun = False
        self._overrun = False
        self._coming: asyncio.TimerHandle | None = None
        self._going: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Makes room where there is none."""
        super().connection_made(transport)
        self.flow = _PausedFlow(transport, self.pipeline)
        if not self._places.enter(self, self.client[0] if self.client else None):
            self._refuse(_TOO_MANY, "many")
            return
        self._coming = self.loop.call_later(HEAD_S, self.request_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._places.leave(self)
        self._comes()
        self._goes()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Counts while the head is being read."""
        if self._overrun:
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._refuse(_TOO_LARGE, "large")
                return
        super().data_received(data)
        self._settle()
        # A request that came whole, as most do, costs no timer.
        if self._coming is None and (self._begun or self._head_bytes):
            wait_s = HEAD_S if self._in_head else BODY_S + _BODY_GRACE_S
            self._coming = self.loop.call_later(wait_s, self.request_is_late)

    def on_message_begin(self) -> None:
        """A head begins; behind another request it may come with the same data."""
        self._begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is over."""
        self._in_head = False
        self._comes()
        if len(self.pipeline) >= MOST_QUEUED:
            self._overrun, self.app = True, _refuses_more
            super().on_headers_complete()
            self.on_message_complete()
            raise _RequestTooLong
        super().on_headers_complete()
        if self._places.closing:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """The next head begins."""
        self._in_head, self._head_bytes, self._begun = True, 0, False
        self._comes()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A connection that is to be closed waits for what is still to go."""
        super().on_response_complete()
        self._settle()
        if self.transport.is_closing():
            self._watch_going()

    def close_after(self) -> None:
        """The last request that came so far is told that the connection closes behind its answer. One whose
        head of an answer went is not: its client may have sent the next by now, which is told so."""
        last: RequestResponseCycle | None = self.cycle
        if last is not None and not last.response_started:
            last.keep_alive = False

    def shutdown(self) -> None:
        """Closes what is idle, else with the answer. A request that began to come is waited for."""
        if not self._begun or self._is_answering():
            super().shutdown()

    def pause_writing(self) -> None:
        """The client takes less than it is given."""
        super().pause_writing()
        self._watch_going()

    def resume_writing(self) -> None:
        """It took some."""
        self._goes()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Idle for long: what it did not take by now it will not take."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP has the shape of every error."""
        if not self._overrun:
            self._refuse(_UNREADABLE, "unreadable")

    def request_is_late(self) -> None:
        """What began to come did not come in time."""
        self._coming = None
        if not self._begun and not self._head_bytes:
            self.transport.close()
        elif self._in_head and not self._is_answering():
            self._refuse(_TOO_SLOW, "slow")
        else:
            self.transport.abort()

    def answer_is_late(self) -> None:
        """The client took nothing of it for long."""
        self._going = None
        self.transport.abort()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def make_room(self) -> None:
        """Another one needs the place."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        elif self.timeout_keep_alive_task is not None:
            self.transport.close()
        else:
            self._refuse(_TOO_MANY, "many")

    def _settle(self) -> None:
        self._places.settle(self, self._is_answering(), self.timeout_keep_alive_task is not None)

    def _refuse(self, refusal: bytes, why: str) -> None:
        if not self.transport.is_closing():
            self._places.count_refused(why)
            self.transport.write(refusal)
            self.transport.close()
            self._watch_going()

    def _watch_going(self) -> None:
        if self._going is None:
            self._going = self.loop.call_later(ANSWER_S, self.answer_is_late)

    def _comes(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            self._coming = None

    def _goes(self) -> None:
        if self._going is not None:
            self._going.cancel()
            self._going = None
