"""What is said of a node that refuses or fails: what it did, in its words, and what helps."""

import asyncio
import json
import time
from typing import Any, cast

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.client import Node, NodeRefused, RpcCall
from roundtrip.chain.rpc.endpoints import NodeUrl
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.chain.rpc.node_words import cut_secrets, quote, secrets_in
from roundtrip.chain.rpc.refusals import explain_no_simulation
from roundtrip.chain.rpc.rpc_error import RpcError
from roundtrip.config.networks import CHAIN_ID, ROBINHOOD
from roundtrip.domain.base.errors import NodeFault
from support.refusing_node import (  # fmt: skip
    BAD_GATEWAY,
    CLOUDFLARE,
    KEY,
    NO_SIMULATIONS,
    RefusingNode,
    refusals,
)
from unit.chain.rpc_nodes import ALL, CALLS, Session, node

LIMIT = "wait a minute, or use another node or a key of your own."


def one_error(code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (429, one_error(-32005, "rate limit"),
         f'The node limits our calls (HTTP status 429, error -32005 "rate limit"): {LIMIT}'),
        (429, {"error": "slow down"},
         f'The node limits our calls (HTTP status 429 "slow down"): {LIMIT}'),
        (429, b"Too Many Requests",
         f'The node limits our calls (HTTP status 429 "Too Many Requests"): {LIMIT}'),
        (200, one_error(-32005, "rate limit"),
         f'The node limits our calls (error -32005 "rate limit"): {LIMIT}'),
        (401, one_error(-32000, "Must be authenticated!"),
         'The node asks for a valid key (HTTP status 401, error -32000 "Must be authenticated!"): '
         "check the key in its URL, or use another node."),
        (200, one_error(-32000, "invalid API key"),
         'The node asks for a valid key (error -32000 "invalid API key"): '
         "check the key in its URL, or use another node."),
        (403, CLOUDFLARE, 'The node refuses access (HTTP status 403 "Attention Required! | Cloudflare"): '
         "check the key in its URL, or use another node."),
        (502, BAD_GATEWAY, 'The node\'s server fails (HTTP status 502 "502 Bad Gateway"): '
         "retry in a minute, or use another node."),
        (500, b'{"error": 7', "The node's server fails (HTTP status 500 \"{'error': 7\"): "
         "retry in a minute, or use another node."),
        (404, b"", "There is no node at the URL (HTTP status 404): check the URL."),
        (302, b"", "There is no node at the URL (HTTP status 302): check the URL."),
        (200, b"<html><title>Welcome</title>",
         'The URL answers, but not as a node (HTTP status 200 "Welcome"): '
         "check the URL."),
        (200, b" \n", "The node sent an empty answer (HTTP status 200): check the URL, or use another node."),
        (200, b"{}",
         'The node\'s answer is not a batch (HTTP status 200 "{}"): use a node that answers batches.'),
        (200, one_error(-32600, "batch too large"),
         'The node refuses a request of this size (error -32600 "batch too large"): '
         "use a node that takes larger requests."),
        (413, b"", "The node refuses a request of this size (HTTP status 413): "
         "use a node that takes larger requests."),
        (400, one_error(-32700, "parse error"),
         'The node refuses the request (HTTP status 400, error -32700 "parse error"): use another node.'),
    ],
)  # fmt: skip
async def test_a_refused_request_is_explained_in_one_sentence(status: int, body: Any, sentence: str) -> None:
    with pytest.raises(NodeRefused) as caught:
        await node(Session(body, status)).batch(CALLS)
    assert caught.value.message == sentence
    assert "ask again" not in sentence


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (RpcError(-32601, NO_SIMULATIONS),
         f'The node does not serve eth_simulateV1 (error -32601 "{NO_SIMULATIONS}"): '
         "use a node that serves it."),
        (RpcError(-32005, "daily request count exceeded"),
         f'The node limits our calls (error -32005 "daily request count exceeded"): {LIMIT}'),
        (RpcError(-32603, "method handler crashed"),
         'The node failed to simulate (error -32603 "method handler crashed"): '
         "retry in a minute, or use another node."),
        (RpcError(-38013, "intrinsic gas too low"),
         'The node refused to simulate (error -38013 "intrinsic gas too low"): use another node.'),
        (RpcError(-32600, "batch too large"),
         'The node refuses a request of this size (error -32600 "batch too large"): '
         "use a node that takes larger requests."),
        (RpcError(-32000, "header not found"),
         'The node does not know its own newest block (error -32000 "header not found"): '
         "retry in a minute, or use another node."),
        (RpcError(), "The node did not answer eth_simulateV1: retry in a minute, or use another node."),
    ],
)  # fmt: skip
def test_a_node_that_does_not_simulate_is_explained(error: RpcError, sentence: str) -> None:
    assert explain_no_simulation(error).fault().message == sentence


