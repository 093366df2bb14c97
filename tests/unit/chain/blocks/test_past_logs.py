"""Logs from long ago: what a true answer reads as, and every way in which one contradicts itself."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.blocks.past_logs import LogFilter, LogRange, PastBlock, PastLog, read_past
from roundtrip.chain.blocks.spans import NodeLied, SpanRefused
from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues.base import Log
from support.scripted_chain import FIRST_TIME_S, RANGE_TOO_WIDE, TOO_MANY_LOGS, Answers, ScriptedChain

FACTORY, MANAGER, STRANGER = (Address("0x" + two * 20) for two in ("a1", "b2", "c3"))
OPENED, LAUNCHED, OTHER = ("0x" + two * 32 for two in ("01", "02", "03"))
WHOSE = LogFilter(frozenset({FACTORY, MANAGER}), frozenset({OPENED, LAUNCHED}))
FIRST = Log(FACTORY, (OPENED, "0x" + "ab" * 32), b"one")
SECOND = Log(MANAGER, (LAUNCHED,), b"")
THIRD = Log(FACTORY, (LAUNCHED,), b"three")
NOISE = Log(STRANGER, (OPENED,), b"")
NOT_ASKED = Log(FACTORY, (OTHER,), b"")
LAST = 5


def chain() -> ScriptedChain:
    """Blocks 0 to 5: the second has two transactions with logs, the fourth one, the last one another."""
    made = ScriptedChain(1, blocks=1)
    made.mine([NOISE])
    made.mine([NOISE, FIRST, NOT_ASKED], [SECOND, THIRD])
    made.mine()
    made.mine([NOT_ASKED], [THIRD])
    made.mine([SECOND])
    return made


def logs_of(made: ScriptedChain, number: int) -> list[dict[str, Any]]:
    return made.logs[number]


def expected(made: ScriptedChain, *wanted: tuple[int, list[int]]) -> tuple[PastBlock, ...]:
    """Of these blocks the logs at these places."""
    found = []
    for number, places in wanted:
        logs = [logs_of(made, number)[place] for place in places]
        ref = BlockRef(number, made.hash_of(number), FIRST_TIME_S + number)
        found.append(PastBlock(ref, tuple(as_read(log) for log in logs)))
    return tuple(found)


def as_read(log: dict[str, Any]) -> PastLog:
    numbers = "blockNumber", "blockTimestamp", "transactionIndex", "logIndex"
    number, at_s, tx_index, log_index = (int(log[name], 16) if name in log else None for name in numbers)
    read = Log(log["address"], tuple(log["topics"]), bytes.fromhex(log["data"][2:]))
    assert number is not None
    assert tx_index is not None
    assert log_index is not None
    return PastLog(read, number, log["blockHash"], at_s, tx_index, log["transactionHash"], log_index)


ALL = (2, [1, 3, 4]), (4, [1]), (5, [0])


async def test_what_was_asked_for_reads_as_the_chain_was_made_in_one_trip() -> None:
    made = chain()
    past = await read_past(made, WHOSE, 0, LAST)
    assert past == LogRange(BlockRef(LAST, made.hash_of(LAST), FIRST_TIME_S + LAST), expected(made, *ALL))
    assert past.count_logs() == 5
    assert [[call.method for call in batch] for batch in made.asked] == [
        ["eth_getLogs", "eth_getBlockByNumber"]
    ]
    assert made.asked[0][0].params == [
        {"fromBlock": "0x0", "toBlock": "0x5", "address": [FACTORY, MANAGER], "topics": [[OPENED, LAUNCHED]]}
    ]


@pytest.mark.parametrize(
    ("first", "last", "places"), [(0, 1, ()), (3, 3, ()), (2, 4, ALL[:2]), (5, 5, ALL[2:])]
)
async def test_a_part_of_it_reads_for_itself(first: int, last: int, places: Any) -> None:
    made = chain()
    past = await read_past(made, WHOSE, first, last)
    assert past.blocks == expected(made, *places)
    assert past.last.number == last


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.data())
async def test_any_part_of_any_chain_reads(seed: int, data: st.DataObject) -> None:
    made = ScriptedChain(seed, blocks=12, most_logs=12)
    logs = [log for own in made.logs for log in own if log["topics"]]
    some = data.draw(st.lists(st.sampled_from(logs), min_size=1)) if logs else []
    whose = LogFilter(
        frozenset(Address(log["address"]) for log in some), frozenset(log["topics"][0] for log in some)
    )
    first = data.draw(st.integers(0, made.last))
    last = data.draw(st.integers(first, made.last))
    past = await read_past(made, whose, first, last)
    assert [log for block in past.blocks for log in block.logs] == [
        as_read(log)
        for log in logs
        if first <= int(log["blockNumber"], 16) <= last
        and log["address"] in whose.emitters
        and log["topics"][0] in whose.topics
    ]


async def test_upper_case_reads_the_same() -> None:
    made = chain()
    plain = await read_past(made, WHOSE, 0, LAST)

    def shouted(calls: Sequence[RpcCall], answers: Answers) -> None:
        for log in answers[0]:
            log["topics"] = ["0x" + topic[2:].upper() for topic in log["topics"]]
            for name in ("address", "data", "blockHash", "transactionHash", "logIndex", "blockTimestamp"):
                log[name] = "0x" + log[name][2:].upper()
        answers[1]["hash"] = "0x" + answers[1]["hash"][2:].upper()

    made.twist = shouted
    assert await read_past(made, WHOSE, 0, LAST) == plain


# --- times ---------------------------------------------------------------------------------------------


def silent(calls: Sequence[RpcCall], answers: Answers) -> None:
    """A node whose logs do not tell when their block was made."""
    if calls[0].method == "eth_getLogs":
        for log in answers[0]:
            del log["blockTimestamp"]


async def test_where_logs_tell_no_time_the_headers_do() -> None:
    made = chain()
    plain = await read_past(made, WHOSE, 0, LAST)
    made.asked.clear()
    made.twist = silent
    past = await read_past(made, WHOSE, 0, LAST)
    blocks = [
        PastBlock(block.ref, tuple(log._replace(at_s=block.ref.timestamp_s) for log in block.logs))
        for block in past.blocks
    ]
    assert LogRange(past.last, tuple(blocks)) == plain
    asked = [(call.method, call.params[0]) for call in made.asked[1]]
    assert asked == [("eth_getBlockByNumber", "0x2"), ("eth_getBlockByNumber", "0x4")], "the last is there"
    assert len(made.asked) == 2


async def test_many_headers_are_asked_for_a_hundred_at_a_time() -> None:
    made = ScriptedChain(1, blocks=1)
    for _ in range(250):
        made.mine([FIRST])
    made.twist = silent
    past = await read_past(made, WHOSE, 1, 250)
    assert [block.ref for block in past.blocks] == [
        BlockRef(number, made.hash_of(number), FIRST_TIME_S + number) for number in range(1, 251)
    ]
    assert [len(batch) for batch in made.asked] == [2, 100, 100, 49]


@pytest.mark.parametrize(
    "wrong", [{"hash": "0x" + "77" * 32}, {"number": "0x3"}, {"timestamp": "0x77"}, None]
)
async def test_headers_that_are_not_those_of_the_logs_are_a_lie(wrong: dict[str, str] | None) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        silent(calls, answers)
        if calls[0].method == "eth_getBlockByNumber":
            if wrong is None:
                answers[1] = None
            else:
                answers[1].update(wrong)

    made.twist = twist
    with pytest.raises(NodeFault):
        await read_past(made, WHOSE, 0, LAST)


# --- lies ----------------------------------------------------------------------------------------------

Change = Callable[[list[Any], dict[str, Any]], object]
LIES: dict[str, Change] = {
    "a stranger's log": lambda logs, _: logs[0].update(address=STRANGER),
    "another topic": lambda logs, _: logs[0].update(topics=[OTHER]),
    "what was asked for as a second topic": lambda logs, _: logs[0].update(topics=[OTHER, OPENED]),
    "removed": lambda logs, _: logs[1].update(removed=True),
    "a later block": lambda logs, _: logs[4].update(blockNumber="0x6"),
    "an earlier block": lambda logs, _: logs[0].update(blockNumber="0x0"),
    "a block back": lambda logs, _: logs[3].update(blockNumber="0x1"),
    "the wrong order": lambda logs, _: logs.reverse(),
    "two in the wrong order": lambda logs, _: logs.insert(0, logs.pop(1)),
    "blocks in the wrong order": lambda logs, _: logs.insert(0, logs.pop(3)),
    "one twice": lambda logs, _: logs.insert(1, logs[0]),
    "the last one twice": lambda logs, _: logs.append(logs[-1]),
    "one place for two": lambda logs, _: logs[1].update(logIndex=logs[2]["logIndex"]),
    "places that fall": lambda logs, _: logs[1].update(logIndex="0x0"),
    "transactions that fall": lambda logs, _: logs[0].update(transactionIndex="0x3"),
    "two hashes of a transaction": lambda logs, _: logs[1].update(transactionHash="0x" + "55" * 32),
    "one hash of two transactions": lambda logs, _: logs[0].update(
        transactionHash=logs[1]["transactionHash"]
    ),
    "two hashes of a block": lambda logs, _: logs[1].update(blockHash="0x" + "55" * 32),
    "a lower number of a block": lambda logs, _: logs[2].update(blockNumber="0x1"),
    "a higher number of a block": lambda logs, _: logs[2].update(blockNumber="0x3"),
    "two times of a block": lambda logs, _: logs[1].update(blockTimestamp=logs[3]["blockTimestamp"]),
    "a time for some of a block": lambda logs, _: logs[1].update(blockTimestamp=None),
    "times that fall": lambda logs, _: logs[3].update(blockTimestamp=hex(FIRST_TIME_S)),
    "a time to come": lambda logs, _: logs[3].update(blockTimestamp=hex(FIRST_TIME_S + LAST + 1)),
    "a place out of bounds": lambda logs, _: logs[3].update(logIndex=hex(2**31)),
    "another last block": lambda _, header: header.update(hash="0x" + "55" * 32),
    "another time of the last block": lambda _, header: header.update(timestamp=hex(FIRST_TIME_S + 9)),
    "a last block before the others": lambda _, header: header.update(timestamp=hex(FIRST_TIME_S)),
    "a last block out of time": lambda _, header: header.update(timestamp=hex(2**31)),
    "another header": lambda _, header: header.update(number="0x4"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_not_believed(lie: str) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        before = json.dumps(answers)
        LIES[lie](answers[0], answers[1])
        assert json.dumps(answers) != before

    made.twist = twist
    first = 1 if lie == "an earlier block" else 0
    with pytest.raises(NodeLied):
        await read_past(made, WHOSE, first, LAST)


async def test_no_log_is_younger_than_a_last_block_without_any() -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        for log in answers[0]:
            log["blockTimestamp"] = hex(FIRST_TIME_S + 4)

    made.twist = twist
    with pytest.raises(NodeLied):
        await read_past(made, WHOSE, 0, 3)


UNREADABLE: dict[str, Change] = {
    "no topics": lambda logs, _: logs[0].update(topics=[]),
    "five topics": lambda logs, _: logs[0].update(topics=[OPENED] * 5),
    "a short topic": lambda logs, _: logs[0].update(topics=[OPENED, "0xab"]),
    "a short address": lambda logs, _: logs[0].update(address="0xa1"),
    "no hex": lambda logs, _: logs[0].update(data="0xzz"),
    "half a byte": lambda logs, _: logs[0].update(data="0xabc"),
    "bytes apart": lambda logs, _: logs[0].update(data="0xab cd"),
    "data without 0x": lambda logs, _: logs[0].update(data="abcd"),
    "a line's end": lambda logs, _: logs[0].update(data="0xab\n"),
    "a pending log": lambda logs, _: logs[0].update(blockNumber=None, blockHash=None),
    "a plain number": lambda logs, _: logs[0].update(logIndex=1),
    "a sign": lambda logs, _: logs[0].update(logIndex="-0x1"),
    "no place": lambda logs, _: logs[0].pop("logIndex"),
    "a number": lambda logs, _: logs.append(7),
    "another header": lambda _, header: header.pop("hash"),
}


@pytest.mark.parametrize("odd", UNREADABLE)
async def test_what_cannot_be_read_is_a_fault_of_the_node(odd: str) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        UNREADABLE[odd](answers[0], answers[1])

    made.twist = twist
    with pytest.raises(NodeFault):
        await read_past(made, WHOSE, 0, LAST)


@pytest.mark.parametrize("answer", [7, "0x", {}, [[]], None])
@pytest.mark.parametrize("place", [0, 1])
async def test_an_answer_of_another_kind_is_a_fault_of_the_node(place: int, answer: object) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[place] = answer

    made.twist = twist
    with pytest.raises(NodeFault):
        await read_past(made, WHOSE, 0, LAST)


async def test_a_node_that_has_not_got_so_far_gives_no_empty_range() -> None:
    made = chain()
    with pytest.raises(NodeFault, match="does not have block 6"):
        await read_past(made, WHOSE, 3, 6)


@pytest.mark.parametrize(
    ("error", "narrower"),
    [
        (RANGE_TOO_WIDE, True),
        (TOO_MANY_LOGS, True),
        (RpcError(code=-32602, message="query exceeds what is allowed"), True),
        (RpcError(code=-32005, message="rate limit"), False),
        (RpcError(code=-32601, message="method not found"), False),
        (RpcError(code=-32000, message="header not found"), False),
    ],
)
async def test_what_a_node_refuses_may_be_had_narrower_or_not(error: RpcError, narrower: bool) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[0] = error

    made.twist = twist
    with pytest.raises(NodeFault) as raised:
        await read_past(made, WHOSE, 0, LAST)
    assert isinstance(raised.value, SpanRefused) is narrower
