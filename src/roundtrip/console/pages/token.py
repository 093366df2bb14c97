"""The token's page: whether it can be sold, what that costs, what could change it, and who holds it."""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation, Operation
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.token_states import read_token_states
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.figures import format_amount
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.flags import FLAGS
from roundtrip.domain.market.exposure import LeavingLiquidity
from roundtrip.domain.verdicts.risks import MARKED_LOSS_BPS, Risk, rate_age, rate_insiders, rate_liquidity
from roundtrip.domain.verdicts.words import is_tradable, level_word
from roundtrip.services.check.handler import CheckAtSize, check_at_size
from roundtrip.services.check.kept_card import CardParams, KeptCard, check_card
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.holders.handlers import HoldersPage, holders_page
from roundtrip.services.holders.insiders import StoredRisk, stored_risk
from roundtrip.services.holders.schema import HoldersParams
from roundtrip.services.lookup.look_up import LookAlikeParams, TokenLookAlike, token_look_alike
from roundtrip.services.support.cancel_on_error import at_once

from .docs import write_examples
from .holder_ties import draw_ties
from .token_facts import MOST_FACTS, NOTHING_STORED, TokenFact, insiders_bps, launch_age_s, list_facts
from .token_watch import read_watched

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
# The check beside it counts. A refused check asks for no holders.
_HOLDERS_AT_ONCE = replace(_HOLDERS, counts="never")
_STORED_RISK = Operation(
    name="stored_risk",
    title="What is stored of a token's risks, for pages",
    description="",
    params=HoldersParams,
    answer=StoredRisk,
    handler=lambda call: stored_risk(call.ctx, call.params),
    on_mcp=False,
    counts="never",
    bad_params="bad_address",
)
_HISTORY = replace(_ROWS["check_history"], counts="never")
_AT_SIZE = replace(
    _CHECK,
    name="check_at_size",
    answer=CheckAtSize,
    handler=lambda call: check_at_size(call.ctx, call.params),
    path=None,
    on_mcp=False,
)
_WITHOUT_TRADES = ("no_pool", "empty_pool")
_USUAL_AMOUNT = "0.1"
_AFTER = "hx-trigger-after-settle"
"""The event of a piece that came: what to know before buying loads again, with what that piece knows."""
_HOLDERS_S = 0.25
"""How long the page waits for its holders: it may show the verdict that much later."""
_AWAY, _AGAIN_S, _MOST_EARLIER = ("upstream", "busy"), 10, 3
"""Errors after which the page shows what it has; how soon it tries again; how many verdicts it names."""
_MOST_VERDICTS, _LEAST_WIDTH = 20, 6.0
_FLAG_TEXTS = {name: " ".join((holds.__doc__ or "").split()) for name, holds in FLAGS.items()}
_CHANGE_STATES = {
    "can": "Can change",
    "may": "May change",
    "not_known": "Not known",
    "not_tried": "Not tried",
    "not_found": "Nothing found",
}
_MOST_DRAWN = 8
"""Wallets of a group in its drawing: more would overlap. The list below it has the rest."""


async def show_token(visit: Visit) -> Response:
    """GET /token/{address}: the verdict card, from a check of this moment. ``amount``: of another size. Where
    no check can be made, what is known without."""
    try:
        return await _show_checked(visit)
    except RoundtripError as fault:
        if visit.is_piece() or fault.code not in _AWAY:
            raise
        return await _show_unchecked(visit, fault)


