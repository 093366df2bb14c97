"""The pages of a wallet and of a transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import Operation
from roundtrip.console.pages.account_sections.marks import MARK, UNMARK
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.token_states import read_token_states
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.community.my_marks import OwnOfWallet, WalletSaid, own_of_wallet, wallet_said
from roundtrip.services.lookup.transaction_page import TransactionPage, transaction_page
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.services.wallets.page import WalletPage, wallet_page

_ROWS = {row.name: row for row in OPERATIONS}
_PAGE = replace(
    _ROWS["wallet_history"],
    name="wallet_page",
    answer=WalletPage,
    handler=lambda call: wallet_page(call.ctx, call.params),
    path=None,
    path_answer=None,
    on_mcp=False,
)

_TRANSACTION = replace(
    _ROWS["explain_transaction"],
    name="transaction_page",
    answer=TransactionPage,
    handler=lambda call: transaction_page(call.ctx, call.params),
    path=None,
    path_answer=None,
    on_mcp=False,
)
_KINDS = {"failed": "Failed transaction", "pending": "Waiting transaction"}
_MOST_DRAWN = 12
"""Wallets in one drawing: the list below it has the rest."""
# Both are part of showing or marking a wallet, which is counted.
_SAID = Operation(
    name="wallet_said",
    title="Names and marks of a wallet",
    description="",
    params=WalletParams,
    answer=WalletSaid,
    handler=lambda call: wallet_said(call.ctx, call.params),
    on_mcp=False,
    counts="never",
    bad_params="bad_address",
)
_OWN = Operation(
    name="own_of_wallet",
    title="Your name and mark of a wallet",
    description="",
    params=WalletParams,
    answer=OwnOfWallet,
    handler=lambda call: own_of_wallet(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="never",
    bad_params="bad_address",
)


Row = dict[str, Any]
_SORTS: Mapping[str, Callable[[Row], Any]] = {
    "cost": lambda row: row["costEth"],
    "worth": lambda row: row["worthEth"],
    "gain": lambda row: row["gainEth"],
    "share": lambda row: row["supplyBps"],
    "traded": lambda row: row["lastTradedAt"],
}
"""By what positions are sorted, the largest first; a value that is not known comes last."""
_NO_GAIN = 1e-9
"""A gain of a smaller part of the cost is none: floats are not more exact."""
_MOST_DAYS = 90
"""The chart has so many days: each more makes its bars thinner."""


async def show_wallet(visit: Visit) -> Response:
    """GET /wallet/{address}: the wallet's history and holdings, with its names and marks. ``sort``: how its
    positions are sorted."""
    page = await visit.ask_old(_PAGE, address=visit.path["address"])
    answer = page.pop("history")
    sort = visit.query.get("sort", "cost")
    sort = sort if sort in _SORTS else "cost"
    positions = sort_positions([value_position(row) for row in answer["holdings"]["rows"]], sort)
    return visit.show(
        "wallet.html",
        answer=answer,
        positions=positions,
        states=await read_token_states(visit, [row["token"]["address"] for row in positions]),
        unrealised=sum_gains(positions),
        sort=sort,
        sorts=tuple(_SORTS),
        bars=draw_profit(page["days"], answer["blockTime"]),
        is_unknown=is_unknown(answer),
        **page,
        **await _mark_values(visit),
    )


def is_unknown(answer: Mapping[str, Any]) -> bool:
    """Whether the index knows nothing of what the wallet did."""
    launches, record = answer["launches"], answer["record"]
    counts = (launches["count"], launches["intoPools"], record["trades"], answer["holdings"]["count"])
    return answer["originStatus"] != "known" and not any(counts)


def value_position(row: Row) -> Row:
    """The position with its cost (the average price of its buys times the amount) and its gain at the last
    price, in eth and bps of the cost. None: not known."""
    cost = worth = gain_bps = None
    if row["entryEth"] is not None and row["amount"] is not None:
        cost = row["entryEth"] * float(row["amount"])
    if cost is not None and row["worthEth"] is not None:
        worth = row["worthEth"] - cost
        if abs(worth) < cost * _NO_GAIN:
            worth = 0.0
        gain_bps = round(10_000 * worth / cost) if cost else None
    return row | {"costEth": cost, "gainEth": worth, "gainBps": gain_bps}


def sort_positions(rows: Sequence[Row], sort: str) -> list[Row]:
    """The positions in the order of ``sort``."""
    value = _SORTS[sort]
    known = [row for row in rows if value(row) is not None]
    return [*sorted(known, key=value, reverse=True), *(row for row in rows if value(row) is None)]


def sum_gains(rows: Sequence[Row]) -> Row | None:
    """The sum of the gains that are known, of how many positions, and what these cost. None: of none."""
    valued = [row for row in rows if row["gainEth"] is not None]
    if not valued:
        return None
    gain, cost = sum(row["gainEth"] for row in valued), sum(row["costEth"] for row in valued)
    return {"eth": gain, "bps": round(10_000 * gain / cost) if cost else None, "positions": len(valued)}


def draw_profit(days: Sequence[Mapping[str, Any]], now: str) -> list[Row]:
    """A bar for each day with closings among the last ``_MOST_DAYS`` up to ``now``, in an SVG of 600 by 120
    with one scale for profits (up) and losses (down). Empty: there is nothing but today."""
    newest = datetime.fromisoformat(now).astimezone(UTC).date()
    ages = [(newest - datetime.fromisoformat(day["day"]).date()).days for day in days]
    shown = [(day, age) for day, age in zip(days, ages, strict=True) if age < _MOST_DAYS]
    if len({age for _, age in shown} | {0}) < 2:
        return []
    high = max(0.0, *(day["profitEth"] for day, _ in shown))
    low = min(0.0, *(day["profitEth"] for day, _ in shown))
    scale, width = 110 / (high - low or 1.0), 600 / (max(age for _, age in shown) + 1)
    zero = 5 + high * scale
    bars = []
    for day, age in shown:
        height, bar_width = max(1.0, abs(day["profitEth"]) * scale), min(width * 0.8, 40.0)
        bar = {
            "x": 600 - (age + 1) * width + (width - bar_width) / 2,
            "y": zero - height if day["profitEth"] > 0 else zero,
            "width": bar_width,
            "height": height,
            "zero": zero,
        }
        bars.append(dict(day) | {name: round(value, 1) for name, value in bar.items()})
    return bars


async def mark_wallet(visit: Visit) -> Response:
    """POST /wallet/{address}/said: names or marks the wallet, or removes both, and shows the result."""
    operation = UNMARK if visit.form.get("off") else MARK
    params = (
        {} if operation is UNMARK else {name: visit.form.get(name, "").strip() for name in ("name", "mark")}
    )
    try:
        await visit.ask_old(
            operation, address=visit.path["address"], **{k: v for k, v in params.items() if v}
        )
    except RoundtripError as fault:
        if fault.code in ("bad_key", "bad_address"):
            raise
        template = "wallet_said_piece.html" if visit.is_piece() else "wallet_said.html"
        status = 200 if visit.is_piece() else fault.status
        return visit.show(template, status, **await _mark_values(visit, fault=fault, form=visit.form))
    if visit.is_piece():
        return visit.show("wallet_said_piece.html", **await _mark_values(visit))
    return visit.redirect(f"/wallet/{visit.path['address']}#said")


async def _mark_values(visit: Visit, **result: Any) -> dict[str, Any]:
    address = visit.path["address"]
    own = None if visit.session is None else await visit.ask_old(_OWN, address=address)
    return {
        "said": await visit.ask_old(_SAID, address=address), "mine": own, "fault": None, "form": {}, **result
    }  # fmt: skip


async def show_linked(visit: Visit) -> Response:
    """GET /wallet/{address}/linked: linked wallets, a piece of the wallet's page."""
    answer = await visit.ask_old("linked_wallets", address=visit.path["address"])
    template = "linked_piece.html" if visit.is_piece() else "linked.html"
    return visit.show(template, answer=answer, trees=draw_ties(answer))


