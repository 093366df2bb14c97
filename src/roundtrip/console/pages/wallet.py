"""The pages of a wallet and of a transaction."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from starlette.responses import Response

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.pages.account_sections.marks import MARK, UNMARK
from roundtrip.console.pages.chart import shorten_price
from roundtrip.console.support.page_operations import own_operation, page_operation, page_variant
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.token_states import read_token_states
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.community.mark_wallet import own_of_wallet, wallet_said
from roundtrip.services.lookup.call_tree import transaction_calls
from roundtrip.services.lookup.entities import find_role
from roundtrip.services.lookup.explain import ExplainParams, Explanation, transaction_page
from roundtrip.services.support.answer_fields import WalletParams
from roundtrip.services.wallets.history import RealisedDay, wallet_page, wallet_trades
from roundtrip.services.wallets.history_answer import HoldingAnswer, WalletHistory
from roundtrip.services.wallets.linked import LinkedWallets

_PAGE = page_variant(find_operation("wallet_history", WalletParams, WalletHistory), wallet_page)
_TRANSACTION = page_variant(
    find_operation("explain_transaction", ExplainParams, Explanation), transaction_page
)
CALLS = page_operation(
    transaction_calls, shared_by=lambda params: params.hash.lower(), lane="checks",
    bad_params="bad_address", errors=("not_found", "upstream", "busy"),
)  # fmt: skip
# Open pages ask for the newest again and again, as for a token's.
_TRADES = page_operation(
    wallet_trades, counts="never", shared_by=lambda params: params.address.lower(),
    from_replica=True, errors=("bad_address", "busy"),
)  # fmt: skip
_OLDER_TRADES = page_operation(
    wallet_trades, "older_trades", shared_by=lambda params: f"{params.address.lower()} {params.before}",
    from_replica=True, errors=("bad_address", "busy"),
)  # fmt: skip
_LINKED = find_operation("linked_wallets", WalletParams, LinkedWallets)
# Both are part of showing or marking a wallet, which is counted.
_SAID = page_operation(wallet_said, counts="never", bad_params="bad_address")
_OWN = own_operation(own_of_wallet, counts="never", bad_params="bad_address")
_KINDS = {"failed": "Failed transaction", "pending": "Waiting transaction"}
_MAX_DRAWN = 12
"""Wallets in one drawing: the list below it has the rest."""


class GainSum(NamedTuple):
    """The sum of the gains that are known, of how many positions. ``bps``: of what these cost; None: they
    cost nothing."""

    eth: float
    bps: int | None
    positions: int


class ProfitBar(NamedTuple):
    """A day's bar in an SVG of 600 by 120; ``zero``: the y of the zero line; ``closed``: how many
    positions were closed that day."""

    day: datetime
    closed: int
    profit_eth: float
    x: float
    y: float
    width: float
    height: float
    zero: float


class TreeNode(NamedTuple):
    """A wallet in a drawing. ``own``: it is the page's wallet."""

    address: str
    y: int
    own: bool


class PayerTree(NamedTuple):
    """A payer (``heart``) beside rows of the wallets that it paid. ``middle``: the payer's y."""

    heart: str
    label: str
    nodes: list[TreeNode]
    height: int
    middle: int
    not_drawn: int


_SORTS: Mapping[str, Callable[[HoldingAnswer], Any]] = {
    "cost": lambda row: row.cost_eth,
    "worth": lambda row: row.worth_eth,
    "gain": lambda row: row.gain_eth,
    "share": lambda row: row.supply_bps,
    "traded": lambda row: row.last_traded_at,
}
"""By what positions are sorted, the largest first; a value that is not known comes last."""
_MAX_DAYS = 90
"""The chart has so many days: each more makes its bars thinner."""


