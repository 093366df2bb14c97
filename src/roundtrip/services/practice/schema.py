"""Parameters and answers of practice trades."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_amount
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.practice.practice import SellsBack
from roundtrip.services.rehearsal.verdict import TradeVerdict
from roundtrip.services.support.answer_fields import (
    QUOTED,
    AnswerText,
    BaseUnits,
    BlockHash,
    ChainId,
    TokenField,
    VenueAt,
    says,
)
from roundtrip.services.support.index_reader import TokenNamed
from roundtrip.services.support.money import DECIMAL_PATTERN, ETH_DECIMALS

Eth = Annotated[str, says("Practice eth, a plain decimal number.")]
Tokens = Annotated[str, says("Whole tokens, a plain decimal number.")]


class PracticeBuyParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What to buy, and with how much."""

    token: TokenField
    eth: Annotated[
        str,
        msgspec.Meta(
            pattern=DECIMAL_PATTERN,
            description='Practice eth to spend: a decimal number in quotes, at least 0.001, such as "0.1".',
        ),
    ]


class PracticeSellParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What to sell, and how much of it."""

    token: TokenField
    percent: Annotated[
        float,
        msgspec.Meta(
            gt=0,
            le=100,
            description="Share of the position to sell, greater than 0 and at most 100; left out: all of it.",
        ),
    ] = 100


class PracticeVenue(msgspec.Struct, frozen=True):
    """Where it was priced, and what that is paid in, or pays."""

    kind: Annotated[VenueKind, says("Kind of venue.")]
    at: VenueAt
    pays: Annotated[str, says("What the venue is paid in and pays out: eth, weth or usdg.")]


class PositionAfter(msgspec.Struct, frozen=True, rename="camel"):
    """What is held of the token after it."""

    amount: Annotated[Tokens, says("Whole tokens, a decimal number.")]
    raw: BaseUnits
    cost: Annotated[str, says("What they cost, in practice eth.")]


class PracticeTradeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What the answers about a buy and a sell begin with."""

    text: AnswerText
    id: Annotated[int, says("Id of the trade.")]
    chain_id: ChainId
    block: int
    block_hash: BlockHash
    token: Annotated[TokenNamed, says("The token.")]
    venue: Annotated[PracticeVenue, says("Where it was priced.")]


class PracticeBought(PracticeTradeAnswer, frozen=True, rename="camel"):
    """A practice buy."""

    block: Annotated[int, says("Block of the prices it was bought at.")]
    spent: Annotated[Eth, says("Practice eth that was spent.")]
    received: Annotated[Tokens, says("Whole tokens received, a decimal number.")]
    received_raw: BaseUnits
    sells_back: Annotated[SellsBack, says("Whether it could be sold straight back; unknown is not a pass.")]
    verdict: Annotated[TradeVerdict, says("What selling it straight back came to.")]
    position: Annotated[PositionAfter, says("What the account holds of the token now.")]
    eth_left: Annotated[Eth, says("Practice eth left to spend.")]
    made_at: Annotated[datetime, says("When the trade was made.")]


class PracticeSold(PracticeTradeAnswer, frozen=True, rename="camel"):
    """A practice sell."""

    block: Annotated[int, says("Block of the prices it was sold at.")]
    sold: Annotated[Tokens, says("Whole tokens sold, a decimal number.")]
    sold_raw: BaseUnits
    got: Annotated[Eth, says("What the sell brought, in practice eth.")]
    cost: Annotated[str, says("What the sold part had cost, in practice eth.")]
    profit: Annotated[str, says("got minus cost, in practice eth; below zero: a loss.")]
    counted: Annotated[bool, says("Whether the sell counts for the league.")]
    set_apart: Annotated[
        str, says("Gain of a sell that does not count, in practice eth: it cannot be spent.")
    ]
    why_not: Annotated[str | None, says("Why it does not count for the league. null: it counts.")]
    position: Annotated[
        PositionAfter | None, says("What the account still holds of the token. null: nothing.")
    ]
    eth_left: Annotated[Eth, says("Practice eth left to spend.")]
    made_at: Annotated[datetime, says("When the trade was made.")]