async def _show_checked(visit: Visit) -> Response:
    deep, amount = visit.query.get("deep", "0"), visit.query.get("amount", _USUAL_AMOUNT).replace(",", ".")
    params = CheckParams(visit.path["address"], deep, amount)
    is_usual = params.probe_wei() is None
    row = find_check(params)
    if visit.is_piece():
        # A piece belongs to the page of an answer that was counted, and is shared for as long.
        if _find_shared(visit, f"{row.name}:{params.shared_as()}") is None:
            return Response(status_code=204)
        row = replace(row, counts="never")
    size = {} if is_usual else {"amount": amount}
    answer = await visit.ask(row, address=params.address, deep=deep, **size)
    check, sized_card = (answer, None) if is_usual else (answer["check"], answer["card"])
    card, look_alike, history, holders, watched, stored = await at_once(
        _read_card(visit, check, sized_card),
        _read_look_alike(visit, check),
        _ask_or_none(visit, _HISTORY, check),
        read_holders(visit, check),
        read_watched(visit, check["address"]),
        read_risk(visit, check["address"]),
    )
    query = urlencode(({"deep": 1} if params.asks_deep() else {}) | size)
    ctx = visit.console.dispatch.ctx
    check_url = f"{ctx.public_url}/v1/check/{check['address']}" + (f"?{query}" if query else "")
    call = {"name": "check_token", "arguments": {"address": check["address"]}}
    liquidity = _find_shared(visit, f"token_liquidity:{check['address']}")
    says_liquidity = params.asks_deep() and is_usual
    facts = list_facts(check, card, holders, liquidity, says_liquidity, stored)
    return visit.show(
        "know_piece.html" if visit.is_piece() else "token.html",
        **describe_verdict(check["verdict"], card, facts, read_exposure(check, holders, stored)),
        check=check,
        card=card,
        amount=amount,
        is_usual=is_usual,
        back=amount_back(check, card),
        smaller=find_smaller(card, amount),
        knows_liquidity=says_liquidity or liquidity is not None or stored["freeBps"] is not None,
        loss_colour=colour_loss,
        query=f"?{query}" if query else "",
        shared_s=(POLICY.deep_ttl_ms if params.asks_deep() else POLICY.answer_ttl_ms) // 1000,
        strip=draw_history(history),
        holders=None if holders is None else holders | _draw_holders(holders),
        look_alike=look_alike,
        watched=watched,
        flags=_FLAG_TEXTS,
        standings=_CHANGE_STATES,
        raw=json.dumps(check, indent=2, ensure_ascii=False),
        examples=write_examples(check_url),
        mcp=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
        head=ctx.heads.last_number(),
    )


def describe_verdict(
    verdict: Mapping[str, Any],
    card: Mapping[str, Any] | None,
    facts: list[TokenFact],
    stored: Mapping[str, Any],
) -> dict[str, Any]:
    """The verdict's word and colour, the risks beside it, and what else speaks for or against the token.
    ``card``: with the risks that a check reads; None: not known. ``stored``: as ``read_exposure``."""
    level, code = verdict["level"], verdict["code"]
    if level not in ("ok", "warn"):
        # Nothing speaks for a token that cannot be sold, or of which that is not known.
        facts = [fact for fact in facts if fact.sign != "good"]
    return {
        "word": level_word(level, code), "colour": level,
        "risks": _list_risks(card, stored) if level in ("ok", "warn") and code not in _WITHOUT_TRADES else [],
        "is_tradable": is_tradable(code), "has_pool": code not in _WITHOUT_TRADES,
        "facts": facts[:MOST_FACTS] if is_tradable(code) else [],
    }  # fmt: skip


def _list_risks(card: Mapping[str, Any] | None, stored: Mapping[str, Any]) -> list[Risk]:
    """The five risks in their order; where the check's own are not known, the first two."""
    free_bps, unproven_bps = stored["freeBps"], stored["unprovenBps"]
    is_read = free_bps is not None and unproven_bps is not None
    risks = [
        rate_insiders(stored["insidersBps"]),
        rate_liquidity(LeavingLiquidity(free_bps, unproven_bps) if is_read else None),
    ]
    of_check = [Risk(**risk) for risk in ([] if card is None else card["risks"][len(risks) :])]
    age = rate_age(stored.get("ageS"))
    return risks + [age if risk.topic == age.topic and age.level != "unknown" else risk for risk in of_check]


def read_exposure(
    check: Mapping[str, Any], holders: Mapping[str, Any] | None, stored: Mapping[str, Any]
) -> dict[str, Any]:
    """What is stored of the token, as ``StoredRisk``, with what its holders say where they were read for this
    page: what insiders hold, and ``ageS``, its age in seconds."""
    held = None if holders is None else holders["held"]
    now_bps = None if held is None or held["holders"] is None else insiders_bps(held)
    return {
        **stored,
        "insidersBps": stored["insidersBps"] if now_bps is None else now_bps,
        "ageS": launch_age_s(check, held),
    }


def find_check(params: CheckParams) -> AnyOperation:
    """The operation that makes this check. Raises CallerFault (bad_input)."""
    return _CHECK if params.probe_wei() is None else _AT_SIZE


async def _show_unchecked(visit: Visit, fault: RoundtripError) -> Response:
    """The page of a token that cannot be checked now: no verdict, and the rest that is known."""
    address = visit.path["address"]
    history = await _ask_or_none(visit, _HISTORY, {"address": address})
    earlier = [] if history is None else history["changes"][:_MOST_EARLIER]
    after_s = fault.retry_after_s or _AGAIN_S
    return visit.show(
        "token_away.html", fault.status, address=address, error=fault, earlier=earlier, after_s=after_s
    )


