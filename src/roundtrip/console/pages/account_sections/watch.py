"""Whom and what it watches."""

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
    title="Around the rules",
    description="",
    params=Nothing,
    answer=WatchAround,
    handler=lambda call: watch_around(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="never",
)
_TOOL = next(one for one in OPERATIONS if one.name == "test_rule")
# The same replay, asked for in place of the tool: it counts as one call.
_DRAW = replace(
    _TOOL, answer=RuleDrawn, handler=lambda call: draw_rule(call.ctx, call.params, call.owner()), on_mcp=False
)
_OF_TOKEN, _OF_WALLET = ("deployer", "creator"), "wallet"


def compose_rule(form: Mapping[str, str]) -> Mapping[str, str]:
    """The form with the rule that its parts are; as it is where the rule was written out. What does not fit
    is told where the rule is read."""
    if "verb" not in form or form.get("rule", "").strip():
        return form
    who, address = form.get("who", ""), form.get("whose", "").strip()
    if who in _OF_TOKEN:
        who = f"{who}:{address}"
    elif who == _OF_WALLET:
        who = address
    parts = [who, form["verb"]]
    if over := form.get("over", "").strip():
        parts += ["over", over, form.get("unit", "")]
    if token := form.get("token", "").strip():
        parts += ["on", token]
    return {**form, "rule": " ".join(filter(None, parts))}


def _also(answers: Answers, query: Mapping[str, str]) -> Answers:
    """``typed``: what an address of ours puts into the fields, so that other pages may lead here."""
    words = {one["id"]: one["words"] for one in answers["around"]["rules"]}
    typed = {name: query[name][:200] for name in ("rule", "address") if name in query}
    return {"words": words, "typed": typed}


ROOM = Room("watch", "Watch", {"watched": "list_rules", "around": _AROUND}, _also)
ACTS = (
    AccountForm("follow_wallet", "watch", ("address", "name")),
    AccountForm("unfollow_wallet", "watch", ("address",)),
    AccountForm("create_rule", "watch", ("rule",), reads=compose_rule),
    AccountForm(_DRAW, "watch", ("rule",), reads=compose_rule),
    AccountForm("delete_rule", "watch", ("id",), frozenset({"id"})),
)
