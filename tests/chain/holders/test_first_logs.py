"""Where a token's transfers begin, by ranges of logs alone."""

from dataclasses import replace

import aiohttp
import msgspec

from roundtrip.chain.holders.first_logs import find_first_logs
from roundtrip.chain.rpc.client import Meter, Node, RpcCall, RpcError
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.one_batch import OneBatchNode


class Narrow(OneBatchNode):
    """A node that gives logs of so many blocks at once, and none of more."""

    def __init__(self, node: Node, most: int) -> None:
        self.node, self.most = node, most

    async def batch(
        self,
        calls: list[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        answers = await self.node.batch(calls, meter, timeout_s, budgeted)
        for place, call in enumerate(calls):
            if call.method == "eth_getLogs":
                asked = call.params[0]
                assert isinstance(asked, dict)
                if int(asked["toBlock"], 16) - int(asked["fromBlock"], 16) >= self.most:
                    answers[place] = RpcError(-32005, "block range is too wide")
        return answers


async def test_the_first_transfer_is_found(indexed: Context, built: Built) -> None:
    token = parse_address(built.tokens["curve"])
    head = indexed.heads.current().block
    found = await find_first_logs(indexed.node, token, head)
    launched = await indexed.pool.fetchval(
        "SELECT block_number FROM facts.launch JOIN facts.address ON id = token_id WHERE address = $1",
        bytes.fromhex(token[2:]),
    )
    assert found is not None
    assert found.number == launched
    # And not before the head that is asked for.
    assert await find_first_logs(indexed.node, token, replace(head, number=launched - 1)) is None


async def test_a_token_that_never_moved_has_none(indexed: Context) -> None:
    assert (
        await find_first_logs(indexed.node, Address("0x" + "ab" * 20), indexed.heads.current().block) is None
    )


async def test_a_node_that_gives_no_wide_ranges_tells_nothing(indexed: Context, built: Built) -> None:
    """What it refuses is no log: a block in which the token did nothing would be told."""
    token, head = parse_address(built.tokens["curve"]), indexed.heads.current().block
    async with aiohttp.ClientSession() as session:
        assert isinstance(indexed.node, Node)
        node = Node(indexed.node.url, session)
        assert await find_first_logs(Narrow(node, 10), token, head) is None  # type: ignore[arg-type]