def draw_ties(answer: Mapping[str, Any]) -> list[Row]:
    """Who sent whom the first eth, as trees: the wallet's funder with the wallets that it paid, and the
    wallet with those that it paid. Each tree has its payer in the middle and rows of wallets."""
    kin: dict[str, list[str]] = {"same_funder": [], "funded_by": [], "funded": []}
    for one in answer["linked"]:
        for kind in dict.fromkeys(reason["kind"] for reason in one["reasons"]):
            kin.get(kind, []).append(one["address"])
    funder, wallet = answer["funder"], answer["address"]
    trees = []
    if funder is not None:
        trees.append((funder["address"], "first funder", [wallet, *kin["same_funder"]]))
    if kin["funded"]:
        trees.append((wallet, "this wallet", kin["funded"]))
    return [_lay_out_tree(heart, label, rows, wallet) for heart, label, rows in trees]


def _lay_out_tree(heart: str, label: str, wallets: Sequence[str], own: str) -> Row:
    drawn = wallets[:_MOST_DRAWN]
    nodes = [
        {"address": address, "y": 24 + 30 * place, "own": address == own}
        for place, address in enumerate(drawn)
    ]
    height = max(30 * len(nodes) + 18, 96)
    return {
        "heart": heart, "label": label, "nodes": nodes, "height": height, "middle": height // 2,
        "notDrawn": len(wallets) - len(nodes),
    }  # fmt: skip


async def show_transaction(visit: Visit) -> Response:
    """GET /transaction/{hash}: what a transaction did."""
    page = await visit.ask_old(_TRANSACTION, hash=visit.path["hash"])
    told = page["told"]
    return visit.show(
        "transaction.html",
        answer=told,
        changes=page["changes"],
        fee_usd=page["feeUsd"],
        verdicts=page["verdicts"],
        kind=_KINDS.get(told["status"], "Transaction"),
    )
