"""Determines whether a failed transaction was a plain wallet's sell that the token or its pool refused.

A failed transaction has no logs, and it fails more often for its own reasons than for the token's: its
limits, its gas, a missing approval. So a sell by the same wallet is simulated on the state before its block,
without these: only a refusal of that sell counts against a verdict."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from roundtrip.chain.blocks.heads import ChainHead, HeadHeader
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, hex_bytes
from roundtrip.chain.wallet.transactions import BlockAround, SentTransaction
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.scorecard.scorecard import FailedSell, VerdictClaim
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.holding_sells import NO_PLACE
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued
from roundtrip.store.boards import moving
from roundtrip.store.index.tokens import ids_of
from roundtrip.store.scorecard import real_trades as store
from roundtrip.store.server.rows import Connection
from roundtrip.venues import abi, erc20
from roundtrip.venues.known_calls import find_known_call

from .real_trades import Token, has_code

NO_SELL = (
    "It is not a sell of this token: a sell calls a known router or the token's curve, and names the token."
)
NOT_PLAIN = (
    "We do not know its sender as a plain wallet that bought this token in the market and still had it. The "
    "sender may be a contract, belong to the people behind the token, or have been given the token."
)
TOO_LITTLE = "Its sender held less of the token than the smallest amount that the check tried."
NOT_TOLD = "We could not run it again on the state before its block: the node no longer has that state."
OWN_REASON = (
    "On the state before its block the same wallet could have sold. It failed for a reason of its own, "
    "such as its limits, its gas or a missing approval."
)
_READ_GAS = 300_000
_TRADES = ("trade",)
_WRAPPERS = ("multicall",)


class SellValuation(Protocol):
    """The signature of ``worth``."""

    def __call__(
        self, ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
    ) -> Awaitable[list[Valued]]: ...


@dataclass(frozen=True, slots=True)
class FailedTransaction:
    """A mined transaction, and the block it is in."""

    sent: SentTransaction
    around: BlockAround


async def names_sell(connection: Connection, ctx: Context, token: Token, sent: SentTransaction) -> bool:
    """Whether the transaction calls a known router with the token's address in its data, or calls the token's
    own curve or pool."""
    call = find_known_call(sent.data)
    if sent.to is None or call is None or not (call.kind in _TRADES or call.name in _WRAPPERS):
        return False
    if sent.to in ctx.contracts.all_addresses():
        return bytes.fromhex(token.address[2:]) in sent.data
    return await store.is_place_of(connection, token.id, sent.to)


async def is_plain(
    connection: Connection, token: Token, sent: SentTransaction, number: int, at_s: int
) -> bool:
    """Whether the sender, by the index, has nothing to do with the people behind the token, and had bought in
    the market what it held at that time."""
    ids = await ids_of(connection, [sent.sender])
    wallet_id = ids.get(sent.sender)
    if wallet_id is None:
        return False
    purses = await moving.read_origins(connection, {wallet_id} | token.behind)
    if any(purses.is_kin(wallet_id, other) for other in token.behind):
        return False
    history = await store.own_until(connection, token.id, wallet_id, (at_s, number, 0))
    return history.had_raw() > 0


async def retry_failed_sell(
    ctx: Context,
    token: Address,
    transaction: FailedTransaction,
    claim: VerdictClaim,
    values: SellValuation,
    meter: Meter,
) -> FailedSell | str:
    """Simulates the failed sell again. Returns the sell if it is refused, else a sentence that says why
    nothing is proved. Raises NodeFault when the node gave no answer."""
    sent, around = transaction.sent, transaction.around
    if await has_code(ctx, sent.sender, meter):
        return NOT_PLAIN
    before = await _read_head(ctx, around.parent_hash, meter)
    held_raw = None if before is None else await _held_raw(ctx, token, sent.sender, before, meter)
    if before is None or held_raw is None:
        return NOT_TOLD
    amount_raw = min(held_raw, claim.sizes_raw[-1])
    if amount_raw <= 0 or not claim.fits(amount_raw):
        return TOO_LITTLE
    (value,) = await values(ctx, before, [HoldingToSell(token, amount_raw, seller=sent.sender)], meter)
    if isinstance(value, SellValue):
        return OWN_REASON
    if isinstance(value, Missing) or value == NO_PLACE:
        return NOT_TOLD
    block = around.ref
    return FailedSell(block.number, block.timestamp_s, sent.hash, sent.sender, amount_raw)


async def _read_head(ctx: Context, block_hash: str, meter: Meter) -> ChainHead | None:
    """The block with this hash as a head; None if the node does not have it. Raises NodeFault."""
    (answer,) = await ctx.node.batch([RpcCall("eth_getBlockByHash", [block_hash, False])], meter)
    if isinstance(answer, RpcError):
        return None
    try:
        header = msgspec.json.decode(answer, type=HeadHeader)
    except (msgspec.DecodeError, ValueError) as error:
        raise NodeFault("it returned an unreadable block") from error
    if header.hash.lower() != block_hash:
        raise NodeFault("it returned another block than requested")
    current = ctx.heads.current()
    return header.head(current.market, current.heard_s, current.dialect)


async def _held_raw(
    ctx: Context, token: Address, wallet: Address, before: ChainHead, meter: Meter
) -> int | None:
    params = {"to": token, "data": abi.call(erc20.BALANCE_OF, wallet), "gas": hex(_READ_GAS)}
    call = RpcCall("eth_call", [params, {"blockHash": before.block.hash}])
    (answer,) = await ctx.node.batch([call], meter)
    return None if isinstance(answer, RpcError) else abi.uint_at(hex_bytes(answer), 0)
