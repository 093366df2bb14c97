"""The account's level, credits and calls, and its agent tag."""

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Room
from roundtrip.services.accounts.manage_keys import Usage, own_usage
from roundtrip.services.support.index_reader import Nothing

_USAGE = Operation(
    name="own_usage",
    title="Calls of the last days",
    description="",
    params=Nothing,
    answer=Usage,
    handler=lambda call: own_usage(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="minute",
)

ROOM = Room(
    "overview",
    "Account",
    "See your calls and your limits, or sign out.",
    {"mite": "my_mite", "credits": "credits", "usage": _USAGE},
)
ACTS = (
    AccountForm("mark_as_agent", "overview", ("name",)),
    AccountForm("redeem_payment", "overview", ("tx",)),
)
