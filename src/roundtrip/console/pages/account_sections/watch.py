"""The account's followed wallets and standing rules."""

from collections.abc import Mapping
from dataclasses import replace

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Answers, Room
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.services.watch.page import WatchAround, watch_around
from roundtrip.services.watch.rule_backtest import RuleDrawn, draw_rule
from roundtrip.services.watch.rules import edit_rule, pause_rule, resume_rule
from roundtrip.services.watch.schema import RuleDropped, RuleEditParams, RuleIdParams, RuleMade
from roundtrip.services.watch.token_watch import WatchedTokens, unwatch_token, watch_token, watched_tokens

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
WATCHED = Operation(
    name="watched_tokens",
    title="Tokens that you watch",
    description="",
    params=Nothing,
    answer=WatchedTokens,
    handler=lambda call: watched_tokens(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="never",
)
WATCH = Operation(
    name="watch_token",
    title="Watch a token",
    description="",
    params=WalletParams,
    answer=WatchedTokens,
    handler=lambda call: watch_token(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    repeatable=True,
    on_mcp=False,
    counts="minute",
    bad_params="bad_address",
)
UNWATCH = Operation(
    name="unwatch_token",
    title="Watch a token no longer",
    description="",
    params=WalletParams,
    answer=WatchedTokens,
    handler=lambda call: unwatch_token(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    repeatable=True,
    on_mcp=False,
    counts="minute",
    bad_params="bad_address",
)
EDIT = Operation(
    name="edit_rule",
    title="Change a rule",
    description="",
    params=RuleEditParams,
    answer=RuleMade,
    handler=lambda call: edit_rule(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    on_mcp=False,
    counts="minute",
)
PAUSE = Operation(
    name="pause_rule",
    title="Pause a rule",
    description="",
    params=RuleIdParams,
    answer=RuleDropped,
    handler=lambda call: pause_rule(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    on_mcp=False,
    counts="minute",
)
RESUME = Operation(
    name="resume_rule",
    title="Let a paused rule go on",
    description="",
    params=RuleIdParams,
    answer=RuleDropped,
    handler=lambda call: resume_rule(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    on_mcp=False,
    counts="minute",
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
    paused = {rule["id"] for rule in answers["around"]["rules"] if rule["paused"]}
    typed = {name: query[name][:200] for name in ("rule", "address") if name in query}
    edited = [rule for rule in answers["watched"]["rules"] if str(rule["id"]) == query.get("edit")]
    if edited:
        typed |= {"rule": edited[0]["rule"], "edit": query["edit"]}
    return {"words": words, "paused": paused, "typed": typed}


ROOM = Room(
    "watch",
    "Watch",
    "Set rules that alert you about trades, watch tokens, and follow wallets.",
    {"watched": "list_rules", "around": _AROUND, "tokens": WATCHED},
    _read_prefill,
)
ACTS = (
    AccountForm("follow_wallet", "watch", ("address", "name")),
    AccountForm("unfollow_wallet", "watch", ("address",)),
    AccountForm(UNWATCH, "watch", ("address",)),
    AccountForm(WATCH, "watch", ("address",)),
    AccountForm("create_rule", "watch", ("rule",), parse=compose_rule),
    AccountForm(EDIT, "watch", ("id", "rule"), frozenset({"id"})),
    AccountForm(_DRAW, "watch", ("rule",), parse=compose_rule, piece="account/rule_preview.html"),
    AccountForm(PAUSE, "watch", ("id",), frozenset({"id"})),
    AccountForm(RESUME, "watch", ("id",), frozenset({"id"})),
    AccountForm("delete_rule", "watch", ("id",), frozenset({"id"})),
)
