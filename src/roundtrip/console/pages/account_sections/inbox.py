"""The account's inbox."""

from collections.abc import Mapping
from itertools import groupby

from roundtrip.console.support.account_page import AccountForm, Answers, Room

PAGE = 50
KINDS = {
    "rule": "Rule",
    "follow": "Followed wallet",
    "bag_guard": "Your bag",
    "unlock": "Unlock",
    "service": "Service",
    "test": "Test",
}


def _page_rows(answers: Answers, query: Mapping[str, str]) -> Answers:
    """One page of the rows, by day. Query parameters: ``kind``, ``rule``, and ``before`` (a row's id: shows
    older rows)."""
    kind, rule, before = query.get("kind"), query.get("rule"), query.get("before", "")
    rows = [
        row
        for row in answers["inbox"]["rows"]
        if (kind not in KINDS or row["kind"] == kind) and (not rule or row["rule"] == rule)
    ]
    matching = len(rows)
    if before.isascii() and before.isdigit() and len(before) < 20:
        rows = [row for row in rows if row["id"] < int(before)]
    page_rows = rows[:PAGE]
    filters = {name: query[name] for name in ("kind", "rule") if query.get(name)}
    return {
        "days": [(day, list(day_rows)) for day, day_rows in groupby(page_rows, lambda row: row["ts"][:10])],
        "kinds": KINDS,
        "kind": kind if kind in KINDS else None,
        "rule": rule or None,
        "older": {**filters, "before": page_rows[-1]["id"]} if len(rows) > PAGE else None,
        "is_first": not before,
        "matching": matching,
    }


ROOM = Room(
    "inbox",
    "Inbox",
    "Read your alerts: of your rules, of wallets that you follow, and of your bag.",
    {"inbox": "inbox"},
    _page_rows,
)
ACTS: tuple[AccountForm, ...] = ()
