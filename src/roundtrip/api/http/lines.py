"""Sends the answers of many runs as lines (NDJSON), in the order in which they are ready.

``WarmAnswers`` answers GET requests whose answer is shared already, in one step: no routing, no parameters,
no encoding. What a caller sees, what is counted and what is measured is as on the way through the routes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from starlette.types import Receive, Scope, Send

from roundtrip.api.admission.gate import CallRefused
from roundtrip.api.dispatch import Dispatch, DoorReply, error_reply, limit_headers, read_params, render_error
from roundtrip.api.operations.operation import LINES, AnyOperation
from roundtrip.api.request import min_block
from roundtrip.api.request.callers import Callers, keyless
from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.api.server.responses import CORS, NO_STORE, WORTH_COMPRESSING_BYTES, accepts_gzip, send_reply
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


PATH_FORM, GZIP_FORM = "http", "http gzip"
"""Encodings of a shared answer that are cached with it."""
_MAX_PATHS = 10_000
_MAX_NAME_BYTES = 256
"""Paths and queries that are longer take the way through the routes."""
_KEY_HEADERS = frozenset((b"authorization", b"x-api-key"))
_HEADERS = frozenset((*_KEY_HEADERS, b"accept-encoding", min_block.HEADER))
_TYPE = (b"content-type", b"application/json")
_CODING, _VARY = (b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")
_HIT = (b"x-cache", b"hit")


@dataclass(slots=True)
class WarmAnswers:
    """Remembers which shared answer a path asks for, and sends it while it is fresh."""

    dispatch: Dispatch
    callers: Callers
    _paths: dict[tuple[str, bytes], tuple[AnyOperation, str]] = field(default_factory=dict)
    """By path and query string: the operation, and the key that its answer is shared under."""

    def remember(self, operation: AnyOperation, scope: Scope, query: Mapping[str, str]) -> None:
        """Remembers a request whose answer was shared, and is the same for every request of this path and
        query."""
        path, query_string = scope["path"], scope.get("query_string", b"")
        if operation.shared_by is None or len(path) + len(query_string) > _MAX_NAME_BYTES:
            return
        if (path, query_string) in self._paths:
            return
        if len(self._paths) >= _MAX_PATHS:
            del self._paths[next(iter(self._paths))]
        key = f"{operation.name}:{operation.shared_by(read_params(operation, scope['path_params'], query))}"
        self._paths[path, query_string] = operation, key

    async def answer(
        self, scope: Scope, send: Send, send_refusal: Send, last_headers: tuple[tuple[bytes, bytes], ...]
    ) -> bool:
        """Answers the request, if its answer is shared; False: nothing was done. ``last_headers``: further
        headers of the answer, which ``send_refusal`` adds itself."""
        warm = self._paths.get((scope["path"], scope.get("query_string", b"")))
        if warm is None or scope["method"] != "GET":
            return False
        dispatch, (operation, key) = self.dispatch, warm
        shared = dispatch.shared.find_fresh(key)
        if shared is None or shared.is_absence or dispatch.ctx.measures.traces is not None:
            return False
        shown = {name for name, _ in scope["headers"] if name in _HEADERS}
        if min_block.HEADER in shown:
            return False
        body = shared.body if operation.path_answer is None else shared.forms.get(PATH_FORM)
        is_large, is_gzip = body is not None and len(body) > WORTH_COMPRESSING_BYTES, False
        if is_large and b"accept-encoding" in shown and accepts_gzip(scope["headers"]):
            body, is_gzip = shared.forms.get(GZIP_FORM), True
        if body is None:
            return False
        if not _KEY_HEADERS.isdisjoint(shown):
            caller = self.callers.identify(scope["headers"], scope.get("client"))
        else:
            caller = keyless(self.callers.host(scope["headers"], scope.get("client")))
        try:
            ticket = await dispatch.run_shared(operation, shared, caller)
        except CallRefused as refused:
            reply = render_error(refused.error, limit_headers(refused.ticket))
            await send_reply(reply, send_refusal, cors=True)
            return True
        all_headers = [_TYPE, (b"content-length", b"%d" % len(body)), NO_STORE]
        if ticket is not None:
            all_headers.append((b"x-ratelimit-limit", b"%d" % ticket.limit))
            all_headers.append((b"x-ratelimit-remaining", b"%d" % max(0, ticket.remaining)))
        all_headers.append(_HIT)
        if is_large:
            all_headers.append(_VARY)
        if is_gzip:
            all_headers.append(_CODING)
        all_headers += CORS
        all_headers += last_headers
        dispatch.ctx.measures.count("answers", "2xx")
        await send({"type": "http.response.start", "status": 200, "headers": all_headers})
        await send({"type": "http.response.body", "body": body})
        return True
