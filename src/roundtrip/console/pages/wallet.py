"""The pages of a wallet and of a transaction."""

from typing import Any

from starlette.responses import Response

from roundtrip.api.operations.operation import Operation
from roundtrip.console.pages.account_sections.marks import MARK, UNMARK
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.community.my_marks import OwnOfWallet, WalletSaid, own_of_wallet, wallet_said
from roundtrip.services.support.wallet_params import WalletParams

# Both are part of showing or marking a wallet, which is counted.
_SAID = Operation(
    name="wallet_said",
    title="Names and marks of a wallet",
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
    title="Your name and mark of a wallet",
    description="",
    params=WalletParams,
    answer=OwnOfWallet,
    handler=lambda call: own_of_wallet(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="never",
    bad_params="bad_address",
)


async def show_wallet(visit: Visit) -> Response:
    """GET /wallet/{address}: the wallet's history and holdings, with its names and marks."""
    answer = await visit.ask("wallet_history", address=visit.path["address"])
    return visit.show("wallet.html", answer=answer, **await _mark_values(visit))


async def mark_wallet(visit: Visit) -> Response:
    """POST /wallet/{address}/said: names or marks the wallet, or removes both, and shows the result."""
    operation = UNMARK if visit.form.get("off") else MARK
    params = (
        {} if operation is UNMARK else {name: visit.form.get(name, "").strip() for name in ("name", "mark")}
    )
    try:
        await visit.ask(operation, address=visit.path["address"], **{k: v for k, v in params.items() if v})
    except RoundtripError as fault:
        if fault.code in ("bad_key", "bad_address"):
            raise
        template = "wallet_said_piece.html" if visit.is_piece() else "wallet_said.html"
        status = 200 if visit.is_piece() else fault.status
        return visit.show(template, status, **await _mark_values(visit, fault=fault, form=visit.form))
    if visit.is_piece():
        return visit.show("wallet_said_piece.html", **await _mark_values(visit))
    return visit.redirect(f"/wallet/{visit.path['address']}#said")


async def _mark_values(visit: Visit, **result: Any) -> dict[str, Any]:
    address = visit.path["address"]
    own = None if visit.session is None else await visit.ask(_OWN, address=address)
    return {
        "said": await visit.ask(_SAID, address=address), "mine": own, "fault": None, "form": {}, **result
    }  # fmt: skip


async def show_linked(visit: Visit) -> Response:
    """GET /wallet/{address}/linked: linked wallets, a piece of the wallet's page."""
    answer = await visit.ask("linked_wallets", address=visit.path["address"])
    return visit.show("linked_piece.html" if visit.is_piece() else "linked.html", answer=answer)


async def show_transaction(visit: Visit) -> Response:
    """GET /transaction/{hash}: what a transaction did."""
    return visit.show(
        "transaction.html", answer=await visit.ask("explain_transaction", hash=visit.path["hash"])
    )
