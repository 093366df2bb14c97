"""Large removals of liquidity, as answers show them."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.figures import format_amount
from roundtrip.domain.liquidity.removals import LARGE_BPS, LARGE_BY_DEPLOYER_BPS, Removal
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import when

_PERCENT_DECIMALS = 2


class RemovalRow(msgspec.Struct, frozen=True, rename="camel"):
    """A removal of much of a pool's active liquidity."""

    token: Annotated[str, says("The token.")]
    pool: Annotated[str, says("The pool: its address, or a v4 pool's id.")]
    wallet: Annotated[str, says("The wallet that sent the transaction.")]
    by_deployer: Annotated[bool, says("Whether a launchpad names that wallet as the token's deployer.")]
    share_bps: Annotated[
        int,
        says(
            "Share of the pool's active liquidity just before, in hundredths of a percent, "
            f"rounded down: above {LARGE_BPS}, or {LARGE_BY_DEPLOYER_BPS} by the deployer."
        ),
    ]
    tx: Annotated[str, says("The transaction.")]
    block: Annotated[int, says("Its block.")]
    at: Annotated[datetime, says("The time of its block.")]


def present_removal(removal: Removal) -> RemovalRow:
    """The removal as answers show it."""
    spot = removal.spot
    return RemovalRow(
        token=removal.token,
        pool=removal.pool,
        wallet=removal.wallet,
        by_deployer=removal.by_deployer,
        share_bps=removal.share_bps,
        tx=spot.tx_hash,
        block=spot.block_number,
        at=when(spot.at_s),
    )


def describe_removal(removal: Removal) -> str:
    """One sentence: who removed how much, from which pool."""
    who = f"{removal.wallet}, its deployer," if removal.by_deployer else removal.wallet
    share = format_amount(removal.share_bps, _PERCENT_DECIMALS)
    return f"{who} removed {share} % of the active liquidity of a pool of {removal.token} ({removal.pool})."
