"""The token's page: whether it can be sold, what that costs, what could change it, and who holds it."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from roundtrip.api.operations.catalog import find_operation
from roundtrip.api.operations.operation import A, AnyOperation, Operation, P
from roundtrip.console.support.page_operations import page_operation, page_variant
from roundtrip.console.support.page_request import SIZED, Visit
from roundtrip.console.support.token_states import read_token_states
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.figures import format_amount
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.flags import FLAGS
from roundtrip.domain.market.exposure import LeavingLiquidity
from roundtrip.domain.verdicts.deciding import explains
from roundtrip.domain.verdicts.facts import (
    BundleShare,
    HolderShares,
    LiquidityShares,
    TokenFact,
    describe_age,
    describe_deployer,
    describe_flags,
    describe_holders,
    describe_liquidity,
    describe_outlook,
    describe_pool_cost,
    describe_stored_insiders,
    describe_stored_liquidity,
    describe_taxes,
    select_facts,
    sort_facts,
)
from roundtrip.domain.verdicts.risks import MARKED_LOSS_BPS, Risk, combine_risks, rate_loss
from roundtrip.domain.verdicts.words import has_pool, is_tradable, level_word
from roundtrip.services.check.card import CheckCard
from roundtrip.services.check.handler import CheckAtSize, check_at_size
from roundtrip.services.check.kept_card import CardParams, check_card
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.holders.growth import GrowthPoint
from roundtrip.services.holders.handlers import HoldersPage, holders_page
from roundtrip.services.holders.insiders import StoredRisk, stored_risk
from roundtrip.services.holders.launch_bundle import LaunchGroup
from roundtrip.services.holders.schema import BundleAnswer, DeployerHolds, TokenHolders
from roundtrip.services.liquidity.schema import Liquidity
from roundtrip.services.lookup.look_up import LookAlikeParams, token_look_alike
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.check_answer import Check
from roundtrip.services.support.look_alikes import LookAlikeAnswer
from roundtrip.services.verdicts.history import CheckHistory, VerdictChange

from .account_sections.bag import BAG, PAST
from .docs import write_examples
from .holder_ties import draw_ties, lay_out_group
from .token_acts import read_watched

# Pages pass ``deep`` as a parameter, not in a query string.
_CHECK = replace(find_operation("check_token", CheckParams, Check), query=())
_AT_SIZE = page_variant(_CHECK, check_at_size)
_CARD = page_operation(check_card, counts="never", bad_params="bad_address")
_LOOK_ALIKE = page_operation(token_look_alike, counts="never", errors=("upstream",))
_HOLDERS = page_variant(find_operation("token_holders", TokenParams, TokenHolders), holders_page)
# The check beside it counts. A refused check asks for no holders.
_HOLDERS_AT_ONCE = replace(_HOLDERS, counts="never")
_STORED_RISK = page_operation(stored_risk, counts="never", bad_params="bad_address")
_HISTORY = replace(find_operation("check_history", TokenParams, CheckHistory), counts="never")
_LIQUIDITY = find_operation("token_liquidity", TokenParams, Liquidity)
NOTHING_STORED = StoredRisk()
_AFTER = "hx-trigger-after-settle"
"""The header that makes htmx raise an event when a piece is shown: then ``know_piece.html`` loads again, with
what that piece has read."""
_HOLDERS_S = 0.25
"""How long the page waits for its holders: it may show the verdict that much later."""
_AWAY, _AGAIN_S, _MAX_EARLIER = ("upstream", "busy"), 10, 3
"""Errors after which the page shows what it has; how soon it tries again; how many verdicts it names."""
_MAX_VERDICTS, _MIN_WIDTH = 20, 6.0
"""How many verdicts the strip shows, and the least width of one."""
_FLAG_TEXTS = {name: " ".join((holds.__doc__ or "").split()) for name, holds in FLAGS.items()}
_CHANGE_STATES = {
    "can": "Can change",
    "may": "May change",
    "not_known": "Not known",
    "not_tried": "Not tried",
    "not_found": "Nothing found",
}


async def show_token(visit: Visit) -> Response:
    """GET /token/{address}: the verdict card, from a check of this moment. ``amount``: eth that the check
    spends. Where no check can be made: what is known without one."""
    try:
        return await _show_checked(visit)
    except RoundtripError as fault:
        if visit.is_piece_for(SIZED) and fault.code not in ("rate_limited", "bad_key"):
            return _show_size_fault(visit, fault)
        if visit.is_piece() or fault.code not in _AWAY:
            raise
        return await _show_unchecked(visit, fault)


def _show_size_fault(visit: Visit, fault: RoundtripError) -> Response:
    """Why another size was not checked: beside its field, in place of the verdict."""
    response = visit.show("fault_piece.html", error=fault)
    response.headers["hx-retarget"], response.headers["hx-reswap"] = "#size-fault", "innerHTML"
    response.headers["hx-replace-url"] = "false"
    return response


async def _show_checked(visit: Visit) -> Response:
    params = read_check_params(visit)
    is_usual = params.probe_wei() is None
    row = find_check(params)
    is_sized = visit.is_piece_for(SIZED)
    if visit.is_piece() and not is_sized:
        # A piece belongs to a page whose check was counted, and shows that check as long as it is shared.
        if _find_shared(visit, row, params.shared_as()) is None:
            return Response(status_code=204)
        row = replace(row, counts="never")
    check, sized_card, raw = await ask_check(visit, row, params)
    address = check.address
    card, look_alike, history, holders, watched, stored = await at_once(
        _read_card(visit, check, sized_card),
        _read_look_alike(visit, check),
        _ask_or_none(visit, _HISTORY, TokenParams(address)),
        read_holders(visit, address, check.verdict.code),
        read_watched(visit, address),
        read_risk(visit, address),
    )
    query = _write_query(params)
    ctx = visit.console.dispatch.ctx
    liquidity = _find_shared(visit, _LIQUIDITY, address)
    says_liquidity = params.asks_deep() and is_usual
    verdict = check.verdict
    facts = list_facts(check, card, holders, liquidity, says_liquidity, stored)
    return visit.show(
        "sized_piece.html" if is_sized else "know_piece.html" if visit.is_piece() else "token.html",
        is_sized=is_sized,
        word_id=f"word-{check.checked_at.timestamp() * 1000:.0f}-{params.probe_wei() or 0}",
        word=level_word(verdict.level, verdict.code),
        colour=verdict.level,
        **_list_risk_values(check, card, holders, stored),
        is_tradable=is_tradable(verdict.code),
        has_pool=has_pool(verdict.code),
        is_traded=stored.is_traded,
        facts=select_facts(facts, verdict.level, verdict.code),
        check=check,
        card=card,
        amount=params.amount,
        is_usual=is_usual,
        back=amount_back(check, card),
        tells_back=tells_back(check, card),
        smaller=find_smaller(card, params.amount),
        knows_liquidity=says_liquidity or liquidity is not None or stored.leaving is not None,
        loss_colour=rate_loss,
        query=query,
        shared_s=(POLICY.deep_ttl_ms if params.asks_deep() else POLICY.answer_ttl_ms) // 1000,
        strip=draw_history(history),
        holders=None if holders is None else _holder_values(holders),
        look_alike=look_alike,
        watched=watched,
        flags=_FLAG_TEXTS,
        standings=_CHANGE_STATES,
        raw=raw,
        examples=write_examples(f"{ctx.public_url}/v1/check/{address}{query}"),
        mcp=_write_tool_call(address),
        head=ctx.heads.last_number(),
    )


def _list_risk_values(
    check: Check, card: CheckCard | None, holders: HoldersPage | None, stored: StoredRisk
) -> dict[str, Any]:
    """``grave``: the first risk that is a danger; None: none is."""
    risks = list_risks(check, card, holders.held if holders else None, stored)
    return {"risks": risks, "grave": next((risk for risk in risks if risk.level == "danger"), None)}


def _write_query(params: CheckParams) -> str:
    size = {} if params.probe_wei() is None else {"amount": params.amount}
    written = urlencode(({"deep": 1} if params.asks_deep() else {}) | size)
    return f"?{written}" if written else ""


def _write_tool_call(address: str) -> str:
    call = {"name": "check_token", "arguments": {"address": address}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})


async def ask_check(
    visit: Visit, row: AnyOperation, params: CheckParams
) -> tuple[Check, CheckCard | None, str]:
    """The check, its card if it has one of its own, and the answer as programs get it."""
    body = await visit.ask_json(row, params)
    raw = msgspec.json.decode(body)
    if row.answer is CheckAtSize:
        sized, raw = msgspec.json.decode(body, type=CheckAtSize), raw["check"]
        check, card = sized.check, sized.card
    else:
        check, card = msgspec.json.decode(body, type=Check), None
    return check, card, json.dumps(raw, indent=2, ensure_ascii=False)


class CheckQuery(msgspec.Struct):
    """The query string of a check."""

    deep: str = "0"
    amount: str = "0.1"


def read_check_params(visit: Visit) -> CheckParams:
    """The check that the page's address names."""
    query = msgspec.convert(visit.query, CheckQuery)
    return CheckParams(visit.address, query.deep, query.amount.replace(",", "."))


