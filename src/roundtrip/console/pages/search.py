"""The search: where a query leads, and what it may become while somebody types it."""

from starlette.responses import Response

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.page_request import Visit
from roundtrip.services.lookup.suggest import SuggestParams, TokenSuggestions, shared_as, suggest

_SUGGEST = Operation(
    name="suggest_tokens", title="Suggestions of a search", description="", params=SuggestParams,
    answer=TokenSuggestions, handler=lambda call: suggest(call.ctx, call.params), on_mcp=False,
    shared_by=shared_as, from_replica=True,
)  # fmt: skip
_PAGE_BY_KIND = {"token": "token", "wallet": "wallet", "contract": "wallet"}


async def search(visit: Visit) -> Response:
    """GET /search: redirects to the page of what the visitor entered, or lists candidates."""
    query = visit.query.get("q", "").strip()
    if not query:
        return visit.redirect("/")
    result = await visit.ask("look_up", query=query)
    bearers = result["bearers"]
    result["isAmbiguous"] = bearers is not None and bearers["others"] + bearers["strangers"] > 0
    if result["kind"] in _PAGE_BY_KIND and result["address"] and not result["isAmbiguous"]:
        return visit.redirect(f"/{_PAGE_BY_KIND[result['kind']]}/{result['address']}")
    if result["kind"] == "transaction" and result["transaction"]:
        return visit.redirect(f"/transaction/{result['transaction']['hash']}")
    near = [] if result["kind"] != "nothing" else (await visit.ask(_SUGGEST, query=query))["rows"]
    return visit.show("found.html", found=result, near=near)


async def show_suggestions(visit: Visit) -> Response:
    """GET /suggest: tokens that begin as the query does, as a piece of any page."""
    query = visit.query.get("q", "").strip()
    rows = (await visit.ask(_SUGGEST, query=query))["rows"] if query else []
    return visit.show("suggestions_piece.html", near=rows, query=query)
