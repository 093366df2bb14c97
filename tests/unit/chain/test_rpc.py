"""A batch and its answers, over a session that says what the test wants."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from dataclasses import FrozenInstanceError, replace
from types import TracebackType
from typing import Any, cast

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.rpc import (
    NULL,
    NULLABLE,
    READ_METHODS,
    Budget,
    Meter,
    Node,
    NodeAnswerTooLarge,
    NodeRefused,
    RpcCall,
    RpcError,
    hex_bytes,
    quantity,
    text,
)
from roundtrip.domain.errors import NodeFault, ServiceFull
from unit.chain.samples import interpreters_recursion_limit

DAY_S = 86_400
CALLS = [RpcCall("eth_chainId", []), RpcCall("eth_call", [{"to": "0x1"}]), RpcCall("eth_gasPrice", [])]


class Response:
    """One answer, in pieces."""

    def __init__(self, body: bytes, status: int, headers: dict[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.content = self
        self.closed = False
        self._body = body

    async def iter_any(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), 1000):
            yield self._body[start : start + 1000]

    def close(self) -> None:
        self.closed = True

    async def __aenter__(self) -> "Response":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Session:
    """Answers every post with ``body``, or fails with ``fault``; keeps what was asked."""

    def __init__(self, body: Any, status: int = 200, fault: Exception | None = None, **headers: str) -> None:
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.response = Response(
            encoded, status, {name.replace("_", "-"): told for name, told in headers.items()}
        )
        self.fault = fault
        self.asked: list[Any] = []
        self.options: dict[str, Any] = {}

    def post(self, url: str, *, data: bytes, **options: Any) -> Response:
        self.asked.append(msgspec.json.decode(data))
        self.options = options
        if self.fault is not None:
            raise self.fault
        return self.response


def node(session: Session, **options: Any) -> Node:
    return Node("http://node.test", cast(aiohttp.ClientSession, session), **options)


async def answers_to(body: Any, status: int = 200) -> list[msgspec.Raw | RpcError]:
    return await node(Session(body, status)).batch(CALLS)


def answer(number: object, result: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def shown(found: list[msgspec.Raw | RpcError]) -> list[object]:
    """Results decoded; an error as its code and message."""
    return [
        (one.code, one.message) if isinstance(one, RpcError) else msgspec.json.decode(one) for one in found
    ]


NO_ANSWER = (0, "the node gave no answer to this call")
ALL = [answer(0, "a"), answer(1, "b"), answer(2, "c")]


async def test_a_batch_is_one_request_with_numbered_calls() -> None:
    session = Session(ALL)
    await node(session).batch(CALLS, timeout_s=3)
    assert session.asked == [
        [
            {"jsonrpc": "2.0", "id": 0, "method": "eth_chainId", "params": []},
            {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{"to": "0x1"}]},
            {"jsonrpc": "2.0", "id": 2, "method": "eth_gasPrice", "params": []},
        ]
    ]
    assert session.options["allow_redirects"] is False
    assert session.options["timeout"].total == 3


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
async def test_answers_come_back_in_the_order_of_the_calls(order: list[int]) -> None:
    assert shown(await answers_to([ALL[at] for at in order])) == ["a", "b", "c"]


async def test_a_call_without_an_answer_gets_an_error_of_its_own() -> None:
    assert shown(await answers_to([ALL[2]])) == [NO_ANSWER, NO_ANSWER, "c"]


@pytest.mark.parametrize("number", ["1", "x", None, 3, -1, 2**31])
async def test_an_answer_under_another_id_answers_nothing(number: object) -> None:
    assert shown(await answers_to([ALL[0], answer(number, "b")])) == ["a", NO_ANSWER, NO_ANSWER]


async def test_of_two_answers_to_one_call_neither_is_believed() -> None:
    found = shown(await answers_to([*ALL, answer(1, "again")]))
    assert found == ["a", (0, "the node gave no answer to this call"), "c"]


async def test_a_result_of_null_is_no_answer() -> None:
    assert shown(await answers_to([ALL[0], answer(1, None)])) == ["a", NO_ANSWER, NO_ANSWER]


@pytest.mark.parametrize("method", sorted(NULLABLE))
async def test_a_null_of_a_transaction_says_that_there_is_none(method: str) -> None:
    asked = RpcCall(method, ["0x"])
    assert await node(Session([answer(0, None)])).batch([asked]) == [NULL]
    with pytest.raises(NodeFault):
        await node(Session([{"id": 0}])).batch([asked])


async def test_an_error_of_one_call_stands_in_its_place() -> None:
    error = {"id": 1, "error": {"code": 3, "message": "execution reverted", "data": "0x08c379a0"}}
    found = await answers_to([ALL[0], error, ALL[2]])
    assert shown(found) == ["a", (3, "execution reverted"), "c"]
    assert isinstance(found[1], RpcError)
    assert bytes(found[1].data) == b'"0x08c379a0"'


async def test_an_error_beside_a_result_wins() -> None:
    both = answer(1, "b") | {"error": {"code": -1, "message": "no"}}
    assert shown(await answers_to([ALL[0], both]))[1] == (-1, "no")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"null",
        b'"0x1"',
        b'{"id":0,"result":1}',
        b'{"error":{"code":-32600,"message":"batch too large"}}',
        b"[1]",
        b'[{"id":[]}]',
        b"\xff",
        b"[]",
        b'[{"id":7,"result":1}]',
        b'[{"id":0}]',
    ],
    ids=lambda body: body[:20].decode("latin-1") or "nothing",
)
async def test_an_answer_that_answers_nothing_is_the_nodes_fault(body: bytes) -> None:
    with pytest.raises(NodeFault):
        await answers_to(body)


async def test_an_answer_that_is_nested_without_end_is_the_nodes_fault() -> None:
    with pytest.raises(NodeFault), interpreters_recursion_limit():
        await answers_to(b'[{"id":0,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}]")


@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_a_status_of_failure_without_json_is_the_nodes_fault(status: int) -> None:
    with pytest.raises(NodeFault, match=str(status)):
        await answers_to(b"too many requests", status)


@pytest.mark.parametrize(
    ("told", "wait_s"),
    [("7", 7), ("0", 0), ("9" * 40, 999_999_999), ("-1", None), ("1.5", None), ("soon", None), ("²", None)],
)
async def test_how_long_it_asks_to_be_left_alone_is_read(told: str, wait_s: int | None) -> None:
    with pytest.raises(NodeRefused) as caught:
        await node(Session(b"no", 429, retry_after=told)).batch(CALLS)
    assert (caught.value.http_status, caught.value.node_retry_after_s) == (429, wait_s)
    assert (caught.value.code, caught.value.status) == ("upstream", 502)


@pytest.mark.parametrize("status", [200, 403, 413, 429, 500])
async def test_one_error_for_all_of_a_batch_is_told(status: int) -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "batch too large"}}
    with pytest.raises(NodeRefused, match="no batch of answers") as caught:
        await answers_to(body, status)
    assert (caught.value.http_status, caught.value.error) == (status, RpcError(-32600, "batch too large"))


async def test_an_object_that_is_no_error_refuses_all_the_same() -> None:
    with pytest.raises(NodeRefused, match="no batch of answers") as caught:
        await answers_to(b'{"error": 7', 500)
    assert caught.value.error is None


async def test_a_status_of_failure_with_answers_is_read() -> None:
    assert shown(await answers_to(ALL, 500)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (TimeoutError(), "too long"),
        (aiohttp.ClientConnectionError("refused by 10.0.0.7"), "connection failed"),
        (aiohttp.ServerDisconnectedError(), "connection failed"),
        (OSError("no route"), "connection failed"),
        (asyncio.IncompleteReadError(b"", 5), "connection failed"),
    ],
)
async def test_a_broken_connection_is_the_nodes_fault_and_names_no_host(fault: Exception, why: str) -> None:
    with pytest.raises(NodeFault, match=why) as caught:
        await node(Session(b"", fault=fault)).batch(CALLS)
    assert "10.0.0.7" not in caught.value.message


async def test_an_answer_past_the_size_is_not_read_to_its_end() -> None:
    session = Session(ALL)
    size = len(msgspec.json.encode(ALL))
    assert shown(await node(session, most_answer_bytes=size).batch(CALLS)) == ["a", "b", "c"]
    with pytest.raises(NodeAnswerTooLarge):
        await node(session, most_answer_bytes=size - 1).batch(CALLS)
    assert session.response.closed


async def test_a_single_call_is_a_batch_of_one() -> None:
    session = Session([answer(0, "0x1237")])
    assert quantity(await node(session).one("eth_chainId")) == 0x1237
    assert session.asked == [[{"jsonrpc": "2.0", "id": 0, "method": "eth_chainId", "params": []}]]


# --- only reading ----------------------------------------------------------------------------------

NOT_READING = """
eth_sendRawTransaction eth_sendTransaction eth_sign eth_signTransaction eth_signTypedData_v4 eth_submitWork
personal_sign personal_sendTransaction anvil_setBalance anvil_impersonateAccount evm_mine ETH_CALL
"""


@pytest.mark.parametrize("method", [*NOT_READING.split(), "", "eth_call "])
async def test_what_does_more_than_read_is_refused_before_anything_goes_out(method: str) -> None:
    session = Session([answer(0, "0x1")])
    limited = node(session, budget=Budget(calls_per_day=5))
    with pytest.raises(ValueError, match=f"only reads from a node, and {method} is not in READ_METHODS"):
        await limited.one(method, "0x00")
    with pytest.raises(ValueError, match="only reads"):
        await limited.batch([*CALLS, replace(CALLS[0], method=method)])
    assert (session.asked, limited.budget.spent) == ([], 0)


def test_a_call_cannot_become_another_one() -> None:
    with pytest.raises(FrozenInstanceError):
        CALLS[0].method = "eth_sendRawTransaction"  # type: ignore[misc]


@pytest.mark.parametrize("method", sorted(READ_METHODS))
async def test_what_reads_goes_out_as_it_is(method: str) -> None:
    session = Session([answer(0, "0x1")])
    await node(session).one(method)
    assert session.asked[0][0]["method"] == method
    reading = (
        "eth_(get|call|chainId|simulate|estimate|createAccessList|gasPrice|subscribe)|web3_clientVersion"
    )
    assert re.match(reading, method), "no method is among them that is named after a change"


# --- the meter and the budget ----------------------------------------------------------------------


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


# --- single answers --------------------------------------------------------------------------------


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
