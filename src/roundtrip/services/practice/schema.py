"""Parameters and answers of practice trades."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_amount
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.practice.practice import SellsBack
from roundtrip.services.support.index_reader import TokenNamed
from roundtrip.services.support.money import DECIMAL_PATTERN, ETH_DECIMALS
from roundtrip.services.support.strangers_text import QUOTED, AnswerText
from roundtrip.services.trade.prepare import TokenField
from roundtrip.services.trade.simulate import TradeVerdict

Eth = Annotated[str, msgspec.Meta(description="Practice eth, a plain decimal number.")]
Tokens = Annotated[str, msgspec.Meta(description="Whole tokens, a plain decimal number.")]


class PracticeBuyParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What to buy, and with how much."""

    token: TokenField
    eth: Annotated[
        str,
        msgspec.Meta(
            pattern=DECIMAL_PATTERN,
            description="Practice eth to spend, a plain decimal number, at least 0.001.",
        ),
    ]


class PracticeSellParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What to sell, and how much of it."""

    token: TokenField
    percent: Annotated[
        float,
        msgspec.Meta(gt=0, le=100, description="Share of the position; all of it when left out."),
    ] = 100


class PracticeVenue(msgspec.Struct, frozen=True):
    """Where it was priced, and what that is paid in, or pays."""

    kind: VenueKind
    at: Annotated[str | None, msgspec.Meta(description="The pool or the curve.")]
    pays: str


class PositionAfter(msgspec.Struct, frozen=True, rename="camel"):
    """What is held of the token after it."""

    amount: Tokens
    raw: str
    cost: Annotated[str, msgspec.Meta(description="What that cost, in practice eth.")]


class PracticeBought(msgspec.Struct, frozen=True, rename="camel"):
    """A practice buy."""

    text: AnswerText
    id: int
    chain_id: int
    block: Annotated[int, msgspec.Meta(description="The block whose prices it was bought at.")]
    block_hash: str
    token: TokenNamed
    venue: PracticeVenue
    spent: Eth
    received: Tokens
    received_raw: str
    sells_back: Annotated[
        SellsBack,
        msgspec.Meta(description="Whether it could be sold straight back; unknown is not a pass."),
    ]
    verdict: Annotated[TradeVerdict, msgspec.Meta(description="What selling it straight back came to.")]
    position: PositionAfter
    eth_left: Eth
    made_at: datetime


class PracticeSold(msgspec.Struct, frozen=True, rename="camel"):
    """A practice sell."""

    text: AnswerText
    id: int
    chain_id: int
    block: Annotated[int, msgspec.Meta(description="The block whose prices it was sold at.")]
    block_hash: str
    token: TokenNamed
    venue: PracticeVenue
    sold: Tokens
    sold_raw: str
    got: Eth
    cost: Annotated[str, msgspec.Meta(description="What the part that was sold had cost, in practice eth.")]
    profit: Annotated[str, msgspec.Meta(description="got less cost; below zero: a loss.")]
    counted: Annotated[bool, msgspec.Meta(description="Whether it counts for the league.")]
    set_apart: Annotated[
        str, msgspec.Meta(description="The gain of a sell that does not count: it cannot be spent.")
    ]
    why_not: Annotated[str | None, msgspec.Meta(description="Why it does not count for the league.")]
    position: PositionAfter | None
    eth_left: Eth
    made_at: datetime


class PositionListed(msgspec.Struct, frozen=True, rename="camel"):
    """An open position, and what it would sell for."""

    token: TokenNamed
    amount: Tokens
    raw: str
    cost: Annotated[str, msgspec.Meta(description="What it cost, in practice eth.")]
    worth: Annotated[
        str | None, msgspec.Meta(description="What all of it would sell for at this block; null: see why.")
    ]
    gain: Annotated[str | None, msgspec.Meta(description="worth less cost; null where worth is.")]
    why: Annotated[
        str | None,
        msgspec.Meta(
            description=f"Why nothing is said of its worth: it cannot be sold, or is not known. {QUOTED}"
        ),
    ]
    opened_at: datetime
    stuck_at: Annotated[
        datetime | None,
        msgspec.Meta(
            description=(
                "Since when it cannot be sold, by the check or after a week of failed sells of all of it: on "
                "the next Monday it is written off."
            )
        ),
    ]


class PracticeAccount(msgspec.Struct, frozen=True, rename="camel"):
    """A practice account."""

    text: AnswerText
    chain_id: int
    block: Annotated[int, msgspec.Meta(description="The block whose prices the positions are valued at.")]
    block_hash: str
    eth: Annotated[str, msgspec.Meta(description="What is left to spend.")]
    positions: Annotated[list[PositionListed], msgspec.Meta(description="The oldest first.")]
    worth: Annotated[
        str, msgspec.Meta(description="eth and what the positions would sell for, as far as that is known.")
    ]
    given: Annotated[str, msgspec.Meta(description="What it began with, and every gift.")]
    set_apart: Annotated[
        str,
        msgspec.Meta(description="Gains of sells that do not count for the league: they cannot be spent."),
    ]
    week_begins: Annotated[datetime, msgspec.Meta(description="Monday, 00:00 UTC.")]
    profit_this_week: Annotated[str, msgspec.Meta(description="What the week's sells took, losses off.")]
    sells_this_week: int


class TradeListed(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the ledger. Buys and sells stand as they were priced, whatever becomes of the block."""

    id: int
    side: Annotated[
        Literal["buy", "sell", "gift", "written_off"],
        msgspec.Meta(description="gift: of a Monday; written_off: given up on a Monday for nothing."),
    ]
    token: TokenNamed | None
    amount: Tokens | None
    raw: str | None
    eth: Annotated[str, msgspec.Meta(description="Paid, got, or given.")]
    price: Annotated[
        str | None, msgspec.Meta(description="Practice eth for a whole token, to 18 digits; buys and sells.")
    ]
    cost: Annotated[str | None, msgspec.Meta(description="What was sold, or written off, had cost.")]
    profit: Annotated[str | None, msgspec.Meta(description="Of sells and write-offs; below zero: a loss.")]
    block: int | None
    block_hash: str | None
    venue: VenueKind | None
    sells_back: SellsBack | None
    counted: Annotated[bool | None, msgspec.Meta(description="Of a sell: whether it counts for the league.")]
    why_not: str | None
    made_at: datetime


class PracticeTrades(msgspec.Struct, frozen=True, rename="camel"):
    """The last practice trades."""

    text: AnswerText
    trades: Annotated[list[TradeListed], msgspec.Meta(description="The newest first, 50 at most.")]


def eth_of(wei: int) -> str:
    """Formats wei as eth, exactly."""
    return plain_decimal(wei, ETH_DECIMALS)


def practice_eth(wei: int) -> str:
    """An amount of practice eth in a sentence: ``0.1234 practice eth``."""
    return f"{format_amount(wei, ETH_DECIMALS)} practice eth"


def token_named(token: Address, symbol: str | None) -> TokenNamed:
    """A token with its cleaned symbol, for answers."""
    return TokenNamed(token, None if symbol is None else names.symbol(symbol), None)
