"""Who brought a token onto the chain."""

from dataclasses import dataclass
from typing import Literal, get_args

from roundtrip.domain.base.types import Address, TxHash

Source = Literal["launchpad", "deployment", "launch_tx"]
"""Who says so: the launchpad; the transaction that made the contract; the one in which the token first
spoke."""
SOURCES: tuple[Source, ...] = get_args(Source)


@dataclass(frozen=True, slots=True)
class Maker:
    """``creators``: whom the launchpad pays the creator's tax, and who sent the launch, where these are
    others. ``tx_hash``: the transaction that shows it; None: not known."""

    deployer: Address
    source: Source
    creators: tuple[Address, ...]
    tx_hash: TxHash | None
