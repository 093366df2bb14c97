"""The first log of a token on long chains: how many trips it takes, and what a node gives at once."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.holders.first_logs import find_first_logs
from roundtrip.chain.rpc.client import Meter, NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.domain.base.types import BlockRef
from support.one_batch import OneBatchNode
from support.recording import filter_of
from unit.venues.network import address

TOKEN = address(0x70CE)


class Long(OneBatchNode):
    """A chain of any length with a log in each of ``blocks``. A whole answer has ``most_logs``; refused are
    ranges of more than ``most_blocks`` or ``most_found`` logs, and batches of more than ``most_calls``."""

    def __init__(self, blocks: Sequence[int]) -> None:
        self.blocks = blocks
        self.most_logs = self.most_found = self.most_blocks = self.most_calls = 10**12
        self.trips = 0

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        assert not budgeted
        self.trips += 1
        if len(calls) > self.most_calls:
            raise NodeAnswerTooLarge("too many")
        answers = [self._answer(call) for call in calls]
        if sum(len(bytes(one)) for one in answers if isinstance(one, msgspec.Raw)) > 3 * self.most_logs + 500:
            raise NodeAnswerTooLarge("the node's answer is too large to read")
        return answers

    def _answer(self, call: RpcCall) -> msgspec.Raw | RpcError:
        if call.method == "eth_getBlockByNumber":
            number = str(call.params[0])
            word = "0x" + "ab" * 32
            header = {"number": number, "hash": word, "parentHash": word, "timestamp": "0x1"}
            return msgspec.Raw(msgspec.json.encode(header))
        asked = filter_of(call)
        assert asked["address"] == TOKEN
        first, last = int(asked["fromBlock"], 16), int(asked["toBlock"], 16)
        if last - first >= self.most_blocks:
            return RpcError(-32000, "block range is too wide")
        found: list[object] = [{} for number in self.blocks if first <= number <= last]
        if len(found) > self.most_found:
            return RpcError(-32005, "query returned more than 10000 results")
        return msgspec.Raw(msgspec.json.encode(found))


async def first_of(node: Long, high: int) -> int | None:
    found = await find_first_logs(node, TOKEN, BlockRef(high, "0x" + "cd" * 32, 1))
    return None if found is None else found.number


@pytest.mark.parametrize("first", [0, 1, 12_345_678, 99_999_999, 100_000_000])
async def test_a_long_chain_takes_few_trips(first: int) -> None:
    node = Long([first])
    assert await first_of(node, 100_000_000) == first
    assert node.trips <= 10


async def test_of_a_token_that_says_much_it_takes_few_where_each_range_is_answered_for_itself() -> None:
    node = Long(range(60_000_000, 60_100_000, 10))
    node.most_found = 300
    assert await first_of(node, 100_000_000) == 60_000_000
    assert node.trips <= 10


async def test_where_an_answer_is_too_large_as_a_whole_it_takes_as_many_as_halving() -> None:
    node = Long(range(60_000_000, 60_100_000, 10))
    node.most_logs = 300
    assert await first_of(node, 100_000_000) == 60_000_000
    assert node.trips <= 31


@settings(max_examples=200, deadline=None)
@given(
    st.sets(st.integers(0, 400), max_size=30).map(sorted),
    st.integers(0, 400),
    st.integers(1, 600),
    st.integers(1, 20),
    st.integers(1, 40),
)
async def test_whatever_is_given_at_once_the_first_is_found(
    blocks: list[int], high: int, most_logs: int, most_calls: int, most_found: int
) -> None:
    node = Long(blocks)
    node.most_logs, node.most_calls, node.most_found = most_logs, most_calls, most_found
    assert await first_of(node, high) == next((one for one in blocks if one <= high), None)


@settings(max_examples=50, deadline=None)
@given(st.sets(st.integers(0, 400), min_size=1, max_size=5).map(sorted), st.integers(1, 100))
async def test_a_node_that_refuses_wide_ranges_tells_no_block_without_logs(
    blocks: list[int], most_blocks: int
) -> None:
    node = Long(blocks)
    node.most_blocks = most_blocks
    assert await first_of(node, 400) in (None, blocks[0])
