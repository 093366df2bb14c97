"""The answer about a token's liquidity."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.liquidity.depth import HeldBy
from roundtrip.domain.liquidity.text import Tag
from roundtrip.services.support.answer_fields import AnswerText, ChainId, Reverts, TokenAddress, says
from roundtrip.services.support.money import AssetAmount

ShareBps = Annotated[int, says("Share of the token's liquidity in range, in hundredths of a percent.")]


class LiquidityTotals(msgspec.Struct, frozen=True, rename="camel"):
    """Who has how much of the liquidity in range, over all venues of the answer, by its worth; rounded
    down."""

    free_bps: Annotated[int, says("Somebody can withdraw it now.")]
    locked_bps: Annotated[
        int, says("A contract of known code keeps it: a simulated withdrawal is refused now.")
    ]
    contract_bps: Annotated[
        int,
        says(
            "A contract of unknown code holds it, and nobody that was tried can withdraw it now. "
            "Not a pass: code can hide a way out."
        ),
    ]
    burned_bps: Annotated[int, says("A burn address holds it.")]
    launchpad_bps: Annotated[int, says("The launchpad's curve or its locker holds it for ever.")]
    unknown_bps: Annotated[int, says("It could not be found out who can withdraw it: not a pass.")]


class LiquidityHolder(msgspec.Struct, frozen=True, rename="camel"):
    """An account that holds or can withdraw liquidity."""

    address: Annotated[str, says("Its address.")]
    tags: Annotated[
        list[Tag],
        says(
            "What is known of it as to the token. owner, funded_by_owner: the token's owner. The "
            "others are those of token_holders. Empty: nothing is known; see tagsComplete."
        ),
    ]


class UnlockOf(msgspec.Struct, frozen=True, rename="camel"):
    """When somebody can withdraw a position."""

    at: Annotated[datetime, says("The time. exact false: not before it.")]
    exact: Annotated[
        bool, says("A simulated withdrawal is refused a second before and succeeds at the time.")
    ]
    by: Annotated[str | None, says("Who can withdraw it then. null: not known.")]


class FeesOf(msgspec.Struct, frozen=True):
    """Fees that a position has earned and nobody has claimed."""

    token: Annotated[AssetAmount, says("Of the token.")]
    quote: Annotated[AssetAmount, says("Of what the pool trades it for.")]


class LiquidityPosition(msgspec.Struct, frozen=True, rename="camel"):
    """A position in a pool."""

    manager: Annotated[str, says("Whom the pool knows as its owner: a position manager, or a contract.")]
    number: Annotated[str | None, says("The manager's number of its NFT. null: it is none.")]
    tick_lower: Annotated[int, says("The lower end of its range.")]
    tick_upper: Annotated[int, says("The upper end of its range.")]
    in_range: Annotated[bool, says("Whether it trades at the pool's price; else it has no active depth.")]
    liquidity: Annotated[str, says("Its liquidity, in the pool's units.")]
    share_bps: Annotated[int, says("Share of the pool's liquidity in range, in hundredths of a percent.")]
    holder: Annotated[LiquidityHolder | None, says("Who holds it. null: not known.")]
    held_by: Annotated[
        HeldBy,
        says(
            "free: somebody can withdraw it now. locked: a contract of known code keeps it. "
            "contract: a contract of unknown code has it, and nobody that was tried can withdraw it now. "
            "burned: a burn address has it. launchpad: the launchpad keeps it. unknown: not found out."
        ),
    ]
    locker: Annotated[str | None, says("The name of a known contract. null: it is none.")]
    withdrawn_by: Annotated[
        LiquidityHolder | None, says("Who can withdraw it now. null: nobody that is known.")
    ]
    withdrawn_through: Annotated[
        str | None, says("The contract's function by which. null: by the holder itself, or by none.")
    ]
    unlock: Annotated[UnlockOf | None, says("When it can be withdrawn. null: not known.")]
    fees: Annotated[FeesOf | None, says("Fees not claimed yet. null: not known.")]


class LiquidityVenue(msgspec.Struct, frozen=True, rename="camel"):
    """A pool or a curve, and who holds its liquidity."""

    kind: Annotated[VenueKind, says("What kind of venue it is.")]
    at: Annotated[str | None, says("The pool's or curve's address, or the pool's id. null: it has neither.")]
    quote: Annotated[str, says("What it trades for: eth, weth, usdg, or a token.")]
    share_bps: Annotated[
        int | None,
        says(
            "Its share of the liquidity of all venues here, in hundredths of a percent. null: "
            "the worth of its quote is not known."
        ),
    ]
    liquidity: Annotated[str, says("Liquidity in range, in the pool's units; 0 on a curve.")]
    known_bps: Annotated[
        int,
        says(
            "Share of the liquidity in range that the positions here account for, in hundredths of a percent."
        ),
    ]
    positions: Annotated[
        list[LiquidityPosition], says("The largest in range first. Empty: a curve, or none is known.")
    ]
    left_out: Annotated[int, says("Smaller positions that were not read.")]


class ExitAfterLeaving(msgspec.Struct, frozen=True, rename="camel"):
    """What a buyer gets back after the largest party has withdrawn all that it can now, simulated."""

    by: Annotated[LiquidityHolder, says("Who withdraws.")]
    share_bps: ShareBps
    now_loss_bps: Annotated[
        int | None,
        says(
            "Loss of the round trip without the withdrawal, in hundredths of a percent. null: no "
            "sell succeeds, or it is not known."
        ),
    ]
    loss_bps: Annotated[
        int | None,
        says(
            "Loss after it, where the sell brings most, in hundredths of a percent. null: no "
            "sell succeeds, or it is not known (known false)."
        ),
    ]
    known: Annotated[bool, says("Whether the simulation gave a result.")]
    reverts: Reverts


class Liquidity(msgspec.Struct, frozen=True, rename="camel"):
    """Who can withdraw a token's liquidity."""

    text: AnswerText
    address: TokenAddress
    chain_id: ChainId
    block: Annotated[int, says("The block at which everything was read and simulated.")]
    checked_at: Annotated[datetime, says("When.")]
    totals: Annotated[LiquidityTotals | None, says("null: we know of no liquidity in its pools.")]
    if_it_left: Annotated[
        ExitAfterLeaving | None, says("null: nobody is known who can withdraw any now, in or out of range.")
    ]
    venues: Annotated[
        list[LiquidityVenue], says("The venue that gives most for 0.1 eth first, four at most. Empty: none.")
    ]
    pools_complete: Annotated[
        bool,
        says(
            "Whether all of the token's pools were read. false: what holds for these need not "
            "hold for the others."
        ),
    ]
    tags_complete: Annotated[
        bool,
        says(
            "Whether all tags of the holders are known. false: an account may have tags that are "
            "missing here; deployer, owner and whom they funded were looked up."
        ),
    ]
