"""A token: can it be sold, what does it cost, who holds it."""

import json

from starlette.responses import Response

from roundtrip.console.page import Visit

_LEADS_TO = {"token": "token", "wallet": "wallet", "contract": "wallet"}


async def search(visit: Visit) -> Response:
    """From one box to the page of whatever was typed into it."""
    query = visit.query.get("q", "").strip()
    if not query:
        return visit.go("/")
    found = await visit.ask("look_up", query=query)
    if found["kind"] in _LEADS_TO and found["address"] and not found["bearers"]:
        return visit.go(f"/{_LEADS_TO[found['kind']]}/{found['address']}")
    if found["kind"] == "transaction" and found["transaction"]:
        return visit.go(f"/transaction/{found['transaction']['hash']}")
    return visit.show("found.html", found=found)


async def token(visit: Visit) -> Response:
    """The verdict card, made while the visitor waits: it holds for its moment."""
    check = await visit.ask("check_token", address=visit.path["address"])
    return visit.show("token.html", check=check, raw=json.dumps(check, indent=2, ensure_ascii=False))


async def holders(visit: Visit) -> Response:
    """Who holds it: a piece of the token's page."""
    return visit.show(
        "holders_piece.html", held=await visit.ask("token_holders", address=visit.path["address"])
    )
