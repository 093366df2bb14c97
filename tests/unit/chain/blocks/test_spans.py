"""Blocks and all their logs: what a true answer reads as, and every way in which one is found out."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.blocks.spans import NodeLied, SpanTx, check_answers, read_span
from roundtrip.chain.rpc.client import RpcCall
from roundtrip.domain.base.errors import NodeFault
from support.scripted_chain import FIRST_TIME_S, Answers, ScriptedChain
from unit.chain.span_chain import FIRST, OTHER_HASH, SECOND, THIRD, A, B, chain, ref_of


async def test_a_span_reads_as_the_chain_was_made() -> None:
    made = chain()
    read = await read_span(made, 1, 4)
    assert [block.ref for block in read] == [ref_of(made, number) for number in (1, 2, 3, 4)]
    assert [block.parent_hash for block in read] == [made.hash_of(number) for number in range(4)]
    assert [[entry.log for entry in block.entries] for block in read] == [
        [],
        [FIRST, SECOND, THIRD],
        [THIRD],
        [],
    ]
    assert [(entry.tx_index, entry.log_index) for entry in read[1].entries] == [(0, 0), (0, 1), (1, 2)]
    assert [tx.hash for tx in read[1].transactions] == [tx["hash"] for tx in made.blocks[2]["transactions"]]
    assert len(made.asked) == 1, "one batch"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.data())
async def test_any_part_of_any_chain_reads(seed: int, data: st.DataObject) -> None:
    made = ScriptedChain(seed, blocks=12, most_logs=12)
    first = data.draw(st.integers(0, made.last))
    last = data.draw(st.integers(first, made.last))
    read = await read_span(made, first, last)
    assert [block.ref.number for block in read] == list(range(first, last + 1))
    assert [len(block.entries) for block in read] == [len(logs) for logs in made.logs[first : last + 1]]


async def test_logs_in_any_order_and_in_upper_case_read_the_same() -> None:
    made = chain()
    plain = await read_span(made, 1, 4)

    def shouted(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[0].reverse()
        for log in answers[0]:
            log["address"] = _upper(log["address"])
            log["topics"] = [_upper(topic) for topic in log["topics"]]
            for name in ("data", "blockHash", "transactionHash", "logIndex"):
                log[name] = _upper(log[name])
            log["blockNumber"] = "0x0" + log["blockNumber"][2:]
        for block in answers[1:]:
            block["hash"], block["parentHash"] = _upper(block["hash"]), _upper(block["parentHash"])
            for tx in block["transactions"]:
                tx.update({name: _upper(tx[name]) for name in ("hash", "from", "to") if tx[name]})

    made.twist = shouted
    assert await read_span(made, 1, 4) == plain


def _upper(text: str) -> str:
    return "0x" + text[2:].upper()


Change = Callable[[list[Any], list[Any]], None]
"""Given the logs and the blocks of an answer; number 2 is the second block of the span."""


def _set(place: int, **fields: Any) -> Change:
    return lambda logs, _: logs[place].update(fields)


def _block(place: int, **fields: Any) -> Change:
    return lambda _, blocks: blocks[place].update(fields)


def _each(*changes: Change) -> Change:
    def change(logs: list[Any], blocks: list[Any]) -> None:
        for one in changes:
            one(logs, blocks)

    return change


def _renumbered(logs: list[Any], _: list[Any]) -> None:
    del logs[1]
    logs[1]["logIndex"] = "0x1"


def _swapped_owners(logs: list[Any], blocks: list[Any]) -> None:
    for log in logs[:3]:
        place = 1 - int(log["transactionIndex"], 16)
        log["transactionIndex"] = hex(place)
        log["transactionHash"] = blocks[1]["transactions"][place]["hash"]


def _moved(logs: list[Any], blocks: list[Any]) -> None:
    """The third block's log stands in the last one."""
    logs[3].update(blockNumber="0x4", blockHash=blocks[3]["hash"])


def _moved_whole(logs: list[Any], blocks: list[Any]) -> None:
    """And with its transaction."""
    _moved(logs, blocks)
    blocks[3]["transactions"] = blocks[2]["transactions"]


def _flipped_bloom(_: list[Any], blocks: list[Any]) -> None:
    bloom = int(blocks[1]["logsBloom"], 16)
    empty = next(bit for bit in range(2048) if not bloom >> bit & 1)
    blocks[1]["logsBloom"] = f"0x{bloom | 1 << empty:0512x}"


