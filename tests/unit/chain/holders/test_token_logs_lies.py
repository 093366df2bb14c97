"""A token's logs, from nodes that lie, forget or do not know."""

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.blocks.spans import HistoryPruned, NodeLied, SpanRefused
from roundtrip.chain.holders.token_logs import LogSources, VenueSides, find_oldest_logs, read_tokens
from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from support.scripted_chain import FIRST_TIME_S, RANGE_TOO_WIDE, TOO_MANY_LOGS, Answers, ScriptedChain
from unit.chain.token_chain import (
    CURVE,
    LAST,
    POOL,
    SOURCES,
    STRANGE_ID,
    TOKEN,
    chain,
    read_spans,
    ref,
    silent,
)
from unit.venues.logs import NETWORK, STRANGER

Change = Callable[[list[Any], list[Any], dict[str, Any], dict[str, Any]], object]
"""Of the contracts' logs, the vault's, and both headers. Contracts: mint, move, v3 buy, back, curve buy,
move (block 2), curve sell, v3 sell (4), back (5)."""


LIES: dict[str, Change] = {
    "a stranger's log": lambda own, *_: own[0].update(address=STRANGER),
    "a stranger's log of the vault": lambda _, vault, *__: vault[0].update(address=STRANGER),
    "another topic": lambda own, *_: own[0].update(topics=["0x" + "77" * 32]),
    "no topic": lambda own, *_: own[0].update(topics=[]),
    "a pool that was not asked for": lambda _, vault, *__: vault[0]["topics"].__setitem__(1, STRANGE_ID),
    "removed": lambda own, *_: own[1].update(removed=True),
    "a trade removed": lambda _, vault, *__: vault[0].update(removed=True),
    "a later block": lambda own, *_: own[8].update(blockNumber="0x6"),
    "an earlier block": lambda own, *_: own[0].update(blockNumber="0x0"),
    "a block back": lambda own, *_: own[6].update(blockNumber="0x1"),
    "the wrong order": lambda own, *_: own.reverse(),
    "two in the wrong order": lambda own, *_: own.insert(0, own.pop(1)),
    "the vault in the wrong order": lambda _, vault, *__: vault.reverse(),
    "blocks in the wrong order": lambda own, *_: own.insert(0, own.pop(6)),
    "one twice": lambda own, *_: own.insert(1, own[0]),
    "the last one twice": lambda own, *_: own.append(own[-1]),
    "a trade twice": lambda _, vault, *__: vault.append(vault[-1]),
    "one place for two": lambda own, *_: own[1].update(logIndex=own[2]["logIndex"]),
    "a place for a move and a trade": lambda own, vault, *_: own[3].update(logIndex=vault[0]["logIndex"]),
    "places that fall": lambda own, *_: own[1].update(logIndex="0x0"),
    "transactions that fall": lambda own, *_: own[0].update(transactionIndex="0x3"),
    "two hashes of a transaction": lambda own, *_: own[2].update(transactionHash="0x" + "55" * 32),
    "two places of a transaction": lambda own, *_: own[3].update(transactionIndex="0x9"),
    "one hash of two transactions": lambda own, *_: own[1].update(transactionHash=own[0]["transactionHash"]),
    "two hashes of a block": lambda own, *_: own[1].update(blockHash="0x" + "55" * 32),
    "two hashes of a block among answers": lambda _, vault, *__: vault[0].update(blockHash="0x" + "55" * 32),
    "a lower number of a block": lambda own, *_: own[0].update(blockNumber="0x1"),
    "a higher number of a block": lambda own, *_: own[5].update(blockNumber="0x3"),
    "two times of a block": lambda own, *_: own[1].update(blockTimestamp=own[6]["blockTimestamp"]),
    "times that fall": lambda own, *_: [one.update(blockTimestamp=hex(FIRST_TIME_S + 1)) for one in own[6:8]],
    "a time to come": lambda own, *_: [one.update(blockTimestamp=hex(FIRST_TIME_S + 6)) for one in own[6:8]],
    "a place out of bounds": lambda own, *_: own[8].update(logIndex=hex(2**31)),
    "another last block": lambda *given: given[3].update(hash="0x" + "55" * 32),
    "another time of the last block": lambda *given: given[3].update(timestamp=hex(FIRST_TIME_S + 9)),
    "a last block before the others": lambda *given: given[3].update(timestamp=hex(FIRST_TIME_S)),
    "another first block's header": lambda *given: given[2].update(number="0x4"),
    "a first block after the others": lambda *given: given[2].update(timestamp=hex(FIRST_TIME_S + 3)),
    "a last block out of time": lambda *given: given[3].update(timestamp=hex(2**31)),
    "another header": lambda *given: given[3].update(number="0x4"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_not_believed(lie: str) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        before = json.dumps(answers)
        LIES[lie](*answers)
        assert json.dumps(answers) != before

    made.twist = twist
    with pytest.raises(NodeLied):
        await read_tokens(made, SOURCES, 1, LAST)


OF_THE_VAULT = ("vault", "trade", "pool", "answers")


@pytest.mark.parametrize("lie", [lie for lie in LIES if not any(word in lie for word in OF_THE_VAULT)])
async def test_a_lie_in_one_list_alone_is_not_believed(lie: str) -> None:
    """With no pool of the vault there is one list, in whose order it is read."""
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        own, *headers = answers
        before = json.dumps(answers)
        LIES[lie](own, [{"logIndex": own[2]["logIndex"]}], *headers)
        assert json.dumps(answers) != before

    made.twist = twist
    contracts_alone: dict[str, VenueSides] = {at: SOURCES.venues[at] for at in (CURVE, POOL)}
    with pytest.raises(NodeLied):
        await read_tokens(made, LogSources(TOKEN, contracts_alone, NETWORK), 1, LAST)


@pytest.mark.parametrize("lie", ["a block back", "the wrong order", "blocks in the wrong order"])
async def test_blocks_rise_where_no_times_tell_it(lie: str) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        silent(calls, answers)
        own, *headers = answers
        LIES[lie](own, [], *headers)

    made.twist = twist
    with pytest.raises(NodeLied, match="not in block order"):
        await read_tokens(made, LogSources(TOKEN, {POOL: SOURCES.venues[POOL]}, NETWORK), 1, LAST)


async def test_a_log_of_another_first_block_is_not_believed() -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[2].update(hash="0x" + "55" * 32)

    made.twist = twist
    with pytest.raises(NodeLied):
        await read_tokens(made, SOURCES, 2, LAST)


UNREADABLE: dict[str, Change] = {
    "a short topic": lambda own, *_: own[0]["topics"].__setitem__(1, "0xab"),
    "a topic without 0x": lambda own, *_: own[0]["topics"].__setitem__(1, "00" + own[0]["topics"][1][2:]),
    "a topic with a space": lambda own, *_: own[0]["topics"].__setitem__(1, own[0]["topics"][1][:-1] + " "),
    "a wallet that is no hex": lambda own, *_: own[0]["topics"].__setitem__(
        1, own[0]["topics"][1][:-1] + "g"
    ),
    "no hex": lambda own, *_: own[0].update(data="0x" + "zz" * 32),
    "digits apart": lambda own, *_: own[0].update(data="0x" + "1_" * 32),
    "a sign": lambda own, *_: own[0].update(data="-0x" + "1" * 63),
    "a trade's data": lambda own, *_: own[2].update(data="0xzz"),
    "half a byte": lambda own, *_: own[0].update(data=own[0]["data"] + "a"),
    "a block's hash that is no hex": lambda own, *_: own[8].update(blockHash="0x" + "zz" * 32),
    "a long transaction hash": lambda own, *_: own[8].update(transactionHash="0x" + "ab" * 33),
    "two words for one and none for another": lambda own, *_: [
        log.update(transactionHash="0x" + "ab" * 32 + "0x" + "cd" * 32, blockHash="") for log in own[6:8]
    ],
    "0x in the middle": lambda own, *_: own[8].update(transactionHash="ab0x" + "ab" * 31),
    "a block's hash that is none": lambda own, *_: [log.update(blockHash="0x") for log in own[6:8]],
    "one wallet in upper case": lambda own, *_: own[3].update(
        topics=[own[3]["topics"][0], *("0x" + topic[2:].upper() for topic in own[3]["topics"][1:])],
        data="0x" + "AB" * 32,
    ),
    "a pending log": lambda own, *_: own[0].update(blockNumber=None, blockHash=None),
    "a plain number": lambda own, *_: own[0].update(logIndex=1),
    "a number that is none": lambda own, *_: own[0].update(blockNumber="0xzz"),
    "a place that is none": lambda _, vault, *__: vault[0].update(logIndex="first"),
    "no place": lambda own, *_: own[0].pop("logIndex"),
    "a number for a log": lambda own, *_: own.append(7),
    "another header": lambda *given: given[3].pop("hash"),
}


@pytest.mark.parametrize("strange", UNREADABLE)
async def test_what_cannot_be_read_is_a_fault_of_the_node(strange: str) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        UNREADABLE[strange](*answers)

    made.twist = twist
    with pytest.raises(NodeFault):
        await read_tokens(made, SOURCES, 1, LAST)


@pytest.mark.parametrize("answer", [7, "0x", {}, [[]], None])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
async def test_an_answer_of_another_kind_is_a_fault_of_the_node(place: int, answer: object) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[place] = answer

    made.twist = twist
    with pytest.raises(NodeFault):
        await read_tokens(made, SOURCES, 1, LAST)


async def test_a_node_that_has_not_got_so_far_gives_no_empty_range() -> None:
    with pytest.raises(NodeFault, match="does not have block 6"):
        await read_tokens(chain(), SOURCES, 3, 6)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 8),
    st.sampled_from(["address", "data", "blockHash", "transactionHash", "transactionIndex", "logIndex"]),
    st.one_of(st.text(max_size=70), st.from_regex(r"\A0x[0-9a-f]{0,66}\Z"), st.none(), st.integers()),
)
async def test_whatever_a_log_holds_nothing_else_is_raised(place: int, name: str, value: object) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[0][place][name] = value

    made.twist = twist
    with contextlib.suppress(NodeFault):
        span = await read_tokens(made, SOURCES, 1, LAST)
        assert all(len(tx.tx_hash) == 66 and tx.tx_hash.islower() for tx in span.txs)


