"""The HTTP server's protocol with bounds: on request heads, which the parser keeps whatever comes; on how
long requests take to come and answers to go; and on connections."""

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MOST_HEAD_BYTES = 512 * 1024
"""Above what one read from a socket can bring, so that a body that comes along never counts."""
HEAD_S = 10.0
BODY_S = 10.0
_BODY_GRACE_S = 5.0
"""After ``BODY_S`` the application says so itself, where it wants the body at all."""
ANSWER_S = 10.0
"""So long a client may take none of what waits for it, some 48 KiB."""
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


class BoundedProtocol(HttpToolsProtocol):
    """Ends a connection whose request head passes the bound, whose request does not come, or whose answer is
    not taken. Of more than ``most_connections`` one that is idle makes room, else the newest is refused."""

    def __init__(self, *given: Any, most_connections: int = 2_000, **named: Any) -> None:
        super().__init__(*given, **named)
        self._most_connections = most_connections
        self._head_bytes = 0
        self._in_head = True
        self._begun = False
        self._coming: asyncio.TimerHandle | None = None
        self._going: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Makes room where there is none."""
        super().connection_made(transport)
        if len(self.connections) > self._most_connections and not self._made_room():
            self._refuse(_TOO_MANY)
            return
        self._coming = self.loop.call_later(HEAD_S, self.request_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._comes()
        self._goes()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Counts while the head is being read."""
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._refuse(_TOO_LARGE)
                return
        super().data_received(data)
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
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The next head begins."""
        self._in_head, self._head_bytes, self._begun = True, 0, False
        self._comes()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A connection that is to be closed waits for what is still to go."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_going()

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
        self._refuse(_UNREADABLE)

    def request_is_late(self) -> None:
        """What began to come did not come in time."""
        self._coming = None
        if not self._begun and not self._head_bytes:
            self.transport.close()
        elif self._in_head and not self._is_answering():
            self._refuse(_TOO_SLOW)
        else:
            self.transport.abort()

    def answer_is_late(self) -> None:
        """The client took nothing of it for long."""
        self._going = None
        self.transport.abort()

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _made_room(self) -> bool:
        for other in self.connections:
            if isinstance(other, BoundedProtocol) and other.timeout_keep_alive_task is not None:
                other.timeout_keep_alive_handler()
                return True
        return False

    def _refuse(self, refusal: bytes) -> None:
        if not self.transport.is_closing():
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