# --- the node's words ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("method handler crashed", '"method handler crashed"'),
        ("a\u202eb\x1b[2J\r\nc \u200bd", '"ab[2J c d"'),
        ('say "no" twice', "\"say 'no' twice\""),
        ("see https://node.example/v2/k?x=1 for more", '"see … for more"'),
        ("node.example/v2/abc is closed", '"… is closed"'),
        ("key 0f1e2d3c4b5a69788796a5b4c3d2e1f0 is unknown", '"key … is unknown"'),
        ("api_key=abc is unknown", '"api_key= … is unknown"'),
        ("Authorization: Bearer abc", '"Authorization: Bearer …"'),
        ("aB3dE6gH9jK2 is no project", '"… is no project"'),
        ("eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl", ""),
        ("eth_getTransactionReceipt is not served", '"eth_getTransactionReceipt is not served"'),
        ("<html><style>a{}</style><b>Not</b> here</html>", '"Not here"'),
        ("<title></title><script>x()</script>Blocked", '"Blocked"'),
        ("", ""),
        ("\u200b", ""),
        ("long " * 40, '"' + "long " * 15 + '…"'),
        (json.dumps({"detail": "Not found", "path": "/v1", "more": ["x y"] * 40}), '"Not found"'),
        (json.dumps({"error": {"code": 7, "message": 'No plan \u2026 "free"'}}), "\"No plan … 'free'\""),
        ('{"error": "it is clos', "\"{'error': 'it is clos\""),
        (json.dumps({"some": ["words"] * 40}), "\"{'some': [" + "'words', " * 7 + '…"'),
    ],
)
def test_a_nodes_words_are_quoted(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@given(st.text(max_size=200), st.text("0123456789abcdef", min_size=24, max_size=64), st.text(max_size=50))
def test_no_words_leave_their_quotes_or_hold_a_long_token(before: str, token: str, after: str) -> None:
    quoted = quote(f"{before} {token} {after}")
    assert len(quoted) <= 82
    assert quoted[1:-1].isprintable()
    assert '"' not in quoted[1:-1]
    assert token not in quoted


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("https://node.example/v2/k3y", ()),
        ("https://node.example/rpc/a1b2c3d4", ("a1b2c3d4",)),
        ("https://a1b2c3d4e5.node.example/onlylettersinthiskey", ("onlylettersinthiskey", "a1b2c3d4e5")),
        ("https://me:pass%21@node.example/?apikey=word", ("pass%21", "pass!", "word")),
    ],
)
def test_parts_of_a_url_that_may_be_keys(url: str, secrets: tuple[str, ...]) -> None:
    assert secrets_in(url) == secrets
    assert cut_secrets("".join(secrets), secrets).strip("…") == ""


async def test_an_error_that_repeats_the_url_does_not_show_its_key() -> None:
    url = "https://node.test/rpc?apikey=word"
    errors = [{"id": at, "error": {"code": -32000, "message": "no word for you"}} for at in range(3)]
    for body, status in ((errors[0], 401), (errors, 200), (b"no word for you", 401)):
        asked = Node(url, cast(aiohttp.ClientSession, Session(body, status)))
        try:
            shown = str(await asked.batch(CALLS))
        except NodeRefused as refused:
            shown = f"{refused.message} {refused.error}"
        assert "no … for you" in shown
        assert "word" not in shown


# --- waiting ---------------------------------------------------------------------------------------


class Turns(Session):
    """Answers with 429 while ``refusals`` are left."""

    def __init__(self, refused: int, retry_after: str | None) -> None:
        super().__init__(ALL)
        headers: dict[str, str] = {} if retry_after is None else {"retry_after": retry_after}
        self.refused, self.no = refused, Session(b"no", 429, None, **headers)

    def post(self, url: str, *, data: bytes, **options: Any) -> Any:
        self.refused -= 1
        return self.no.post(url, data=data) if self.refused >= 0 else super().post(url, data=data, **options)


NOW_S = 1_800_000_000.0


def patient(session: Session, slept: list[float], patience_s: float = 10) -> Node:
    async def sleep(wait_s: float) -> None:
        slept.append(wait_s)

    return node(session, patience_s=patience_s, sleep=sleep, clock=lambda: NOW_S)


