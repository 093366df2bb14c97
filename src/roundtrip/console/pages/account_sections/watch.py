"""The account's followed wallets and standing rules."""

from collections.abc import Mapping

import msgspec

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_operations import own_operation, own_variant
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.watch.inbox import unwatch_token, watch_token, watched_tokens
from roundtrip.services.watch.rule_backtest import draw_rule
from roundtrip.services.watch.rules import (
    RuleParams,
    RulesListed,
    RuleTested,
    edit_rule,
    pause_rule,
    resume_rule,
    watch_around,
)

_RULES = find_operation("list_rules", Nothing, RulesListed)
_AROUND = own_operation(watch_around, counts="never")
WATCHED = own_operation(watched_tokens, counts="never")
WATCH = own_operation(
    watch_token, method="POST", writes=True, repeatable=True, counts="minute", bad_params="bad_address"
)
UNWATCH = own_operation(
    unwatch_token, method="POST", writes=True, repeatable=True, counts="minute", bad_params="bad_address"
)
EDIT = own_operation(edit_rule, method="POST", writes=True, counts="minute")
PAUSE = own_operation(pause_rule, method="POST", writes=True, counts="minute")
RESUME = own_operation(resume_rule, method="POST", writes=True, counts="minute")
# Replays a rule as the tool ``test_rule`` does, answers more, and counts as one call of it.
_DRAW = own_variant(find_operation("test_rule", RuleParams, RuleTested), draw_rule, "test_rule")
_SUBJECTS_OF_TOKEN, _WALLET_SUBJECT = ("deployer", "creator"), "wallet"


class RuleParts(msgspec.Struct):
    """The fields of the form from which a rule is composed."""

    verb: str
    who: str = ""
    whose: str = ""
    over: str = ""
    unit: str = ""
    token: str = ""


def compose_rule(form: Mapping[str, str]) -> Mapping[str, str]:
    """The form with ``rule`` composed of its parts; unchanged if the visitor wrote the rule as text. Invalid
    parts are reported when the rule is parsed."""
    if "verb" not in form or form.get("rule", "").strip():
        return form
    parts = msgspec.convert(form, RuleParts)
    subject, address = parts.who, parts.whose.strip()
    if subject in _SUBJECTS_OF_TOKEN:
        subject = f"{subject}:{address}"
    elif subject == _WALLET_SUBJECT:
        subject = address
    words = [subject, parts.verb]
    if over := parts.over.strip():
        words += ["over", over, parts.unit]
    if token := parts.token.strip():
        words += ["on", token]
    return {**form, "rule": " ".join(filter(None, words))}


async def read_watched_tokens(visit: Visit) -> frozenset[str] | None:
    """The tokens that the visitor watches; None: not signed in, or they cannot be read now."""
    if visit.session is None:
        return None
    try:
        return frozenset(row.token.address for row in (await visit.ask(WATCHED)).tokens)
    except RoundtripError as fault:
        if fault.code == "bad_key":
            raise
        return None


async def _read(visit: Visit) -> Values:
    """``typed``: the values with which another page's link prefills the form."""
    watched, around, query = await visit.ask(_RULES), await visit.ask(_AROUND), visit.query
    tokens = await visit.ask(WATCHED)
    typed = {name: query[name][:200] for name in ("rule", "address") if name in query}
    edited = next((rule for rule in watched.rules if str(rule.id) == query.get("edit")), None)
    if edited is not None:
        typed |= {"rule": edited.rule, "edit": str(edited.id)}
    return {
        "watched": watched,
        "around": around,
        "tokens": tokens,
        "words": {rule.id: rule.words for rule in around.rules},
        "paused": {rule.id for rule in around.rules if rule.paused},
        "typed": typed,
    }


ROOM = Room(
    "watch", "Alerts", "Set rules that alert you about trades, watch tokens, and follow wallets.", _read
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
