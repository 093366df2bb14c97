"""Determines whether a failed transaction was a plain wallet's sell that the token or its pool refused.

A failed transaction has no logs, and it fails more often for its own reasons than for the token's: its
limits, its gas, a missing approval. So a sell by the same wallet is simulated on the state before its block,
without these: only a refusal of that sell counts against a verdict."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from roundtrip.chain.blocks.heads import ChainHead, HeadHeader
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, hex_bytes
from roundtrip.chain.wallet.transactions import (
    BlockAround,
    block_call,
    decode_answer,
    read_block,
    read_transaction,
)
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.scorecard.scorecard import SELLABLE, FailedSell, VerdictClaim
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import reading
from roundtrip.services.valuation.holding_sells import NO_PLACE
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued, worth
from roundtrip.store.boards import moving
from roundtrip.store.index.tokens import ids_of
from roundtrip.store.scorecard import real_trades as store
from roundtrip.store.scorecard import scorecard as scores
from roundtrip.store.server.rows import Connection
from roundtrip.venues import abi, erc20

from .real_trades import Token, has_code, token_of
from .settlement import read_verdict

_READ_GAS = 300_000

SellValuation = Callable[[Context, ChainHead, Sequence[HoldingToSell], Meter], Awaitable[list[Valued]]]
"""The signature of ``worth``."""


async def find_failed_sell(
    ctx: Context, token: Address, tx_hash: TxHash, is_last: bool, values: SellValuation = worth
) -> FailedSell | None:
    """The transaction as a failed sell of the token that the token or its pool refused, or, at the last try,
    of which nobody can say that. None: it is no plain wallet's failed sell, no verdict says that such a sell
    goes through, or it failed for a reason of its own. Raises NodeFault when the node does not answer or does
    not say why it failed, and ServiceFull."""
    meter = Meter()
    answer = await read_transaction(ctx.node, tx_hash, ctx.chain_id, meter)
    if answer is None or answer[1] is None:
        raise NodeFault("it does not have a transaction that the index has")
    if answer[1].succeeded:
        return None
    sent = answer[0]
    (block_answer,) = await ctx.node.batch([block_call(sent)], meter)
    around = read_block(block_answer, sent)
    block = around.ref
    async with reading(ctx) as (connection, _):
        claim, bought_raw = await _read_claim(ctx, connection, token, sent.sender, block)
    if claim is None:
        return None
    amount_raw, is_refused = min(bought_raw, claim.sizes_raw[-1]), None
    try:
        amount_raw, is_refused = await _sell_again(ctx, token, sent.sender, around, claim, values, meter)
    except NodeFault:
        # This raises NodeFault while the node is unavailable: then the job waits for it.
        ctx.heads.current()
    if is_refused is None and not is_last:
        raise NodeFault("it did not say why a sell failed")
    if is_refused is False or not claim.fits(amount_raw):
        return None
    return FailedSell(
        block.number, block.timestamp_s, tx_hash, sent.sender, amount_raw, refused=is_refused is True
    )


async def _sell_again(
    ctx: Context,
    token: Address,
    wallet: Address,
    around: BlockAround,
    claim: VerdictClaim,
    values: SellValuation,
    meter: Meter,
) -> tuple[int, bool | None]:
    """Simulates the wallet's sell on the state before the block: the amount, and whether the sell is refused;
    None: that is unknown. False also where it proves nothing. Raises NodeFault."""
    if await has_code(ctx, wallet, meter):
        return 0, False
    before = await _read_head(ctx, around.parent_hash, meter)
    amount_raw = min(await _read_held(ctx, token, wallet, before, meter), claim.sizes_raw[-1])
    if not claim.fits(amount_raw):
        return 0, False
    (value,) = await values(ctx, before, [HoldingToSell(token, amount_raw, seller=wallet)], meter)
    if isinstance(value, SellValue):
        return amount_raw, False
    return amount_raw, None if isinstance(value, Missing) or value == NO_PLACE else True


async def _read_claim(
    ctx: Context, connection: Connection, token: Address, wallet: Address, block: BlockRef
) -> tuple[VerdictClaim | None, int]:
    """The newest claim before the block that a failed sell contradicts, whether or not it covers the block's
    time (an older one may), and what the wallet had bought in the market and still had; None: there is no
    such claim, or it is no plain wallet."""
    verdict = await scores.sellable_before(connection, token, block.number)
    if verdict is None:
        return None, 0
    evidence, claim = await asyncio.to_thread(read_verdict, verdict, ctx.policy)
    if evidence is None or claim is None or claim.claim not in SELLABLE or not claim.sizes_raw:
        return None, 0
    known = await token_of(connection, evidence)
    if known is None:
        return None, 0
    bought_raw = await _bought_raw(connection, known, wallet, block)
    return (claim, bought_raw) if bought_raw > 0 else (None, 0)


async def _bought_raw(connection: Connection, token: Token, wallet: Address, block: BlockRef) -> int:
    """What the wallet bought in the market before the block and still had; 0 where it belongs to the people
    behind the token."""
    wallet_id = (await ids_of(connection, [wallet])).get(wallet)
    if wallet_id is None:
        return 0
    purses = await moving.read_origins(connection, {wallet_id} | token.behind)
    if any(purses.is_kin(wallet_id, other) for other in token.behind):
        return 0
    spot = (block.timestamp_s, block.number, 0)
    return (await store.own_until(connection, token.id, wallet_id, spot)).had_raw()


async def _read_head(ctx: Context, block_hash: str, meter: Meter) -> ChainHead:
    """The block with this hash as a head. Raises NodeFault."""
    (answer,) = await ctx.node.batch([RpcCall("eth_getBlockByHash", [block_hash, False])], meter)
    header = decode_answer(answer, HeadHeader, "block")
    if header.hash.lower() != block_hash:
        raise NodeFault("it returned another block than requested")
    current = ctx.heads.current()
    return header.head(current.market, current.heard_s, current.dialect)


async def _read_held(ctx: Context, token: Address, wallet: Address, before: ChainHead, meter: Meter) -> int:
    """The wallet's balance. Raises NodeFault, also where the node does not have the state any more."""
    params = {"to": token, "data": abi.call(erc20.BALANCE_OF, wallet), "gas": hex(_READ_GAS)}
    call = RpcCall("eth_call", [params, {"blockHash": before.block.hash}])
    (answer,) = await ctx.node.batch([call], meter)
    held_raw = None if isinstance(answer, RpcError) else abi.uint_at(hex_bytes(answer), 0)
    if held_raw is None:
        raise NodeFault("it returned no balance before a failed sell")
    return held_raw
