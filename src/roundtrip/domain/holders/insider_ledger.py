"""What deployer and creator did with all that ever reached them, added up deed by deed."""

from dataclasses import dataclass

from roundtrip.domain.base.types import Address

from .token_flows import WalletFlow

MOST_COUNTERPARTIES = 1_000
"""Of so many an insider's net account is kept: of those who have most of his. What comes back from another is
received again."""


@dataclass(slots=True)
class InsiderLedger:
    """What an insider (deployer, creator) did with all that ever reached him. ``received_raw``,
    ``pooled_raw``: as in ``Holding``: who puts 100 into pools and takes 130 out received 30 and has none
    there. ``moved_raw``: to others and to lockers, less what came back from the same, which is not received
    again. By honest logs what is received and neither sold, moved, pooled nor burned is the balance."""

    received_raw: int = 0
    bought_raw: int = 0
    sold_raw: int = 0
    moved_raw: int = 0
    pooled_raw: int = 0
    burned_raw: int = 0


def note(
    ledger: InsiderLedger, moved_to: dict[Address, int], flow: WalletFlow, received_raw: int, pooled_raw: int
) -> None:
    """One more deed of his. ``moved_to``: what he moved to whom, less what came back, and never nothing.
    ``received_raw``: so much of the deed reached him; ``pooled_raw``: so much he has in pools after it."""
    what, _, other, amount = flow
    ledger.pooled_raw = pooled_raw
    if what == "bought":
        ledger.bought_raw += amount
    elif what == "sold":
        ledger.sold_raw += amount
    elif what == "burned":
        ledger.burned_raw += amount
    elif what == "moved" and other is not None:
        ledger.moved_raw += amount
        moved_to[other] = moved_to.get(other, 0) + amount
        if len(moved_to) > 2 * MOST_COUNTERPARTIES:
            ranked = sorted(moved_to, key=lambda one: (-moved_to[one], one))
            for one in ranked[MOST_COUNTERPARTIES:]:
                del moved_to[one]
    elif what == "got" and other in moved_to:
        back = min(amount, moved_to[other])
        received_raw -= back
        ledger.moved_raw -= back
        moved_to[other] -= back
        if not moved_to[other]:
            del moved_to[other]
    ledger.received_raw += received_raw
