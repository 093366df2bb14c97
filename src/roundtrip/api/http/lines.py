"""Answers of many runs as lines (NDJSON), in the order in which they are ready."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from starlette.types import Receive, Send

from roundtrip.api.dispatch import DoorReply, error_reply
from roundtrip.api.operations.operation import LINES
from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.api.server.responses import NO_STORE
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.services.verdicts.history import LineError

AT_ONCE = 4
"""Runs of one request at a time: fewer than one caller may have, so that its other requests have room."""
_RESTARTING = ServiceFull("busy", "The service is restarting. Ask for this address again.", 1)

RunOne = Callable[[str], Awaitable[DoorReply]]
"""Runs the operation for one address. Never raises."""


def encode_line(address: str, reply: DoorReply) -> bytes:
    """One line: the address with its answer, or with its error."""
    error = None
    if reply.error is not None:
        error = LineError(reply.error.code, reply.error.message, reply.error.retry_after_s)
    check = None if error is not None else msgspec.Raw(reply.body)
    return msgspec.json.encode({"address": address, "check": check, "error": error}) + b"\n"


async def send_lines(
    addresses: Sequence[str],
    headers: Mapping[str, str],
    run: RunOne,
    receive: Receive,
    send: Send,
    ending: EndlessAnswers,
    media_type: str = LINES,
) -> None:
    """Sends a line for each address. Where the client disconnects, no further run starts. While the service
    shuts down, addresses that have not started get an error that says so, and do not count."""
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    encoded += [(b"content-type", media_type.encode()), NO_STORE, (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": encoded})
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    waiting = iter(addresses)
    is_ending = False

    def end() -> None:
        nonlocal is_ending
        is_ending = True

    async def work() -> None:
        for address in waiting:
            reply = error_reply(_RESTARTING) if is_ending else await run(address)
            lines.put_nowait(encode_line(address, reply))

    async def work_all() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(work())
        finally:
            lines.put_nowait(None)

    working = asyncio.create_task(work_all())
    leaving = asyncio.create_task(_cancel_on_disconnect(receive, working))
    try:
        with ending.on_shutdown(end):
            while (line := await lines.get()) is not None:
                await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _cancel_on_disconnect(receive: Receive, working: asyncio.Task[None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    working.cancel()
