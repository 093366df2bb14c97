"""The calendar of coming unlocks, by day."""

from collections.abc import Mapping
from itertools import groupby

from roundtrip.console.support.account_page import AccountForm, Answers, Room


def _by_day(answers: Answers, query: Mapping[str, str]) -> Answers:
    rows = groupby(answers["calendar"]["unlocks"], lambda row: row["at"][:10])
    return {"days": [(day, list(unlocks)) for day, unlocks in rows]}


ROOM = Room(
    "unlocks",
    "Unlocks",
    "See when locked liquidity of your tokens can be withdrawn, in the next 30 days.",
    {"calendar": "unlock_calendar"},
    _by_day,
)
ACTS: tuple[AccountForm, ...] = ()
