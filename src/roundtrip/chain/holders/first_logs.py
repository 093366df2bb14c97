"""The first block in which a token says that it moved: found without old states, by ranges of logs alone."""

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
"""Ranges asked for in one trip."""
_LOGS = msgspec.json.Decoder(list[msgspec.Raw])


async def first_logs(node: RpcNode, token: Address, high: BlockRef) -> BlockRef | None:
    """The first block up to ``high`` with a Transfer of the token, by ranges as wide as the chain at first. A
    chain of a hundred million blocks takes ten trips; where an answer is too large as a whole, as many as
    halving takes. None: it has none, or the node gives no such ranges. Raises NodeFault, ServiceFull."""
    whole = await _have_any(node, token, [(0, high.number)])
    if whole is not None and not any(whole):
        return None
    without, first, probes = -1, high.number, PROBES
    while first - without > 1:
        ends = between(without, first, probes)
        starts = [without + 1, *(end + 1 for end in ends[:-1])]
        have = await _have_any(node, token, list(zip(starts, ends, strict=True)))
        if have is None and len(ends) > 1:
            probes = len(ends) // 2
        elif have is None or any(have):
            place = 0 if have is None else have.index(True)
            without, first = starts[place] - 1, ends[place]
        else:
            without, probes = ends[-1], min(PROBES, 2 * probes)
    # A node that refuses wide ranges looks as if it had logs in all of them.
    (answer,) = await ask(node, [_call(token, first, first)])
    if not _count(answer):
        return None
    (found,) = await read_refs(node, [first])
    return None if found is None else found[0]


async def _have_any(node: RpcNode, token: Address, ranges: Sequence[tuple[int, int]]) -> list[bool] | None:
    """Of each range whether it has some; one that has more than the node gives has some. None: all together
    they have more than is given at once."""
    try:
        answers = await ask(node, [_call(token, first, last) for first, last in ranges])
    except (NodeAnswerTooLarge, SpanRefused):
        return None
    counts = [_count(answer) for answer in answers]
    return [count is None or count > 0 for count in counts]


def _call(token: Address, first: int, last: int) -> RpcCall:
    wanted = {"address": token, "topics": [TRANSFER_TOPIC], "fromBlock": hex(first), "toBlock": hex(last)}
    return RpcCall("eth_getLogs", [wanted])


def _count(answer: msgspec.Raw | RpcError) -> int | None:
    """How many; None: the node gives less at once. Raises NodeFault."""
    if isinstance(answer, RpcError):
        if concern(answer) == "range":
            return None
        raise NodeFault("it gives no logs of the token")
    try:
        return len(_LOGS.decode(answer))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("it gave logs that cannot be read") from error
