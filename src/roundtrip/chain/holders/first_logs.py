"""Finds the first block with a Transfer of a token, from ranges of logs alone, without old states."""

from collections.abc import Sequence

import msgspec

from roundtrip.chain.blocks.block_ranges import between
from roundtrip.chain.blocks.spans import SpanRefused, ask, read_refs
from roundtrip.chain.rpc.client import NodeAnswerTooLarge, RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.errors import concern
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues.erc20 import TRANSFER_TOPIC

PROBES = 16
"""Ranges requested in one trip."""
_LOGS = msgspec.json.Decoder(list[msgspec.Raw])


async def find_first_logs(node: RpcNode, token: Address, high: BlockRef) -> BlockRef | None:
    """The first block up to ``high`` with a Transfer of the token, from ranges that initially cover the
    chain. A chain of a hundred million blocks takes ten trips; if an answer is too large as a whole, as many
    as halving takes. None: there is none, or the node does not serve such ranges. Raises NodeFault,
    ServiceFull."""
    whole_chain = await _have_logs(node, token, [(0, high.number)])
    if whole_chain is not None and not any(whole_chain):
        return None
    last_without, first_with, probes = -1, high.number, PROBES
    while first_with - last_without > 1:
        ends = between(last_without, first_with, probes)
        starts = [last_without + 1, *(end + 1 for end in ends[:-1])]
        have_logs = await _have_logs(node, token, list(zip(starts, ends, strict=True)))
        if have_logs is None and len(ends) > 1:
            probes = len(ends) // 2
        elif have_logs is None or any(have_logs):
            index = 0 if have_logs is None else have_logs.index(True)
            last_without, first_with = starts[index] - 1, ends[index]
        else:
            last_without, probes = ends[-1], min(PROBES, 2 * probes)
    # A node that refuses wide ranges seems to have logs in all of them, so the block is checked.
    (answer,) = await ask(node, [_call(token, first_with, first_with)])
    if not _count(answer):
        return None
    (ref,) = await read_refs(node, [first_with])
    return None if ref is None else ref[0]


async def _have_logs(node: RpcNode, token: Address, ranges: Sequence[tuple[int, int]]) -> list[bool] | None:
    """Whether each range has logs; a range with more than the node returns has some. None: the answer is too
    large altogether."""
    try:
        answers = await ask(node, [_call(token, first, last) for first, last in ranges])
    except (NodeAnswerTooLarge, SpanRefused):
        return None
    counts = [_count(answer) for answer in answers]
    return [count is None or count > 0 for count in counts]


def _call(token: Address, first: int, last: int) -> RpcCall:
    filter_ = {"address": token, "topics": [TRANSFER_TOPIC], "fromBlock": hex(first), "toBlock": hex(last)}
    return RpcCall("eth_getLogs", [filter_])


def _count(answer: msgspec.Raw | RpcError) -> int | None:
    """The number of logs; None: more than the node returns at once. Raises NodeFault."""
    if isinstance(answer, RpcError):
        if concern(answer) == "range":
            return None
        raise NodeFault("the node sent no logs of the token")
    try:
        return len(_LOGS.decode(answer))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("the node sent unreadable logs") from error
