"""A token's logs: what a true answer reads as, how one contradicts itself, and what is gone."""

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.rpc import RpcCall, RpcError
from roundtrip.chain.span_stream import Forked
from roundtrip.chain.spans import HistoryPruned, NodeLied, SpanRefused
from roundtrip.chain.token_logs import (
    IDS_A_CALL,
    Quoted,
    Sources,
    TokenSpan,
    new_width,
    oldest_logs,
    read_tokens,
    token_spans,
)
from roundtrip.domain.errors import NodeFault
from roundtrip.domain.token_flows import Fill, Move, TokenTx
from roundtrip.domain.types import Address, BlockRef
from roundtrip.venues.base import Log
from support.scripted_chain import FIRST_TIME_S, RANGE_TOO_WIDE, TOO_MANY_LOGS, Answers, ScriptedChain
from unit.chain.token_chain import (
    BACK,
    CURVE,
    CURVE_BUY,
    HIGH_ID,
    HIGH_SELL,
    HOOK,
    LOW_BUY,
    LOW_ID,
    MANAGER,
    MINT,
    MOVE,
    OTHER,
    POOL,
    SOURCES,
    STRANGE_ID,
    TOKEN,
    V3_BUY,
    V3_SELL,
    ZERO,
    A,
    B,
    moved,
    v3,
    v4,
)
from unit.venues import logs
from unit.venues.logs import NETWORK, STRANGER


def odd(*topics: str, data: bytes = b"", emitter: Address = TOKEN) -> Log:
    return Log(emitter, topics, data)


CURVE_SELL = logs.CURVE_SELL.log(CURVE, A, B, 8, 80, 1, 2)
CONVERSION = v4(HIGH_ID, 14, -140, HOOK or ZERO)
NOISE = moved(A, B, 5, OTHER)
NOT_ASKED = odd("0x" + "77" * 32)
LAST = 5


def chain() -> ScriptedChain:
    """Blocks 0 to 5: the second has three transactions of the token, the fourth one, the last one another."""
    made = ScriptedChain(1, blocks=1)
    made.mine([NOISE])
    made.mine([NOISE, MINT, NOT_ASKED], [NOISE], [MOVE, V3_BUY, LOW_BUY, BACK], [CURVE_BUY, HIGH_SELL, MOVE])
    made.mine()
    made.mine([NOT_ASKED], [CURVE_SELL, V3_SELL])
    made.mine([BACK])
    return made


def move_of(log: Log) -> Move:
    """What a Transfer is by its words."""
    sender, recipient = (Address("0x" + topic[26:]) for topic in log.topics[1:3])
    return Move(sender, recipient, int.from_bytes(log.data, "big"))


FILLS = {
    CURVE_BUY: Fill(CURVE, True, 7, ZERO, 70),
    CURVE_SELL: Fill(CURVE, False, 8, ZERO, 80),
    V3_BUY: Fill(POOL, True, 9, NETWORK.weth, 90),
    V3_SELL: Fill(POOL, False, 11, NETWORK.weth, 110),
    LOW_BUY: Fill(LOW_ID, True, 12, NETWORK.usdg, 120),
    HIGH_SELL: Fill(HIGH_ID, False, 13, ZERO, 130),
}
"""By hand: v3 tells what the pool got, v4 what the swapper did; on a curve money in comes first."""


def expected(made: ScriptedChain, number: int, place: int, *own: Log) -> TokenTx:
    """The block's transaction at a place, with these logs."""
    moves = [move_of(log) for log in own if log not in FILLS]
    fills = [FILLS[log] for log in own if log in FILLS]
    tx_hash = made.blocks[number]["transactions"][place]["hash"]
    return TokenTx(tx_hash, number, FIRST_TIME_S + number, moves, fills)


def all_of(made: ScriptedChain) -> list[TokenTx]:
    return [
        expected(made, 2, 0, MINT),
        expected(made, 2, 2, MOVE, V3_BUY, LOW_BUY, BACK),
        expected(made, 2, 3, CURVE_BUY, HIGH_SELL, MOVE),
        expected(made, 4, 1, CURVE_SELL, V3_SELL),
        expected(made, 5, 0, BACK),
    ]


def ref(made: ScriptedChain, number: int) -> BlockRef:
    return BlockRef(number, made.hash_of(number), FIRST_TIME_S + number)


# --- what is there -------------------------------------------------------------------------------------


