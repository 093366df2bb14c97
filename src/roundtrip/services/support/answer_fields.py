"""What the fields of answers and parameters share."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

AddressText = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$")]


def says(description: str) -> msgspec.Meta:
    """The description of a field or a parameter in the published schemas."""
    return msgspec.Meta(description=description)


ChainId = Annotated[int, says("Id of the chain; Robinhood Chain is 4663.")]
TokenAddress = Annotated[str, says("The token's address.")]
WalletAddress = Annotated[str, says("The wallet.")]
BaseUnits = Annotated[str, says("The same in base units.")]
Designation = Annotated[str, says("The account's public name.")]
IsAgent = Annotated[bool, says("Whether the account carries the agent tag.")]
DeployerWallet = Annotated[str, says("The deployer's wallet.")]
Graduated = Annotated[int, says("Launches of those that became a pool.")]
SoldOwn = Annotated[int, says("Launches of those where it sold half or more of what it had bought.")]
FlagLevel = Annotated[int, says("Level by flags that proved right: 1 + floor(log2(1 + proved)).")]
AheadOfChance = Annotated[
    bool | None,
    says("Whether its flags are right more often than luck explains. null: there is no base rate."),
]
SoldOutAt = Annotated[datetime, says("When it had sold all of it.")]
BlockHash = Annotated[str, says("Hash of that block.")]
VenueAt = Annotated[str | None, says("Address of the pool or curve, or id of a v4 pool. null: not known.")]
CheckedAt = Annotated[datetime, says("When the check was made.")]
"""Fields that several answers have."""


def at(now_s: float) -> datetime:
    """Seconds since 1970 as a UTC time, to the millisecond."""
    return datetime.fromtimestamp(int(now_s * 1000) / 1000, UTC)
