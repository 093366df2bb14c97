"""Reads every transfer of one token, and the trades at its venues, in wide ranges and without their blocks.

The node's answer is checked against itself, as in ``blocks/past_logs``: every log is of a requested contract
and kind, of a block in the range, and none is removed; blocks ascend, and so do a block's logs and
their transactions; a block has one hash and one time, and times do not fall. The range's first and last block
are requested in the same batch: a node that has not reached the range, or is on another fork there, does not
pass for one with an empty range.

Omitted or invented logs cannot be detected. So wallets' balances are read from the token itself, too, and the
service's answer says where they differ."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import msgspec

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.block_ranges import between, ranges
from roundtrip.chain.blocks.span_stream import ForkSeen
from roundtrip.chain.blocks.spans import BlockTooLarge, HistoryPruned, SpanRefused, ask, no_logs, read_ref
from roundtrip.chain.rpc.client import NodeAnswerTooLarge, RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.errors import concern
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.base.venue import TRAITS
from roundtrip.domain.holders.token_flows import TokenTx
from roundtrip.venues import SWAPS, amm_v4
from roundtrip.venues.erc20 import TRANSFER_TOPIC

from .token_log_reader import (
    LogSources,
    TokenLogReader,
    VenueSides,
    block_times,
    decode_logs,
    is_contract,
    merge_logs,
)

__all__ = [
    "HistoryPruned",
    "LogSources",
    "TokenSpan",
    "VenueSides",
    "find_oldest_logs",
    "has_logs",
    "new_width",
    "read_tokens",
    "token_spans",
]

FIRST_BLOCKS, MAX_BLOCKS = 256, 2_000_000
"""Logs of a few contracts are found by the node's own index: a wide range costs it little. A node that serves
less says so, and is asked for half. In a busy token's first minutes a wider first range would return a
hundred megabytes in vain."""
IDS_A_CALL = 50
"""Ids of v4 pools in one filter."""
_PROBES = 16
_LOGS_IN_A_ROW = 1_000
"""How many logs are read before other tasks run."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """The contents of a range, in order. ``last``: its last block, whether or not that has any logs;
    ``parent_hash``: of the block before ``first``. ``unreadable``: logs that do not match their topic, such
    as the transfers of an ERC-721; they are not in ``txs``. ``has_block_times`` False: the node does not
    report block times with logs; times are then estimates, see ``read_tokens``. ``logs``: how many the node
    returned."""

    first: int
    last: BlockRef
    txs: tuple[TokenTx, ...]
    transfers: int
    unreadable: int
    has_block_times: bool
    parent_hash: str
    logs: int


def new_width() -> Width:
    """The number of blocks requested at once."""
    return Width(FIRST_BLOCKS, MAX_BLOCKS)


async def read_tokens(node: RpcNode, sources: LogSources, first: int, last: int) -> TokenSpan:
    """Reads blocks ``first`` to ``last``, both included, in one trip that does not count towards the day's
    budget.

    Block times come with the logs. If the node does not report them, they are estimates: interpolated between
    the range's first and last block, in whole seconds and never falling. The true time is in that interval,
    too. A header for each of half a million blocks would cost more than everything else.

    Raises HistoryPruned if the node has pruned logs that old, and else as ``spans.read_span``."""
    *answers, start, end = await ask(node, _calls(sources, first, last))
    log_answers: list[msgspec.Raw] = []
    for answer in answers:
        if isinstance(answer, RpcError):
            raise await _explain_refusal(node, sources, answer, first, last)
        log_answers.append(answer)
    (first_ref, parent_hash), (last_ref, _) = _header(start, first), _header(end, last)
    lists = [decode_logs(answer) for answer in log_answers]
    reader = TokenLogReader(sources, first, last)
    try:
        logs = merge_logs(lists)
        for start_at in range(0, len(logs), _LOGS_IN_A_ROW):
            await asyncio.sleep(0)
            reader.take(logs[start_at : start_at + _LOGS_IN_A_ROW])
        times = block_times(reader.blocks, first_ref, last_ref)
    except ValueError as error:
        raise NodeFault("the node sent unreadable logs") from error
    txs = [tx for tx in reader.txs if tx.moves or tx.fills]
    if times is not None:
        txs = [tx._replace(at_s=times[tx.block_number]) for tx in txs]
    count = reader.transfers, reader.unreadable
    return TokenSpan(first, last_ref, tuple(txs), *count, times is None, parent_hash, len(logs))


async def _read(node: RpcNode, sources: LogSources, first: int, last: int) -> TokenSpan:
    try:
        return await read_tokens(node, sources, first, last)
    except NodeAnswerTooLarge as fault:
        # The number of a token's logs in a block is not bounded.
        if first < last:
            raise
        raise BlockTooLarge(
            f"block {first} has more transfers of the token than this service reads"
        ) from fault


async def token_spans(
    node: RpcNode,
    sources: LogSources,
    first: int,
    last: BlockRef,
    width: Width,
    in_flight: int = 4,
    parent_hash: str | None = None,
) -> AsyncGenerator[TokenSpan]:
    """Reads blocks ``first`` to ``last`` in consecutive ranges, as ``ranges`` requests them. ``parent_hash``:
    of the block before ``first``, where it is known. Raises as ``ranges``, HistoryPruned, and ForkSeen if a
    range does not follow the one before, or ``last`` has been replaced. Close it with
    ``contextlib.aclosing``, which cancels open requests."""
    previous_hash = parent_hash
    read = partial(_read, node, sources)
    stream = ranges(read, lambda span: span.logs, first, last.number, width, in_flight)
    async with contextlib.aclosing(stream):
        async for span in stream:
            if previous_hash is not None and span.parent_hash != previous_hash:
                raise ForkSeen(span.first)
            if span.last.number == last.number and span.last.hash != last.hash:
                raise ForkSeen(last.number)
            previous_hash = span.last.hash
            yield span


async def find_oldest_logs(node: RpcNode, sources: LogSources, low: int, high: int) -> int | None:
    """The first block of ``low`` to ``high`` from which on the node has logs; None: not even those of
    ``high``, or it could not be found out. Sixteen blocks per trip. Raises ServiceFull."""
    last_missing, first_available = low - 1, high + 1
    numbers = sorted({low, high, *between(low, high, _PROBES - 2)})
    while numbers:
        try:
            answers = await ask(node, [_probe(sources, number) for number in numbers])
        except NodeFault:
            return None
        available = [_are_logs_available(answer) for answer in answers]
        if None in available or any(before and not after for before, after in pairwise(available)):
            return None
        last_missing = max(
            [
                last_missing,
                *(number for number, is_there in zip(numbers, available, strict=True) if not is_there),
            ]
        )
        first_available = min(
            [
                first_available,
                *(number for number, is_there in zip(numbers, available, strict=True) if is_there),
            ]
        )
        if first_available > high:
            return None
        numbers = between(last_missing, first_available, _PROBES)
    return first_available


async def has_logs(node: RpcNode, sources: LogSources, number: int) -> bool:
    """Whether the node has the token's logs of that block. Raises NodeFault, ServiceFull."""
    (answer,) = await ask(node, [_probe(sources, number)])
    return _are_logs_available(answer) is True


