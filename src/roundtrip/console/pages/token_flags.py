"""What people say will become of a token, and what the visitor says: a piece of the token's page."""

from typing import Any

from starlette.responses import Response

from roundtrip.console.pages.account_sections.marks import FLAG, OWN_FLAGS
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError


async def flags(visit: Visit) -> Response:
    """Flags on a token."""
    return await _show_flags(visit)


async def flag(visit: Visit) -> Response:
    """Flags it, and shows what came of it."""
    address, kind = visit.path["address"], visit.form.get("kind", "")
    try:
        done = await visit.ask(FLAG, token=address, kind=kind)
    except RoundtripError as fault:
        if fault.code == "bad_key":
            raise
        return await _show_flags(visit, 200 if visit.is_piece() else fault.status, fault=fault)
    return await _show_flags(visit, done=done)


async def _show_flags(visit: Visit, status: int = 200, **came: Any) -> Response:
    address = visit.path["address"]
    calls = await visit.ask("proven_calls", address=address)
    own = None if visit.session is None else await visit.ask(OWN_FLAGS, address=address)
    template = "token_flags_piece.html" if visit.is_piece() else "token_flags.html"
    return visit.show(
        template, status, address=address, calls=calls, own=own, **{"fault": None, "done": None, **came}
    )
