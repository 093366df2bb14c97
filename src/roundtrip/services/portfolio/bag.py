"""What the key's wallet holds: what it would bring now, what it cost, and what has changed since."""

from collections.abc import Awaitable, Sequence
from typing import Protocol

import asyncpg

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.holders.wallet_views import UNREAD, WalletViews, read_views, view_calls
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.watch.bag_guard import GUARD
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing, reading
from roundtrip.services.valuation.holdings import HoldingToSell, Valued, worth
from roundtrip.store.index import addresses, tokens
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.watch import bag_changes
from roundtrip.store.watch.bag_changes import BagToken

from .present import BagRecord, NodeValues, present
from .schema import MyBag

MOST_HELD = GUARD.most_held


class BagValuation(Protocol):
    """As ``worth``."""

    def __call__(
        self, ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
    ) -> Awaitable[list[Valued]]: ...


async def my_bag(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[MyBag]:
    """Everything the account's wallet holds by the index. What the node does not tell stands as null, and the
    text says so. Raises ServiceFull (busy)."""
    return await bag_of(ctx, account.wallet, worth)


async def bag_of(ctx: Context, wallet: Address, values: BagValuation) -> UseCaseAnswer[MyBag]:
    """The same of a wallet. Raises ServiceFull (busy)."""
    meter = Meter()
    async with reading(ctx) as (connection, stands):
        known = await _read_bag(connection, wallet, stands)
    read = await _read(ctx, wallet, known, values, meter)
    answer = present(ctx.chain_id, wallet, known, read, ctx.policy)
    return UseCaseAnswer(answer, counted=read.head is not None or not known.held, meter=meter)


async def _read_bag(connection: asyncpg.Connection, wallet: Address, stands: Cursor) -> BagRecord:
    # Who stands in no fact has a number that nobody has.
    wallet_id = await addresses.id_of(connection, wallet) or 0
    held = await bag_changes.list_held(connection, wallet_id, MOST_HELD + 1)
    some = held[:MOST_HELD]
    then, now = await bag_changes.checks(connection, some)
    now_s = stands.block.timestamp_s
    return BagRecord(
        stands=stands,
        held=some,
        is_part=len(held) > MOST_HELD,
        labels=await tokens.labels(connection, [one.token_id for one in some]),
        sold=await bag_changes.deployers_sold(connection, some),
        left=await bag_changes.liquidity_left(connection, some, stands.start_number, now_s),
        then=then,
        now=now,
    )


async def _read(
    ctx: Context, wallet: Address, known: BagRecord, values: BagValuation, meter: Meter
) -> NodeValues:
    """What the node says at the head; nothing where it does not answer."""
    if not known.held:
        return NodeValues(None, UNREAD, {})
    try:
        head = ctx.heads.current()
        views = await _views(ctx, wallet, known, head, meter)
    except (NodeFault, ServiceFull):
        return NodeValues(None, UNREAD, {})
    asked = [one for one in known.held if views.tokens[known.labels[one.token_id].address].amount_raw]
    return NodeValues(head, views, await _values(ctx, wallet, known, views, head, asked, values, meter))


async def _views(
    ctx: Context, wallet: Address, known: BagRecord, head: ChainHead, meter: Meter
) -> WalletViews:
    labels = [known.labels[one.token_id] for one in known.held]
    held = [label.address for label in labels]
    unread = {label.address for label in labels if label.decimals is None or label.supply_raw is None}
    calls = view_calls(wallet, held, unread, ctx.contracts, head.block, ctx.policy.read_gas_limit)
    return read_views(await ctx.node.batch(calls, meter=meter), held, unread, ctx.chain_id)


async def _values(
    ctx: Context,
    wallet: Address,
    known: BagRecord,
    views: WalletViews,
    head: ChainHead,
    asked: Sequence[BagToken],
    values: BagValuation,
    meter: Meter,
) -> dict[int, Valued]:
    holdings = []
    for one in asked:
        token = known.labels[one.token_id].address
        amount_raw = views.tokens[token].amount_raw
        assert amount_raw is not None
        holdings.append(HoldingToSell(token, amount_raw, seller=wallet))
    if not holdings:
        return {}
    try:
        found = await values(ctx, head, holdings, meter)
    except (NodeFault, ServiceFull) as error:
        found = [Missing("node", str(error))] * len(holdings)
    return {one.token_id: valued for one, valued in zip(asked, found, strict=True)}
