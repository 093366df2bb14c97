"""How a check is made: its steps as a stream, while a person waits for it, and its exact requests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import msgspec
from starlette.responses import Response, StreamingResponse

from roundtrip.api.dispatch import error_reply
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.console.support.live_stream import encode_event
from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.check.proof import ProofRequestsParams, proof_requests
from roundtrip.services.check.schema import CheckParams

from .token import find_check, read_check_params

_REQUESTS = page_operation(proof_requests, bad_params="bad_address")
_EVERY_S = 0.1
"""How often new steps are sent."""


async def stream_steps(visit: Visit) -> Response:
    """GET /token/{address}/steps: runs the deep check, and sends each step that is done. At the end, or at an
    error, the page loads as usual: the answer is shared, an error is shown there. Errors before are JSON."""
    params = msgspec.structs.replace(read_check_params(visit), deep="1")
    try:
        key, row = params.shared_as(), find_check(params)
        if visit.is_head():
            return Response(media_type="text/event-stream")
        console = visit.console
        name = visit.caller_name()
        with contextlib.ExitStack() as stack:
            stack.enter_context(console.live.reserve_stream(name))
            reserved = stack.pop_all()
    except RoundtripError as error:
        reply = error_reply(error)
        return Response(reply.body, reply.status, dict(reply.headers), media_type="application/json")
    own_visit = replace(visit, view=None, is_free=True)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        _send_steps(own_visit, row, params, key, reserved), headers=headers, media_type="text/event-stream"
    )


async def _send_steps(
    visit: Visit, row: AnyOperation, params: CheckParams, key: str, reserved: contextlib.ExitStack
) -> AsyncIterator[bytes]:
    steps = visit.console.dispatch.ctx.steps
    with reserved:
        check = asyncio.create_task(visit.ask(row, params))
        try:
            sent, found, is_done = 0, None, False
            while not is_done:
                await asyncio.wait([check], timeout=_EVERY_S)
                is_done = check.done()
                found = found if found is not None else steps.find(key)
                if fresh := (found or ())[sent:]:
                    sent += len(fresh)
                    yield encode_event("step", "\n".join(fresh))
            # Its error is retrieved: the page that follows shows it.
            check.exception()
            yield encode_event("end", "")
        finally:
            # A visitor who leaves earlier has caused a whole check, so that view stays counted.
            if check.done():
                visit.settle()
            check.cancel()


async def show_request(visit: Visit) -> Response:
    """GET /token/{address}/request: the requests in which ``wallet`` traded last ``after`` seconds after
    its first trade or after the block."""
    address, wallet, after = visit.address, visit.query.get("wallet"), visit.query.get("after", "0")
    seconds = int(after) if after.isdecimal() and len(after) < 8 else 0
    found = await visit.ask(_REQUESTS, ProofRequestsParams(address, wallet, seconds)) if wallet else None
    return visit.show("token_request.html", address=address, wallet=wallet, found=found)