async def test_what_was_asked_for_reads_as_the_chain_was_made_in_one_trip() -> None:
    made = chain()
    span = await read_tokens(made, SOURCES, 1, LAST)
    assert span == TokenSpan(1, ref(made, LAST), tuple(all_of(made)), 5, 0, True, made.hash_of(0), 11)
    assert span.count_logs() == 11
    (asked,) = made.asked
    assert [call.method for call in asked] == ["eth_getLogs"] * 2 + ["eth_getBlockByNumber"] * 2
    of_contracts, of_ids = (call.params[0] for call in asked[:2])
    assert of_contracts == {
        "fromBlock": "0x1",
        "toBlock": "0x5",
        "address": [TOKEN, POOL, CURVE],
        "topics": [[one.topic for one in (logs.TRANSFER, logs.CURVE_BUY, logs.CURVE_SELL, logs.V3_SWAP)]],
    }
    assert of_ids == {
        "fromBlock": "0x1",
        "toBlock": "0x5",
        "address": [MANAGER],
        "topics": [[logs.V4_SWAP.topic], [LOW_ID, HIGH_ID]],
    }


async def test_of_a_token_without_venues_its_transfers_alone_are_asked_for() -> None:
    made = chain()
    span = await read_tokens(made, Sources(TOKEN, {}, NETWORK), 0, LAST)
    assert [tx.fills for tx in span.txs] == [[], [], [], []]
    assert sum(len(tx.moves) for tx in span.txs) == span.transfers == span.logs == 5
    (wanted,) = [call.params[0] for call in made.asked[0] if call.method == "eth_getLogs"]
    assert (wanted["address"], wanted["topics"]) == ([TOKEN], [[logs.TRANSFER.topic]])  # type: ignore[index]


async def test_many_pools_of_the_vault_are_asked_for_some_at_a_time() -> None:
    made = chain()
    more = {f"0x{number:064x}": Quoted("amm_v4", True, ZERO) for number in range(IDS_A_CALL)}
    span = await read_tokens(made, Sources(TOKEN, {**more, **SOURCES.venues}, NETWORK), 1, LAST)
    assert list(span.txs) == all_of(made)
    ids = [call.params[0]["topics"][1] for call in made.asked[0][1:3]]  # type: ignore[index]
    assert [len(some) for some in ids] == [IDS_A_CALL, 2]


@pytest.mark.parametrize(
    ("first", "last", "places"), [(0, 1, []), (3, 3, []), (2, 4, [0, 1, 2, 3]), (5, 5, [4])]
)
async def test_a_part_of_it_reads_for_itself(first: int, last: int, places: list[int]) -> None:
    made = chain()
    span = await read_tokens(made, SOURCES, first, last)
    assert list(span.txs) == [all_of(made)[place] for place in places]
    assert (span.first, span.last) == (first, ref(made, last))


async def test_letters_of_both_cases_read_the_same() -> None:
    made = chain()
    plain = await read_tokens(made, SOURCES, 0, LAST)

    def checksummed(calls: Sequence[RpcCall], answers: Answers) -> None:
        for log in [log for answer in answers[:2] for log in answer]:
            log["address"] = "0x" + log["address"][2:].upper()

    made.twist = checksummed
    assert await read_tokens(made, SOURCES, 0, LAST) == plain

    def shouted(calls: Sequence[RpcCall], answers: Answers) -> None:
        for log in [log for answer in answers[:2] for log in answer]:
            log["topics"] = ["0x" + topic[2:].upper() for topic in log["topics"]]
            for name in ("address", "data", "blockHash", "transactionHash", "logIndex", "blockTimestamp"):
                log[name] = "0x" + log[name][2:].upper()
        for header in answers[2:]:
            header["hash"] = "0x" + header["hash"][2:].upper()

    made.twist = shouted
    assert await read_tokens(made, SOURCES, 0, LAST) == plain


