"""Flags on a token, all people's and the visitor's: a piece of the token's page."""

from typing import Any

from starlette.responses import Response

from roundtrip.console.pages.account_sections.marks import FLAG, OWN_FLAGS
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError


async def show_flags(visit: Visit) -> Response:
    """GET /token/{address}/flags."""
    return await _render_flags(visit)


async def add_flag(visit: Visit) -> Response:
    """POST /token/{address}/flags: flags the token, and shows the result."""
    address, kind = visit.path["address"], visit.form.get("kind", "")
    try:
        done = await visit.ask(FLAG, token=address, kind=kind)
    except RoundtripError as fault:
        if fault.code == "bad_key":
            raise
        return await _render_flags(visit, 200 if visit.is_piece() else fault.status, fault=fault)
    return await _render_flags(visit, done=done)


async def _render_flags(visit: Visit, status: int = 200, **result: Any) -> Response:
    address = visit.path["address"]
    calls = await visit.ask("proven_calls", address=address)
    own = None if visit.session is None else await visit.ask(OWN_FLAGS, address=address)
    values = {"address": address, "calls": calls, "own": own, "fault": None, "done": None, **result}
    if visit.is_piece():
        return visit.show("token_flags_piece.html", status, **values)
    return visit.show("token_flags.html", status, symbol=await _find_symbol(visit), **values)


async def _find_symbol(visit: Visit) -> str | None:
    """The token's symbol; None: it has none, or it could not be read."""
    try:
        token = (await visit.ask("look_up", query=visit.path["address"]))["token"]
    except RoundtripError:
        return None
    return None if token is None else token["symbol"]
