"""A token: can it be sold, what does it cost, what could change that, who holds it."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.check.flags import FLAGS
from roundtrip.services.check.card import CardParams, KeptCard, check_card
from roundtrip.services.holders.handlers import HoldersPage, holders_page

_ROWS = {row.name: row for row in OPERATIONS}
# By the query string alone a tool's door would have it.
_CHECK = replace(_ROWS["check_token"], query=())
_CARD = Operation(
    name="check_card",
    title="What a check found, for its page",
    description="",
    params=CardParams,
    answer=KeptCard,
    handler=lambda call: check_card(call.ctx, call.params),
    on_mcp=False,
    counts="never",
    bad_params="bad_address",
)
_HOLDERS = replace(
    _ROWS["token_holders"],
    name="holders_page",
    answer=HoldersPage,
    handler=lambda call: holders_page(call.ctx, call.params),
    path=None,
    path_answer=None,
    on_mcp=False,
)
_FLAG_TEXTS = {name: " ".join((holds.__doc__ or "").split()) for name, holds in FLAGS.items()}
_STANDINGS = {"can": "Can change", "may": "May change", "not_known": "Not known", "not_tried": "Not tried",
              "not_found": "Nothing found"}  # fmt: skip
_LEADS_TO = {"token": "token", "wallet": "wallet", "contract": "wallet"}
_MOST_DRAWN = 8
"""Wallets of a group: more would stand in each other's way. The rest is in the list below it."""


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
    address, deep = visit.path["address"], visit.query.get("deep", "0")
    check = await visit.ask(_CHECK, address=address, deep=deep)
    url = f"{visit.console.dispatch.ctx.public_url}/v1/check/{check['address']}"
    call = {"name": "check_token", "arguments": {"address": check["address"]}}
    return visit.show(
        "token.html",
        check=check,
        card=await _card(visit, check),
        flags=_FLAG_TEXTS,
        standings=_STANDINGS,
        raw=json.dumps(check, indent=2, ensure_ascii=False),
        curl=f"curl -s '{url}{'?deep=1' if deep in ('1', 'true') else ''}'",
        mcp=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
        public_url=visit.console.dispatch.ctx.public_url,
    )


async def _card(visit: Visit, check: Mapping[str, Any]) -> Any:
    """What was kept of the check that is just shown, with which it counts; None: none is, or it cannot be
    read."""
    try:
        found = await visit.ask(_CARD, address=check["address"], checked_at=check["checkedAt"])
    except RoundtripError as fault:
        if fault.code != "busy":
            raise
        return None
    return found["card"]


async def holders(visit: Visit) -> Response:
    """Who holds it: a piece of the token's page, and a page of its own for who follows the link."""
    found = await visit.ask(_HOLDERS, address=visit.path["address"])
    piece = any(name == b"hx-request" for name, _ in visit.scope["headers"])
    graphs = [graph_of(group) for group in found["launched"]["groups"] if group["isBundle"]]
    return visit.show("holders_piece.html" if piece else "holders.html", graphs=graphs, **found)


def graph_of(group: dict[str, Any]) -> dict[str, Any]:
    """A group of launch buyers with its first wallets laid around what ties them: x and y in a drawing 360
    wide, and a radius that grows with what each bought."""
    drawn = group["wallets"][:_MOST_DRAWN]
    most = max([one["boughtBps"] for one in drawn], default=0) or 1
    nodes = []
    for number, one in enumerate(drawn):
        angle = 2 * math.pi * number / len(drawn) - math.pi / 2
        x, y = round(180 + 132 * math.cos(angle), 1), round(130 + 84 * math.sin(angle), 1)
        radius = round(5 + 9 * math.sqrt(one["boughtBps"] / most), 1)
        # Its label stands away from the middle, where the lines are.
        label = round(y + radius + 12 if y >= 130 else y - radius - 17, 1)
        nodes.append(one | {"x": x, "y": y, "radius": radius, "label": label})
    height = max([node["label"] + 18 for node in nodes] + [166])
    return group | {"nodes": nodes, "notDrawn": group["count"] - len(nodes), "height": round(height)}