class PositionListed(msgspec.Struct, frozen=True, rename="camel"):
    """An open position, and what it would sell for."""

    token: Annotated[TokenNamed, says("The token.")]
    amount: Annotated[Tokens, says("Whole tokens, a decimal number.")]
    raw: BaseUnits
    cost: Annotated[str, says("What it cost, in practice eth.")]
    worth: Annotated[
        str | None,
        says(
            "What all of it would sell for at this block, in practice eth. null: it cannot "
            "be sold, or not known; see why."
        ),
    ]
    gain: Annotated[str | None, says("worth minus cost, in practice eth. null: worth is null.")]
    why: Annotated[
        str | None,
        says(
            f"Why worth is null: it cannot be sold, or could not be found out. null: worth is known. {QUOTED}"
        ),
    ]
    opened_at: Annotated[datetime, says("When the position was opened.")]
    stuck_at: Annotated[
        datetime | None,
        says(
            "Since when it cannot be sold, by a check or after a week of failed sells of "
            "all of it; next Monday it is written off. null: not stuck."
        ),
    ]


class PracticeAccount(msgspec.Struct, frozen=True, rename="camel"):
    """A practice account."""

    text: AnswerText
    chain_id: ChainId
    block: Annotated[int, says("Block of the prices that value the positions.")]
    block_hash: BlockHash
    eth: Annotated[str, says("Practice eth left to spend.")]
    positions: Annotated[list[PositionListed], says("Open positions, the oldest first.")]
    worth: Annotated[str, says("Practice eth left plus what the positions would sell for, where known.")]
    given: Annotated[str, says("Practice eth that it began with, plus every gift.")]
    set_apart: Annotated[
        str, says("Gains of sells that do not count for the league, in practice eth: they cannot be spent.")
    ]
    week_begins: Annotated[datetime, says("Start of the week: Monday, 00:00 UTC.")]
    profit_this_week: Annotated[str, says("Profit of this week's sells, losses subtracted, in practice eth.")]
    sells_this_week: Annotated[int, says("Sells this week.")]


class TradeListed(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the ledger. Buys and sells stand as they were priced, whatever becomes of the block."""

    id: Annotated[int, says("Id of the line.")]
    side: Annotated[
        Literal["buy", "sell", "gift", "written_off"],
        says("gift: Monday's gift. written_off: a stuck position, written off on a Monday."),
    ]
    token: Annotated[TokenNamed | None, says("The token. null: a gift.")]
    amount: Annotated[Tokens | None, says("Whole tokens, a decimal number. null: a gift.")]
    raw: Annotated[str | None, says("The same in base units. null: a gift.")]
    eth: Annotated[str, says("Practice eth that was paid, received or given.")]
    price: Annotated[
        str | None, says("Practice eth for a whole token, to 18 digits. null: neither a buy nor a sell.")
    ]
    cost: Annotated[
        str | None,
        says(
            "What the sold or written-off part had cost, in practice eth. null: neither a "
            "sell nor written off."
        ),
    ]
    profit: Annotated[
        str | None, says("Profit in practice eth; below zero: a loss. null: neither a sell nor written off.")
    ]
    block: Annotated[int | None, says("Block of the prices that were used. null: neither a buy nor a sell.")]
    block_hash: Annotated[str | None, says("Hash of that block. null: neither a buy nor a sell.")]
    venue: Annotated[VenueKind | None, says("Kind of venue that priced it. null: neither a buy nor a sell.")]
    sells_back: Annotated[
        SellsBack | None,
        says("Whether a buy could be sold straight back; unknown is not a pass. null: not a buy."),
    ]
    counted: Annotated[bool | None, says("Whether a sell counts for the league. null: not a sell.")]
    why_not: Annotated[str | None, says("Why a sell does not count. null: it counts, or is not a sell.")]
    made_at: Annotated[datetime, says("When it was written.")]


class PracticeTrades(msgspec.Struct, frozen=True, rename="camel"):
    """The last practice trades."""

    text: AnswerText
    trades: Annotated[list[TradeListed], says("The newest first, at most 50.")]


def eth_of(wei: int) -> str:
    """Formats wei as eth, exactly."""
    return plain_decimal(wei, ETH_DECIMALS)


def practice_eth(wei: int) -> str:
    """An amount of practice eth in a sentence: ``0.1234 practice eth``."""
    return f"{format_amount(wei, ETH_DECIMALS)} practice eth"


def token_named(token: Address, symbol: str | None) -> TokenNamed:
    """A token with its cleaned symbol, for answers."""
    return TokenNamed(token, None if symbol is None else names.symbol(symbol), None)
