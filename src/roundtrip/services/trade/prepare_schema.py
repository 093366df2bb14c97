"""The parameters and the answer of a trade that is written for the caller's own wallet to sign."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.base.venue import VenueKind
from roundtrip.services.support.money import DECIMAL_PATTERN, AssetAmount
from roundtrip.services.support.strangers_text import Symbol

from .simulate_schema import AddressField, SellBack, ShortCheck, TradeVerdict

Slippage = Annotated[
    int,
    msgspec.Meta(
        ge=1, le=5000, description="How much less than rehearsed is taken, in hundredths of a percent."
    ),
]
TokenField = Annotated[AddressField, msgspec.Meta(description="The token's address.")]
WalletField = Annotated[AddressField, msgspec.Meta(description="The wallet that will sign.")]


_NOT_ZERO = {"not": {"pattern": r"^[0.]*$"}}


class PrepareBuyParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What to buy, with how much, from which wallet."""

    token: TokenField
    sender: WalletField = msgspec.field(name="from")
    amount: Annotated[
        str,
        msgspec.Meta(
            pattern=DECIMAL_PATTERN,
            description="A plain decimal number of what the venue is paid in (venue.pays): eth or usdg.",
            extra_json_schema=_NOT_ZERO,
        ),
    ]
    slippage_bps: Slippage = 100
    fund: Annotated[bool, msgspec.Meta(description="Rehearse as if the wallet held plenty of eth.")] = False


class PrepareSellParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What to sell, how much of it, from which wallet."""

    token: TokenField
    sender: WalletField = msgspec.field(name="from")
    amount: (
        Annotated[
            str,
            msgspec.Meta(
                pattern=r"^(all|[0-9]{1,40}(\.[0-9]{1,40})?)$",
                description="all, or tokens as a plain decimal number.",
                extra_json_schema=_NOT_ZERO,
            ),
        ]
        | None
    ) = None
    percent: (
        Annotated[
            float,
            msgspec.Meta(gt=0, le=100, description="Share of what the wallet holds; used instead of amount."),
        ]
        | None
    ) = None
    slippage_bps: Slippage = 100

    def share(self) -> Decimal | None:
        """The percent as it was written; None where an amount says how much. Raises CallerFault."""
        if self.percent is not None:
            return Decimal(repr(self.percent))
        if self.amount is None:
            raise CallerFault("bad_input", "Say how much: an amount, all, or a percent.")
        return Decimal(100) if self.amount == "all" else None


def address(text: str) -> Address:
    """An address. Raises CallerFault (bad_input)."""
    try:
        return parse_address(text)
    except ValueError:
        raise CallerFault("bad_input", "An address is 0x and 40 hex digits.") from None


class TokenOf(msgspec.Struct, frozen=True):
    """The token that is traded."""

    address: str
    symbol: Symbol
    decimals: int


class TradeVenue(msgspec.Struct, frozen=True):
    """Where it is traded, and what that is paid in, or pays."""

    kind: VenueKind
    at: str | None
    pays: Literal["eth", "weth", "usdg"]


class ExpectedAmount(msgspec.Struct, frozen=True, rename="camel"):
    """What the rehearsal brought, and the least that arrives before the swap reverts on its own."""

    amount: str
    raw: str
    asset: str
    symbol: Symbol
    min: str
    min_raw: str


class TradeStep(msgspec.Struct, frozen=True):
    """One transaction to sign and send."""

    n: int
    does: str
    to: str
    data: str
    value: Annotated[str, msgspec.Meta(description="Wei.")]
    gas: int


class PreparedTrade(msgspec.Struct, frozen=True, rename="camel"):
    """Unsigned transactions that trade, in order, as they were run once in a simulation."""

    chain_id: int
    side: Literal["buy", "sell"]
    sender: str = msgspec.field(name="from")
    block: int
    token: TokenOf
    venue: TradeVenue
    spend: AssetAmount
    expect: ExpectedAmount
    slippage_bps: int
    valid_until: datetime
    refused: bool
    steps: list[TradeStep]
    already_done: list[str]
    sell_back: SellBack | None
    verdict: TradeVerdict
    check: ShortCheck
    prepared_at: datetime