ZERO_BLOOM = "0x" + "0" * 512
LIES: dict[str, tuple[Change, str]] = {
    "a log is missing at the end": (lambda logs, _: logs.pop(3), "bloom"),
    "a log is missing in the middle": (lambda logs, _: logs.pop(1), "numbered"),
    "a log is missing at the beginning": (lambda logs, _: logs.pop(0), "numbered"),
    "a log is missing and the others numbered anew": (_renumbered, "bloom"),
    "all logs are missing": (lambda logs, _: logs.clear(), "bloom"),
    "a log comes twice": (lambda logs, _: logs.append(logs[1]), "numbered"),
    "a log comes twice with a number of its own": (
        lambda logs, _: logs.insert(3, {**logs[2], "address": B, "topics": [OTHER_HASH], "logIndex": "0x3"}),
        "bloom",
    ),
    "a log is of a block before the span": (_set(0, blockNumber="0x0"), "outside the requested range"),
    "a log is of a block behind the span": (_set(3, blockNumber="0x5"), "outside the requested range"),
    "a log is of a block below zero": (_set(3, blockNumber="-0x2"), "outside the requested range"),
    "a log is of another fork": (_set(1, blockHash=OTHER_HASH), "different block"),
    "a log is of another block of the span": (_set(3, blockNumber="0x2"), "different block"),
    "a log was moved to another block": (_moved, "bloom"),
    "a log was moved to another block with its transaction": (_moved_whole, "numbered|bloom"),
    "a log has another address": (_set(1, address=A), "bloom"),
    "a log has another topic": (_set(0, topics=[FIRST.topics[0], OTHER_HASH]), "bloom"),
    "a log has a topic more": (_set(1, topics=[OTHER_HASH]), "bloom"),
    "a log has a topic less": (_set(0, topics=[FIRST.topics[0]]), "bloom"),
    "a log is of another transaction": (_set(0, transactionIndex="0x1"), "different transaction"),
    "a log has another transaction's hash": (_set(0, transactionHash=OTHER_HASH), "different transaction"),
    "a log is of no transaction": (_set(0, transactionIndex="0x2"), "no transaction"),
    "a log is of a transaction below zero": (_set(2, transactionIndex="-0x1"), "no transaction"),
    "logs are in another order than their transactions": (_swapped_owners, "order"),
    "a log is removed": (_set(0, removed=True), "removed"),
    "a log's number is too high": (_set(2, logIndex="0x3"), "numbered"),
    "a log's number is below zero": (_set(0, logIndex="-0x1"), "numbered"),
    "two logs have one number": (_set(2, logIndex="0x1"), "numbered"),
    "numbers go on over blocks": (_set(3, logIndex="0x3"), "numbered"),
    "the bloom has a bit more": (_flipped_bloom, "bloom"),
    "the bloom is empty": (_block(1, logsBloom=ZERO_BLOOM), "bloom"),
    "a block has another number": (_block(1, number="0x3"), "sent block 3 for block 2"),
    "a block stands in another's place": (
        lambda _, blocks: blocks[2].update(blocks[1]),
        "sent block 2 for block 3",
    ),
    "a block follows another one": (_block(1, parentHash=OTHER_HASH), "does not follow"),
    "a block has another hash": (_block(2, hash=OTHER_HASH), "does not follow"),
    "the last block has another hash": (
        _each(_block(2, hash=OTHER_HASH), _block(3, parentHash=OTHER_HASH)),
        "different block",
    ),
    "a block is from before the one it follows": (_block(2, timestamp=hex(FIRST_TIME_S + 1)), "older than"),
    "a block is later than can be stored": (_block(0, timestamp="0x80000000"), "time"),
}


@pytest.mark.parametrize("name", LIES)
async def test_a_contradiction_is_found_out(name: str) -> None:
    change, why = LIES[name]
    made = chain()
    made.twist = lambda _, answers: change(answers[0], answers[1:])
    with pytest.raises(NodeLied, match=why):
        await read_span(made, 1, 4)


DEEP = msgspec.Raw(b"[" * 100_000 + b"]" * 100_000)
ODD: dict[str, Change] = {
    "logs are a number": lambda logs, _: logs.append(7),
    "logs go very deep": _set(0, strange=DEEP),
    "a block goes very deep": _block(0, strange=DEEP),
    "an address is short": _set(0, address="0x12"),
    "an address is missing": lambda logs, _: logs[0].pop("address"),
    "an address is no hex": _set(0, address="0x" + "zz" * 20),
    "a topic is no hex": _set(0, topics=["0x" + "zz" * 32]),
    "a topic is short": _set(0, topics=["0x12"]),
    "there are five topics": _set(0, topics=["0x" + "00" * 32] * 5),
    "topics are null": _set(0, topics=None),
    "data is no hex": _set(0, data="0xzz"),
    "data has half a byte": _set(0, data="0x123"),
    "data has spaces": _set(0, data="0x12 34 "),
    "data has no prefix": _set(0, data="1234"),
    "data is empty": _set(0, data=""),
    "data is beyond ascii": _set(0, data="0x٣٣"),
    "a log's number is no hex": _set(0, logIndex="one"),
    "a log's number is null": _set(0, logIndex=None),
    "a log's block is pending": _set(0, blockNumber=None, blockHash=None),
    "a log's block is no hex": _set(0, blockNumber="latest"),
    "a log's transaction is no hex": _set(0, transactionIndex=""),
    "removed is a word": _set(0, removed="no"),
    "a hash is short": _block(0, hash="0x12"),
    "a hash ends with a line": _block(0, hash="0x" + "1" * 64 + "\n"),
    "a number is no hex": _block(0, number="1"),
    "a number is a number": _block(0, number=1),
    "a time is no hex": _block(0, timestamp="0x"),
    "a bloom is short": _block(0, logsBloom="0x00"),
    "a bloom is missing": lambda _, blocks: blocks[0].pop("logsBloom"),
    "transactions are hashes": _block(1, transactions=[OTHER_HASH]),
    "transactions are missing": lambda _, blocks: blocks[1].pop("transactions"),
    "a sender is no address": lambda _, blocks: blocks[1]["transactions"][0].update({"from": "0x1"}),
    "a receiver is no address": lambda _, blocks: blocks[1]["transactions"][0].update(to=""),
    "a value is no hex": lambda _, blocks: blocks[1]["transactions"][0].update(value="0x1_0"),
    "a nonce is no hex": lambda _, blocks: blocks[1]["transactions"][0].update(nonce="seven"),
    "a block is missing": lambda _, blocks: None,
}


