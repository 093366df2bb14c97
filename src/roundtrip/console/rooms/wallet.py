"""Wallets and transactions, in plain words."""

from starlette.responses import Response

from roundtrip.console.page import Visit


async def wallet(visit: Visit) -> Response:
    """What a wallet did, and holds."""
    return visit.show("wallet.html", answer=await visit.ask("wallet_history", address=visit.path["address"]))


async def linked(visit: Visit) -> Response:
    """Who is linked to it: a piece of its page."""
    answer = await visit.ask("linked_wallets", address=visit.path["address"])
    return visit.show("linked_piece.html", answer=answer)


async def transaction(visit: Visit) -> Response:
    """What a transaction did."""
    return visit.show(
        "transaction.html", answer=await visit.ask("explain_transaction", hash=visit.path["hash"])
    )
