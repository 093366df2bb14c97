"""Watching a token from its page: the button, and what it does."""

import msgspec
from starlette.responses import Response

from roundtrip.console.pages.account_sections.watch import UNWATCH, WATCH, WATCHED
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.watch.token_watch import WatchedTokens


async def read_watched(visit: Visit, token: str) -> bool | None:
    """Whether the visitor watches the token; None: not signed in, or it cannot be read now."""
    if visit.session is None:
        return None
    try:
        return _has_token(await visit.ask(WATCHED), token)
    except RoundtripError as fault:
        if fault.code == "bad_key":
            raise
        return None


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
