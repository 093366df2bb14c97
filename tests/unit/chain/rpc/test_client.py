"""A batch and its answers, over a session that says what the test wants."""

import asyncio
from typing import Any, cast

import aiohttp
import msgspec
import pytest

from roundtrip.chain.rpc.client import (
    NULL,
    NULLABLE,
    Node,
    NodeAnswerTooDeep,
    NodeAnswerTooLarge,
    NodeRefused,
    RpcCall,
    RpcError,
)
from roundtrip.domain.base.errors import NodeFault
from unit.chain.rpc_nodes import ALL, CALLS, Session, answer, node, shown
from unit.chain.samples import interpreters_recursion_limit


async def answers_to(body: Any, status: int = 200) -> list[msgspec.Raw | RpcError]:
    return await node(Session(body, status)).batch(CALLS)


NO_ANSWER = (0, "the node sent no answer to this call")


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


@pytest.mark.parametrize(
    ("url", "encoding"),
    [
        ("http://127.0.0.1:8545", "identity"),
        ("http://[::1]:8545/", "identity"),
        ("http://localhost:1", "identity"),
        ("https://node.test/v2/key", "gzip, deflate"),
    ],
)
async def test_only_a_node_elsewhere_is_asked_to_compress(url: str, encoding: str) -> None:
    session = Session(ALL)
    await Node(url, cast(aiohttp.ClientSession, session)).batch(CALLS)
    assert session.options["headers"]["accept-encoding"] == encoding


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
    assert found == ["a", (0, "the node sent no answer to this call"), "c"]


async def test_a_result_of_null_is_no_answer() -> None:
    assert shown(await answers_to([ALL[0], answer(1, None)])) == ["a", NO_ANSWER, NO_ANSWER]


@pytest.mark.parametrize("method", sorted(NULLABLE))
async def test_a_null_of_a_transaction_says_that_there_is_none(method: str) -> None:
    asked = RpcCall(method, ["0x"])
    assert await node(Session([answer(0, None)])).batch([asked]) == [NULL]
    with pytest.raises(NodeFault):
        await node(Session([{"id": 0}])).batch([asked])


async def test_our_own_answers_have_no_secret_of_the_nodes_url() -> None:
    """The URL's user name is a word of the text for an unknown transaction."""
    session = cast(aiohttp.ClientSession, Session([answer(0, None)]))
    (found,) = await Node("http://node:x@node.test", session).batch([RpcCall(min(NULLABLE), ["0x"])])
    assert found is NULL


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


async def test_a_trace_that_is_nested_too_deeply_is_the_codes_fault() -> None:
    body = b'[{"id":0,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}]"
    with pytest.raises(NodeAnswerTooDeep), interpreters_recursion_limit():
        await node(Session(body)).batch([RpcCall("debug_traceCall", [])])


@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_a_status_of_failure_without_json_is_the_nodes_fault(status: int) -> None:
    with pytest.raises(NodeFault, match=str(status)):
        await answers_to(b"too many requests", status)


@pytest.mark.parametrize(
    ("expected", "wait_s"),
    [("7", 7), ("0", 0), ("9" * 40, 999_999_999), ("-1", None), ("1.5", None), ("soon", None), ("²", None)],
)
async def test_how_long_it_asks_to_be_left_alone_is_read(expected: str, wait_s: int | None) -> None:
    with pytest.raises(NodeRefused) as caught:
        await node(Session(b"no", 429, retry_after=expected)).batch(CALLS)
    assert (caught.value.http_status, caught.value.node_retry_after_s) == (429, wait_s)
    assert (caught.value.code, caught.value.status) == ("upstream", 502)


@pytest.mark.parametrize("status", [200, 403, 413, 429, 500])
async def test_one_error_for_all_of_a_batch_is_told(status: int) -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "batch too large"}}
    with pytest.raises(NodeRefused, match="batch too large") as caught:
        await answers_to(body, status)
    assert (caught.value.http_status, caught.value.error) == (status, RpcError(-32600, "batch too large"))


async def test_an_object_that_is_no_error_refuses_all_the_same() -> None:
    with pytest.raises(NodeRefused, match="server fails") as caught:
        await answers_to(b'{"error": 7', 500)
    assert caught.value.error is None


async def test_a_status_of_failure_with_answers_is_read() -> None:
    assert shown(await answers_to(ALL, 500)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (TimeoutError(), "did not answer in time"),
        (aiohttp.ClientConnectionError("refused by 10.0.0.7"), "connection to the node failed"),
        (aiohttp.ServerDisconnectedError(), "connection to the node failed"),
        (OSError("no route"), "connection to the node failed"),
        (asyncio.IncompleteReadError(b"", 5), "connection to the node failed"),
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
