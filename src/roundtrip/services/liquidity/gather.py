"""Reads a token's positions at a block, and finds out who can withdraw them.

Trips: one for the buy round of a check and, at once, the pools, positions and holders that the index knows;
up to four for positions that it does not know and their holders; up to seven for positions that contracts
hold; one for the sells after the withdrawal."""

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.depth import TokenPositions
from roundtrip.services.engine.candidates import venue_of
from roundtrip.services.engine.token_check import start_check
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once

from .findings import LiquidityFindings, judge_liquidity
from .position_reader import KnownPool, PositionReader


async def find_liquidity(
    ctx: Context, head: ChainHead, token: Address, indexed: TokenPositions | None, meter: Meter
) -> LiquidityFindings:
    """Everything at one block. ``indexed``: the positions that the index knows; None: there is no index.
    Raises NodeFault."""
    pools = () if indexed is None else indexed.pools
    known = {venue_of(pool.pool, ctx.contracts): KnownPool(pool.positions, pool.left_out) for pool in pools}
    buying, reading = Meter(), Meter()
    reader = PositionReader(ctx.node, ctx.contracts, head.block, reading)
    bought, _ = await at_once(start_check(ctx, head, token, buying), reader.read(known))
    # Both ran at once: their trips count once, and what follows comes on top.
    meter.add(buying, reading)
    reader.meter = meter
    return await judge_liquidity(bought, reader)