@pytest.mark.parametrize(
    ("log", "unreadable"),
    [
        (CONVERSION, 0),
        (v3(0, 5), 0),
        (v3(5, 5), 0),
        (v3(-5, -5), 0),
        (logs.CURVE_BUY.log(CURVE, A, B, 5, 0, 0, 0), 0),
        (v3(5, -5, pool=TOKEN), 0),
        (moved(A, B, 5, POOL), 0),
        (logs.CURVE_SELL.log(POOL, A, B, 5, 5, 0, 0), 0),
        (odd(*MOVE.topics, "0x" + "00" * 32), 1),
        (odd(*MOVE.topics[:2], data=MOVE.data), 1),
        (odd(*MOVE.topics, data=b"\x01" * 31), 1),
        (odd(MOVE.topics[0], "0x" + "11" * 32, MOVE.topics[2], data=MOVE.data), 1),
        (odd(*V3_BUY.topics, data=V3_BUY.data[:-1], emitter=POOL), 1),
        (odd(*LOW_BUY.topics, "0x" + "00" * 32, data=LOW_BUY.data, emitter=MANAGER), 1),
    ],
)
async def test_what_is_no_move_and_no_trade_is_none(log: Log, unreadable: int) -> None:
    """What the hook converts, swaps for nothing, what a token says in a pool's words, and odd shapes."""
    made = ScriptedChain(1, blocks=1)
    made.mine([log], [MOVE, log])
    span = await read_tokens(made, SOURCES, 0, 1)
    assert list(span.txs) == [expected(made, 1, 1, MOVE)]
    assert (span.transfers, span.unreadable, span.logs) == (1, 2 * unreadable, 3)


async def test_a_swap_that_brought_no_money_is_a_trade_for_nothing() -> None:
    made = ScriptedChain(1, blocks=1)
    made.mine([v3(-5, 0)])
    (tx,) = (await read_tokens(made, SOURCES, 0, 1)).txs
    assert tx.fills == [Fill(POOL, True, 5, NETWORK.weth, 0)]


async def test_words_behind_an_amount_do_not_count() -> None:
    made = ScriptedChain(1, blocks=1)
    made.mine([odd(*MOVE.topics, data=MOVE.data + b"\xff" * 40)])
    (tx,) = (await read_tokens(made, SOURCES, 0, 1)).txs
    assert tx.moves == [move_of(MOVE)]


# --- times ---------------------------------------------------------------------------------------------


def silent(calls: Sequence[RpcCall], answers: Answers) -> None:
    """A node whose logs do not tell when their block was made."""
    for call, answer in zip(calls, answers, strict=True):
        for log in answer if call.method == "eth_getLogs" else ():
            del log["blockTimestamp"]


async def test_where_logs_tell_no_time_it_is_read_off_the_line_between_the_ends() -> None:
    made = ScriptedChain(1, blocks=1)
    for _ in range(20):
        made.mine([MOVE])
    # Half a second a block, as far as headers tell.
    for number, block in enumerate(made.blocks):
        block["timestamp"] = hex(FIRST_TIME_S + number // 2)
    made.twist = silent
    span = await read_tokens(made, SOURCES, 1, 20)
    assert not span.times_told
    assert [tx.at_s for tx in span.txs] == [FIRST_TIME_S + 10 * (number - 1) // 19 for number in range(1, 21)]
    assert len(made.asked) == 1, "no header more"


async def test_times_that_are_told_hold_those_that_are_not() -> None:
    """The vault's logs come of another answer, which may be another node's."""
    made = ScriptedChain(1, blocks=1)
    made.mine([MOVE])
    made.mine([MOVE])
    made.mine([LOW_BUY])
    made.mine([MOVE])
    made.mine([LOW_BUY, MOVE])
    made.mine()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        for log in answers[0]:
            del log["blockTimestamp"]
        for log in answers[1]:
            if log["blockNumber"] == "0x3":
                log["blockTimestamp"] = hex(FIRST_TIME_S + 1)

    made.twist = twist
    span = await read_tokens(made, SOURCES, 0, 6)
    assert [tx.at_s - FIRST_TIME_S for tx in span.txs] == [0, 0, 1, 3, 5]
    assert not span.times_told


async def test_a_range_of_one_block_has_its_time() -> None:
    made = chain()
    made.twist = silent
    span = await read_tokens(made, SOURCES, LAST, LAST)
    assert list(span.txs) == [all_of(made)[-1]]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.booleans(), min_size=2, max_size=30), st.sets(st.integers(0, 29)), st.data())
