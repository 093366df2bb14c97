"""A token: can it be sold, what does it cost, who holds it."""

import json

from starlette.responses import Response

from roundtrip.api.operation import Operation
from roundtrip.console.page import Visit
from roundtrip.domain.flags import FLAGS
from roundtrip.services.check_answer import CheckParams
from roundtrip.services.check_grid import CheckGrid, check_grid

_GRID = Operation(
    name="check_grid", title="What was tried", description="", params=CheckParams, answer=CheckGrid,
    handler=check_grid, on_mcp=False, counts="never", bad_params="bad_address",
)  # fmt: skip
_FLAG_TEXTS = {name: " ".join((holds.__doc__ or "").split()) for name, holds in FLAGS.items()}
_LEADS_TO = {"token": "token", "wallet": "wallet", "contract": "wallet"}


async def search(visit: Visit) -> Response:
    """From one box to the page of whatever was typed into it."""
    query = visit.query.get("q", "").strip()
    if not query:
        return visit.go("/")
    found = await visit.ask("look_up", query=query)
    bearers = found["bearers"]
    found["isAmbiguous"] = bearers is not None and bearers["others"] + bearers["strangers"] > 0
    if found["kind"] in _LEADS_TO and found["address"] and not found["isAmbiguous"]:
        return visit.go(f"/{_LEADS_TO[found['kind']]}/{found['address']}")
    if found["kind"] == "transaction" and found["transaction"]:
        return visit.go(f"/transaction/{found['transaction']['hash']}")
    return visit.show("found.html", found=found)


async def token(visit: Visit) -> Response:
    """The verdict card, made while the visitor waits: it holds for its moment."""
    check = await visit.ask("check_token", address=visit.path["address"])
    # Of the check that was just shown: it counts with that.
    grid = await visit.ask(_GRID, address=visit.path["address"])
    raw = json.dumps(check, indent=2, ensure_ascii=False)
    url = visit.console.dispatch.ctx.public_url
    return visit.show("token.html", check=check, grid=grid, raw=raw, flags=_FLAG_TEXTS, public_url=url)


async def holders(visit: Visit) -> Response:
    """Who holds it: a piece of the token's page."""
    return visit.show(
        "holders_piece.html", held=await visit.ask("token_holders", address=visit.path["address"])
    )
