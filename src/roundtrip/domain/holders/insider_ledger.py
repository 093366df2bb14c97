"""What deployer and creator did with all tokens that ever reached them, added up flow by flow."""

from dataclasses import dataclass

from roundtrip.domain.base.types import Address

from .token_flows import WalletFlow

MAX_COUNTERPARTIES = 1_000
"""How many counterparties' net balances are kept for an insider, the largest ones. What comes back from
another counterparty counts as received again."""


@dataclass(slots=True)
class InsiderLedger:
    """What an insider (deployer, creator) did with all tokens that ever reached him. ``received_raw``,
    ``pooled_raw``: as in ``HolderColumns``: an insider who puts 100 into pools and takes 130 out received 30
    and has none there. ``moved_raw``: to others and to lockers, less what came back from them, which is not
    received again. If the logs are honest, what is received and neither sold, moved, pooled nor burned is the
    balance."""

    received_raw: int = 0
    bought_raw: int = 0
    sold_raw: int = 0
    moved_raw: int = 0
    pooled_raw: int = 0
    burned_raw: int = 0


def record_flow(
    ledger: InsiderLedger, moved_to: dict[Address, int], flow: WalletFlow, received_raw: int, pooled_raw: int
) -> None:
    """Adds one flow. ``moved_to``: what he moved to each counterparty, less what came back; never zero.
    ``received_raw``: how much of the flow reached him; ``pooled_raw``: what he has in pools after it."""
    kind, _, other, amount = flow
    ledger.pooled_raw = pooled_raw
    if kind == "bought":
        ledger.bought_raw += amount
    elif kind == "sold":
        ledger.sold_raw += amount
    elif kind == "burned":
        ledger.burned_raw += amount
    elif kind == "moved" and other is not None:
        ledger.moved_raw += amount
        moved_to[other] = moved_to.get(other, 0) + amount
        if len(moved_to) > 2 * MAX_COUNTERPARTIES:
            ranked = sorted(moved_to, key=lambda wallet: (-moved_to[wallet], wallet))
            for wallet in ranked[MAX_COUNTERPARTIES:]:
                del moved_to[wallet]
    elif kind == "got" and other in moved_to:
        returned_raw = min(amount, moved_to[other])
        received_raw -= returned_raw
        ledger.moved_raw -= returned_raw
        moved_to[other] -= returned_raw
        if not moved_to[other]:
            del moved_to[other]
    ledger.received_raw += received_raw