async def show_wallet(visit: Visit) -> Response:
    """GET /wallet/{address}: the wallet's history and holdings, with its names and marks. ``sort``: how its
    positions are sorted."""
    page = await visit.ask(_PAGE, WalletParams(visit.address))
    answer = page.history
    sort = visit.query.get("sort", "cost")
    sort = sort if sort in _SORTS else "cost"
    positions = sort_positions(answer.holdings.rows, sort)
    shown = [row.token.address for row in positions] + [row.token.address for row in answer.launches.rows]
    return visit.show(
        "wallet.html",
        page=page,
        answer=answer,
        positions=positions,
        find_gain_bps=find_gain_bps,
        states=await read_token_states(visit, shown),
        unrealised=sum_gains(positions),
        sort=sort,
        sorts=tuple(_SORTS),
        bars=draw_profit(page.days, answer.block_time),
        is_unknown=is_unknown(answer),
        **(await _read_trades(visit) if answer.record.trades else {"found": None}),
        **await _mark_values(visit),
    )


def is_unknown(answer: WalletHistory) -> bool:
    """Whether the index knows nothing of what the wallet did."""
    launches = answer.launches
    counts = (launches.count, launches.into_pools, answer.record.trades, answer.holdings.count)
    return answer.origin_status != "known" and not any(counts)


def find_gain_bps(row: HoldingAnswer) -> int | None:
    """The gain in hundredths of a percent of the cost; None: not known, or it cost nothing."""
    return None if row.gain_eth is None or not row.cost_eth else round(10_000 * row.gain_eth / row.cost_eth)


def sort_positions(rows: Sequence[HoldingAnswer], sort: str) -> list[HoldingAnswer]:
    """The positions in the order of ``sort``."""
    value = _SORTS[sort]
    known = [row for row in rows if value(row) is not None]
    return [*sorted(known, key=value, reverse=True), *(row for row in rows if value(row) is None)]


def sum_gains(rows: Sequence[HoldingAnswer]) -> GainSum | None:
    """The sum of the gains that are known; None: no gain is known."""
    gains = [row.gain_eth for row in rows if row.gain_eth is not None]
    if not gains:
        return None
    gain = sum(gains)
    cost = sum(row.cost_eth for row in rows if row.gain_eth is not None and row.cost_eth is not None)
    return GainSum(gain, round(10_000 * gain / cost) if cost else None, len(gains))


def draw_profit(days: Sequence[RealisedDay], now: datetime) -> list[ProfitBar]:
    """A bar for each of the last ``_MAX_DAYS`` up to ``now`` on which positions were closed, with one scale
    for profits (up) and losses (down). Empty: none was closed in that time before today."""
    ages = [(now.date() - day.day.date()).days for day in days]
    shown = [(day, age) for day, age in zip(days, ages, strict=True) if age < _MAX_DAYS]
    if all(age == 0 for _, age in shown):
        return []
    high = max(0.0, *(day.profit_eth for day, _ in shown))
    low = min(0.0, *(day.profit_eth for day, _ in shown))
    scale, width = 110 / (high - low or 1.0), 600 / (max(age for _, age in shown) + 1)
    zero = 5 + high * scale
    bars = []
    for day, age in shown:
        height, bar_width = max(1.0, abs(day.profit_eth) * scale), min(width * 0.8, 40.0)
        x = 600 - (age + 1) * width + (width - bar_width) / 2
        y = zero - height if day.profit_eth > 0 else zero
        places = (round(value, 1) for value in (x, y, bar_width, height, zero))
        bars.append(ProfitBar(day.day, day.closed, day.profit_eth, *places))
    return bars


async def mark_wallet(visit: Visit) -> Response:
    """POST /wallet/{address}/said: names or marks the wallet, or removes both, and shows the result."""
    params = {"address": visit.address}
    try:
        if visit.form.get("off"):
            await visit.ask(UNMARK, params)
        else:
            written = {name: visit.form.get(name, "").strip() for name in ("name", "mark")}
            await visit.ask(MARK, params | {name: text for name, text in written.items() if text})
    except RoundtripError as fault:
        if fault.code in ("bad_key", "bad_address"):
            raise
        template = "wallet_said_piece.html" if visit.is_piece() else "wallet_said.html"
        # htmx does not show an answer with an error status.
        status = 200 if visit.is_piece() else fault.status
        return visit.show(template, status, **await _mark_values(visit, fault=fault, form=visit.form))
    if visit.is_piece():
        return visit.show("wallet_said_piece.html", **await _mark_values(visit))
    return visit.redirect(f"/wallet/{visit.path['address']}#said")


