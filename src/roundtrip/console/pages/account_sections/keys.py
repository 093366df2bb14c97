"""The account's API keys and sessions."""

from starlette.responses import Response

from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_operations import own_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.services.accounts.manage_keys import (
    end_own,
    make_own_key,
    own_key_text,
    own_keys,
    sign_out_everywhere,
)

_KEYS = own_operation(own_keys, counts="minute")
_TEXT = own_operation(own_key_text, method="POST", counts="minute")
_MAKE = own_operation(make_own_key, method="POST", writes=True, counts="minute")
_END = own_operation(end_own, method="POST", writes=True, destroys=True, counts="minute")
_EVERYWHERE = own_operation(sign_out_everywhere, method="POST", writes=True, destroys=True, counts="minute")


async def _read(visit: Visit) -> Values:
    return {"own": await visit.ask(_KEYS, {"session": visit.session})}


ROOM = Room("keys", "Keys", "Make and revoke keys for programs, and end sessions of other browsers.", _read)
ACTS = (
    AccountForm(_MAKE, "keys", ("signature", "label", "claim")),
    AccountForm(_END, "keys", ("id",), frozenset({"id"})),
    AccountForm(_EVERYWHERE, "keys"),
)


async def send_text(visit: Visit) -> Response:
    """POST /account/keys/text: the text that the wallet has to sign, for the page's script."""
    return Response(await visit.ask_json(_TEXT, {}), media_type="application/json")
