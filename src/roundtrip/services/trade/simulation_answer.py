"""The answer of a simulation, and its parts that other trade answers share."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.venue import VenueKind
from roundtrip.services.rehearsal.verdict import ShortCheck, TradeVerdict
from roundtrip.services.support.answer_fields import ChainId, Reverts, TokenAddress, VenueAt, says
from roundtrip.services.support.money import AssetAmount


class CallOutcomeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Result of one call."""

    ok: Annotated[bool, says("Whether the call went through.")]
    gas_used: Annotated[int, says("Gas that it used.")]
    reverts: Reverts


class ApprovalAnswer(msgspec.Struct, frozen=True):
    """An allowance that the calls gave."""

    token: TokenAddress
    spender: Annotated[str, says("Address that may take it.")]
    amount: Annotated[str | None, says("Whole tokens that it may take, a decimal number. null: unlimited.")]
    unlimited: Annotated[bool, says("Whether there is no bound.")]


class SellBack(msgspec.Struct, frozen=True, rename="camel"):
    """The sell of the received token: straight back where that goes through, else the first that does."""

    token: Annotated[str, says("Address of the token that was sold.")]
    venue: Annotated[VenueKind, says("Kind of venue that it was sold on.")]
    at: VenueAt
    sold: Annotated[str, says("Whole tokens that were sold, a decimal number; 0: none that counts.")]
    back: Annotated[AssetAmount | None, says("What the sold part brought. null: nothing was sold.")]
    round_trip_loss_bps: Annotated[
        int | None,
        says(
            "Loss in hundredths of a percent of what the sold part had cost. null: not "
            "enough was sold, or the cost is not known."
        ),
    ]
    reverts: Reverts
    share_bps: Annotated[
        int,
        says("Share of the received tokens that was sold, in hundredths of a percent. 10000: all; 0: none."),
    ]
    after_s: Annotated[
        int | None,
        says(
            "Seconds between the buy and the block of this sell: 13 is straight back, 3600 "
            "an hour, 86400 a day. null: nothing was sold."
        ),
    ]
    price_impact_bps: Annotated[
        int | None,
        says(
            "How much less than a small buy this one got for its money, in hundredths of a "
            "percent. null: not known, or no loss is."
        ),
    ]
    later_loss_bps: Annotated[
        int | None,
        says(
            "Worst loss of selling all of it an hour and a day later, where that sells half or "
            "more, in hundredths of a percent; the rest counts as lost. null: it sold at neither time, or "
            "the loss is not known."
        ),
    ]


class Simulation(msgspec.Struct, frozen=True, rename="camel"):
    """What a wallet's calls would do in the next block."""

    chain_id: ChainId
    block: Annotated[int, says("Block that the calls ran on.")]
    sender: Annotated[str, says("The wallet that the calls came from.")] = msgspec.field(name="from")
    verdict: Annotated[TradeVerdict, says("What the calls came to.")]
    calls: Annotated[list[CallOutcomeAnswer], says("Result of each call, in order.")]
    spent: Annotated[list[AssetAmount], says("What left the wallet, gas not included.")]
    received: Annotated[list[AssetAmount], says("What the wallet received.")]
    approvals: Annotated[
        list[ApprovalAnswer], says("What a spender may take from the wallet that it could not before.")
    ]
    sell_back: Annotated[
        SellBack | None,
        says(
            "The sell of the received token. null: no token was received, or there was no venue to try it on."
        ),
    ]
    check: Annotated[
        ShortCheck | None,
        says(
            "What a check says of the received token. null: no token was received, or the check did not run."
        ),
    ]
    simulated_at: Annotated[datetime, says("When it was simulated.")]
