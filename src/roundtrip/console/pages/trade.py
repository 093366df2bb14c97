"""The pages that prepare a trade for the visitor's own wallet, and that simulate calls."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, cast

import msgspec
from starlette.responses import Response

from roundtrip.api.operations.catalog import find_operation
from roundtrip.api.request.param_errors import quote_name
from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.token_states import read_token_states
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.domain.base.figures import format_eth
from roundtrip.domain.base.pasted import find_only_word
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, plain_decimal
from roundtrip.domain.verdicts.risks import find_insider_warning, rate_loss
from roundtrip.domain.verdicts.words import level_word, simulation_word
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.lookup.call_tree import CallTree, SimulatedCallsParams, VisitorsCall, simulated_calls
from roundtrip.services.lookup.explain import ExplainParams
from roundtrip.services.lookup.sent_call import read_sent_call
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import ETH_DECIMALS, parse_amount
from roundtrip.services.trade.prepare import PrepareBuyParams, PreparedTrade, PrepareSellParams
from roundtrip.services.trade.simulate_params import SimulateParams
from roundtrip.services.trade.simulation_answer import Simulation

from .token import amount_back, ask_check, find_check, find_smaller, list_risks, read_holders, read_risk

if TYPE_CHECKING:
    import roundtrip_verify as verify
else:
    verify = import_module("roundtrip_verify") if find_spec("roundtrip_verify") else None

_BUY = find_operation("prepare_buy", PrepareBuyParams, PreparedTrade)
_SELL = find_operation("prepare_sell", PrepareSellParams, PreparedTrade)
_SENT_CALL = page_operation(
    read_sent_call, shared_by=lambda params: params.hash.lower(), lane="checks", bad_params="bad_address",
    errors=("not_found", "upstream", "busy"),
)  # fmt: skip
# Part of a simulation, which is counted.
CALLS = page_operation(
    simulated_calls, counts="never", lane="calls", bad_params="bad_input", errors=("upstream", "busy")
)
_HASH_LENGTH = 66
_SIMULATE = find_operation("simulate_transaction", SimulateParams, Simulation)
_WITHOUT_FORM = ("bad_key", "internal")
"""Errors that have a page of their own; any other one is said above the form, which keeps its fields."""
_LEAST_USD = 0.005
_SHOWN = ("token", "from", "amount", "percent", "slippage")


@dataclass(frozen=True, slots=True)
class TradeForm:
    """The fields of the trade's form as the visitor wrote them. ``slippage``: in percent."""

    side: str
    token: str
    wallet: str
    amount: str
    percent: str
    slippage: str

    @classmethod
    def read(cls, visit: Visit) -> "TradeForm":
        """The form, filled from the query string."""
        token, wallet, amount, percent, slippage = (visit.query.get(name, "").strip() for name in _SHOWN)
        side = "sell" if visit.query.get("side") == "sell" else "buy"
        return cls(side, token, wallet, amount, percent, slippage or "1")

    def is_complete(self) -> bool:
        """Whether there is enough to prepare the trade."""
        return bool(self.token and self.wallet and (self.amount or self.sells_share()))

    def sells_share(self) -> bool:
        """Whether a share of what the wallet holds is sold: an amount is more exact, and goes before."""
        return bool(self.side == "sell" and self.percent and not self.amount)

    def slippage_bps(self) -> int:
        """In hundredths of a percent. Raises CallerFault (bad_input)."""
        return round(100 * _read_number(self.slippage, "The slippage"))

    def params(self) -> dict[str, object]:
        """The operation's parameters. Raises CallerFault (bad_input)."""
        params: dict[str, object] = {
            "token": self.token,
            "from": self.wallet,
            "slippageBps": self.slippage_bps(),
        }
        if self.sells_share():
            return params | {"percent": _read_number(self.percent, "The share to sell")}
        return params | {"amount": self.amount}

    def order(self) -> "verify.Request":
        """The request that the verifier compares the prepared steps with."""
        amount = None if self.sells_share() else self.amount
        return verify.Request(self.wallet, self.token, self.side, amount, slippage_bps=self.slippage_bps())


