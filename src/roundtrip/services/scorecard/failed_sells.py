"""Whether a transaction that failed was a plain wallet's sell that the token, or its pool, refused.

A failed transaction leaves no logs, and it fails for its own reasons more often than for the token's: its
limits, its gas, an approval that was not made. So the same wallet sells once more, on the state before its
block, with none of those: only what is refused then is held against a verdict."""

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
from roundtrip.services.lookup.explain_text import find_known_call
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.holding_sells import NO_PLACE
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued
from roundtrip.store.boards import moving
from roundtrip.store.index.addresses import ids_of
from roundtrip.store.scorecard import real_trades as store
from roundtrip.store.server.rows import Connection
from roundtrip.venues import abi, erc20

from .real_trades import Token, has_code

NO_SELL = "It is no call of a known router, or of the token's curve, that names this token, as a sell is."
NOT_PLAIN = (
    "Its sender is not known as a plain wallet that bought this token in the market and still had it: a "
    "contract, whoever is behind the token, or somebody who was given it."
)
TOO_LITTLE = "Its sender held less of the token than any amount that the check tried."
NOT_TOLD = "It could not be tried again on the state before its block: the node does not tell that any more."
OWN_REASON = (
    "On the state before its block the same wallet could have sold. It failed for a reason of its own, as "
    "its limits, its gas or an approval that was missing."
)
_READ_GAS = 300_000
_TRADES = ("trade",)
_WRAPPERS = ("multicall",)


class SellValuation(Protocol):
    """As ``worth``."""

    def __call__(
        self, ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
    ) -> Awaitable[list[Valued]]: ...


@dataclass(frozen=True, slots=True)
class FailedTransaction:
    """A transaction that failed, and the block it is in."""

    sent: SentTransaction
    around: BlockAround


async def names_sell(connection: Connection, ctx: Context, token: Token, sent: SentTransaction) -> bool:
    """Whether it calls a known router with the token's address in it, or the token's own curve or pool."""
    called = find_known_call(sent)
    if sent.to is None or called is None or not (called.kind in _TRADES or called.name in _WRAPPERS):
        return False
    if sent.to in ctx.contracts.all_addresses():
        return bytes.fromhex(token.address[2:]) in sent.data
    return await store.is_place_of(connection, token.id, sent.to)


async def is_plain(
    connection: Connection, token: Token, sent: SentTransaction, number: int, at_s: int
) -> bool:
    """Whether its sender, as far as the index tells, is nobody's behind the token and bought in the market
    what it still had then."""
    ids = await ids_of(connection, [sent.sender])
    wallet_id = ids.get(sent.sender)
    if wallet_id is None:
        return False
    purses = await moving.purses_of(connection, {wallet_id} | token.behind)
    if any(purses.is_kin(wallet_id, other) for other in token.behind):
        return False
    own = await store.own_until(connection, token.id, wallet_id, (at_s, number, 0))
    return own.had_raw() > 0


async def failed_sell(
    ctx: Context,
    token: Address,
    tried: FailedTransaction,
    said: VerdictClaim,
    values: SellValuation,
    meter: Meter,
) -> FailedSell | str:
    """The sell that failed, tried again; a sentence: why nothing is proved. Raises NodeFault where the node
    gave no answer at all."""
    sent, around = tried.sent, tried.around
    if await has_code(ctx, sent.sender, meter):
        return NOT_PLAIN
    before = await _before(ctx, around.parent_hash, meter)
    held_raw = None if before is None else await _held_raw(ctx, token, sent.sender, before, meter)
    if before is None or held_raw is None:
        return NOT_TOLD
    amount_raw = min(held_raw, said.sizes_raw[-1])
    if amount_raw <= 0 or not said.fits(amount_raw):
        return TOO_LITTLE
    (valued,) = await values(ctx, before, [HoldingToSell(token, amount_raw, seller=sent.sender)], meter)
    if isinstance(valued, SellValue):
        return OWN_REASON
    if isinstance(valued, Missing) or valued == NO_PLACE:
        return NOT_TOLD
    ref = around.ref
    return FailedSell(ref.number, ref.timestamp_s, sent.hash, sent.sender, amount_raw)


async def _before(ctx: Context, block_hash: str, meter: Meter) -> ChainHead | None:
    """The block before it, as a head; None: the node does not have it."""
    (answer,) = await ctx.node.batch([RpcCall("eth_getBlockByHash", [block_hash, False])], meter)
    if isinstance(answer, RpcError):
        return None
    try:
        header = msgspec.json.decode(answer, type=HeadHeader)
    except (msgspec.DecodeError, ValueError) as error:
        raise NodeFault("it gave a block that cannot be read") from error
    if header.hash.lower() != block_hash:
        raise NodeFault("it gave another block than was asked for")
    now = ctx.heads.current()
    return header.head(now.market, now.heard_s, now.dialect)


async def _held_raw(
    ctx: Context, token: Address, wallet: Address, before: ChainHead, meter: Meter
) -> int | None:
    asked = {"to": token, "data": abi.call(erc20.BALANCE_OF, wallet), "gas": hex(_READ_GAS)}
    call = RpcCall("eth_call", [asked, {"blockHash": before.block.hash}])
    (answer,) = await ctx.node.batch([call], meter)
    return None if isinstance(answer, RpcError) else abi.uint_at(hex_bytes(answer), 0)
