"""Parameters of the tools that take one wallet."""

from typing import Annotated

import msgspec

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address, parse_address


class WalletParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which wallet."""

    address: Annotated[
        str,
        msgspec.Meta(
            pattern="^0x[0-9a-fA-F]{40}$", description="The wallet's address, 0x and 40 hex digits."
        ),
    ]

    def wallet(self) -> Address:
        """The address, lower-cased. Raises CallerFault (bad_address)."""
        try:
            return parse_address(self.address)
        except ValueError:
            raise CallerFault("bad_address", "That is not an address: 0x and 40 hex digits.") from None