async def test_estimates_never_fall_and_stay_within_the_range(
    rises: list[bool], untold: set[int], data: st.DataObject
) -> None:
    made = ScriptedChain(1, blocks=1)
    times = [FIRST_TIME_S]
    for rise in rises:
        made.mine([MOVE])
        times.append(times[-1] + rise * data.draw(st.integers(1, 9)))
    for at_s, block, own in zip(times, made.blocks, made.logs, strict=True):
        block["timestamp"] = hex(at_s)
        for log in own:
            log["blockTimestamp"] = None if len(times) - 2 in untold else hex(at_s)
    for number in untold & set(range(1, len(times))):
        made.logs[number][0]["blockTimestamp"] = None
    span = await read_tokens(made, SOURCES, 0, made.last)
    found = [tx.at_s for tx in span.txs]
    assert found == sorted(found)
    assert times[0] <= found[0]
    assert found[-1] <= times[-1]
    for tx, own in zip(span.txs, made.logs[1:], strict=True):
        assert own[0]["blockTimestamp"] in (None, hex(tx.at_s))


# --- lies ----------------------------------------------------------------------------------------------

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
    contracts_alone: dict[str, Quoted] = {at: SOURCES.venues[at] for at in (CURVE, POOL)}
    with pytest.raises(NodeLied):
        await read_tokens(made, Sources(TOKEN, contracts_alone, NETWORK), 1, LAST)


@pytest.mark.parametrize("lie", ["a block back", "the wrong order", "blocks in the wrong order"])
async def test_blocks_rise_where_no_times_tell_it(lie: str) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        silent(calls, answers)
        own, *headers = answers
        LIES[lie](own, [], *headers)

    made.twist = twist
    with pytest.raises(NodeLied, match="in the order of their blocks"):
        await read_tokens(made, Sources(TOKEN, {POOL: SOURCES.venues[POOL]}, NETWORK), 1, LAST)


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
    with pytest.raises(NodeFault, match="no block 6"):
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


# --- range after range ---------------------------------------------------------------------------------


async def told(made: ScriptedChain, first: int, last: BlockRef, parent: str | None = None) -> list[TokenSpan]:
    stream = token_spans(made, SOURCES, first, last, new_width(), parent_hash=parent)
    async with contextlib.aclosing(stream):
        return [span async for span in stream]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), st.integers(2, 6), st.integers(0, 4))
async def test_ranges_together_hold_what_one_holds(most_blocks: int, most_found: int, first: int) -> None:
    made = chain()
    for number in range(30):
        made.mine([[MOVE], [V3_BUY], [LOW_BUY, NOISE], [NOISE]][number % 4])
    whole = await read_tokens(made, SOURCES, first, made.last)
    made.most_blocks, made.most_found = most_blocks, most_found + 5
    spans = await told(made, first, ref(made, made.last), made.hash_of(first - 1) if first else None)
    assert tuple(tx for span in spans for tx in span.txs) == whole.txs
    assert sum(span.transfers for span in spans) == whole.transfers
    assert [span.first for span in spans[1:]] == [span.last.number + 1 for span in spans[:-1]]
    assert spans[-1].last == ref(made, made.last)


async def test_nothing_is_read_of_no_blocks() -> None:
    made = chain()
    assert await told(made, LAST + 1, ref(made, LAST)) == []


async def test_another_last_block_than_was_pinned_is_a_fork() -> None:
    made = chain()
    with pytest.raises(Forked):
        await told(made, 0, BlockRef(LAST, "0x" + "55" * 32, FIRST_TIME_S))


async def test_ranges_that_do_not_follow_each_other_are_a_fork() -> None:
    made = chain()
    with pytest.raises(Forked):
        await told(made, 2, ref(made, LAST), "0x" + "55" * 32)
    made.most_blocks = 2
    pinned = ref(made, LAST)

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        for call, answer in zip(calls, answers, strict=True):
            if call.method == "eth_getBlockByNumber" and call.params[0] == "0x3":
                answer["parentHash"] = "0x" + "55" * 32

    made.twist = twist
    with pytest.raises(Forked):
        await told(made, 0, pinned)


# --- what is gone --------------------------------------------------------------------------------------

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
        await told(made, 49, ref(made, 99))
    assert len(made.asked) == 2, "the range, and its first block alone"
    assert len(await told(made, 50, ref(made, 99))) == 1


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
    found = await oldest_logs(made, SOURCES, low, blocks)
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
    assert await oldest_logs(made, SOURCES, 0, 99) is None


async def test_it_is_not_known_where_a_node_gives_older_ones_only() -> None:
    made = ScriptedChain(1, blocks=100)

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[-1] = PRUNED[0]

    made.twist = twist
    assert await oldest_logs(made, SOURCES, 0, 99) is None


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
