"""The pages that prepare a trade for the visitor's own wallet, and that simulate calls."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.token_states import read_token_states
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.domain.verdicts.risks import find_insider_warning
from roundtrip.domain.verdicts.words import level_word, simulation_word
from roundtrip.services.trade.prepare import PrepareBuyParams, PreparedTrade, PrepareSellParams
from roundtrip.services.trade.simulate_params import SimulateParams
from roundtrip.services.trade.simulation_answer import Simulation

from .token import read_holders, read_risk

if TYPE_CHECKING:
    import roundtrip_verify as verify
else:
    verify = import_module("roundtrip_verify") if find_spec("roundtrip_verify") else None

_BUY = find_operation("prepare_buy", PrepareBuyParams, PreparedTrade)
_SELL = find_operation("prepare_sell", PrepareSellParams, PreparedTrade)
_SIMULATE = find_operation("simulate_transaction", SimulateParams, Simulation)
_WITHOUT_FORM = ("bad_key", "internal")
"""Errors that have a page of their own; any other one is said above the form, which keeps its fields."""
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
        """From the page's address."""
        token, wallet, amount, percent, slippage = (visit.query.get(name, "").strip() for name in _SHOWN)
        side = "sell" if visit.query.get("side") == "sell" else "buy"
        return cls(side, token, wallet, amount, percent, slippage or "1")

    def is_complete(self) -> bool:
        """Whether there is enough to prepare the trade."""
        return bool(self.token and self.wallet and (self.amount or (self.percent and self.side == "sell")))

    def slippage_bps(self) -> int:
        """Raises CallerFault (bad_input)."""
        return round(100 * _read_number(self.slippage, "The slippage"))

    def params(self) -> dict[str, object]:
        """The operation's parameters. Raises CallerFault (bad_input)."""
        params: dict[str, object] = {
            "token": self.token,
            "from": self.wallet,
            "slippageBps": self.slippage_bps(),
        }
        if self.side == "sell" and self.percent:
            return params | {"percent": _read_number(self.percent, "The share to sell")}
        return params | {"amount": self.amount}

    def order(self) -> "verify.Request":
        """What the prepared steps are compared with."""
        amount = None if self.side == "sell" and self.percent else self.amount
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
        return _show_form(visit, form)
    try:
        operation = _SELL if form.side == "sell" else _BUY
        body = await visit.ask_json(operation, form.params())
    except RoundtripError as fault:
        # A page that is asked for too fast comes back by itself.
        if fault.code in (*_WITHOUT_FORM, "rate_limited"):
            raise
        return _show_form(visit, form, fault)
    contracts = visit.console.dispatch.ctx.contracts
    trade = msgspec.json.decode(body, type=operation.answer)
    verdict, insiders = trade.verdict, None
    if form.side == "buy":
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
        fault=None,
    )


def _show_form(visit: Visit, form: TradeForm, fault: RoundtripError | None = None) -> Response:
    status = 200 if fault is None else fault.status
    return visit.show("trade.html", status, form=form, trade=None, fault=fault)


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
    """GET /simulate: the form, filled from the address where that names calls."""
    return visit.show("simulate.html", form=visit.query, answer=None, fault=None)


async def simulate(visit: Visit) -> Response:
    """POST /simulate: what the calls would do."""
    try:
        answer = await visit.ask(_SIMULATE, _read_calls(visit.form))
    except RoundtripError as fault:
        if fault.code in _WITHOUT_FORM:
            raise
        return visit.show("simulate.html", fault.status, form=visit.form, answer=None, fault=fault)
    level, word = simulation_word(
        answer.verdict.level,
        answer.verdict.code,
        [approval.unlimited for approval in answer.approvals],
        answer.sell_back is not None,
    )
    named = [approval.token.lower() for approval in answer.approvals]
    if answer.check:
        named.append(answer.check.address)
    states = await read_token_states(visit, named)
    return visit.show(
        "simulate.html", form=visit.form, answer=answer, level=level, word=word, states=states, fault=None
    )


class CallsForm(msgspec.Struct):
    """The fields of the form: one call, or a list of ``calls`` as JSON."""

    sender: str = msgspec.field(default="", name="from")
    fund: str = ""
    to: str = ""
    data: str = ""
    value: str = ""
    calls: str = ""


def _read_calls(form: Mapping[str, str]) -> dict[str, object]:
    """The operation's parameters from the form. Raises CallerFault (bad_input)."""
    fields = msgspec.convert(form, CallsForm)
    params: dict[str, object] = {"from": fields.sender.strip()}
    params |= {"fund": True} if fields.fund else {}
    listed = fields.calls.strip()
    if not listed:
        one_call = {"to": fields.to.strip(), "data": fields.data.strip(), "value": fields.value.strip()}
        return params | {name: text for name, text in one_call.items() if text}
    try:
        calls = msgspec.json.decode(listed)
    except msgspec.DecodeError:
        raise CallerFault("bad_input", _CALLS_SHAPE) from None
    if isinstance(calls, dict) and "calls" in calls:
        calls = calls["calls"]
    if isinstance(calls, dict):
        calls = [calls]
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise CallerFault("bad_input", _CALLS_SHAPE)
    # Wallets show more of a call than the service asks for, such as its gas.
    return params | {"calls": [{k: call[k] for k in ("to", "data", "value") if k in call} for call in calls]}


_CALLS_SHAPE = 'The calls must be a JSON list, such as [{"to": "0x…", "data": "0x…", "value": "0"}].'