def find_check(params: CheckParams) -> AnyOperation:
    """The operation that makes this check. Raises CallerFault (bad_input)."""
    return _CHECK if params.probe_wei() is None else _AT_SIZE


def list_facts(
    check: Check,
    card: CheckCard | None,
    holders: HoldersPage | None,
    liquidity: Liquidity | None,
    says_liquidity: bool = False,
    stored: StoredRisk = NOTHING_STORED,
) -> list[TokenFact]:
    """What is known, the worst first. ``card``, ``holders``, ``liquidity``: None: not known here, or not yet,
    which is never a pass. ``says_liquidity``: the verdict's text says who can withdraw it. ``stored``: what
    was last read."""
    held = None if holders is None else holders.held
    cost = None if card is None else card.cost
    facts = [] if held else describe_stored_insiders(stored.insiders_bps)
    facts += describe_holders(None if holders is None else _read_shares(holders))
    facts += describe_flags(check.flags)
    if card is not None:
        facts += describe_outlook(card.outlook, check.token.owner, card.deep)
    if cost is not None:
        figure = None if card is None else card.figure
        facts += describe_taxes(cost.buy_tax_bps, cost.sell_tax_bps, cost.tax_bps, figure)
        facts += describe_pool_cost(cost.pool_bps, cost.impact_bps)
    record = None if check.launchpad is None else check.launchpad.deployer
    if record is not None and "serial_deployer" not in check.flags:
        facts.append(describe_deployer(record.launches, record.graduated, record.sold_own))
    facts += describe_age(launch_age_s(check, held))
    if liquidity is not None and not says_liquidity and check.verdict.code != "no_pool":
        facts.append(describe_liquidity(_read_liquidity(liquidity)))
    elif not says_liquidity and check.verdict.code != "no_pool":
        facts.append(describe_stored_liquidity(stored.leaving))
    return sort_facts(facts)


