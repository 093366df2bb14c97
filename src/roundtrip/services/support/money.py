"""Parses amounts that users write, and formats amounts for answers."""

import re
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.errors import ParamFault
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import MarketRates
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.services.support.answer_fields import WRITTEN, says
from roundtrip.venues.base import Contracts, quote_name

DECIMAL_PATTERN = r"^[0-9]{1,40}(\.[0-9]{1,40})?$"
_DECIMAL = re.compile(DECIMAL_PATTERN)
ETH_DECIMALS, USDG_DECIMALS = 18, 6
Pays = Literal["eth", "usdg"]


class AssetAmount(msgspec.Struct, frozen=True):
    """An amount of one asset, in whole units and in base units."""

    amount: Annotated[str, says("Amount in whole units, a decimal number.")]
    raw: Annotated[str, says("The same in base units (wei for eth).")]
    asset: Annotated[str, says("eth, weth, usdg or the token's address.")]
    symbol: Annotated[
        str | None, says(f"The asset's symbol. null: a token that gives none that can be shown. {WRITTEN}")
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


def parse_amount(text: str, decimals: int, unit: str, name: str = "amount") -> int:
    """Parses a plain decimal number above zero into base units. ``name``: the parameter's, for errors. Raises
    ParamFault (bad_input)."""
    example = "0.1" if decimals else "5"
    if not _DECIMAL.fullmatch(text):
        raise ParamFault(
            "bad_input", f'{name} must be a decimal number of {unit} in quotes, such as "{example}".'
        )
    whole, _, fraction = text.partition(".")
    if len(fraction.rstrip("0")) > decimals:
        raise ParamFault(
            "bad_input",
            f"{name} must have at most the {format_count(decimals, 'decimal')} of {unit}, such as "
            f'"{example}".',
        )
    raw = int(whole + fraction[:decimals].ljust(decimals, "0"))
    if raw == 0:
        raise ParamFault("bad_input", f'{name} must be above zero, such as "{example}".')
    if raw >= 2**256:
        raise ParamFault(
            "bad_input", f'{name} must be below 2^256 base units of {unit}, such as "{example}".'
        )
    return raw


def money_wei(raw: int, asset: Address, contracts: Contracts, market: MarketRates) -> int | None:
    """An amount of money in wei at the market's prices; None if it has no price."""
    return quote_in_wei(raw, quote_name(asset, contracts), market) if raw else 0


def is_money(asset: Address, contracts: Contracts) -> bool:
    """True for eth, weth and usdg."""
    return asset in (ZERO_ADDRESS, contracts.weth, contracts.usdg)


def pays(venue: Venue) -> Pays | None:
    """The asset that a wallet pays to a venue and gets from it: weth pools are paid in eth, which the routers
    wrap. None: the service writes no trades for this quote."""
    names: dict[str, Pays] = {"eth": "eth", "weth": "eth", "usdg": "usdg"}
    return names.get(venue.quote)