def _read_number(text: str, what: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise CallerFault("bad_input", f"{what} must be a number, such as 1.")
    return float(text)


_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


async def show_trade(visit: Visit) -> Response:
    """GET /trade: the form; with a wallet, a token and an amount also the prepared steps and what the
    verifier proves of them."""
    form = TradeForm.read(visit)
    if not form.is_complete():
        return await _show_form(visit, form)
    try:
        operation = _SELL if form.side == "sell" else _BUY
        body = await visit.ask_json(operation, form.params())
    except RoundtripError as fault:
        # A page that is asked for too fast comes back by itself.
        if fault.code in (*_WITHOUT_FORM, "rate_limited"):
            raise
        return await _show_form(visit, form, fault)
    contracts = visit.console.dispatch.ctx.contracts
    trade = msgspec.json.decode(body, type=operation.answer)
    verdict, insiders = trade.verdict, None
    if form.side == "buy":
        # Stores the insiders' share, which is read next.
        await read_holders(visit, trade.token.address, verdict.code)
        stored = await read_risk(visit, trade.token.address)
        insiders = find_insider_warning(verdict.level, stored.insiders_bps)
    return visit.show(
        "trade.html",
        form=form,
        trade=trade,
        word=level_word(verdict.level, verdict.code),
        colour=verdict.level,
        insiders=insiders,
        report=_verify(visit, body, form),
        contracts=contracts,
        gas=_describe_gas(visit, sum(step.gas for step in trade.steps)),
        fault=None,
    )


async def show_quote(visit: Visit) -> Response:
    """GET /trade/quote: what a buy of the form's amount came to in a check at that size, with a wallet of the
    check; empty for a form that names no buy. It makes a check, as the token's page at that size."""
    form = TradeForm.read(visit)
    token = form.token.lower()
    if not (_ADDRESS.fullmatch(token) and form.amount):
        return Response()
    try:
        kept_bps = BPS - form.slippage_bps()
        params = CheckParams(token, amount=form.amount)
        check, card, _ = await ask_check(visit, find_check(params), params)
    except RoundtripError as fault:
        if fault.code in (*_WITHOUT_FORM, "rate_limited"):
            raise
        if fault.code == "bad_input":
            return visit.show("quote_piece.html", check=None, fault=fault)
        return visit.show("fault_piece.html", error=fault)
    stored = await read_risk(visit, token)
    out = check.trade.tokens_out if check.trade else None
    return visit.show(
        "quote_piece.html",
        check=check,
        card=card,
        least=None if out is None else f"{Decimal(out) * max(0, kept_bps) / BPS:f}",
        back=amount_back(check, card),
        amount=params.amount,
        smaller=find_smaller(card, params.amount),
        risks=list_risks(check, card, None, stored),
        loss_colour=rate_loss,
    )


def _describe_gas(visit: Visit, units: int) -> str:
    """What so much gas costs at the newest block's base fee: dollars where the rate is known, else eth."""
    wei, eth_usd = units * visit.console.dispatch.ctx.heads.current().base_fee_wei, visit.eth_usd()
    if eth_usd is None:
        return format_eth(wei)
    usd = wei * eth_usd / WEI_PER_ETH
    return f"${usd:,.2f}" if usd >= _LEAST_USD else "under $0.01"


async def _show_form(visit: Visit, form: TradeForm, fault: RoundtripError | None = None) -> Response:
    status, token = 200 if fault is None else fault.status, form.token.lower()
    # Beside a fault an earlier verdict would look like an answer.
    is_named = fault is None and _ADDRESS.fullmatch(token)
    states = await read_token_states(visit, [token]) if is_named else {}
    return visit.show("trade.html", status, form=form, trade=None, fault=fault, state=states.get(token))


_ADDRESS = re.compile("0x[0-9a-f]{40}")


def _verify(visit: Visit, trade: bytes, form: TradeForm) -> "verify.Report | None":
    """What the verifier proves of the answer that the page shows, byte by byte; None: it is not installed."""
    if verify is None:
        return None
    ctx = visit.console.dispatch.ctx
    contracts = ctx.contracts
    network = verify.Network(
        ctx.chain_id, contracts.weth, contracts.usdg, contracts.permit2, contracts.v3_factory,
        contracts.swap_router02, contracts.universal_router, contracts.launchpad_hook,
    )  # fmt: skip
    try:
        return verify.verify(msgspec.json.decode(trade), network, form.order(), int(ctx.now_s()))
    except verify.Unreadable as error:
        return verify.Report(False, (), (str(error),), ())


async def show_simulate(visit: Visit) -> Response:
    """GET /simulate: the form, filled from the address where that names calls, or a sent transaction."""
    form = _in_eth(visit.query)
    try:
        form = await _fill_in(visit, form, find_hash(visit.query.get("tx", "")))
    except RoundtripError as fault:
        return visit.show("simulate.html", fault.status, form=form, answer=None, fault=fault)
    return visit.show("simulate.html", form=form, answer=None, fault=None)


async def simulate(visit: Visit) -> Response:
    """POST /simulate: what the calls would do."""
    form = _in_eth(visit.form)
    try:
        form = await _fill_in(visit, form, find_hash(form.get("calls", "")))
        params = read_calls(form)
        answer = await visit.ask(_SIMULATE, params)
    except RoundtripError as fault:
        if fault.code in _WITHOUT_FORM:
            raise
        return visit.show("simulate.html", fault.status, form=form, answer=None, fault=fault)
    word = simulation_word(
        answer.verdict.level,
        answer.verdict.code,
        [approval.unlimited for approval in answer.approvals],
        answer.sell_back is not None,
    )
    named = [approval.token.lower() for approval in answer.approvals]
    if answer.check:
        named.append(answer.check.address)
    states, tree = await at_once(read_token_states(visit, named), _read_tree(visit, params, answer))
    return visit.show(
        "simulate.html", form=form, answer=answer, word=word, states=states, tree=tree, fault=None
    )


async def _read_tree(visit: Visit, params: dict[str, object], answer: Simulation) -> CallTree | None:
    """Who calls whom in what was simulated; None: it cannot be read now."""
    if not answer.calls:
        return None
    calls = params.get("calls")
    written = calls if isinstance(calls, list) else [params]
    try:
        own = [msgspec.convert(one, _WrittenCall).as_simulated() for one in written]
        asked = SimulatedCallsParams(answer.sender, own, answer.block, bool(params.get("fund")))
        return await visit.ask(CALLS, asked)
    except (RoundtripError, msgspec.ValidationError, ValueError):
        return None


class _WrittenCall(msgspec.Struct):
    """A call that was simulated, as it was written. ``input``: as wallets name its data."""

    to: str
    data: str = ""
    input: str = ""
    value: str | int = "0"

    def as_simulated(self) -> VisitorsCall:
        value = str(self.value)
        wei = int(value, 16 if value.startswith("0x") else 10)
        return VisitorsCall(self.to, self.data or self.input or "0x", str(wei))


def find_hash(pasted: str) -> str | None:
    """The hash of the transaction that was pasted, bare, in a link or in a sentence; None: something else
    was."""
    found = None if pasted.lstrip().startswith(("{", "[")) else find_only_word(pasted)
    return found.word if found is not None and len(found.word) == _HASH_LENGTH else None


async def _fill_in(visit: Visit, form: Mapping[str, str], tx_hash: str | None) -> Mapping[str, str]:
    """The form with the call of that transaction, from the wallet that the form names or else its sender."""
    if tx_hash is None:
        return form
    call = await visit.ask(_SENT_CALL, ExplainParams(tx_hash))
    if call.to is None:
        raise CallerFault("bad_input", "That transaction created a contract. Give one that calls a contract.")
    fields = msgspec.convert(form, CallsForm)
    sender = fields.sender.strip() or call.sender
    filled = msgspec.structs.replace(
        fields, sender=sender, to=call.to, data=call.data, eth=_eth_of(int(call.value)), calls=""
    )
    return cast(Mapping[str, str], msgspec.to_builtins(filled))


def _in_eth(form: Mapping[str, str]) -> Mapping[str, str]:
    """The form; a ``value`` in wei, as links and requests have it, becomes its ``eth``."""
    value = form.get("value", "").strip()
    if form.get("eth") or not _WEI.fullmatch(value):
        return form
    return {**form, "eth": _eth_of(int(value, 16 if value.startswith("0x") else 10))}


_WEI = re.compile("[0-9]{1,78}|0x[0-9a-fA-F]{1,64}")


def _eth_of(wei: int) -> str:
    return plain_decimal(wei, ETH_DECIMALS) if wei else ""


class CallsForm(msgspec.Struct):
    """The fields of the form: one call, or a list of ``calls`` as JSON. ``eth``: what goes with the call, in
    eth."""

    sender: str = msgspec.field(default="", name="from")
    fund: str = ""
    to: str = ""
    data: str = ""
    eth: str = ""
    calls: str = ""

    def value_wei(self) -> str:
        """What goes with the call, in wei; empty for nothing. Raises CallerFault (bad_input)."""
        eth = self.eth.strip().replace(",", ".")
        if not eth.strip("0."):
            return ""
        try:
            return str(parse_amount(eth, ETH_DECIMALS, "ETH"))
        except CallerFault:
            raise CallerFault("bad_input", _ETH_SHAPE) from None


_ETH_SHAPE = "The value must be a number of ETH with at most 18 decimals, such as 0.1, or empty for none."


def read_calls(form: Mapping[str, str]) -> dict[str, object]:
    """The operation's parameters from the form. What was pasted as JSON reaches the operation whole, but for
    what says nothing about a run. Raises CallerFault (bad_input)."""
    fields = msgspec.convert(form, CallsForm)
    sender = fields.sender.strip()
    fixed: dict[str, object] = {"from": sender} | ({"fund": True} if fields.fund else {})
    pasted = fields.calls.strip()
    if _CALLDATA.fullmatch(pasted):
        fields, pasted = msgspec.structs.replace(fields, data=pasted), ""
    if not pasted:
        one_call = {"to": fields.to.strip(), "data": fields.data.strip(), "value": fields.value_wei()}
        return fixed | {name: text for name, text in one_call.items() if text}
    try:
        read = msgspec.json.decode(pasted)
    except msgspec.DecodeError:
        raise CallerFault("bad_input", _CALLS_SHAPE) from None
    params = {"calls": read} if isinstance(read, list) else read
    if not isinstance(params, dict):
        raise CallerFault("bad_input", _CALLS_SHAPE)
    if not sender:
        fixed["from"] = sender = str(params.get("from", "")).strip()
    calls = params.get("calls")
    if isinstance(calls, list):
        params = {name: value for name, value in params.items() if name not in _OF_BATCH}
        params["calls"] = [_strip_call(call, sender) for call in calls]
    return _strip_call(params, sender) | fixed


def _strip_call(call: object, sender: str) -> dict[str, object]:
    """The call without its sender, which has to be ``sender``, and without what nodes add to it."""
    if not isinstance(call, dict):
        raise CallerFault("bad_input", _CALLS_SHAPE)
    own = call.get("from")
    if own is not None and str(own).strip().lower() != sender.lower():
        raise CallerFault(
            "bad_input",
            f"What you pasted is sent from {quote_name(str(own))}, and not from the wallet above. Give the "
            "same wallet in both.",
        )
    return {name: value for name, value in call.items() if name != "from" and name not in _OF_BLOCK}


_CALLDATA = re.compile(r"0x(?:[0-9a-fA-F]{2})+")
_CALLS_SHAPE = 'The calls must be a JSON list, such as [{"to": "0x…", "data": "0x…", "value": "0"}].'
_OF_BLOCK = frozenset(
    (
        "hash", "blockHash", "blockNumber", "blockTimestamp", "transactionIndex", "r", "s", "v", "yParity",
        "capabilities",
    )
)  # fmt: skip
"""Fields that a node adds to a sent transaction: its place in the chain and its signature.
``capabilities``: what a site asks of the wallet with a call (EIP-5792)."""
_OF_BATCH = frozenset(("version", "id", "atomicRequired", "capabilities"))
"""Fields of a request for several calls that concern the wallet alone (EIP-5792). If one call fails, the
answer is that all would fail, however they are sent."""
