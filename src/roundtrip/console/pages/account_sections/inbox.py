"""The account's inbox, as a feed of alerts."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from markupsafe import Markup

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.console.support.account_page import AccountForm, Answers, Room
from roundtrip.console.support.render import address, render_sentence, stranger
from roundtrip.domain.verdicts.words import level_word
from roundtrip.services.watch.inbox import InboxFeed, inbox_feed

PAGE = 50
KINDS = {
    "rule": "Rule",
    "follow": "Followed wallet",
    "bag_guard": "Bag and watched tokens",
    "unlock": "Unlock",
    "service": "Service",
    "test": "Test",
}
FILTERS = ("kind", "rule", "token")
# The same answer as the tool's, with the state of each token.
_FEED = replace(
    next(operation for operation in OPERATIONS if operation.name == "inbox"),
    name="inbox_feed",
    answer=InboxFeed,
    handler=lambda call: inbox_feed(call.ctx, call.params, call.owner()),
    on_mcp=False,
)
_TURN = re.compile(r"from (\w+)(?: \((\w+)\))? to (\w+)(?: \((\w+)\))?")
"""The old and the new verdict in the sentence of an alert: level and code."""


def tell_alert(row: Mapping[str, Any], symbol: str | None) -> Markup:
    """The sentence of an alert as people read it: the token's symbol for its address, and words for levels
    and codes of verdicts."""
    text, token = row["text"], row["token"]
    head, mark, tail = text, Markup(""), ""
    if token is not None and token in text:
        head, tail = text.split(token, 1)
        name = stranger(symbol) if symbol else address(token)
        mark = Markup('<a href="/token/{}" title="{}">{}</a>').format(token, token, name)
    turn = _TURN.search(tail) if row["verb"] == "verdict" else None
    if turn is None:
        return render_sentence(head) + mark + render_sentence(tail)
    old, new = (_show_level(level, code or "") for level, code in (turn.groups()[:2], turn.groups()[2:]))
    before, after = render_sentence(tail[: turn.start()]), render_sentence(tail[turn.end() :])
    return Markup("{}{}{}from {} to {}{}").format(render_sentence(head), mark, before, old, new, after)


def _show_level(level: str, code: str) -> Markup:
    return Markup('<strong class="t-{}">{}</strong>').format(level, level_word(level, code))


def _page_rows(answers: Answers, query: Mapping[str, str]) -> Answers:
    """One page of the rows, by day. Query parameters: ``kind``, ``rule``, ``token``, and ``before`` (a row's
    id: shows older rows)."""
    rows, before = answers["inbox"]["rows"], query.get("before", "")
    chosen = {name: query[name] for name in FILTERS if query.get(name)}
    if chosen.get("kind") not in KINDS:
        chosen.pop("kind", None)
    choices = {name: sorted({row[name] for row in rows if row[name]}) for name in FILTERS}
    rows = [row for row in rows if all(row[name] == value for name, value in chosen.items())]
    matching = len(rows)
    if before.isascii() and before.isdigit() and len(before) < 20:
        rows = [row for row in rows if row["id"] < int(before)]
    page_rows = rows[:PAGE]
    states = {state["token"]["address"]: state for state in answers["inbox"]["tokens"]}
    shown = [(row, states.get(row["token"]), _tell(row, states)) for row in page_rows]
    return {
        "days": [(day, list(rows)) for day, rows in groupby(shown, lambda entry: entry[0]["ts"][:10])],
        "states": states,
        "kinds": KINDS,
        "choices": choices,
        "chosen": chosen,
        "older": {**chosen, "before": page_rows[-1]["id"]} if len(rows) > PAGE else None,
        "is_first": not before,
        "matching": matching,
    }


def _tell(row: Mapping[str, Any], states: Mapping[str, Any]) -> Markup:
    state = states.get(row["token"])
    return tell_alert(row, row["symbol"] or (state and state["token"]["symbol"]))


ROOM = Room(
    "inbox",
    "Inbox",
    "Read your alerts: of your rules, of wallets that you follow, and of tokens that you hold or watch.",
    {"inbox": _FEED},
    _page_rows,
)
ACTS: tuple[AccountForm, ...] = ()