async def _mark_values(visit: Visit, **result: Any) -> dict[str, Any]:
    params = WalletParams(visit.address)
    own = None if visit.session is None else await visit.ask(_OWN, params)
    return {"said": await visit.ask(_SAID, params), "mine": own, "fault": None, "form": {}, **result}


async def show_trades(visit: Visit) -> Response:
    """GET /wallet/{address}/trades: its newest trades, a piece of the wallet's page or a page of its own;
    ``before``: those before one."""
    before = visit.query.get("before", "")
    template = "wallet_trades_piece.html" if visit.is_piece() else "wallet_trades.html"
    return visit.show(template, **await _read_trades(visit, before))


async def _read_trades(visit: Visit, before: str = "") -> dict[str, Any]:
    operation = _OLDER_TRADES if before else _TRADES
    found = await visit.ask(operation, {"address": visit.address, "before": before})
    return {"found": found, "is_older": bool(before), "shorten": shorten_price}


async def show_linked(visit: Visit) -> Response:
    """GET /wallet/{address}/linked: linked wallets, a piece of the wallet's page."""
    answer = await visit.ask(_LINKED, WalletParams(visit.address))
    template = "linked_piece.html" if visit.is_piece() else "linked.html"
    return visit.show(template, answer=answer, trees=draw_ties(answer))


def draw_ties(answer: LinkedWallets) -> list[PayerTree]:
    """Who sent whom the first eth, as trees: the wallet's funder with the wallets that it paid, and the
    wallet with those that it paid."""
    wallets_by_reason: dict[str, list[str]] = {"same_funder": [], "funded_by": [], "funded": []}
    for linked in answer.linked:
        for kind in dict.fromkeys(reason.kind for reason in linked.reasons):
            wallets_by_reason.get(kind, []).append(linked.address)
    funder, wallet = answer.funder, answer.address
    trees = []
    if funder is not None:
        trees.append((funder.address, "first funder", [wallet, *wallets_by_reason["same_funder"]]))
    if paid := wallets_by_reason["funded"]:
        trees.append((wallet, "this wallet", paid))
    return [_lay_out_tree(payer, label, rows, wallet) for payer, label, rows in trees]


def _lay_out_tree(payer: str, label: str, wallets: Sequence[str], page_wallet: str) -> PayerTree:
    drawn = wallets[:_MAX_DRAWN]
    nodes = [
        TreeNode(address, 24 + 30 * place, address == page_wallet) for place, address in enumerate(drawn)
    ]
    height = max(30 * len(nodes) + 18, 96)
    return PayerTree(payer, label, nodes, height, height // 2, len(wallets) - len(nodes))


async def show_transaction(visit: Visit) -> Response:
    """GET /transaction/{hash}: what a transaction did."""
    page = await visit.ask(_TRANSACTION, ExplainParams(visit.subject))
    kind = _KINDS.get(page.told.status, "Transaction")
    role = find_role(page.told.to or "", visit.console.dispatch.ctx.contracts)
    return visit.show("transaction.html", page=page, answer=page.told, kind=kind, to_role=role)


async def show_calls(visit: Visit) -> Response:
    """GET /transaction/{hash}/calls: who calls whom in it, a piece of its page, or a page of its own."""
    tree = await visit.ask(CALLS, ExplainParams(visit.subject))
    template = "calls_piece.html" if visit.is_piece() else "calls.html"
    return visit.show(template, hash=visit.subject, tree=tree, is_own=False)
