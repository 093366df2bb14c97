"""The front page, the status page, and the search: the page that a query opens, and the tokens suggested
while the user types."""

from typing import Any

from starlette.responses import Response

from roundtrip.api.documents.about import STRANGERS, UNKNOWN, WHAT
from roundtrip.api.operations.catalog import find_operation, tools
from roundtrip.api.operations.operation import A, Operation
from roundtrip.console.pages.boards import (
    BOARDS,
    MOVING,
    NEWEST_BOARD,
    NEWEST_VERDICTS,
    find_good,
    show_values,
)
from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.metrics import NEWEST
from roundtrip.domain.base.names import clean
from roundtrip.domain.base.pasted import MAX_CHARACTERS as MAX_PASTED
from roundtrip.domain.base.pasted import find_only_word
from roundtrip.services.boards.chain_vitals import ChainVitals
from roundtrip.services.lookup.look_up_answer import (
    LookUpAnswer,
    LookUpParams,
    SuggestParams,
    shared_as,
    shorten_query,
    suggest,
)
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.system.status import SLOW_JOBS_S, Health, ServiceStatus, service_status

_STATUS = page_operation(service_status, counts="never")
_HEALTH = find_operation("health", Nothing, Health)
_VITALS = find_operation("chain_vitals", Nothing, ChainVitals)


async def show_front(visit: Visit) -> Response:
    """GET /: what this service is."""
    (newest, newest_why), (moving, moving_why) = (
        await _try_to_ask(visit, NEWEST_VERDICTS),
        await _try_to_ask(visit, MOVING),
    )
    values = {} if moving is None else show_values(BOARDS[0], moving, visit.eth_usd(), is_short=True)
    strip = None if newest is None else show_values(NEWEST_BOARD, newest, visit.eth_usd(), is_short=True)
    return visit.show(
        "front.html",
        what=WHAT,
        unknown=UNKNOWN,
        strangers=STRANGERS,
        tools=len(tools()),
        newest=newest,
        example=find_good(newest),
        strip=strip,
        newest_why=newest_why,
        moving_why=moving_why,
        lag_s=0 if moving is None else visit.lag_s(moving.block_time),
        **({"answer": None} | values),
    )


async def _try_to_ask(visit: Visit, operation: Operation[Any, A]) -> tuple[A | None, str]:
    """The answer; or None, and why: the rest of the page is shown without it."""
    try:
        return await visit.ask(operation), ""
    except RoundtripError as error:
        return None, error.message


async def _read_state(visit: Visit) -> tuple[Health, ServiceStatus]:
    return await visit.ask(_HEALTH), await visit.ask(_STATUS)


async def show_status(visit: Visit) -> Response:
    """GET /status: sync lag, reorgs, durations, queues and degraded parts. It works if everything else
    fails."""
    health, state = await visit.console.status.get(lambda: _read_state(visit))
    try:
        vitals = await visit.ask(_VITALS)
    except RoundtripError:
        vitals = None
    return visit.show(
        "status.html",
        health=health,
        now=state,
        vitals=vitals,
        streams=visit.console.live.count_streams(),
        newest=NEWEST,
        slow_s=SLOW_JOBS_S,
    )


_LOOK_UP = find_operation("look_up", LookUpParams, LookUpAnswer)
_SUGGEST = page_operation(suggest, "suggest_tokens", shared_by=shared_as, from_replica=True)
_PAGE_BY_KIND = {"token": "token", "wallet": "wallet", "contract": "wallet"}


async def search(visit: Visit) -> Response:
    """GET /search: redirects to the page of what the visitor entered, or lists candidates."""
    query = shorten_query(visit.query.get("q", ""))
    if not query:
        return visit.redirect("/")
    result = await visit.ask(_LOOK_UP, LookUpParams(query))
    bearers, page = result.bearers, _PAGE_BY_KIND.get(result.kind)
    is_ambiguous = bearers is not None and bearers.others + bearers.strangers > 0
    pasted = find_only_word(query)
    if pasted is not None and pasted.chain_id not in (None, visit.console.dispatch.ctx.chain_id):
        return visit.show("found.html", found=result, is_ambiguous=is_ambiguous, near=[], page=page)
    if page and result.address and not is_ambiguous:
        return visit.redirect(f"/{page}/{result.address}")
    if result.kind == "transaction" and result.transaction:
        return visit.redirect(f"/transaction/{result.transaction.hash}")
    near = [] if result.kind != "nothing" else (await visit.ask(_SUGGEST, SuggestParams(query))).rows
    return visit.show("found.html", found=result, is_ambiguous=is_ambiguous, near=near, page=None)


async def show_suggestions(visit: Visit) -> Response:
    """GET /suggest: tokens that begin as the query does, as a piece of any page."""
    query = clean(visit.query.get("q", "")[:MAX_PASTED], MAX_PASTED)
    pasted = find_only_word(query)
    query = query if pasted is None else pasted.word
    rows = (await visit.ask(_SUGGEST, SuggestParams(query))).rows if query else []
    return visit.show("suggestions_piece.html", near=rows, query=query)
