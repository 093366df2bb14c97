"""Wallets and transactions, in plain words."""

from typing import Any

from starlette.responses import Response

from roundtrip.api.operations.operation import Operation
from roundtrip.console.pages.account_sections.marks import MARK, UNMARK
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.community.my_marks import OwnOfWallet, WalletSaid, own_of_wallet, wallet_said
from roundtrip.services.support.wallet_params import WalletParams

# Both of the wallet that was just shown, or spoken of: they count with that.
_SAID = Operation(
    name="wallet_said",
    title="What is said of a wallet",
    description="",
    params=WalletParams,
    answer=WalletSaid,
    handler=lambda call: wallet_said(call.ctx, call.params),
    on_mcp=False,
    counts="never",
    bad_params="bad_address",
)
_OWN = Operation(
    name="own_of_wallet",
    title="What you say of a wallet",
    description="",
    params=WalletParams,
    answer=OwnOfWallet,
    handler=lambda call: own_of_wallet(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="never",
    bad_params="bad_address",
)


async def wallet(visit: Visit) -> Response:
    """What a wallet did and holds, and what is said of it."""
    answer = await visit.ask("wallet_history", address=visit.path["address"])
    return visit.show("wallet.html", answer=answer, **await _name_fields(visit))


async def say(visit: Visit) -> Response:
    """Names or marks it, or takes that back, and shows what is said of it now."""
    act = UNMARK if visit.form.get("off") else MARK
    given = {} if act is UNMARK else {name: visit.form.get(name, "").strip() for name in ("name", "mark")}
    try:
        await visit.ask(act, address=visit.path["address"], **{k: v for k, v in given.items() if v})
    except RoundtripError as fault:
        if fault.code in ("bad_key", "bad_address"):
            raise
        template = "wallet_said_piece.html" if visit.is_piece() else "wallet_said.html"
        status = 200 if visit.is_piece() else fault.status
        return visit.show(template, status, **await _name_fields(visit, fault=fault, form=visit.form))
    if visit.is_piece():
        return visit.show("wallet_said_piece.html", **await _name_fields(visit))
    return visit.go(f"/wallet/{visit.path['address']}#said")


async def _name_fields(visit: Visit, **came: Any) -> dict[str, Any]:
    address = visit.path["address"]
    own = None if visit.session is None else await visit.ask(_OWN, address=address)
    return {
        "said": await visit.ask(_SAID, address=address), "mine": own, "fault": None, "form": {}, **came
    }  # fmt: skip


async def show_linked(visit: Visit) -> Response:
    """Who is linked to it: a piece of its page."""
    answer = await visit.ask("linked_wallets", address=visit.path["address"])
    return visit.show("linked_piece.html" if visit.is_piece() else "linked.html", answer=answer)


async def transaction(visit: Visit) -> Response:
    """What a transaction did."""
    return visit.show(
        "transaction.html", answer=await visit.ask("explain_transaction", hash=visit.path["hash"])
    )