PRUNED = [
    RpcError(4444, "pruned history unavailable"),
    RpcError(4444, "pruned history unavailable: requested 1, earliest available 2"),
    RpcError(-32701, "History has been pruned for this block"),
    RpcError(-32000, "old data not available due to pruning"),
    RpcError(-32000, "seek with txNum=1962853355 but data before txNum=2662500000 is not available"),
    RpcError(-32000, "Receipt not available for From block 14319330."),
]


def prunes(made: ScriptedChain, kept: int, error: RpcError = PRUNED[0]) -> None:
    """Logs of blocks before ``kept`` are gone."""

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        for place, call in enumerate(calls):
            wanted: Any = call.params[0]
            if call.method == "eth_getLogs" and int(wanted["fromBlock"], 16) < kept:
                answers[place] = error

    made.twist = twist


@pytest.mark.parametrize("error", PRUNED)
async def test_logs_that_are_gone_are_told_at_once(error: RpcError) -> None:
    made = ScriptedChain(1, blocks=100)
    prunes(made, 50, error)
    with pytest.raises(HistoryPruned):
        await read_spans(made, 49, ref(made, 99))
    assert len(made.asked) == 2, "the range, and its first block alone"
    assert len(await read_spans(made, 50, ref(made, 99))) == 1


async def test_who_speaks_of_archives_but_gives_a_block_is_asked_for_less() -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        if len(calls) > 1:
            answers[0] = RpcError(-32000, "ranges this wide take an archive plan")

    made.twist = twist
    with pytest.raises(SpanRefused):
        await read_tokens(made, SOURCES, 0, LAST)


