"""A made-up network that plans are made against."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from roundtrip.domain.types import Address
from roundtrip.venues.base import Contracts


def address(number: int) -> Address:
    """An address that is easy to tell from others."""
    return Address(f"0x{number:040x}")


def _of_every_field() -> Iterator[tuple[str, Any]]:
    for at, field in enumerate(fields(Contracts)):
        one = address(0x1000 + 16 * at)
        yield field.name, (one, address(0x1001 + 16 * at)) if field.default == () else one


CONTRACTS = Contracts(**dict(_of_every_field()))
"""Weth lies below usdg."""

SWAPPED = replace(CONTRACTS, weth=CONTRACTS.usdg, usdg=CONTRACTS.weth)
"""Weth lies above usdg."""

BELOW = address(0x0B)
ABOVE = address(0xAB << 152)
"""Tokens whose address lies below, and above, every quote's."""
