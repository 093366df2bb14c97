"""Pictures of a token's newest check, which other sites embed: the card and the badge. They make no check:
the token's page does."""

import hashlib
from collections.abc import Callable
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import Response

from roundtrip.api.admission.minute_limits import MinuteLimits, Ticket
from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import LimitReached
from roundtrip.services.cards.newest_check import TokenCard, draw_badge, draw_card, newest_check
from roundtrip.services.support.answer_fields import HistoryParams

_CARD = page_operation(
    newest_check,
    name="token_card",
    counts="never",
    shared_by=lambda params: str(params.token()),
    bad_params="bad_address",
)
PICTURES_A_MINUTE = 300
"""For one address, beside its calls: a page may embed many, and a proxy asks for those of many pages."""
_CACHED_S, _ABSENT_CACHED_S = 60, 10
_SVG, _PNG = "image/svg+xml", "image/png"


async def show_short_link(visit: Visit) -> Response:
    """GET /t/{address}: leads to the token's page."""
    return visit.redirect(f"/token/{quote(visit.path['address'])}")


async def show_card_svg(visit: Visit) -> Response:
    """GET /t/{address}/card.svg: the card, as SVG."""
    return await _show(visit, draw_card, _SVG)


async def show_card_png(visit: Visit) -> Response:
    """GET /t/{address}/card.png: the card, as PNG."""
    return await _show(visit, draw_card, _PNG)


async def show_badge(visit: Visit) -> Response:
    """GET /t/{address}/badge.svg: the badge."""
    return await _show(visit, draw_badge, _SVG)


async def _show(visit: Visit, draw: Callable[[TokenCard], str], kind: str) -> Response:
    """The picture, or 304 where the client has it, which is not counted. Public: it holds nothing of the
    visitor."""
    limits = visit.console.dispatch.gate.limits
    ticket = _count_picture(visit, limits)
    card = await visit.ask(_CARD, HistoryParams(visit.address))
    svg = draw(card)
    # An SVG is sent plain or compressed: a strong tag would promise the same bytes.
    weak = "W/" if kind == _SVG else ""
    etag = f'{weak}"{hashlib.sha256(f"{kind} {svg}".encode()).hexdigest()[:32]}"'
    headers = {
        "etag": etag,
        "cache-control": f"public, max-age={_ABSENT_CACHED_S if card.check is None else _CACHED_S}",
        "vary": "accept-encoding",
        # Other sites show it.
        "cross-origin-resource-policy": "cross-origin",
    }
    known = Headers(scope=visit.scope).getlist("if-none-match")
    if any(etag in value for value in known):
        limits.refund(ticket)
        return Response(None, 304, headers)
    body = svg.encode() if kind == _SVG else await visit.console.pictures.draw(svg)
    return Response(body, 200, headers, media_type=kind)


def _count_picture(visit: Visit, limits: MinuteLimits) -> Ticket:
    """Counts one picture under the visitor's address. Raises LimitReached (rate_limited)."""
    address = visit.caller_name()
    try:
        return limits.take(f"pictures of {address}", PICTURES_A_MINUTE)
    except LimitReached as error:
        wait_s = error.retry_after_s or 1
        text = (
            f"Your address asked for more than {PICTURES_A_MINUTE} pictures in a minute. Retry in {wait_s} s."
        )
        raise LimitReached("rate_limited", text, wait_s, error.limit) from None