async def test_a_first_block_that_is_gone_is_gone() -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[2] = PRUNED[0]

    made.twist = twist
    with pytest.raises(HistoryPruned):
        await read_tokens(made, SOURCES, 1, LAST)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.data())
async def test_the_first_block_of_which_logs_are_given_is_found(blocks: int, data: st.DataObject) -> None:
    made = ScriptedChain(1, blocks=1)
    for _ in range(blocks):
        made.mine()
    low = data.draw(st.integers(0, blocks))
    kept = data.draw(st.integers(0, blocks + 2))
    prunes(made, kept)
    found = await find_oldest_logs(made, SOURCES, low, blocks)
    assert found == (max(low, kept) if kept <= blocks else None)
    assert len(made.asked) <= 3


@pytest.mark.parametrize(
    "error", [RpcError(-32000, "header not found"), RpcError(-32603, "crashed"), None, 7]
)
async def test_it_is_not_known_where_a_node_says_something_else(error: object) -> None:
    made = ScriptedChain(1, blocks=100)
    prunes(made, 50)
    pruning = made.twist

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        assert pruning is not None
        pruning(calls, answers)
        answers[3] = error

    made.twist = twist
    assert await find_oldest_logs(made, SOURCES, 0, 99) is None


async def test_it_is_not_known_where_a_node_gives_older_ones_only() -> None:
    made = ScriptedChain(1, blocks=100)

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[-1] = PRUNED[0]

    made.twist = twist
    assert await find_oldest_logs(made, SOURCES, 0, 99) is None


@pytest.mark.parametrize(
    ("error", "narrower"),
    [
        (RANGE_TOO_WIDE, True),
        (TOO_MANY_LOGS, True),
        (RpcError(code=-32005, message="rate limit"), False),
        (RpcError(code=-32000, message="header not found"), False),
    ],
)
@pytest.mark.parametrize("place", [0, 1])
async def test_what_a_node_refuses_may_be_had_narrower_or_not(
    place: int, error: RpcError, narrower: bool
) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[place] = error

    made.twist = twist
    with pytest.raises(NodeFault) as raised:
        await read_tokens(made, SOURCES, 0, LAST)
    assert isinstance(raised.value, SpanRefused) is narrower
