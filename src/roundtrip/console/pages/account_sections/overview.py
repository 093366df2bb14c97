"""The account's level, credits and calls, and its agent tag."""

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_operations import own_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.services.accounts.credits import CreditsStatus
from roundtrip.services.accounts.manage_keys import own_usage
from roundtrip.services.accounts.profile import MyMite
from roundtrip.services.support.index_reader import Nothing

MY_MITE = find_operation("my_mite", Nothing, MyMite)
_CREDITS = find_operation("credits", Nothing, CreditsStatus)
_USAGE = own_operation(own_usage, counts="minute")


async def _read(visit: Visit) -> Values:
    return {
        "mite": await visit.ask(MY_MITE),
        "credits": await visit.ask(_CREDITS),
        "usage": await visit.ask(_USAGE),
    }


ROOM = Room("overview", "Settings", "See your calls and your limits, or sign out.", _read)
ACTS = (
    AccountForm("mark_as_agent", "overview", ("name",)),
    AccountForm("redeem_payment", "overview", ("tx",)),
)
