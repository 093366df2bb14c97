"""What a node's client asks, counts and refuses to ask."""

import re
import time
from dataclasses import FrozenInstanceError, replace
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.rpc.client import (
    READ_METHODS,
    Budget,
    Meter,
    RpcCall,
    RpcError,
    hex_bytes,
    quantity,
    text,
)
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from unit.chain.rpc_nodes import ALL, CALLS, DAY_S, Response, Session, answer, node, shown

NOT_READING = """
eth_sendRawTransaction eth_sendTransaction eth_sign eth_signTransaction eth_signTypedData_v4 eth_submitWork
personal_sign personal_sendTransaction anvil_setBalance anvil_impersonateAccount evm_mine ETH_CALL
"""


@pytest.mark.parametrize("method", [*NOT_READING.split(), "", "eth_call "])
async def test_what_does_more_than_read_is_refused_before_anything_goes_out(method: str) -> None:
    session = Session([answer(0, "0x1")])
    limited = node(session, budget=Budget(calls_per_day=5))
    with pytest.raises(ValueError, match=f"only reads from a node, and {method} is not in READ_METHODS"):
        await limited.batch([RpcCall(method, ["0x00"])])
    with pytest.raises(ValueError, match="only reads"):
        await limited.batch([*CALLS, replace(CALLS[0], method=method)])
    assert (session.asked, limited.budget.spent) == ([], 0)


def test_a_call_cannot_become_another_one() -> None:
    with pytest.raises(FrozenInstanceError):
        CALLS[0].method = "eth_sendRawTransaction"  # type: ignore[misc]


@pytest.mark.parametrize("method", sorted(READ_METHODS))
async def test_what_reads_goes_out_as_it_is(method: str) -> None:
    session = Session([answer(0, "0x1")])
    await node(session).batch([RpcCall(method, [])])
    assert session.asked[0][0]["method"] == method
    reading = (
        "eth_(get|call|chainId|simulate|estimate|createAccessList|gasPrice|subscribe)|web3_clientVersion|"
        "debug_trace(Call|Transaction)$"
    )
    assert re.match(reading, method), "no method is among them that is named after a change"


async def test_the_meter_counts_trips_and_calls_also_of_those_that_fail() -> None:
    meter = Meter()
    await node(Session(ALL)).batch(CALLS, meter)
    await node(Session([ALL[0]])).batch(CALLS[:1], meter)
    with pytest.raises(NodeFault):
        await node(Session(b"", fault=TimeoutError())).batch(CALLS[:2], meter)
    assert (meter.trips, meter.calls) == (3, 6)
    assert meter.node_ms > 0


async def test_several_batches_at_once_are_one_trip() -> None:
    session, meter = Session([answer(0, "0x1"), answer(1, "0x2"), answer(2, "0x3")]), Meter()
    found = await node(session).batches([CALLS, CALLS[:1]], meter)
    assert [shown(one) for one in found if not isinstance(one, NodeFault)] == [["0x1", "0x2", "0x3"], ["0x1"]]
    assert (meter.trips, meter.calls, len(session.asked)) == (1, 4, 2)


class OneOfTwo(Session):
    """Answers the first request and drops the connection on the second."""

    def post(self, url: str, *, data: bytes, **options: Any) -> Response:
        self.fault = aiohttp.ClientConnectionError("gone") if self.asked else None
        return super().post(url, data=data, **options)


async def test_what_one_of_several_batches_suffers_the_others_do_not() -> None:
    session = OneOfTwo([answer(0, "0x1"), answer(1, "0x2"), answer(2, "0x3")])
    first, second = await node(session).batches([CALLS, CALLS], Meter())
    assert not isinstance(first, NodeFault)
    assert isinstance(second, NodeFault)


async def test_a_budget_that_is_spent_is_told_for_all_of_several_batches() -> None:
    session = Session([answer(0, "0x1")])
    with pytest.raises(ServiceFull):
        await node(session, budget=Budget(calls_per_day=3)).batches([CALLS, CALLS], Meter())


