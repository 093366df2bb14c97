"""Streams of live boards."""

import contextlib
from collections.abc import Mapping

from starlette.responses import Response

from roundtrip.api.dispatch import error_reply
from roundtrip.api.server.drain import ENDING, EndlessAnswers
from roundtrip.console.support.live_stream import LiveResponse
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError

from .boards import BoardPage, find_board

_SOONEST_MS, _SPREAD_MS = 1_000, 4_000
"""Spreads reconnects of browsers that were disconnected together."""


async def stream_board(visit: Visit) -> Response:
    """GET /boards/{board}/live: the board's events. Opening a stream counts as one call. Errors are JSON."""
    try:
        board = find_board(visit)
        if visit.scope["method"] == "HEAD":
            return Response(media_type=LiveResponse.media_type)
        return await _open_stream(visit, board)
    except RoundtripError as error:
        reply = error_reply(error)
        return Response(reply.body, reply.status, dict(reply.headers), media_type="application/json")


async def _open_stream(visit: Visit, board: BoardPage) -> Response:
    console = visit.console
    name = console.callers.identify(visit.scope["headers"], visit.scope.get("client")).name
    delay_ms = int.from_bytes(console.dispatch.ctx.entropy()[:2]) % _SPREAD_MS
    state: Mapping[str, EndlessAnswers] = visit.scope.get("state", {})
    with contextlib.ExitStack() as stack:
        stack.enter_context(console.live.reserve_stream(name))
        await visit.ask_old(board.operation)
        reserved = stack.pop_all()
    return LiveResponse(
        console.live, board.tool, reserved, state.get(ENDING, EndlessAnswers()), _SOONEST_MS + delay_ms
    )
