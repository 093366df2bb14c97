"""The account's names and marks of wallets, and its flags on tokens with their outcomes."""

from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_operations import own_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.services.community.flag_token import flag_token, own_flags
from roundtrip.services.community.mark_wallet import mark_wallet, own_marks, unmark_wallet

from .overview import MY_MITE

OWN_MARKS = own_operation(own_marks, counts="minute")
OWN_FLAGS = own_operation(own_flags, counts="minute", bad_params="bad_address")
MARK = own_operation(mark_wallet, method="POST", writes=True, repeatable=True, counts="minute")
UNMARK = own_operation(
    unmark_wallet, method="POST", writes=True, destroys=True, repeatable=True, counts="minute"
)
# It simulates a sell of the token, so it counts against the day.
FLAG = own_operation(flag_token, method="POST", writes=True)


async def _read(visit: Visit) -> Values:
    return {
        "mite": await visit.ask(MY_MITE),
        "marks": await visit.ask(OWN_MARKS),
        "own": await visit.ask(OWN_FLAGS),
    }


ROOM = Room("marks", "Labels", "Name and mark wallets, and see how your flags on tokens turned out.", _read)
ACTS = (AccountForm(MARK, "marks", ("address", "name", "mark")), AccountForm(UNMARK, "marks", ("address",)))