def amount_back(check: Mapping[str, Any], card: Mapping[str, Any] | None) -> str | None:
    """What the sell brings back of what the buy paid, as a plain decimal cut to four digits; None: it was not
    measured, or a part may not have been sold."""
    trade = check["trade"]
    if trade is None or trade["roundTripLossBps"] is None or trade["method"] != "simulated_trade":
        return None
    sold_bps = card["soldBps"] if card else BPS if check["verdict"]["level"] == "ok" else None
    if sold_bps is None:
        return None
    back = Decimal(trade["paid"]["amount"]) * (BPS - trade["roundTripLossBps"]) * sold_bps / BPS / BPS
    return format_amount(max(0, int(back * 10**18)), 18)


def find_smaller(card: Mapping[str, Any] | None, amount: str) -> str | None:
    """The size in eth that was tried, where it is less than ``amount``, which did not go through; None: it
    is that amount, or it is not known."""
    size = None if card is None or card["cost"] is None else card["cost"]["size"]
    tried, _, unit = (size or "").partition(" ")
    return tried if unit == "eth" and Decimal(tried) < Decimal(amount) else None


def colour_loss(loss_bps: int) -> str:
    """The level whose colour a loss has."""
    if loss_bps >= POLICY.danger_loss_bps:
        return "danger"
    return "warn" if loss_bps >= MARKED_LOSS_BPS else "ok"


def draw_history(history: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The token's verdicts from the oldest on, for a strip 600 wide: each with its colour and word, where it
    begins and how wide it is. Empty: fewer than two are known."""
    changes = [] if history is None else history["changes"][:_MOST_VERDICTS]
    if len(changes) < 2:
        return []
    starts = [datetime.fromisoformat(change["checkedAt"]) for change in reversed(changes)]
    end = datetime.fromisoformat(changes[0]["lastCheckedAt"])
    whole_s = max(1.0, (end - starts[0]).total_seconds())
    strip = []
    for number, change in enumerate(reversed(changes)):
        until = starts[number + 1] if number + 1 < len(starts) else end
        x = 600 * (starts[number] - starts[0]).total_seconds() / whole_s
        width = max(_LEAST_WIDTH, 600 * (until - starts[number]).total_seconds() / whole_s)
        word = level_word(change["level"], change["code"])
        x, width = round(min(x, 600 - _LEAST_WIDTH), 1), round(width, 1)
        strip.append(change | {"colour": change["level"], "word": word, "x": x, "width": width})
    return strip


async def _ask_or_none(visit: Visit, operation: AnyOperation, check: Mapping[str, Any]) -> Any:
    """The answer about the token of ``check``; None: an error, which the part's own page shows."""
    try:
        return await visit.ask(operation, address=check["address"])
    except RoundtripError:
        return None


async def read_risk(visit: Visit, address: str) -> Mapping[str, Any]:
    """What is stored of the token, as ``StoredRisk``; all None where it cannot be read."""
    try:
        answer: Mapping[str, Any] = await visit.ask(_STORED_RISK, address=address)
    except RoundtripError:
        return NOTHING_STORED
    return answer


async def read_holders(visit: Visit, check: Mapping[str, Any]) -> Any:
    """The answer for the holders' part if it is there at once; None: the part loads by itself. The reading
    goes on for that: it is shared."""
    if not is_tradable(check["verdict"]["code"]):
        return None
    try:
        async with asyncio.timeout(_HOLDERS_S):
            return await _ask_or_none(visit, _HOLDERS_AT_ONCE, check)
    except TimeoutError:
        return None


def _find_shared(visit: Visit, key: str) -> Any:
    """An answer that was just given, if it is still shared; None: not known now. Asks nobody."""
    found = visit.console.dispatch.shared.find_fresh(key)
    return None if found is None else msgspec.json.decode(found.body)


async def _read_card(visit: Visit, check: Mapping[str, Any], sized_card: Any) -> Any:
    """``sized_card``, or else the stored card of the check that is shown (no further call is counted); None:
    there is none, or the database is unavailable."""
    if sized_card is not None:
        return sized_card
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
    template = "holders_piece.html" if visit.is_piece() else "holders.html"
    response = visit.show(template, **answer, **_draw_holders(answer))
    if answer["held"]["status"] != "reading":
        response.headers[_AFTER] = "holders-read"
    return response


def _draw_holders(answer: Mapping[str, Any]) -> dict[str, Any]:
    graphs = [lay_out_group(group) for group in answer["launched"]["groups"] if group["isBundle"]]
    ties = draw_ties(answer["held"], answer["launched"])
    return {"graphs": graphs, "ties": ties, "lines": draw_growth(answer["grown"]["points"])}


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
    if visit.is_piece():
        response = visit.show("liquidity_piece.html", found=found)
    else:
        states = await read_token_states(visit, [found["address"]])
        response = visit.show("liquidity.html", found=found, state=states.get(found["address"]))
    response.headers[_AFTER] = "liquidity-read"
    return response


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
