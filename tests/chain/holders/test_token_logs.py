"""Every token of the real local chain: its transfers as the node's plain logs have them, its trades as the
index has them."""

import contextlib
from collections import defaultdict
from typing import Any

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.holders.token_logs import (
    LogSources,
    TokenSpan,
    VenueSides,
    find_oldest_logs,
    token_spans,
)
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.holders.token_flows import TokenTx
from roundtrip.services.runtime.context import Context
from roundtrip.store.index.cursor import pools_of
from roundtrip.store.index.tokens import id_of
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from unit.venues.logs import HOOK_FEE, TRANSFER

TRADES = """
    SELECT '0x' || encode(trade.tx_hash, 'hex') AS tx_hash, '0x' || encode(pool.at, 'hex') AS at, trade.buys,
        trade.token_raw::text, trade.quote_raw::text, trade.at_s, trade.block_number, pool.kind
    FROM facts.trade JOIN facts.pool ON pool.id = trade.pool_id
    JOIN facts.address AS token ON token.id = pool.token_id WHERE token.address = $1
    ORDER BY trade.block_number, trade.log_index
"""


async def sources_of(ctx: Context, token: Address) -> LogSources:
    """As the index knows its places."""
    async with ctx.pool.acquire() as connection:
        pools = await pools_of(connection, await id_of(connection, token) or 0, 100)
    venues = {pool.at: VenueSides(pool.kind, pool.token < pool.quote, pool.quote) for pool in pools}
    return LogSources(token, venues, ctx.contracts)


async def read(
    ctx: Context, sources: LogSources, last: BlockRef, width: Width | None = None
) -> list[TokenSpan]:
    stream = token_spans(ctx.node, sources, 0, last, width or Width(10_000, 10_000))
    async with contextlib.aclosing(stream):
        return [span async for span in stream]


def pinned(rpc: SyncRpc) -> BlockRef:
    head = rpc.call("eth_getBlockByNumber", "latest", False)
    return BlockRef(int(head["number"], 16), head["hash"], int(head["timestamp"], 16))


def get_logs(rpc: SyncRpc, **wanted: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rpc.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest", **wanted})
    return found


def tokens_of(built: Built) -> list[Address]:
    every = {*built.tokens.values(), *(one["token"] for one in built.market["tokens"])}
    return sorted(Address(one.lower()) for one in every)


async def test_transfers_are_those_of_the_nodes_plain_logs(
    indexed: Context, rpc: SyncRpc, built: Built
) -> None:
    last, moved = pinned(rpc), 0
    for token in tokens_of(built):
        (span,) = await read(indexed, await sources_of(indexed, token), last)
        plain = get_logs(rpc, address=token, topics=[TRANSFER.topic])
        assert [
            (tx.tx_hash, tx.block_number, move.sender, move.recipient, move.amount_raw)
            for tx in span.txs
            for move in tx.moves
        ] == [
            (
                log["transactionHash"],
                int(log["blockNumber"], 16),
                "0x" + log["topics"][1][26:],
                "0x" + log["topics"][2][26:],
                int(log["data"], 16),
            )
            for log in plain
        ]
        assert (span.transfers, span.unreadable, span.last) == (len(plain), 0, last)
        moved += span.transfers
    assert moved > 800


async def test_times_are_those_of_the_blocks(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    token = Address(built.tokens["graduated"].lower())
    (span,) = await read(indexed, await sources_of(indexed, token), pinned(rpc))
    assert span.has_block_times
    for tx in span.txs:
        block = rpc.call("eth_getBlockByNumber", hex(tx.block_number), False)
        assert tx.at_s == int(block["timestamp"], 16)


async def test_fills_are_the_trades_of_the_index(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    """What the launchpad's hook kept of a swap stands in the index, and not in the swap."""
    kept: defaultdict[str, list[int]] = defaultdict(list)
    for log in get_logs(rpc, topics=[HOOK_FEE.topic]):
        kept[log["transactionHash"]].append(int(log["data"][66:130], 16) + int(log["data"][130:194], 16))
    last, kinds = pinned(rpc), set()
    for token in tokens_of(built):
        sources = await sources_of(indexed, token)
        (span,) = await read(indexed, sources, last)
        rows = await indexed.pool.fetch(TRADES, bytes.fromhex(token[2:]))
        fills = [(tx, fill) for tx in span.txs for fill in tx.fills]
        assert len(fills) == len(rows)
        for (tx, fill), row in zip(fills, rows, strict=True):
            assert (tx.tx_hash, tx.block_number, tx.at_s) == (
                row["tx_hash"],
                row["block_number"],
                row["at_s"],
            )
            assert (fill.at, fill.buys) == (row["at"], row["buys"])
            assert fill.quote == sources.venues[fill.at].quote
            off = abs(fill.token_raw - int(row["token_raw"])) + abs(fill.quote_raw - int(row["quote_raw"]))
            assert off == 0 or off in kept[tx.tx_hash]
            kinds.add(sources.venues[fill.at].kind)
            if sources.venues[fill.at].kind != "launchpad_pool":
                assert off == 0
    assert kinds == {"launchpad_curve", "launchpad_pool", "amm_v3", "amm_v4"}


async def test_tokens_of_a_fill_are_in_its_transactions_transfers(
    indexed: Context, rpc: SyncRpc, built: Built
) -> None:
    """A side that is mixed up, or a sign, would be seen: the pool's side gives what is bought."""
    tokens = [built.tokens[key] for key in ("plain", "v4_eth", "v4_usdg", "curve", "graduated", "usdg_pool")]
    for token in (*tokens, *(one["token"] for one in built.market["tokens"])):
        sources = await sources_of(indexed, Address(token.lower()))
        (span,) = await read(indexed, sources, pinned(rpc))
        # What is minted into a pool is beside its trades.
        for tx in (tx for tx in span.txs if all(move.sender != ZERO_ADDRESS for move in tx.moves)):
            for fill in tx.fills:
                manager = indexed.contracts.v4_pool_manager
                place = Address(fill.at) if len(fill.at) == 42 else manager
                assert flow(tx, place) in (fill.token_raw, -fill.token_raw)
                assert (flow(tx, place) < 0) is fill.buys


def flow(tx: TokenTx, place: Address) -> int:
    """What the transaction brought to an address, on the whole."""
    return sum(move.amount_raw * ((move.recipient == place) - (move.sender == place)) for move in tx.moves)


async def test_narrow_ranges_hold_the_same(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    last = pinned(rpc)
    for key in ("graduated", "plain", "v4_eth"):
        sources = await sources_of(indexed, Address(built.tokens[key].lower()))
        (whole,) = await read(indexed, sources, last)
        spans = await read(indexed, sources, last, Width(7, 100))
        assert len(spans) > 10
        assert tuple(tx for span in spans for tx in span.txs) == whole.txs


async def test_a_node_that_keeps_its_logs_gives_the_first(
    indexed: Context, rpc: SyncRpc, built: Built
) -> None:
    sources = await sources_of(indexed, Address(built.tokens["plain"].lower()))
    assert await find_oldest_logs(indexed.node, sources, 0, pinned(rpc).number) == 0
