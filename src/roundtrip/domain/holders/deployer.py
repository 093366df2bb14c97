"""Who created a token."""

from dataclasses import dataclass
from typing import Literal, get_args

from roundtrip.domain.base.types import Address, TxHash

Source = Literal["launchpad", "deployment", "launch_tx"]
"""Where the deployer is known from: the launchpad; the transaction that made the contract; the transaction
with the token's first log."""
SOURCES: tuple[Source, ...] = get_args(Source)


@dataclass(frozen=True, slots=True)
class Maker:
    """``creators``: the receiver of the launchpad's creator tax, and the sender of the launch, if they differ
    from the deployer. ``tx_hash``: the transaction that shows it; None: not known."""

    deployer: Address
    source: Source
    creators: tuple[Address, ...]
    tx_hash: TxHash | None
