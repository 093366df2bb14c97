"""What a person reads where a node refuses: over real HTTP, with the real commands."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from roundtrip.app.build import examine_nodes
from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.client import Node
from roundtrip.cli import judging
from roundtrip.config.networks import CHAIN_ID, ROBINHOOD
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import CallerFault
from roundtrip.library.node_checks import check_network
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.system.status import health
from support.refusing_node import KEY, NO_SIMULATIONS, Refusal, RefusingNode, refusals

_MAX_REQUESTS = 4
"""The newest block, the network's contracts, the price of eth and the probe."""
TOKEN = "0x" + "1" * 40
LIMITS = 'The node limits our calls (HTTP status 429, error -32005 "rate limit exceeded, see …"): '
SENTENCES = {
    "429, long wait": f"{LIMITS}wait 60 s, or use another node or a key of your own.",
    "429": f"{LIMITS}wait a minute, or use another node or a key of your own.",
    "401": "The node asks for a valid key (HTTP status 401, error -32000 "
    '"Must be authenticated! Invalid key …"): check the key in its URL, or use another node.',
    "403": 'The node refuses access (HTTP status 403 "Attention Required! | Cloudflare"): '
    "check the key in its URL, or use another node.",
    "502": 'The node\'s server fails (HTTP status 502 "502 Bad Gateway"): '
    "retry in a minute, or use another node.",
    "no simulations": f'The node does not serve eth_simulateV1 (error -32601 "{NO_SIMULATIONS}"): '
    "use a node that serves it.",
    "crashed": 'The node failed to simulate (error -32603 "method handler crashed"): '
    "retry in a minute, or use another node.",
    "other chain": f"The node is on chain 1, not {CHAIN_ID}: use a node of chain {CHAIN_ID}.",
    "no node": 'The URL answers, but not as a node (HTTP status 200 "Welcome"): check the URL.',
    "no batch": 'The node refuses a request of this size (error -32600 "batch too large"): '
    "use a node that takes larger requests.",
    "empty": "The node sent an empty answer (HTTP status 200): check the URL, or use another node.",
    "unknown form": "The node's simulation errors have an unknown form (a revert came back with error -31999 "
    '"EVM revert instruction", out of gas with error -31998 "no gas left"): '
    "use a node of geth, Nitro or anvil.",
}


def refusing(name: str, refused: int | None = None) -> RefusingNode:
    now_s = int(time.time())
    return RefusingNode(refusals(now_s)[name], CHAIN_ID, now_s, refused)


@pytest.mark.parametrize("name", SENTENCES)
async def test_check_says_what_the_node_did_and_exits_with_3(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with refusing(name).running() as node:
        code = await asyncio.to_thread(judging.run, "check", [TOKEN, "--rpc", node.url])
    shown = capfd.readouterr()
    assert (code, shown.out, shown.err) == (
        3, f"UNKNOWN  {TOKEN}  {SENTENCES[name]} This is not a pass.\n", ""
    )  # fmt: skip
    assert node.requests <= _MAX_REQUESTS


async def test_no_address_is_checked_without_simulations(capfd: pytest.CaptureFixture[str]) -> None:
    """Nor weth, for which reads would do: a service refuses it, too."""
    async with refusing("no simulations").running() as node:
        code = await asyncio.to_thread(judging.run, "check", [ROBINHOOD.contracts.weth, "--rpc", node.url])
    assert (code, SENTENCES["no simulations"] in capfd.readouterr().out) == (3, True)


async def test_only_a_node_of_the_right_chain_is_blamed_for_missing_contracts() -> None:
    async with aiohttp.ClientSession() as session:
        async with refusing("other chain").running() as node:
            await check_network(Node(node.url, session), ROBINHOOD)
        empty = Refusal(methods={"eth_getCode": {"result": "0x"}})
        async with RefusingNode(empty, CHAIN_ID, 0).running() as node:
            with pytest.raises(CallerFault, match="has none of this network's contracts"):
                await check_network(Node(node.url, session), ROBINHOOD)


async def test_check_waits_once_as_long_as_the_node_says(capfd: pytest.CaptureFixture[str]) -> None:
    """Two requests are sent at once, and both are refused."""
    async with refusing("429, wait", refused=2).running() as node:
        started = time.monotonic()
        code = await asyncio.to_thread(judging.run, "check", [TOKEN, "--rpc", node.url])
    assert time.monotonic() - started >= 1
    assert code == 3
    assert "The node does not serve eth_simulateV1" in capfd.readouterr().out


async def test_simulate_says_it_too(capfd: pytest.CaptureFixture[str]) -> None:
    named = ["--from", TOKEN, "--to", TOKEN]
    async with refusing("no simulations").running() as node:
        code = await asyncio.to_thread(judging.run, "simulate", [*named, "--rpc", node.url])
    first_line = capfd.readouterr().out.splitlines()[0]
    assert (code, first_line) == (3, f"UNKNOWN   {SENTENCES['no simulations']} This is not a pass.")


@pytest.mark.parametrize(
    ("name", "what"),
    [("401", "chain id"), ("no simulations", "eth_simulateV1"), ("unknown form", "eth_simulateV1"),
     ("other chain", "eth_simulateV1"), ("429", "eth_simulateV1")],
)  # fmt: skip
async def test_the_doctor_says_it(name: str, what: str) -> None:
    async with refusing(name).running() as node:
        settings = Settings(network="robinhood", rpc_url=node.url)
        ((_, rows),) = await examine_nodes(settings, ROBINHOOD)
    shown = {row.what: row for row in rows}
    assert (shown[what].state, shown[what].seen) == ("missing", SENTENCES[name])
    assert KEY not in "".join(row.seen for row in rows)


@pytest.mark.parametrize(
    ("name", "what"), [("401", "node"), ("no simulations", "simulations"), ("crashed", "simulations")]
)
async def test_health_says_it(name: str, what: str) -> None:
    class NoDatabase:
        async def acquire(self, **_: Any) -> None:
            raise OSError

    async with refusing(name).running() as node, aiohttp.ClientSession() as session:
        heads = Heads(Node(node.url, session), CHAIN_ID, ROBINHOOD.contracts)
        async with heads.following():
            ctx = SimpleNamespace(heads=heads, lacks=tuple, pool=NoDatabase(), policy=None)
            answer = (await health(cast(Context, ctx), Nothing())).answer
    assert answer.ok is False
    assert {lack.what: lack.costs for lack in answer.lacks}[what] == f"every check. {SENTENCES[name]}"
