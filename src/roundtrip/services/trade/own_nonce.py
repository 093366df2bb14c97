"""The nonces that the caller's own wallet sets: whether the chain would take the transactions now."""

from collections.abc import Sequence

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, quantity
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context

_UNREAD = "We could not read the wallet's next nonce."


async def describe_own_nonces(
    ctx: Context, head: ChainHead, wallet: Address, nonces: Sequence[int | None], meter: Meter
) -> str:
    """The sentence for nonces that are not the wallet's next ones; empty: they are, or it sets none."""
    if all(nonce is None for nonce in nonces):
        return ""
    call = RpcCall("eth_getTransactionCount", [wallet, {"blockHash": head.block.hash}])
    try:
        (answer,) = await ctx.node.batch([call], meter)
        return _UNREAD if isinstance(answer, RpcError) else compare_nonces(nonces, quantity(answer))
    except NodeFault:
        return _UNREAD


def compare_nonces(nonces: Sequence[int | None], following: int) -> str:
    """The sentence for the first nonce that does not come next; empty: there is none. ``following``: the
    wallet's next nonce; each call takes one."""
    for number, nonce in enumerate(nonces):
        turn = following + number
        if nonce is None or nonce == turn:
            continue
        whose = "Its nonce" if len(nonces) == 1 else f"The nonce of call {number + 1}"
        differs = f"{whose} is {nonce:,}, but {turn:,} comes next"
        if nonce < turn:
            return f"{differs}: the chain refuses a nonce that is used."
        return f"{differs}: it waits until the wallet has used the nonces before it."
    return ""
