"""What practice positions are sold as: a wallet of ours that is given them where the token keeps its
balances, or, where that is not known, a real wallet that holds as much."""

from collections.abc import Sequence

from roundtrip.chain import facts
from roundtrip.chain.heads import Head
from roundtrip.chain.rpc import Meter, RpcCall, RpcError, hex_bytes
from roundtrip.chain.storage import BalanceSlot
from roundtrip.domain.types import Address
from roundtrip.store.practice import Kept, Slot
from roundtrip.venues import abi, erc20

from .at_once import at_once
from .context import Context
from .indexed import indexed
from .worth import Holding

_READ_GAS = 300_000


async def holding_of(
    ctx: Context, head: Head, kept: Kept, amount_raw: int, before_raw: int, slot: Slot | None
) -> Holding:
    """``amount_raw`` of a position. Raises NodeFault."""
    token = kept.position.token
    if slot is not None:
        return Holding(token, amount_raw, None, BalanceSlot(token, slot.layout, slot.base), before_raw)
    seller = await _a_holder(ctx, head, token, amount_raw + before_raw)
    return Holding(token, amount_raw, seller, None, before_raw)


async def holdings_of(ctx: Context, head: Head, positions: Sequence[Kept]) -> list[Holding]:
    """Each position whole. Raises NodeFault."""
    return await at_once(
        *(holding_of(ctx, head, kept, kept.position.held_raw, 0, kept.slot) for kept in positions)
    )


async def _a_holder(ctx: Context, head: Head, token: Address, least_raw: int) -> Address | None:
    """A wallet without code that holds so much at the block of ``head``, of those that the index knows."""
    told = await indexed(ctx.pool, ctx.contracts, token, ctx.entropy(), ctx.policy.most_holders)
    if not told.holders:
        return None
    pinned = {"blockHash": head.block.hash}
    balances = [
        RpcCall(
            "eth_call",
            [{"to": token, "data": abi.call(erc20.BALANCE_OF, one), "gas": hex(_READ_GAS)}, pinned],
        )
        for one in told.holders
    ]
    codes = [facts.code_call(one, head.block) for one in told.holders]
    answers = await ctx.node.batch([*balances, *codes], Meter())
    half = len(balances)
    for one, balance, code in zip(told.holders, answers[:half], answers[half:], strict=True):
        if isinstance(balance, RpcError) or facts.read_code(code) != b"":
            continue
        if (abi.uint_at(hex_bytes(balance), 0) or 0) >= least_raw:
            return one
    return None
