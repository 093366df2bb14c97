"""The first block in which a token says that it moved: found without old states, by ranges of logs alone."""

import msgspec

from roundtrip.domain.errors import NodeFault
from roundtrip.domain.types import Address, BlockRef
from roundtrip.venues.erc20 import TRANSFER_TOPIC

from .node_errors import concern
from .rpc import Asks, NodeAnswerTooLarge, RpcCall, RpcError
from .spans import SpanRefused, ask, read_refs

_LOGS = msgspec.json.Decoder(list[msgspec.Raw])


async def first_logs(node: Asks, token: Address, high: BlockRef) -> BlockRef | None:
    """The first block up to ``high`` with a Transfer of the token; a trip for each halving, of ranges as wide
    as the chain. None: it has none, or the node gives no such ranges. Raises NodeFault, ServiceFull."""
    if not await _has_any(node, token, 0, high.number):
        return None
    without, first = -1, high.number
    while first - without > 1:
        middle = (without + first) // 2
        if await _has_any(node, token, without + 1, middle):
            first = middle
        else:
            without = middle
    # A node that refuses wide ranges looks as if it had logs in all of them.
    if not await _logs(node, token, first, first):
        return None
    (found,) = await read_refs(node, [first])
    return None if found is None else found[0]


async def _has_any(node: Asks, token: Address, first: int, last: int) -> bool:
    """Where there are more than the node gives, there are some."""
    try:
        found = await _logs(node, token, first, last)
    except (NodeAnswerTooLarge, SpanRefused):
        return True
    return found is None or found > 0


async def _logs(node: Asks, token: Address, first: int, last: int) -> int | None:
    """How many; None: it gives less at once."""
    wanted = {"address": token, "topics": [TRANSFER_TOPIC], "fromBlock": hex(first), "toBlock": hex(last)}
    (answer,) = await ask(node, [RpcCall("eth_getLogs", [wanted])])
    if isinstance(answer, RpcError):
        if concern(answer) == "range":
            return None
        raise NodeFault("it gives no logs of the token")
    try:
        return len(_LOGS.decode(answer))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("it gave logs that cannot be read") from error