def _read_shares(page: HoldersPage) -> HolderShares | None:
    """What the holders' answers say of shares; None: not read yet."""
    held, bundle, deployer = page.held, page.held.bundle, page.held.deployer
    if held.holders is None:
        return None
    purses = [] if held.forensics.purses is None else held.forensics.purses.rows
    strangers = ((purse.wallets, purse.held_bps) for purse in purses if not purse.has_deployer)
    shares = HolderShares(
        insiders_bps=held.forensics.suspicious_bps,
        top10_bps=held.holders.top10_bps,
        is_complete=held.status == "complete",
        deployer_bps=None if deployer is None else deployer.held_bps or 0,
        purse=next(strangers, None),
        has_deployers_purse=any(purse.has_deployer for purse in purses),
    )
    if bundle is None:
        return shares
    is_among = deployer is not None and _is_in_bundle(deployer, bundle, page.launched.groups)
    share = BundleShare(bundle.wallets, bundle.held_bps or 0, bundle.funder is not None, is_among)
    return replace(shares, bundle=share)


def _is_in_bundle(deployer: DeployerHolds, bundle: BundleAnswer, groups: Sequence[LaunchGroup]) -> bool:
    """Whether the deployer is known to be one of the largest bundle's wallets."""
    same = (bundle.wallets, bundle.held_bps)
    return (bundle.held_bps or 0) >= (deployer.held_bps or 0) and any(
        deployer.address in [wallet.address for wallet in group.wallets]
        for group in groups
        if group.is_bundle and (group.count, group.held_bps) == same
    )


def launch_age_s(check: Check, held: TokenHolders | None) -> int | None:
    """Seconds between the token's launch and the check; None: not known."""
    launch = None if held is None else held.launch
    if launch is None or launch.time is None:
        return None
    return int((check.checked_at - launch.time).total_seconds())


def _read_liquidity(liquidity: Liquidity) -> LiquidityShares | None:
    totals = liquidity.totals
    if totals is None:
        return None
    return LiquidityShares(
        LeavingLiquidity(totals.free_bps, totals.unknown_bps + totals.contract_bps),
        kept_bps=totals.burned_bps + totals.launchpad_bps,
        locked_bps=totals.locked_bps,
        has_free_beside=liquidity.if_it_left is not None,
        is_complete=liquidity.pools_complete,
    )


