"""The account's names and marks of wallets, and its flags on tokens with their outcomes."""

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Room
from roundtrip.services.community.flag_token import Flagged, FlagParams, flag_token
from roundtrip.services.community.mark_wallet import Marked, MarkParams, mark_wallet
from roundtrip.services.community.my_flags import OwnFlags, own_flags
from roundtrip.services.community.my_marks import OwnMarks, own_marks, unmark_wallet
from roundtrip.services.community.proven_flags import ProvenParams
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.wallet_params import WalletParams

OWN_MARKS = Operation(
    name="own_marks",
    title="Your names and marks of wallets",
    description="",
    params=Nothing,
    answer=OwnMarks,
    handler=lambda call: own_marks(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="minute",
)
OWN_FLAGS = Operation(
    name="own_flags",
    title="Your flags",
    description="",
    params=ProvenParams,
    answer=OwnFlags,
    handler=lambda call: own_flags(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="minute",
    bad_params="bad_address",
)
MARK = Operation(
    name="mark_wallet",
    title="Name or mark a wallet",
    description="",
    params=MarkParams,
    answer=Marked,
    handler=lambda call: mark_wallet(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    repeatable=True,
    on_mcp=False,
    counts="minute",
)
UNMARK = Operation(
    name="unmark_wallet",
    title="Remove name and mark",
    description="",
    params=WalletParams,
    answer=Marked,
    handler=lambda call: unmark_wallet(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    destroys=True,
    repeatable=True,
    on_mcp=False,
    counts="minute",
)
# It simulates a sell of the token, so it counts against the day.
FLAG = Operation(
    name="flag_token",
    title="Flag a token",
    description="",
    params=FlagParams,
    answer=Flagged,
    handler=lambda call: flag_token(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    on_mcp=False,
)

ROOM = Room(
    "marks",
    "Marks",
    "Name and mark wallets, and see how your flags on tokens turned out.",
    {"mite": "my_mite", "marks": OWN_MARKS, "own": OWN_FLAGS},
)
ACTS = (AccountForm(MARK, "marks", ("address", "name", "mark")), AccountForm(UNMARK, "marks", ("address",)))
