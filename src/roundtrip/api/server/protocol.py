"""The HTTP server's protocol with limits on request heads (the parser has none), pipelined requests, the
time to receive a request and to send an answer, and connections. Starts the requests that have arrived,
few in each turn of the event loop, one of each caller in turn."""

import asyncio
import functools
import resource
from collections import OrderedDict, deque
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from roundtrip.api.request.callers import anonymous, parse_host
from roundtrip.domain.base.metrics import Measures

MAX_STARTS = 16
"""Requests started in one turn of the event loop: with warm answers (``WarmAnswers``) some 2 ms, for which
every other request waits."""


class FairStarts:
    """Starts the requests of each name in turn. It refuses none: a warm answer costs what a refusal costs.
    The length of a turn is fixed. ``call_soon``: calls in the next turn."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        self._call_soon = call_soon
        self._lines: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        self._started = 0
        self._is_turning = False

    def starts_now(self) -> bool:
        """Whether the request that has just arrived may be started at once; else it has to ``wait``."""
        if self._lines or self._started >= MAX_STARTS:
            return False
        self._started += 1
        self._begin_turn()
        return True

    def wait(self, caller: str, start: Callable[[], None]) -> None:
        """Calls ``start`` in a later turn."""
        self._lines.setdefault(caller, deque()).append(start)
        self._begin_turn()

    def _begin_turn(self) -> None:
        if not self._is_turning:
            self._is_turning = True
            (self._call_soon or asyncio.get_running_loop().call_soon)(self._turn)

    def _turn(self) -> None:
        self._started, self._is_turning = 0, False
        while self._lines and self._started < MAX_STARTS:
            caller, line = self._lines.popitem(last=False)
            self._started += 1
            self._begin_turn()
            line.popleft()()
            if line:
                self._lines[caller] = line


MAX_HEAD_BYTES = 512 * 1024
"""More than one read from a socket returns, so that a short head is not refused for the body in the same
read, which is counted with it."""
HEAD_S = 10.0
BODY_S = 10.0
_BODY_GRACE_S = 5.0
"""After ``BODY_S`` the application itself answers that the body is late, if it reads the body at all."""
ANSWER_S = 10.0
"""How long a client may take to drain the write buffer from over 64 KiB to 16 KiB; of a closing connection,
to 0."""
MAX_QUEUED = 8
"""Pipelined requests behind the one that is being answered, on one connection."""
_MIN_PER_NAME = 20
"""Connections that one address may always have."""
_OTHER_FILES = 200
"""Open files of the process besides client connections: database, nodes, and others."""


def _encode_refusal(status: bytes, code: bytes, message: bytes) -> bytes:
    body = b'{"error":{"code":"%s","message":"%s"}}' % (code, message)
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n"
    return head % (status, len(body)) + b"retry-after: 1\r\n" * status.startswith(b"503") + b"\r\n" + body


_TOO_LARGE = _encode_refusal(
    b"431 Request Header Fields Too Large",
    b"bad_input",
    b"The request head is too large. Send fewer or shorter headers.",
)
_TOO_SLOW = _encode_refusal(
    b"400 Bad Request", b"bad_input", b"The request did not arrive within 10 seconds."
)
_UNREADABLE = _encode_refusal(b"400 Bad Request", b"bad_input", b"This is not a valid HTTP request.")
_TOO_MANY = _encode_refusal(b"503 Service Unavailable", b"busy", b"Too many connections. Retry in 1 second.")
_QUEUED = (
    b"More than %d requests wait on this connection. Wait for answers before you send more." % MAX_QUEUED
)


class _RequestTooLong(Exception):
    """Stops the parser: nothing more is read from this connection."""


async def _answer_too_many(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that answers the first request past ``MAX_QUEUED``, when its turn comes."""
    body = b'{"error":{"code":"bad_input","message":"%s"}}' % _QUEUED
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def raise_file_limit(most_connections: int) -> int:
    """Raises this process's limit of open files for so many connections; returns how many it allows."""
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
    """The open connections: at most ``most``, and from one address at most a tenth of that, or 20 if that is
    more (proxies: no limit of their own, as they carry many clients). At a limit, an idle connection is
    closed for the new one, else the one whose request is awaited longest, else the new one is refused.
    ``drains``: whether an operator asked this process to drain. ``pause_s``: for how long an address's new
    connections are not read."""

    drains: Callable[[], bool] = staticmethod(lambda: False)
    pause_s: Callable[[str | None], float] = staticmethod(lambda host: 0.0)

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
        self._most_per_name = max(_MIN_PER_NAME, most // 10)
        self._proxies = proxies
        self._names: dict[BoundedProtocol, str] = {}
        self._by_name: dict[str, dict[BoundedProtocol, None]] = {}
        self._idle: dict[BoundedProtocol, None] = {}
        self._awaited: dict[BoundedProtocol, None] = {}
        self.closing = False
        """Whether this process ends."""

    def close_each(self) -> bool:
        """Whether each answer closes its connection: this process ends or drains."""
        return self.closing or self.drains()

    def enter(self, connection: "BoundedProtocol", host: str | None) -> bool:
        """Registers a connection, closing another for it if needed. Returns False: there is no place."""
        name = anonymous(host)
        same_name = self._by_name.get(name, {})
        if (
            len(same_name) >= self._most_per_name
            and not self._is_proxy(host)
            and not self._make_room_for_new(same_name)
        ):
            return False
        if len(self._names) >= self._most and not self._make_room_for_new():
            return False
        self._names[connection] = name
        self._by_name.setdefault(name, {})[connection] = None
        self._awaited[connection] = None
        return True

    def count_refused(self, why: str) -> None:
        """Counts a connection that this server closed before reading its request."""
        self._measures.count("refused_connections", why)

    def leave(self, connection: "BoundedProtocol") -> None:
        """Unregisters a connection. One that is about to be closed leaves first, so that it is not chosen
        twice."""
        name = self._names.pop(connection, None)
        if name is None:
            return
        self.update(connection, answering=True, idle=False)
        del self._by_name[name][connection]
        if not self._by_name[name]:
            del self._by_name[name]

    def update(self, connection: "BoundedProtocol", answering: bool, idle: bool) -> None:
        """Sets a connection's state: ``answering``, ``idle`` between two requests, else awaiting a
        request."""
        if answering or idle or connection not in self._names:
            self._awaited.pop(connection, None)
        else:
            self._awaited.setdefault(connection)
        if idle and not answering and connection in self._names:
            self._idle.setdefault(connection)
        else:
            self._idle.pop(connection, None)

    def _is_proxy(self, host: str | None) -> bool:
        address = parse_host(host)
        return address is not None and any(address in network for network in self._proxies)

    def _make_room_for_new(self, among: "dict[BoundedProtocol, None] | None" = None) -> bool:
        for candidates in (self._idle, self._awaited):
            searched = candidates if among is None else among
            victim = next((connection for connection in searched if connection in candidates), None)
            if victim is not None:
                self.leave(victim)
                victim.make_room()
                return True
        return False


class _PausedFlow(FlowControl):
    """Flow control that does not resume reading while pipelined requests wait."""

    def __init__(self, transport: asyncio.Transport, pipeline: Any) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        """Resumes reading if no request waits. The application calls this with each answer."""
        if not self._pipeline:
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection if its request head is too large, its request is late, it pipelines too many
    requests, its client does not read the answer, or it has no place in ``places``. A connection of an
    address that was told to come later is not read until then. ``starts``: starts the requests. ``name``:
    names the caller of a request."""

    def __init__(
        self,
        *args: Any,
        places: ConnectionPlaces,
        starts: FairStarts,
        name: Callable[[Any], str],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._places = places
        self._starts = starts
        self._name = name
        self._head_bytes = 0
        self._in_head = True
        self._started = False
        self._overrun = False
        self._request_timer: asyncio.TimerHandle | None = None
        self._answer_timer: asyncio.TimerHandle | None = None
        self._pause_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes a place, or refuses the connection."""
        super().connection_made(transport)
        self.flow = _PausedFlow(transport, self.pipeline)
        host = self.client[0] if self.client else None
        if not self._places.enter(self, host):
            self._refuse(_TOO_MANY, "many")
            return
        self._request_timer = self.loop.call_later(HEAD_S, self.request_is_late)
        if pause_s := self._places.pause_s(host):
            # The event loop starts to read after this call.
            self.loop.call_soon(self.flow.pause_reading)
            self._pause_timer = self.loop.call_later(pause_s, self.flow.resume_reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives up its place and cancels the timers."""
        self._places.leave(self)
        self._cancel_request_timer()
        self._cancel_answer_timer()
        if self._pause_timer is not None:
            self._pause_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Counts the bytes of the head, and starts the request's timer."""
        if self._overrun:
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(_TOO_LARGE, "large")
                return
        super().data_received(data)
        self._update_place()
        # A request that arrived whole, as most do, costs no timer.
        if self._request_timer is None and (self._started or self._head_bytes):
            wait_s = HEAD_S if self._in_head else BODY_S + _BODY_GRACE_S
            self._request_timer = self.loop.call_later(wait_s, self.request_is_late)

    def on_message_begin(self) -> None:
        """A head starts; a pipelined one may arrive in the same read as the request before it."""
        self._started = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is complete: refuses a request past ``MAX_QUEUED``."""
        self._in_head = False
        self._cancel_request_timer()
        if len(self.pipeline) >= MAX_QUEUED:
            self._overrun, self.app = True, _answer_too_many
            super().on_headers_complete()
            self.on_message_complete()
            raise _RequestTooLong
        super().on_headers_complete()
        if self._places.close_each():
            self.cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """The request's turn on this connection has come. The library calls this."""
        if self._starts.starts_now():
            super()._start_asgi_task(cycle, app)
        else:
            self._starts.wait(self._name(cycle.scope), functools.partial(self._start_waiting, cycle, app))

    def _start_waiting(self, cycle: RequestResponseCycle, app: Any) -> None:
        if not cycle.disconnected:
            super()._start_asgi_task(cycle, app)

    def on_message_complete(self) -> None:
        """The request is complete: the next head may start."""
        self._in_head, self._head_bytes, self._started = True, 0, False
        self._cancel_request_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is written: a closing connection is given ``ANSWER_S`` to send it."""
        super().on_response_complete()
        self._update_place()
        if self.transport.is_closing():
            self._watch_answer()

    def close_after(self) -> None:
        """Closes the connection after the answer to the last request received so far. If that answer's head
        is already sent, the client may have sent another request by now, whose answer will close it
        instead."""
        last: RequestResponseCycle | None = self.cycle
        if last is not None and not last.response_started:
            last.keep_alive = False

    def shutdown(self) -> None:
        """Closes an idle connection, and a busy one after its answer. Waits for a request that has
        started."""
        if not self._started or self._is_answering():
            super().shutdown()

    def pause_writing(self) -> None:
        """The client reads more slowly than the answer is written."""
        super().pause_writing()
        self._watch_answer()

    def resume_writing(self) -> None:
        """The client has read enough."""
        self._cancel_answer_timer()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """The connection was idle too long: aborts it if the client has not read the last answer."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Answers data that is not HTTP with the error shape of every error."""
        if not self._overrun:
            self._refuse(_UNREADABLE, "unreadable")

    def request_is_late(self) -> None:
        """The request did not arrive in time."""
        self._request_timer = None
        if not self._started and not self._head_bytes:
            self.transport.close()
        elif self._in_head and not self._is_answering():
            self._refuse(_TOO_SLOW, "slow")
        else:
            self.transport.abort()

    def answer_is_late(self) -> None:
        """The client did not read the answer in time."""
        self._answer_timer = None
        self.transport.abort()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def make_room(self) -> None:
        """Closes this connection, because another one needs its place."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        elif self.timeout_keep_alive_task is not None:
            self.transport.close()
        else:
            self._refuse(_TOO_MANY, "many")

    def _update_place(self) -> None:
        self._places.update(self, self._is_answering(), self.timeout_keep_alive_task is not None)

    def _refuse(self, refusal: bytes, why: str) -> None:
        if not self.transport.is_closing():
            self._places.count_refused(why)
            self.transport.write(refusal)
            self.transport.close()
            self._watch_answer()

    def _watch_answer(self) -> None:
        if self._answer_timer is None:
            self._answer_timer = self.loop.call_later(ANSWER_S, self.answer_is_late)

    def _cancel_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _cancel_answer_timer(self) -> None:
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None