def list_risks(
    check: Check, card: CheckCard | None, held: TokenHolders | None, stored: StoredRisk
) -> list[Risk]:
    """The risks beside the verdict of a token that a pool trades: with what is stored of the token, and what
    its holders say where they were read for this page."""
    level, code = check.verdict.level, check.verdict.code
    if level == "unknown" or not has_pool(code) or not is_tradable(code):
        return []
    now_bps = None if held is None or held.holders is None else held.forensics.suspicious_bps
    return combine_risks(
        [] if card is None else card.risks,
        stored.insiders_bps if now_bps is None else now_bps,
        stored.leaving,
        launch_age_s(check, held),
    )


async def _show_unchecked(visit: Visit, fault: RoundtripError) -> Response:
    """The page of a token that cannot be checked now: no verdict, and the rest that is known."""
    address = visit.address
    history = await _ask_or_none(visit, _HISTORY, TokenParams(address))
    earlier = [] if history is None else history.changes[:_MAX_EARLIER]
    after_s = fault.retry_after_s or _AGAIN_S
    return visit.show(
        "token_away.html", fault.status, address=address, error=fault, earlier=earlier, after_s=after_s
    )


def amount_back(check: Check, card: CheckCard | None) -> str | None:
    """What the sell brings back of what the buy paid, as a plain decimal cut to four digits; None: it was not
    measured, or a part may not have been sold."""
    trade = check.trade
    if trade is None or trade.round_trip_loss_bps is None or trade.method != "simulated_trade":
        return None
    sold_bps = card.sold_bps if card else BPS if check.verdict.level == "ok" else None
    if sold_bps is None:
        return None
    back = Decimal(trade.paid.amount) * (BPS - trade.round_trip_loss_bps) * sold_bps / BPS / BPS
    return format_amount(max(0, int(back * 10**18)), 18)


def tells_back(check: Check, card: CheckCard | None) -> bool:
    """Whether ``amount_back`` can be told alone, as in a shared text or to a screen reader: not where less
    than all of it sells, or where another loss than the round trip's stands first on the page."""
    if amount_back(check, card) is None or check.verdict.level not in ("ok", "warn"):
        return False
    if card is None:
        return True
    impact_bps = 0 if card.cost is None else card.cost.impact_bps or 0
    is_replaced = card.figure is not None and card.figure.replaces_tax()
    return card.sold_bps == BPS and impact_bps < MARKED_LOSS_BPS and not is_replaced


def find_smaller(card: CheckCard | None, amount: str) -> str | None:
    """The size in eth that was tried, where it is less than ``amount``, which did not go through; None: it
    is that amount, or it is not known."""
    size = None if card is None or card.cost is None else card.cost.size
    tried, _, unit = (size or "").partition(" ")
    return tried if unit == "eth" and Decimal(tried) < Decimal(amount) else None


class HistorySpan(NamedTuple):
    """A verdict in a strip 600 wide: where it begins and how wide it is, its colour and its word; the loss of
    its round trip, where that says why."""

    change: VerdictChange
    word: str
    x: float
    width: float
    loss_bps: int | None


def draw_history(history: CheckHistory | None) -> list[HistorySpan]:
    """The token's verdicts from the oldest on. Empty: fewer than two are known."""
    changes = [] if history is None else history.changes[:_MAX_VERDICTS]
    if len(changes) < 2:
        return []
    oldest_first = changes[::-1]
    begin, end = oldest_first[0].checked_at, changes[0].last_checked_at
    whole_s = max(1.0, (end - begin).total_seconds())
    strip = []
    for change, until in zip(
        oldest_first, [*(later.checked_at for later in oldest_first[1:]), end], strict=True
    ):
        x = 600 * (change.checked_at - begin).total_seconds() / whole_s
        width = max(_MIN_WIDTH, 600 * (until - change.checked_at).total_seconds() / whole_s)
        x, width = round(min(x, 600 - _MIN_WIDTH), 1), round(width, 1)
        loss_bps = change.round_trip_loss_bps
        if loss_bps is not None and not explains(change.code, loss_bps, POLICY):
            loss_bps = None
        strip.append(HistorySpan(change, level_word(change.level, change.code), x, width, loss_bps))
    return strip


async def _ask_or_none(visit: Visit, operation: Operation[P, A], params: P) -> A | None:
    """The answer; None: an error, which the part's own page shows."""
    try:
        return await visit.ask(operation, params)
    except RoundtripError:
        return None


