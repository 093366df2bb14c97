"""Checks over a node alone, as ``roundtrip check`` makes them, with what each asks of the node."""

import statistics
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import aiohttp
import msgspec

from roundtrip.chain.rpc.client import Meter, Node
from roundtrip.config.networks import Network, contracts_from
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.verdict import judge
from roundtrip.library.node_checks import NodeChecks
from roundtrip_development.devnet.node import CHAIN_ID
from roundtrip_development.devnet.world import Built
from support.fixtures import context_for, no_database
from support.gathering import gather_evidence

TIMEOUT_S = 60.0
NOW_S = 2_000_000_000.5
"""The clock of every check: deadlines stand in the calldata, whose bytes cost gas."""


@dataclass(frozen=True, slots=True)
class NodeCosts:
    """What a check asks of its node: HTTP requests, JSON-RPC calls, bytes in both directions, and the time
    that the requests took."""

    requests: int
    calls: int
    up_bytes: int
    down_bytes: int
    node_ms: float

    def text(self) -> str:
        """In a line, without a head."""
        up_kb, down_kb = self.up_bytes / 1000, self.down_bytes / 1000
        return (
            f"{self.requests:3} requests {self.calls:4} calls {up_kb:7.0f} KB up {down_kb:7.0f} KB down"
            f" {self.node_ms:6.0f} ms"
        )


@dataclass(frozen=True, slots=True)
class CountedCheck:
    """``answer``: the API's answer, as JSON decodes it."""

    answer: dict[str, Any]
    costs: NodeCosts


@dataclass(slots=True)
class CountingNode(Node):
    """A client that counts. Requests that run at the same time take their time once."""

    sent: list[bytes] = field(default_factory=list)
    down_bytes: int = 0
    node_s: float = 0.0
    running: int = 0
    started_s: float = 0.0

    async def _post(self, body: bytes, timeout_s: float) -> bytes:
        self.sent.append(body)
        if self.running == 0:
            self.started_s = time.perf_counter()
        self.running += 1
        try:
            answer = await Node._post(self, body, timeout_s)
        finally:
            self.running -= 1
            if self.running == 0:
                self.node_s += time.perf_counter() - self.started_s
        self.down_bytes += len(answer)
        return answer

    def costs(self) -> NodeCosts:
        """Of all requests so far."""
        calls = sum(len(msgspec.json.decode(body, type=list[msgspec.Raw])) for body in self.sent)
        return NodeCosts(len(self.sent), calls, sum(map(len, self.sent)), self.down_bytes, self.node_s * 1000)


@asynccontextmanager
async def counting_node(url: str) -> AsyncIterator[CountingNode]:
    """A client that is closed afterwards."""
    async with aiohttp.ClientSession() as session:
        yield CountingNode(url, session, TIMEOUT_S)


async def run_check(url: str, built: Built, token: str, seed: int = 0) -> CountedCheck:
    """A check of the token over the node at ``url``, with nothing known before it. Checks of the same seed
    draw the same wallets and environments. Raises CallerFault, NodeFault."""
    async with counting_node(url) as node:
        entropy = seed.to_bytes(32, "big")
        checks = NodeChecks(node, network_of(built), lambda: NOW_S, lambda: entropy)
        ran = await checks.run(token, None, False, lambda step: None)
        return CountedCheck(msgspec.to_builtins(ran.answer), node.costs())


async def run_judgement(url: str, built: Built, token: str, seed: int = 0) -> CountedCheck:
    """The same of the service's own check, which finds pools of any key in the logs: its verdict, and what it
    read in each pool."""
    async with context_for(url, built, no_database(), TIMEOUT_S, None) as ctx:
        await ctx.heads.refresh()
        assert isinstance(ctx.node, Node)
        node = CountingNode(url, ctx.node.session, TIMEOUT_S)
        drawn = replace(ctx, node=node, now_s=lambda: NOW_S, entropy=lambda: seed.to_bytes(32, "big"))
        judgement = judge(await gather_evidence(drawn, Address(token), Meter()), POLICY)
        readings = {str(number): asdict(reading) for number, reading in enumerate(judgement.readings)}
        return CountedCheck({"verdict": asdict(judgement.verdict), "pools": readings}, node.costs())


async def run_service_check(url: str, built: Built, token: str) -> NodeCosts:
    """What a check of the service asks, whose head and dialect are known, without an index."""
    async with context_for(url, built, no_database(), TIMEOUT_S, None) as ctx:
        await ctx.heads.refresh()
        assert isinstance(ctx.node, Node)
        node = CountingNode(url, ctx.node.session, TIMEOUT_S)
        await gather_evidence(replace(ctx, node=node, now_s=lambda: NOW_S), Address(token), Meter())
        return node.costs()


def network_of(built: Built) -> Network:
    """The local chain, as its description in a file gives it."""
    return Network(CHAIN_ID, contracts_from(built.contracts), "", None)


def median_costs(costs: Iterable[NodeCosts]) -> NodeCosts:
    """The median of each figure."""
    rows = list(costs)
    requests, calls, up_bytes, down_bytes, node_ms = (
        statistics.median(getattr(row, name) for row in rows) for name in NodeCosts.__slots__
    )
    return NodeCosts(int(requests), int(calls), int(up_bytes), int(down_bytes), node_ms)


def differences(answer: Any, other: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """The fields that differ between two answers, by their paths, with both values. No field is left out."""
    if isinstance(answer, dict) and isinstance(other, dict):
        differing: dict[str, tuple[Any, Any]] = {}
        for name in answer.keys() | other.keys():
            differing |= differences(answer.get(name), other.get(name), f"{path}.{name}".lstrip("."))
        return differing
    return {} if answer == other else {path: (answer, other)}