@pytest.mark.parametrize(
    ("retry_after", "waits"),
    [("7", [7]), ("10", [10]), ("0", [0]), ("Fri, 15 Jan 2027 08:00:04 GMT", [4]),
     ("Fri, 15 Jan 2027 07:00:00 GMT", [0]), ("11", []), (None, []), ("soon", [])],
)  # fmt: skip
async def test_it_waits_once_where_the_node_says_how_long(
    retry_after: str | None, waits: list[float]
) -> None:
    slept: list[float] = []
    asked = patient(Turns(1, retry_after), slept)
    if waits:
        assert len(await asked.batch(CALLS)) == 3
    else:
        with pytest.raises(NodeRefused):
            await asked.batch(CALLS)
    assert slept == waits


async def test_it_waits_again_only_after_an_answer() -> None:
    slept: list[float] = []
    session = Turns(3, "5")
    asked = patient(session, slept)
    for _ in range(2):
        with pytest.raises(NodeRefused, match=r"wait 5 s, or use another node"):
            await asked.batch(CALLS)
    assert (slept, session.refused) == ([5], 0)
    await asked.batch(CALLS)
    session.refused = 1
    await asked.batch(CALLS)
    assert slept == [5, 5]


async def test_a_service_does_not_wait() -> None:
    slept: list[float] = []
    for retry_after in ("0", "5"):
        with pytest.raises(NodeRefused):
            await patient(Turns(1, retry_after), slept, patience_s=0).batch(CALLS)
    assert slept == []


# --- where the head is followed --------------------------------------------------------------------

UNKNOWN_FORM = (
    "The node's simulation errors have an unknown form (a revert came back with error -31999 "
    '"EVM revert instruction", out of gas with error -31998 "no gas left"): '
    "use a node of geth, Nitro or anvil."
)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no simulations", f'The node does not serve eth_simulateV1 (error -32601 "{NO_SIMULATIONS}"): '
         "use a node that serves it."),
        ("crashed", 'The node failed to simulate (error -32603 "method handler crashed"): '
         "retry in a minute, or use another node."),
        ("unknown form", UNKNOWN_FORM),
    ],
)  # fmt: skip
async def test_a_head_without_a_dialect_says_what_the_node_answered(
    name: str, sentence: str, pooled: bool
) -> None:
    now_s = int(time.time())
    async with (
        aiohttp.ClientSession() as session,
        RefusingNode(refusals(now_s)[name], CHAIN_ID, now_s).running() as refusing,
    ):
        asked = (
            NodePool([NodeUrl(refusing.url)], session, CHAIN_ID) if pooled else Node(refusing.url, session)
        )
        heads = Heads(asked, CHAIN_ID, ROBINHOOD.contracts)
        with capture_logs() as logs:
            async with heads.following():
                for _ in range(2):
                    with pytest.raises(NodeFault) as caught:
                        heads.current().known_dialect()
                    assert caught.value.message == sentence
                    await asyncio.sleep(0.3)
    events = [entry["error"] for entry in logs if entry["event"] == "probing the node failed"]
    assert events == [sentence]


async def test_a_pool_repeats_why_no_node_may_be_asked() -> None:
    """Also while it asks none: after a simulation of an unknown form, and while a node asked to wait."""
    now_s = int(time.time())

    async def speaks(node: Node) -> NodeFault:
        return NodeFault("the form is odd", "use another node")

    for name, sentence in (
        ("unknown form", "The form is odd: use another node."),
        ("429, text", f'The node limits our calls (HTTP status 429 "Too Many Requests"): {LIMIT}'),
        ("other chain", f"The node is on chain 1, not {CHAIN_ID}: use a node of chain {CHAIN_ID}."),
    ):
        async with (
            aiohttp.ClientSession() as session,
            RefusingNode(refusals(now_s)[name], CHAIN_ID, now_s).running() as refusing,
        ):
            pool = NodePool([NodeUrl(refusing.url)], session, CHAIN_ID)
            pool.speaks = speaks if name == "unknown form" else None
            for _ in range(2):
                with pytest.raises(NodeFault) as caught:
                    await pool.batch([RpcCall("eth_simulateV1", [])])
                assert caught.value.message == sentence


@pytest.mark.parametrize("name", ["429, long wait", "401", "403", "other chain", "no node"])
async def test_a_head_that_cannot_be_read_says_why_and_logs_it_once(name: str) -> None:
    now_s = int(time.time())
    async with (
        aiohttp.ClientSession() as session,
        RefusingNode(refusals(now_s)[name], CHAIN_ID, now_s).running() as refusing,
    ):
        heads = Heads(Node(refusing.url, session), CHAIN_ID, ROBINHOOD.contracts, poll_ms=20)
        with capture_logs() as logs:
            async with heads.following():
                await asyncio.sleep(0.2)
                with pytest.raises(NodeFault) as caught:
                    heads.current()
    assert caught.value.remedy
    assert KEY not in caught.value.message
    assert [entry["error"] for entry in logs if "newest" in entry["event"]] == [caught.value.message]
