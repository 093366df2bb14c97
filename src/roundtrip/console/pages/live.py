"""A board as it changes."""

import contextlib
from collections.abc import Mapping

from starlette.responses import Response

from roundtrip.api.dispatch import error_reply
from roundtrip.api.server.drain import ENDING, EndlessAnswers
from roundtrip.console.support.live_stream import LiveResponse
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError

from .boards import board_of

_SOONEST_MS, _SPREAD_MS = 1_000, 4_000
"""Who was cut off together does not come again together."""


async def live(visit: Visit) -> Response:
    """Its events. To open them counts as one call; a program is told what is wrong as programs are."""
    try:
        board = board_of(visit)
        if visit.scope["method"] == "HEAD":
            return Response(media_type=LiveResponse.media_type)
        return await _open_stream(visit, board.tool)
    except RoundtripError as error:
        reply = error_reply(error)
        return Response(reply.body, reply.status, dict(reply.headers), media_type="application/json")


async def _open_stream(visit: Visit, tool: str) -> Response:
    console = visit.console
    name = console.callers.identify(visit.scope["headers"], visit.scope.get("client")).name
    drawn = int.from_bytes(console.dispatch.ctx.entropy()[:2]) % _SPREAD_MS
    state: Mapping[str, EndlessAnswers] = visit.scope.get("state", {})
    with contextlib.ExitStack() as trying:
        trying.enter_context(console.live.place(name))
        await visit.ask(tool)
        place = trying.pop_all()
    return LiveResponse(console.live, tool, place, state.get(ENDING, EndlessAnswers()), _SOONEST_MS + drawn)