async def test_a_spent_budget_sends_nothing() -> None:
    session, meter = Session(ALL), Meter()
    limited = node(session, budget=Budget(calls_per_day=5, spent=3, day=int(time.time() // DAY_S)))
    with pytest.raises(ServiceFull) as caught:
        await limited.batch(CALLS, meter)
    assert caught.value.code == "budget_spent"
    assert session.asked == []
    assert (meter.trips, limited.budget.spent) == (0, 3)


def test_a_budget_is_spent_to_the_last_call_and_no_further() -> None:
    budget = Budget(calls_per_day=10)
    budget.spend(4, 100 * DAY_S)
    budget.spend(6, 100 * DAY_S + 5)
    with pytest.raises(ServiceFull):
        budget.spend(1, 100 * DAY_S + 6)
    assert budget.spent == 10


def test_what_did_not_fit_is_not_counted() -> None:
    budget = Budget(calls_per_day=10)
    budget.spend(8, 0)
    with pytest.raises(ServiceFull):
        budget.spend(3, 1)
    budget.spend(2, 2)
    assert budget.spent == 10


def test_a_new_day_brings_a_new_budget() -> None:
    budget = Budget(calls_per_day=10)
    budget.spend(10, 101 * DAY_S - 0.5)
    with pytest.raises(ServiceFull) as caught:
        budget.spend(1, 101 * DAY_S - 0.5)
    assert caught.value.retry_after_s == 1
    budget.spend(10, 101 * DAY_S)
    assert (budget.day, budget.spent) == (101, 10)


@pytest.mark.parametrize("into_s", [0, 1, DAY_S // 2, DAY_S - 1])
def test_the_wait_ends_with_the_day(into_s: int) -> None:
    budget = Budget(calls_per_day=1, spent=1, day=7)
    with pytest.raises(ServiceFull) as caught:
        budget.spend(1, 7 * DAY_S + into_s)
    assert caught.value.retry_after_s is not None
    budget.spend(1, 7 * DAY_S + into_s + caught.value.retry_after_s)
    assert caught.value.retry_after_s <= DAY_S - into_s + 1


def test_no_budget_is_never_spent() -> None:
    budget = Budget()
    budget.spend(10**9, 0)
    assert budget.spent == 0


@given(st.integers(0, 2**256 - 1))
def test_a_quantity_is_read_from_hex(number: int) -> None:
    assert quantity(msgspec.Raw(f'"{hex(number)}"'.encode())) == number


@given(st.binary(max_size=64))
def test_bytes_are_read_from_hex(data: bytes) -> None:
    assert hex_bytes(msgspec.Raw(f'"0x{data.hex()}"'.encode())) == data


@pytest.mark.parametrize("junk", [b'"0xzz"', b"5", b"[]", b"{}", b"", b"[[[", b'"', b'"\\ud800"'])
def test_an_answer_of_another_shape_is_the_nodes_fault(junk: bytes) -> None:
    for reading in (quantity, hex_bytes):
        with pytest.raises(NodeFault):
            reading(msgspec.Raw(junk))


@pytest.mark.parametrize("junk", [b'"0x1"', b'"0x123"'])
def test_half_a_byte_is_no_byte(junk: bytes) -> None:
    with pytest.raises(NodeFault):
        hex_bytes(msgspec.Raw(junk))


def test_bytes_that_are_no_utf_8_are_neither_number_nor_hex() -> None:
    for reading in (quantity, hex_bytes):
        with pytest.raises(NodeFault):
            reading(msgspec.Raw(b'"\xff"'))


def test_bytes_that_are_no_utf_8_are_no_text() -> None:
    with pytest.raises(NodeFault):
        text(msgspec.Raw(b'"\xff"'))


@pytest.mark.parametrize(
    ("error", "why"), [(RpcError(-5, "key=SECRET"), "^[^S]*error -5[^S]*$"), (RpcError(-5), "-5")]
)
def test_an_error_in_an_answers_place_is_the_nodes_fault(error: RpcError, why: str) -> None:
    for reading in (text, quantity, hex_bytes):
        with pytest.raises(NodeFault, match=why):
            reading(error)


def test_a_nodes_long_message_is_cut() -> None:
    with pytest.raises(NodeFault) as caught:
        text(RpcError(-5, "x" * 5000))
    assert len(caught.value.message) < 150
