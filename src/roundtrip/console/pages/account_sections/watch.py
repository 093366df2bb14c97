"""The account's followed wallets and standing rules."""

from collections.abc import Mapping
from dataclasses import replace

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Answers, Room
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.watch.page import WatchAround, watch_around
from roundtrip.services.watch.rule_backtest import RuleDrawn, draw_rule

_AROUND = Operation(
    name="watch_around",
    title="Details of the rules",
    description="",
    params=Nothing,
    answer=WatchAround,
    handler=lambda call: watch_around(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="never",
)
_TOOL = next(operation for operation in OPERATIONS if operation.name == "test_rule")
# The same replay, called instead of the tool: it counts as one call.
_DRAW = replace(
    _TOOL, answer=RuleDrawn, handler=lambda call: draw_rule(call.ctx, call.params, call.owner()), on_mcp=False
)
_SUBJECTS_OF_TOKEN, _WALLET_SUBJECT = ("deployer", "creator"), "wallet"


def compose_rule(form: Mapping[str, str]) -> Mapping[str, str]:
    """The form with ``rule`` composed of its parts; unchanged if the visitor wrote the rule as text. Invalid
    parts are reported when the rule is parsed."""
    if "verb" not in form or form.get("rule", "").strip():
        return form
    subject, address = form.get("who", ""), form.get("whose", "").strip()
    if subject in _SUBJECTS_OF_TOKEN:
        subject = f"{subject}:{address}"
    elif subject == _WALLET_SUBJECT:
        subject = address
    parts = [subject, form["verb"]]
    if over := form.get("over", "").strip():
        parts += ["over", over, form.get("unit", "")]
    if token := form.get("token", "").strip():
        parts += ["on", token]
    return {**form, "rule": " ".join(filter(None, parts))}


def _read_prefill(answers: Answers, query: Mapping[str, str]) -> Answers:
    """``typed``: the values with which another page's link prefills the form."""
    words = {rule["id"]: rule["words"] for rule in answers["around"]["rules"]}
    typed = {name: query[name][:200] for name in ("rule", "address") if name in query}
    return {"words": words, "typed": typed}


ROOM = Room(
    "watch",
    "Watch",
    "Set rules that alert you about trades, and follow wallets.",
    {"watched": "list_rules", "around": _AROUND},
    _read_prefill,
)
ACTS = (
    AccountForm("follow_wallet", "watch", ("address", "name")),
    AccountForm("unfollow_wallet", "watch", ("address",)),
    AccountForm("create_rule", "watch", ("rule",), parse=compose_rule),
    AccountForm(_DRAW, "watch", ("rule",), parse=compose_rule),
    AccountForm("delete_rule", "watch", ("id",), frozenset({"id"})),
)
