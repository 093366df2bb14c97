"""Parses amounts that users write, and formats amounts for answers."""

import re
from typing import Annotated

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.check.evidence import MarketRates
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.venues.base import Contracts, quote_name

from .strangers_text import WRITTEN

DECIMAL_PATTERN = r"^[0-9]{1,40}(\.[0-9]{1,40})?$"
_DECIMAL = re.compile(DECIMAL_PATTERN)
ETH_DECIMALS, USDG_DECIMALS = 18, 6


class AssetAmount(msgspec.Struct, frozen=True):
    """An amount of one asset, in whole units and in base units."""

    amount: Annotated[str, msgspec.Meta(description="Amount in whole units, a decimal number.")]
    raw: Annotated[str, msgspec.Meta(description="The same in base units (wei for eth).")]
    asset: Annotated[str, msgspec.Meta(description="eth, weth, usdg or the token's address.")]
    symbol: Annotated[
        str | None,
        msgspec.Meta(
            description=f"The asset's symbol. null: a token that gives none that can be shown. {WRITTEN}"
        ),
    ]


def amount(
    raw: int, asset: Address, decimals: int | None, symbol: str | None, contracts: Contracts
) -> AssetAmount:
    """Presents ``raw`` base units of an asset; the zero address is eth. Unknown decimals count as 0."""
    asset_name = quote_name(asset, contracts)
    money = {"eth": (ETH_DECIMALS, "ETH"), "weth": (ETH_DECIMALS, "WETH"), "usdg": (USDG_DECIMALS, "USDG")}
    places, shown = money.get(asset_name, (decimals or 0, symbol))
    return AssetAmount(plain_decimal(raw, places), str(raw), asset_name, shown)


def symbol_of(data: bytes | None) -> str | None:
    """A token's answer to symbol(), cleaned for display."""
    return names.symbol(names.text_in(data) or "") if data is not None else None


def parse_amount(text: str, decimals: int, unit: str) -> int:
    """Parses a plain decimal number above zero into base units. Raises CallerFault (bad_input)."""
    if not _DECIMAL.fullmatch(text):
        raise CallerFault("bad_input", f"The amount is no plain decimal number of {unit}, such as 0.1.")
    whole, _, fraction = text.partition(".")
    if len(fraction.rstrip("0")) > decimals:
        raise CallerFault("bad_input", f"The amount has more than the {decimals} decimals of {unit}.")
    raw = int(whole + fraction[:decimals].ljust(decimals, "0"))
    if raw == 0:
        raise CallerFault("bad_input", "The amount is zero.")
    if raw >= 2**256:
        raise CallerFault("bad_input", "The amount is more than any contract can count.")
    return raw


def money_wei(raw: int, asset: Address, contracts: Contracts, market: MarketRates) -> int | None:
    """An amount of money in wei at the market's prices; None if it has no price."""
    return quote_in_wei(raw, quote_name(asset, contracts), market) if raw else 0


def is_money(asset: Address, contracts: Contracts) -> bool:
    """True for eth, weth and usdg."""
    return asset in (ZERO_ADDRESS, contracts.weth, contracts.usdg)