@pytest.mark.parametrize("name", ODD)
async def test_what_cannot_be_read_is_a_fault_of_the_node(name: str) -> None:
    made = chain()

    def twisted(_: Sequence[RpcCall], answers: Answers) -> None:
        ODD[name](answers[0], answers[1:])
        if name == "a block is missing":
            answers[2] = None

    made.twist = twisted
    with pytest.raises(NodeFault) as raised:
        await read_span(made, 1, 4)
    assert type(raised.value) is NodeFault


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("0x1") | st.just("0x" + "1" * 64),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
async def test_whatever_stands_in_an_answer_it_is_read_or_a_fault_of_the_node(data: st.DataObject) -> None:
    made = chain()
    logs: list[Any] = [dict(log) for log in made.logs[2]]
    block = dict(made.blocks[2])
    target = data.draw(st.sampled_from([*logs, block]))
    target[data.draw(st.sampled_from(sorted(target)))] = data.draw(_JSON)
    answers = [msgspec.Raw(msgspec.json.encode(one)) for one in (logs, block)]
    try:
        (read,) = await check_answers([answers[0]], [answers[1]], [2])
    except NodeFault:
        return
    assert [entry.log.topics for entry in read.entries] == [FIRST.topics, SECOND.topics, THIRD.topics]


async def test_blocks_of_one_second_are_no_lie() -> None:
    made = chain()
    made.twist = lambda _, answers: answers[3].update(timestamp=answers[2]["timestamp"])
    assert len(await read_span(made, 1, 4)) == 4


@pytest.mark.parametrize(
    ("value", "kind", "goes_along", "sends"),
    [
        ("0x0", "0x2", False, False),
        ("0x00", "0x2", False, False),
        ("0x1", "0x2", True, True),
        ("0x01", "0x02", True, True),
        ("0x1", "0x0", True, True),
        ("0x1", "0x63", True, True),
        ("0x1", "0x64", True, False),
        ("0x1", "0x0064", True, False),
        ("0x1", "0x7e", True, False),
    ],
)
def test_values_and_types_are_numbers(value: str, kind: str, goes_along: bool, sends: bool) -> None:
    tx = SpanTx("0x" + "11" * 32, A, B, value, "0x0", "0x", kind)
    assert (tx.has_value(), tx.is_transfer()) == (goes_along, sends)


def test_eth_that_goes_along_with_a_call_is_no_transfer() -> None:
    for put_in, expected in (("0x", True), ("0x00", False), ("0xd0e30db0", False)):
        assert SpanTx("0x" + "11" * 32, A, B, "0x1", "0x0", put_in).is_transfer() is expected


async def test_a_block_whose_transactions_have_no_input_cannot_be_read() -> None:
    made = ScriptedChain(3)
    made.blocks[1]["transactions"] = [
        {key: value for key, value in one.items() if key != "input"} for one in made.blocks[1]["transactions"]
    ]
    assert made.blocks[1]["transactions"]
    with pytest.raises(NodeFault, match="unreadable blocks or logs"):
        await read_span(made, 1, 1)


async def test_others_have_their_turn_while_a_full_block_is_checked() -> None:
    made = ScriptedChain(1, blocks=1)
    made.mine(*[[FIRST] * 4_000] * 2)
    answers = await made.batch(
        [
            RpcCall("eth_getLogs", [{"fromBlock": "0x1", "toBlock": "0x1"}]),
            RpcCall("eth_getBlockByNumber", ["0x1", True]),
        ]
    )
    turns, over = 0, False

    async def others() -> None:
        nonlocal turns
        while not over:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    (read,) = await check_answers([answers[0]], [answers[1]], [1])
    over = True
    await task
    assert len(read.entries) == 8_000
    assert turns >= 16, "at least once in 1,000 logs, each of the two times that they are gone through"


# --- what cannot be seen ---------------------------------------------------------------------------


async def test_altered_data_and_a_last_log_whose_bits_others_set_are_not_seen() -> None:
    """As the module says. When one of these fails, it has learned to see more: then say so there."""
    made = chain()
    made.mine([FIRST, FIRST])
    made.twist = lambda _, answers: answers[0].pop()
    assert len((await read_span(made, 5, 5))[0].entries) == 1
    made.twist = lambda _, answers: answers[0][0].update(data="0x77")
    assert (await read_span(made, 5, 5))[0].entries[0].log.data == b"\x77"
