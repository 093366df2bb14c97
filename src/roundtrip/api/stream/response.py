"""Sends one reader its events (server-sent events)."""

import asyncio
from collections.abc import Iterable, Mapping

from starlette.types import Receive, Send

from roundtrip.api.operations.operation import EVENTS
from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.api.server.responses import NO_STORE
from roundtrip.domain.verdicts.stream_position import StreamPosition, parse_position
from roundtrip.services.verdicts.news import StreamPlan

from .hub import StreamHub, StreamListener, cut_notice, encode_event

MAX_OPEN_S = 900.0
"""A stream ends after this, and its client connects again."""
_HEARTBEAT = b": still there\n"


def shown_last_event_id(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The request's Last-Event-ID as the stream's parameter; empty where it has none."""
    shown = {value.decode("latin-1") for name, value in headers if name == b"last-event-id"}
    return {"lastEventId": ",".join(sorted(shown))} if shown else {}


async def send_stream(
    hub: StreamHub,
    plan: StreamPlan,
    headers: Mapping[str, str],
    retry_ms: int,
    receive: Receive,
    send: Send,
    ending: EndlessAnswers,
    most_open_s: float = MAX_OPEN_S,
    key_hash: bytes | None = None,
) -> None:
    """Sends events until the client disconnects or reads too slowly, the server shuts down, the stream was
    open for ``most_open_s``, or the key of ``key_hash`` is revoked. The caller has reserved the stream.
    ``retry_ms``: when a disconnected browser reconnects. Raises ServiceFull (busy) before anything is
    sent."""
    listener = StreamListener(plan, key_hash)
    with ending.on_shutdown(listener.end):
        async with hub.listen(listener) as start:
            position = start if plan.after is None else parse_position(plan.after)
            missed = [] if plan.after is None else await hub.source.resume(plan, position, start)
            encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
            encoded += [(b"content-type", EVENTS.encode()), NO_STORE]
            # The connection closes with the stream, so that the client reconnects to a process that serves.
            encoded += [(b"connection", b"close"), (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": encoded})
            await send(_body(b"retry: %d\n%s" % (retry_ms, _id_line(position))))
            disconnect = asyncio.create_task(_end_on_disconnect(receive, listener))
            closing = asyncio.get_running_loop().call_later(most_open_s, listener.end)
            try:
                for event in missed:
                    if listener.wants(event):
                        await send(_body(encode_event(event)))
                await send(_body(_id_line(start)))
                await _send_events(hub, listener, start, send)
            finally:
                disconnect.cancel()
                closing.cancel()


async def _send_events(hub: StreamHub, listener: StreamListener, start: StreamPosition, send: Send) -> None:
    while listener.is_open():
        # Read before the queue: an event that comes now is not behind this position.
        position = hub.position() or start
        taken = await listener.take()
        if not taken and listener.is_open():
            taken = _HEARTBEAT + _id_line(position)
        if taken and not listener.is_cut:
            await send(_body(taken))
            start = position
    last = cut_notice(start) if listener.is_cut else b""
    await send({"type": "http.response.body", "body": last, "more_body": False})


def _id_line(position: StreamPosition) -> bytes:
    """Sets the client's last event id, without an event."""
    return b"id: %s\n\n" % str(position).encode()


def _body(body: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": True}


async def _end_on_disconnect(receive: Receive, listener: StreamListener) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    listener.end()
