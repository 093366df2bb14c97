"""What a visitor does to a token on its page: watches it, or flags it."""

from typing import Any

import msgspec
from starlette.responses import Response

from roundtrip.console.pages.account_sections.marks import FLAG, OWN_FLAGS
from roundtrip.console.pages.account_sections.watch import UNWATCH, WATCH, read_watched_tokens
from roundtrip.console.pages.boards import PROVEN_CALLS
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.token_states import read_token_states
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.community.proven_flags import ProvenParams
from roundtrip.services.watch.inbox import WatchedTokens


async def read_watched(visit: Visit, token: str) -> bool | None:
    """Whether the visitor watches the token; None: not signed in, or it cannot be read now."""
    watched = await read_watched_tokens(visit)
    return None if watched is None else token in watched


class WatchForm(msgspec.Struct):
    """``off``: no longer. ``colour``, ``waits``: how the button looks."""

    off: str = ""
    colour: str = ""
    waits: str = ""


async def set_watch(visit: Visit) -> Response:
    """POST /token/{address}/watch: watches the token, or with ``off`` no longer."""
    token = visit.address.lower()
    form = msgspec.convert(visit.form, WatchForm)
    answer = await visit.ask(UNWATCH if form.off else WATCH, {"address": token})
    if not visit.is_piece():
        return visit.redirect(f"/token/{token}")
    return visit.show(
        "watch_piece.html",
        token=token,
        watched=_has_token(answer, token),
        said=answer.text,
        colour=form.colour,
        waits=bool(form.waits),
        sells=False,
    )


def _has_token(answer: WatchedTokens, token: str) -> bool:
    return any(row.token.address == token for row in answer.tokens)


async def show_flags(visit: Visit) -> Response:
    """GET /token/{address}/flags."""
    return await _render_flags(visit)


async def add_flag(visit: Visit) -> Response:
    """POST /token/{address}/flags: flags the token, and shows the result."""
    address, kind = visit.address, visit.form.get("kind", "")
    try:
        done = await visit.ask(FLAG, {"token": address, "kind": kind})
    except RoundtripError as fault:
        if fault.code == "bad_key":
            raise
        return await _render_flags(visit, 200 if visit.is_piece() else fault.status, fault=fault)
    return await _render_flags(visit, done=done)


async def _render_flags(visit: Visit, status: int = 200, **result: Any) -> Response:
    address = visit.address
    calls = await visit.ask(PROVEN_CALLS, ProvenParams(address))
    own = None if visit.session is None else await visit.ask(OWN_FLAGS, ProvenParams(address))
    values = {"address": address, "calls": calls, "own": own, "fault": None, "done": None, **result}
    if visit.is_piece():
        return visit.show("token_flags_piece.html", status, **values)
    state = (await read_token_states(visit, [address.lower()])).get(address.lower())
    return visit.show("token_flags.html", status, state=state, **values)
