"""The calendar of coming unlocks, by day."""

from itertools import groupby

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_request import Visit
from roundtrip.services.liquidity.unlocks import UnlockCalendar
from roundtrip.services.support.index_reader import Nothing

_CALENDAR = find_operation("unlock_calendar", Nothing, UnlockCalendar)


async def _read(visit: Visit) -> Values:
    calendar = await visit.ask(_CALENDAR)
    days = groupby(calendar.unlocks, lambda unlock: unlock.at.date())
    return {"calendar": calendar, "days": [(day, list(unlocks)) for day, unlocks in days]}


ROOM = Room(
    "unlocks",
    "Vesting",
    "See when locked liquidity of your tokens can be withdrawn, in the next 30 days.",
    _read,
)
ACTS: tuple[AccountForm, ...] = ()
