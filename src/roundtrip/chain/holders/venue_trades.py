"""Counts the trades at some of a token's venues in a range of blocks."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

import msgspec

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.block_ranges import ranges
from roundtrip.chain.blocks.spans import BlockTooLarge, HistoryPruned, ask, no_logs, read_ref
from roundtrip.chain.rpc.client import NodeAnswerTooLarge, RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.errors import concern
from roundtrip.domain.base.errors import NodeFault
from roundtrip.venues import amm_v3, amm_v4, launchpad_curve

from .token_log_reader import LogSources, is_contract
from .token_logs import IDS_A_CALL

_CONTRACT_TRADES = [amm_v3.SWAP, launchpad_curve.CURVE_BUY, launchpad_curve.CURVE_SELL]
_LOGS = msgspec.json.Decoder(list[msgspec.Raw])


class CountedTrades(NamedTuple):
    """The number of trades in a range, and the range's last block."""

    last: int
    trades: int


async def venue_trades(
    node: RpcNode, sources: LogSources, venues: Sequence[str], first: int, last: int, width: Width
) -> AsyncGenerator[CountedTrades]:
    """Counts the trades of blocks ``first`` to ``last`` in consecutive ranges, as ``ranges`` requests them.
    ``venues``: those to count, as in ``sources.venues``. Raises as ``ranges``. Close it with
    ``contextlib.aclosing``."""

    async def read(low: int, high: int) -> CountedTrades:
        return await _read(node, sources, venues, low, high)

    stream = ranges(read, lambda counted: counted.trades, first, last, width)
    async with contextlib.aclosing(stream):
        async for counted in stream:
            yield counted


async def _read(
    node: RpcNode, sources: LogSources, venues: Sequence[str], first: int, last: int
) -> CountedTrades:
    try:
        *answers, end = await ask(node, _calls(sources, venues, first, last))
    except NodeAnswerTooLarge as fault:
        if first < last:
            raise
        raise BlockTooLarge(f"block {first} has more trades than this service reads") from fault
    count = 0
    for answer in answers:
        if isinstance(answer, RpcError):
            if concern(answer) == "pruned":
                raise HistoryPruned(f"the node no longer has the logs of block {first}")
            raise no_logs(answer, last - first + 1)
        try:
            count += len(_LOGS.decode(answer))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise NodeFault("the node sent unreadable logs") from error
    # A node that has not reached the block returns an empty list.
    if read_ref(end, last) is None:
        raise NodeFault(f"the node does not have block {last}")
    return CountedTrades(last, count)


def _calls(sources: LogSources, venues: Sequence[str], first: int, last: int) -> list[RpcCall]:
    """One request per list of logs, then one for the last header."""
    block = {"fromBlock": hex(first), "toBlock": hex(last)}
    contracts = [at for at in venues if is_contract(sources.venues[at])]
    ids = [at for at in venues if at not in contracts]
    filters: list[dict[str, object]] = []
    if contracts:
        filters.append({**block, "address": contracts, "topics": [_CONTRACT_TRADES]})
    manager = sources.contracts.v4_pool_manager
    for start in range(0, len(ids), IDS_A_CALL):
        chunk = ids[start : start + IDS_A_CALL]
        filters.append({**block, "address": [manager], "topics": [[amm_v4.SWAP], chunk]})
    calls = [RpcCall("eth_getLogs", [filter_]) for filter_ in filters]
    return [*calls, RpcCall("eth_getBlockByNumber", [hex(last), False])]
