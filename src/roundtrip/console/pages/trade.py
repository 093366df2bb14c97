"""The pages that prepare a trade for the visitor's own wallet, and that simulate calls."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.token_states import read_token_states
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.domain.verdicts.risks import rate_insiders
from roundtrip.domain.verdicts.words import level_word

from .token import read_holders, read_risk

if TYPE_CHECKING:
    import roundtrip_verify as verify
else:
    verify = import_module("roundtrip_verify") if find_spec("roundtrip_verify") else None

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

    def params(self) -> dict[str, Any]:
        """The operation's parameters. Raises CallerFault (bad_input)."""
        params = {"token": self.token, "from": self.wallet, "slippageBps": self.slippage_bps()}
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
        trade = await visit.ask(f"prepare_{form.side}", **form.params())
    except RoundtripError as fault:
        # A page that is asked for too fast comes back by itself.
        if fault.code in (*_WITHOUT_FORM, "rate_limited"):
            raise
        return _show_form(visit, form, fault)
    contracts = visit.console.dispatch.ctx.contracts
    stored = None
    if form.side == "buy":
        token = trade["token"]["address"]
        await read_holders(visit, {"address": token, "verdict": trade["verdict"]})
        stored = await read_risk(visit, token)
    return visit.show(
        "trade.html",
        form=form,
        trade=trade,
        **describe_check(trade["verdict"], stored),
        report=_verify(visit, trade, form),
        contracts=contracts,
        fault=None,
    )


def describe_check(verdict: Mapping[str, Any], stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """The word and the colour of a trade's verdict, and what insiders hold beside it. ``stored``: as
    ``StoredRisk``; None: it is a sale."""
    insiders = None
    if stored is not None and verdict["level"] in ("ok", "warn"):
        insiders = rate_insiders(stored["insidersBps"])
    is_minded = insiders is not None and insiders.level in ("danger", "unknown")
    return {
        "word": level_word(verdict["level"], verdict["code"]),
        "colour": verdict["level"],
        "insiders": insiders if is_minded else None,
    }


def _show_form(visit: Visit, form: TradeForm, fault: RoundtripError | None = None) -> Response:
    status = 200 if fault is None else fault.status
    return visit.show("trade.html", status, form=form, trade=None, fault=fault)


def _verify(visit: Visit, trade: dict[str, Any], form: TradeForm) -> "verify.Report | None":
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
        return verify.verify(trade, network, form.order(), int(ctx.now_s()))
    except verify.Unreadable as error:
        return verify.Report(False, (), (str(error),), ())


async def show_simulate(visit: Visit) -> Response:
    """GET /simulate: the form, filled from the address where that names calls."""
    return visit.show("simulate.html", form=visit.query, answer=None, fault=None)


async def simulate(visit: Visit) -> Response:
    """POST /simulate: what the calls would do."""
    try:
        answer = await visit.ask("simulate_transaction", **_read_calls(visit.form))
    except RoundtripError as fault:
        if fault.code in _WITHOUT_FORM:
            raise
        return visit.show("simulate.html", fault.status, form=visit.form, answer=None, fault=fault)
    level, word = simulation_word(answer)
    named = [one["token"].lower() for one in answer["approvals"]]
    if answer["check"]:
        named.append(answer["check"]["address"])
    states = await read_token_states(visit, named)
    return visit.show(
        "simulate.html", form=visit.form, answer=answer, level=level, word=word, states=states, fault=None
    )


def simulation_word(answer: dict[str, Any]) -> tuple[str, str]:
    """The level and the word for people of a simulation: what the calls allow comes before what they move. A
    call that only goes through is not called safe."""
    verdict = answer["verdict"]
    if verdict["level"] in ("danger", "unknown"):
        return verdict["level"], level_word(verdict["level"], verdict["code"])
    if any(approval["unlimited"] for approval in answer["approvals"]):
        return "danger", "Allows everything"
    if answer["approvals"]:
        return "warn", "Allows a spender"
    if answer["sellBack"] is None:
        return ("warn" if verdict["level"] == "warn" else "unknown"), "Goes through"
    return verdict["level"], level_word(verdict["level"], verdict["code"])


def _read_calls(form: Any) -> dict[str, Any]:
    """The operation's parameters from the form. Raises CallerFault (bad_input)."""
    params: dict[str, Any] = {"from": form.get("from", "").strip()}
    if form.get("fund"):
        params["fund"] = True
    listed = form.get("calls", "").strip()
    if not listed:
        fields = {name: form.get(name, "").strip() for name in ("to", "data", "value")}
        return params | {name: text for name, text in fields.items() if text}
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
