"""Parameters of the tools that take one wallet or one token."""

from typing import Annotated

import msgspec

from roundtrip.domain.base.errors import ParamFault
from roundtrip.domain.base.types import Address, parse_address

EXAMPLE_ADDRESS = "0x00112233445566778899aabbccddeeff00112233"
"""An address for examples in error messages."""


def read_address(text: str, name: str = "address", code: str = "bad_address") -> Address:
    """Parses the address that a parameter holds, in lower case. Raises ParamFault."""
    try:
        return parse_address(text)
    except ValueError:
        message = f'{name} must be 0x and 40 hex digits, such as "{EXAMPLE_ADDRESS}".'
        raise ParamFault(code, message) from None


class WalletParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The wallet to read."""

    address: Annotated[
        str,
        msgspec.Meta(
            pattern="^0x[0-9a-fA-F]{40}$", description="The wallet's address, 0x and 40 hex digits."
        ),
    ]

    def wallet(self) -> Address:
        """The address, lower-cased. Raises CallerFault (bad_address)."""
        return read_address(self.address)


class TokenParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which token."""

    address: Annotated[
        str,
        msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$", description="The token's address, 0x and 40 hex digits."),
    ]

    def token(self) -> Address:
        """The address, lower-cased. Raises CallerFault (bad_address)."""
        return read_address(self.address)
