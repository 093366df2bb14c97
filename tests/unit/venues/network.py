"""A made-up network that plans are made against."""

from dataclasses import fields, replace

from roundtrip.domain.base.types import Address
from roundtrip.venues.base import Contracts


def address(number: int) -> Address:
    """An address that is easy to tell from others."""
    return Address(f"0x{number:040x}")


_NAMES = [f.name for f in fields(Contracts) if f.default != ()]
CONTRACTS = Contracts(**{name: address(0x1000 + 16 * at) for at, name in enumerate(_NAMES)})  # type: ignore[arg-type]
"""Weth lies below usdg."""

SWAPPED = replace(CONTRACTS, weth=CONTRACTS.usdg, usdg=CONTRACTS.weth)
"""Weth lies above usdg."""

BELOW = address(0x0B)
ABOVE = address(0xAB << 152)
"""Tokens whose address lies below, and above, every quote's."""