async def read_risk(visit: Visit, address: str) -> StoredRisk:
    """What is stored of the token; all None where it cannot be read."""
    return await _ask_or_none(visit, _STORED_RISK, TokenParams(address)) or NOTHING_STORED


async def read_holders(visit: Visit, address: str, code: str) -> HoldersPage | None:
    """The answer for the holders' part if it is there at once; None: the part loads by itself later. Then
    the run goes on, and the part gets its answer. ``code``: that of the token's verdict."""
    if not is_tradable(code):
        return None
    try:
        async with asyncio.timeout(_HOLDERS_S):
            return await _ask_or_none(visit, _HOLDERS_AT_ONCE, TokenParams(address))
    except TimeoutError:
        return None


def _find_shared(visit: Visit, operation: Operation[Any, A], shared_as: str) -> A | None:
    """The answer that is shared under this name, if it has not expired; None: there is none. Runs nothing."""
    found = visit.console.dispatch.shared.find_fresh(f"{operation.name}:{shared_as}")
    return None if found is None else msgspec.json.decode(found.body, type=operation.answer)


async def _read_card(visit: Visit, check: Check, sized_card: CheckCard | None) -> CheckCard | None:
    """``sized_card``, or else the stored card of the check that is shown (no further call is counted); None:
    there is none, or the database is unavailable."""
    if sized_card is not None:
        return sized_card
    try:
        return (await visit.ask(_CARD, CardParams(check.address, check.checked_at))).card
    except RoundtripError as fault:
        if fault.code != "busy":
            raise
        return None


async def _read_look_alike(visit: Visit, check: Check) -> LookAlikeAnswer | None:
    """The token that this one looks like. None: none was found, or the index or the node is unavailable."""
    params = LookAlikeParams(check.address, check.token.symbol, check.token.name)
    try:
        return (await visit.ask(_LOOK_ALIKE, params)).look_alike
    except RoundtripError as fault:
        if fault.code not in ("busy", "upstream"):
            raise
        return None


async def show_holders(visit: Visit) -> Response:
    """GET /token/{address}/holders: a piece of the token's page, or a page of its own."""
    page = await visit.ask(_HOLDERS, TokenParams(visit.address))
    template = "holders_piece.html" if visit.is_piece() else "holders.html"
    response = visit.show(template, **_holder_values(page))
    if page.held.status != "reading":
        response.headers[_AFTER] = "holders-read"
    return response


def _holder_values(page: HoldersPage) -> dict[str, Any]:
    """What the holders' part shows and draws."""
    return {
        "held": page.held,
        "launched": page.launched,
        "grown": page.grown,
        "large_buy": page.large_buy,
        "graphs": [lay_out_group(group) for group in page.launched.groups if group.is_bundle],
        "ties": draw_ties(page.held, page.launched),
        "lines": draw_growth(page.grown.points),
    }


def draw_growth(points: Sequence[GrowthPoint]) -> dict[str, list[str]]:
    """The lines of the number of holders and of the share of the ten biggest, as the points of an SVG of 600
    by 80, each from 0 up. A share that is not known parts its line. Empty: fewer than two points."""
    if len(points) < 2:
        return {}
    most = max(point.holders for point in points) or 1
    counts = [point.holders / most for point in points]
    shares = [None if point.top10_bps is None else point.top10_bps / BPS for point in points]
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


async def show_own(visit: Visit) -> Response:
    """GET /token/{address}/own: what the visitor's wallet holds of the token, a piece of its page."""
    address = visit.address.lower()
    try:
        # What a wallet sells is simulated: only where the index says that it holds the token.
        known = {guard.address for guard in (await visit.ask(PAST)).guards}
        rows = (await visit.ask(BAG)).holdings if address in known else []
    except RoundtripError as fault:
        if fault.code == "bad_key":
            raise
        rows = []
    held = next((row for row in rows if row.token.address == address), None)
    return visit.show("own_piece.html", held=held)


async def show_liquidity(visit: Visit) -> Response:
    """GET /token/{address}/liquidity: a piece of the token's page, or a page of its own."""
    found = await visit.ask(_LIQUIDITY, TokenParams(visit.address))
    if visit.is_piece():
        response = visit.show("liquidity_piece.html", found=found)
    else:
        states = await read_token_states(visit, [found.address])
        response = visit.show("liquidity.html", found=found, state=states.get(found.address))
    response.headers[_AFTER] = "liquidity-read"
    return response
