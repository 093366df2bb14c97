"""The account's inbox, as a feed of alerts."""

import re
from itertools import groupby

from markupsafe import Markup

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_operations import own_variant
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.render import address, render_sentence, stranger
from roundtrip.domain.verdicts.words import level_word
from roundtrip.services.support.alert_rows import AlertRow
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.shown_verdict import TokenState
from roundtrip.services.watch.inbox import Inbox, inbox_feed
from roundtrip.services.watch.rules import HitRow

PAGE = 50
"""Rows of one page."""
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
_FEED = own_variant(find_operation("inbox", Nothing, Inbox), inbox_feed)
_TURN = re.compile(r"from (\w+)(?: \((\w+)\))? to (\w+)(?: \((\w+)\))?")
"""The old and the new verdict in the sentence of an alert: level and code."""


def tell_alert(row: AlertRow | HitRow, symbol: str | None) -> Markup:
    """The sentence of an alert as people read it: the token's symbol for its address, and words for levels
    and codes of verdicts."""
    text, token = row.text, row.token
    head, mark, tail = text, Markup(""), ""
    if token is not None and token in text:
        head, tail = text.split(token, 1)
        name = stranger(symbol) if symbol else address(token)
        mark = Markup('<a href="/token/{}" title="{}">{}</a>').format(token, token, name)
    turn = _TURN.search(tail) if row.verb == "verdict" else None
    if turn is None:
        return render_sentence(head) + mark + render_sentence(tail)
    old, new = (_show_level(level, code or "") for level, code in (turn.groups()[:2], turn.groups()[2:]))
    before, after = render_sentence(tail[: turn.start()]), render_sentence(tail[turn.end() :])
    return Markup("{}{}{}from {} to {}{}").format(render_sentence(head), mark, before, old, new, after)


def _show_level(level: str, code: str) -> Markup:
    return Markup('<strong class="t-{}">{}</strong>').format(level, level_word(level, code))


async def _read(visit: Visit) -> Values:
    """One page of the rows, by day. Query parameters: ``kind``, ``rule``, ``token``, and ``before`` (the id
    of a row: only older ones are shown)."""
    inbox, query = await visit.ask(_FEED), visit.query
    rows, before = inbox.rows, query.get("before", "")
    chosen = {name: query[name] for name in FILTERS if query.get(name)}
    chosen = {name: value for name, value in chosen.items() if name != "kind" or value in KINDS}
    choices = {name: sorted({getattr(row, name) for row in rows if getattr(row, name)}) for name in FILTERS}
    rows = [row for row in rows if all(getattr(row, name) == value for name, value in chosen.items())]
    matching = len(rows)
    if before.isascii() and before.isdigit() and len(before) < 20:
        rows = [row for row in rows if row.id < int(before)]
    page_rows = rows[:PAGE]
    states = {state.token.address: state for state in inbox.tokens}
    shown = [_show_row(row, states.get(row.token or "")) for row in page_rows]
    days = groupby(shown, lambda entry: entry[0].ts.date())
    return {
        "inbox": inbox,
        "days": [(day, list(entries)) for day, entries in days],
        "states": states,
        "kinds": KINDS,
        "choices": choices,
        "chosen": chosen,
        "older": {**chosen, "before": page_rows[-1].id} if len(rows) > PAGE else None,
        "is_first": not before,
        "matching": matching,
    }


def _show_row(row: AlertRow, state: TokenState | None) -> tuple[AlertRow, TokenState | None, Markup]:
    """The alert with its token as it stands, and its sentence."""
    return row, state, tell_alert(row, row.symbol or (state.token.symbol if state else None))


ROOM = Room(
    "inbox",
    "Inbox",
    "Read your alerts: of your rules, of wallets that you follow, and of tokens that you hold or watch.",
    _read,
)
ACTS: tuple[AccountForm, ...] = ()
