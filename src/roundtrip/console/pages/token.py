"""The token's page: whether it can be sold, what that costs, what could change it, and who holds it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.flags import FLAGS
from roundtrip.services.check.kept_card import CardParams, KeptCard, check_card
from roundtrip.services.holders.handlers import HoldersPage, holders_page
from roundtrip.services.lookup.look_alikes import LookAlikeParams, TokenLookAlike, token_look_alike

_ROWS = {row.name: row for row in OPERATIONS}
# Pages pass ``deep`` as a parameter, not in a query string.
_CHECK = replace(_ROWS["check_token"], query=())
_CARD = Operation(
    name="check_card",
    title="Details of a check, for its page",
    description="",
    params=CardParams,
    answer=KeptCard,
    handler=lambda call: check_card(call.ctx, call.params),
    on_mcp=False,
    counts="never",
    bad_params="bad_address",
)
_LOOK_ALIKE = Operation(
    name="token_look_alike",
    title="Which token a token looks like, for its page",
    description="",
    params=LookAlikeParams,
    answer=TokenLookAlike,
    handler=lambda call: token_look_alike(call.ctx, call.params),
    on_mcp=False,
    counts="never",
    errors=("upstream",),
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
_CHANGE_STATES = {
    "can": "Can change",
    "may": "May change",
    "not_known": "Not known",
    "not_tried": "Not tried",
    "not_found": "Nothing found",
}
_PAGE_BY_KIND = {"token": "token", "wallet": "wallet", "contract": "wallet"}
_MOST_DRAWN = 8
"""Wallets of a group in its drawing: more would overlap. The list below it has the rest."""


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
    return visit.show("found.html", found=result)


async def show_token(visit: Visit) -> Response:
    """GET /token/{address}: the verdict card, from a check of this moment."""
    address, deep = visit.path["address"], visit.query.get("deep", "0")
    check = await visit.ask(_CHECK, address=address, deep=deep)
    url = f"{visit.console.dispatch.ctx.public_url}/v1/check/{check['address']}"
    call = {"name": "check_token", "arguments": {"address": check["address"]}}
    return visit.show(
        "token.html",
        check=check,
        card=await _read_card(visit, check),
        look_alike=await _read_look_alike(visit, check),
        flags=_FLAG_TEXTS,
        standings=_CHANGE_STATES,
        raw=json.dumps(check, indent=2, ensure_ascii=False),
        curl=f"curl -s '{url}{'?deep=1' if deep in ('1', 'true') else ''}'",
        mcp=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
        public_url=visit.console.dispatch.ctx.public_url,
    )


async def _read_card(visit: Visit, check: Mapping[str, Any]) -> Any:
    """The stored card of the check that is shown (no further call is counted); None: there is none, or the
    database is unavailable."""
    try:
        answer = await visit.ask(_CARD, address=check["address"], checked_at=check["checkedAt"])
    except RoundtripError as fault:
        if fault.code != "busy":
            raise
        return None
    return answer["card"]


async def _read_look_alike(visit: Visit, check: Mapping[str, Any]) -> Any:
    """The token that this one looks like. None: none was found, or the index or the node is unavailable."""
    token = check["token"]
    if token is None:
        return None
    try:
        answer = await visit.ask(
            _LOOK_ALIKE, address=check["address"], symbol=token["symbol"], name=token["name"]
        )
    except RoundtripError as fault:
        if fault.code not in ("busy", "upstream"):
            raise
        return None
    return answer["lookAlike"]


async def show_holders(visit: Visit) -> Response:
    """GET /token/{address}/holders: a piece of the token's page, or a page of its own."""
    answer = await visit.ask(_HOLDERS, address=visit.path["address"])
    graphs = [lay_out_group(group) for group in answer["launched"]["groups"] if group["isBundle"]]
    lines = draw_growth(answer["grown"]["points"])
    template = "holders_piece.html" if visit.is_piece() else "holders.html"
    return visit.show(template, graphs=graphs, lines=lines, **answer)


def draw_growth(points: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The lines of the number of holders and of the share of the ten biggest, as the points of an SVG of 600
    by 80, each from 0 up. A share that is not known parts its line. Empty: fewer than two points."""
    if len(points) < 2:
        return {}
    most = max(point["holders"] for point in points) or 1
    counts = [point["holders"] / most for point in points]
    shares = [None if point["top10Bps"] is None else point["top10Bps"] / BPS for point in points]
    return {"holders": _join_points(counts), "top": _join_points(shares)}


def _join_points(heights: Sequence[float | None]) -> list[str]:
    lines: list[list[str]] = [[]]
    for number, height in enumerate(heights):
        if height is None:
            lines.append([])
            continue
        x, y = 600 * number / (len(heights) - 1), 78 - 76 * min(height, 1)
        lines[-1].append(f"{x:.1f},{y:.1f}")
    return [" ".join(line) for line in lines if len(line) > 1]


async def show_liquidity(visit: Visit) -> Response:
    """GET /token/{address}/liquidity: a piece of the token's page, or a page of its own."""
    found = await visit.ask("token_liquidity", address=visit.path["address"])
    return visit.show("liquidity_piece.html" if visit.is_piece() else "liquidity.html", found=found)


def lay_out_group(group: dict[str, Any]) -> dict[str, Any]:
    """A group of launch buyers with its first wallets in rows beside what ties them: x and y in a drawing 360
    wide, and a radius that grows with what each bought."""
    drawn = group["wallets"][:_MOST_DRAWN]
    most_bps = max([wallet["boughtBps"] for wallet in drawn], default=0) or 1
    nodes = []
    for index, wallet in enumerate(drawn):
        radius = round(5 + 9 * math.sqrt(wallet["boughtBps"] / most_bps), 1)
        nodes.append(wallet | {"x": 160, "y": 24 + 38 * index, "radius": radius})
    height = max(38 * len(nodes) + 10, 110)
    return group | {
        "nodes": nodes, "notDrawn": group["count"] - len(nodes), "height": height, "middle": height // 2 - 4
    }  # fmt: skip
