"""A token's logs: what a true answer reads as, how one contradicts itself, and what is gone."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.blocks.span_stream import ForkSeen
from roundtrip.chain.holders.token_logs import IDS_A_CALL, LogSources, TokenSpan, VenueSides, read_tokens
from roundtrip.chain.rpc.client import RpcCall
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.holders.token_flows import Move, TokenTx, VenueFill
from roundtrip.venues.base import Log
from support.scripted_chain import FIRST_TIME_S, Answers, ScriptedChain
from unit.chain.token_chain import (
    BACK,
    CURVE,
    CURVE_BUY,
    CURVE_SELL,
    HIGH_ID,
    HIGH_SELL,
    HOOK,
    LAST,
    LOW_BUY,
    LOW_ID,
    MANAGER,
    MINT,
    MOVE,
    NOISE,
    POOL,
    SOURCES,
    TOKEN,
    V3_BUY,
    V3_SELL,
    ZERO,
    A,
    B,
    chain,
    moved,
    odd,
    read_spans,
    ref,
    silent,
    v3,
    v4,
)
from unit.venues import logs
from unit.venues.logs import NETWORK

CONVERSION = v4(HIGH_ID, 14, -140, HOOK or ZERO)


def move_of(log: Log) -> Move:
    """What a Transfer is by its words."""
    sender, recipient = (Address("0x" + topic[26:]) for topic in log.topics[1:3])
    return Move(sender, recipient, int.from_bytes(log.data, "big"))


FILLS = {
    CURVE_BUY: VenueFill(CURVE, True, 7, ZERO, 70),
    CURVE_SELL: VenueFill(CURVE, False, 8, ZERO, 80),
    V3_BUY: VenueFill(POOL, True, 9, NETWORK.weth, 90),
    V3_SELL: VenueFill(POOL, False, 11, NETWORK.weth, 110),
    LOW_BUY: VenueFill(LOW_ID, True, 12, NETWORK.usdg, 120),
    HIGH_SELL: VenueFill(HIGH_ID, False, 13, ZERO, 130),
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


# --- what is there -------------------------------------------------------------------------------------


async def test_what_was_asked_for_reads_as_the_chain_was_made_in_one_trip() -> None:
    made = chain()
    span = await read_tokens(made, SOURCES, 1, LAST)
    assert span == TokenSpan(1, ref(made, LAST), tuple(all_of(made)), 5, 0, True, made.hash_of(0), 11)
    assert span.logs == 11
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
    span = await read_tokens(made, LogSources(TOKEN, {}, NETWORK), 0, LAST)
    assert [tx.fills for tx in span.txs] == [[], [], [], []]
    assert sum(len(tx.moves) for tx in span.txs) == span.transfers == span.logs == 5
    (wanted,) = [call.params[0] for call in made.asked[0] if call.method == "eth_getLogs"]
    assert (wanted["address"], wanted["topics"]) == ([TOKEN], [[logs.TRANSFER.topic]])  # type: ignore[index]


async def test_many_pools_of_the_vault_are_asked_for_some_at_a_time() -> None:
    made = chain()
    more = {f"0x{number:064x}": VenueSides("amm_v4", True, ZERO) for number in range(IDS_A_CALL)}
    span = await read_tokens(made, LogSources(TOKEN, {**more, **SOURCES.venues}, NETWORK), 1, LAST)
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
    assert tx.fills == [VenueFill(POOL, True, 5, NETWORK.weth, 0)]


async def test_words_behind_an_amount_do_not_count() -> None:
    made = ScriptedChain(1, blocks=1)
    made.mine([odd(*MOVE.topics, data=MOVE.data + b"\xff" * 40)])
    (tx,) = (await read_tokens(made, SOURCES, 0, 1)).txs
    assert tx.moves == [move_of(MOVE)]


# --- times ---------------------------------------------------------------------------------------------


async def test_where_logs_tell_no_time_it_is_read_off_the_line_between_the_ends() -> None:
    made = ScriptedChain(1, blocks=1)
    for _ in range(20):
        made.mine([MOVE])
    # Half a second a block, as far as headers tell.
    for number, block in enumerate(made.blocks):
        block["timestamp"] = hex(FIRST_TIME_S + number // 2)
    made.twist = silent
    span = await read_tokens(made, SOURCES, 1, 20)
    assert not span.has_block_times
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
    assert not span.has_block_times


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


# --- range after range ---------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 7), st.integers(2, 6), st.integers(0, 4))
async def test_ranges_together_hold_what_one_holds(most_blocks: int, most_found: int, first: int) -> None:
    made = chain()
    for number in range(30):
        made.mine([[MOVE], [V3_BUY], [LOW_BUY, NOISE], [NOISE]][number % 4])
    whole = await read_tokens(made, SOURCES, first, made.last)
    made.most_blocks, made.most_found = most_blocks, most_found + 5
    spans = await read_spans(made, first, ref(made, made.last), made.hash_of(first - 1) if first else None)
    assert tuple(tx for span in spans for tx in span.txs) == whole.txs
    assert sum(span.transfers for span in spans) == whole.transfers
    assert [span.first for span in spans[1:]] == [span.last.number + 1 for span in spans[:-1]]
    assert spans[-1].last == ref(made, made.last)


async def test_nothing_is_read_of_no_blocks() -> None:
    made = chain()
    assert await read_spans(made, LAST + 1, ref(made, LAST)) == []


async def test_another_last_block_than_was_pinned_is_a_fork() -> None:
    made = chain()
    with pytest.raises(ForkSeen):
        await read_spans(made, 0, BlockRef(LAST, "0x" + "55" * 32, FIRST_TIME_S))


async def test_ranges_that_do_not_follow_each_other_are_a_fork() -> None:
    made = chain()
    with pytest.raises(ForkSeen):
        await read_spans(made, 2, ref(made, LAST), "0x" + "55" * 32)
    made.most_blocks = 2
    pinned = ref(made, LAST)

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        for call, answer in zip(calls, answers, strict=True):
            if call.method == "eth_getBlockByNumber" and call.params[0] == "0x3":
                answer["parentHash"] = "0x" + "55" * 32

    made.twist = twist
    with pytest.raises(ForkSeen):
        await read_spans(made, 0, pinned)
