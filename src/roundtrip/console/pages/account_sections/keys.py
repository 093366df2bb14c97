"""The account's API keys and sessions."""

from starlette.responses import JSONResponse, Response

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Room
from roundtrip.console.support.page_request import Visit
from roundtrip.services.accounts.issue_key import TextToSign
from roundtrip.services.accounts.manage_keys import (
    EndedKeys,
    EndParams,
    NewKey,
    NewKeyParams,
    OwnKeys,
    end_own,
    make_own_key,
    own_key_text,
    own_keys,
    sign_out_everywhere,
)
from roundtrip.services.accounts.sessions import SessionParams
from roundtrip.services.support.index_reader import Nothing

_KEYS = Operation(
    name="own_keys",
    title="Keys and sessions",
    description="",
    params=SessionParams,
    answer=OwnKeys,
    handler=lambda call: own_keys(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="minute",
)
_TEXT = Operation(
    name="own_key_text",
    title="The text to sign for a key",
    description="",
    params=Nothing,
    answer=TextToSign,
    handler=lambda call: own_key_text(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    on_mcp=False,
    counts="minute",
)
_MAKE = Operation(
    name="make_own_key",
    title="Make a key",
    description="",
    params=NewKeyParams,
    answer=NewKey,
    handler=lambda call: make_own_key(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    on_mcp=False,
    counts="minute",
)
_END = Operation(
    name="end_own",
    title="Revoke a key, or end a session",
    description="",
    params=EndParams,
    answer=EndedKeys,
    handler=lambda call: end_own(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    destroys=True,
    on_mcp=False,
    counts="minute",
)
_EVERYWHERE = Operation(
    name="sign_out_everywhere",
    title="Sign out everywhere",
    description="",
    params=SessionParams,
    answer=EndedKeys,
    handler=lambda call: sign_out_everywhere(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    destroys=True,
    on_mcp=False,
    counts="minute",
)

ROOM = Room(
    "keys", "Keys", "Make and revoke keys for programs, and end sessions of other browsers.", {"own": _KEYS}
)
ACTS = (
    AccountForm(_MAKE, "keys", ("signature", "label", "claim")),
    AccountForm(_END, "keys", ("id",), frozenset({"id"})),
    AccountForm(_EVERYWHERE, "keys"),
)


async def send_text(visit: Visit) -> Response:
    """POST /account/keys/text: the text that the wallet has to sign, for the page's script."""
    return JSONResponse(await visit.ask_old(_TEXT))