# --- asking ----------------------------------------------------------------------------------------


def _calls(sources: LogSources, first: int, last: int) -> list[RpcCall]:
    """One request per list of logs, then the two headers."""
    kinds = {sides.kind for sides in sources.venues.values()}
    topics = [TRANSFER_TOPIC]
    for kind, traits in TRAITS.items():
        topics += SWAPS[kind] if traits.is_contract and kind in kinds else ()
    contracts = sorted(at for at, sides in sources.venues.items() if is_contract(sides))
    ids = sorted(at for at, sides in sources.venues.items() if not is_contract(sides))
    block = {"fromBlock": hex(first), "toBlock": hex(last)}
    calls = [RpcCall("eth_getLogs", [{**block, "address": [sources.token, *contracts], "topics": [topics]}])]
    for start in range(0, len(ids), IDS_A_CALL):
        topics_of_ids = [[amm_v4.SWAP], ids[start : start + IDS_A_CALL]]
        filter_ = {**block, "address": [sources.contracts.v4_pool_manager], "topics": topics_of_ids}
        calls.append(RpcCall("eth_getLogs", [filter_]))
    return calls + [RpcCall("eth_getBlockByNumber", [hex(number), False]) for number in (first, last)]


def _probe(sources: LogSources, number: int) -> RpcCall:
    at = hex(number)
    filter_ = {"fromBlock": at, "toBlock": at, "address": [sources.token], "topics": [[TRANSFER_TOPIC]]}
    return RpcCall("eth_getLogs", [filter_])


async def _explain_refusal(
    node: RpcNode, sources: LogSources, error: RpcError, first: int, last: int
) -> NodeFault:
    """The meaning of a refusal to return logs. Providers also mention archives if a range is too wide for
    them, so the first block is requested alone before the logs are taken to be pruned."""
    if concern(error) != "pruned":
        return no_logs(error, last - first + 1)
    if last > first:
        (answer,) = await ask(node, [_probe(sources, first)])
        if _are_logs_available(answer) is not False:
            return SpanRefused(f"the node sent no logs of {last - first + 1} blocks")
    return HistoryPruned(f"the node no longer has the logs of block {first}")


def _are_logs_available(answer: msgspec.Raw | RpcError) -> bool | None:
    """Whether the node has the logs of the block. False: they are pruned; None: it does not say."""
    if isinstance(answer, RpcError):
        return False if concern(answer) == "pruned" else None
    try:
        decode_logs(answer)
    except NodeFault:
        return None
    return True


def _header(answer: msgspec.Raw | RpcError, number: int) -> tuple[BlockRef, str]:
    if isinstance(answer, RpcError) and concern(answer) == "pruned":
        raise HistoryPruned(f"the node no longer has block {number}")
    ref = read_ref(answer, number)
    if ref is None:
        raise NodeFault(f"the node does not have block {number}")
    return ref
