"""What a second node is worth where the first one stalls: small reads, hedged and not.

    PYTHONPATH=src:tests python -m bench.nodes [--reads 200]

Two scripted nodes on loopback that answer from memory; the first keeps one answer in twenty back for 300 ms.
Prints medians, 95th percentiles and what a second node was asked; compare the ratios.
"""

import argparse
import asyncio
import statistics
import time

import aiohttp
import uvloop

from roundtrip.chain.rpc.client import Node, RpcCall, RpcNode
from roundtrip.chain.rpc.endpoints import Hedging, NodeUrl
from roundtrip.chain.rpc.node_pool import NodePool
from support.nodes import QuirkyNode

CHAIN_ID = 4663
ONE_IN, STALL_S = 20, 0.3
READS = [RpcCall("eth_chainId", [])] * 3


class Unhedged(Hedging):
    """Never asks twice."""

    def take(self) -> bool:
        """Never."""
        return False


class MemoryNode(QuirkyNode):
    """Answers every call with the chain id, without another node behind it."""

    async def answered(self, body: list[dict[str, object]]) -> list[dict[str, object]]:
        """The answers."""
        return [{"jsonrpc": "2.0", "id": call["id"], "result": hex(CHAIN_ID)} for call in body]


async def times_ms(node: RpcNode, reads: int) -> list[float]:
    """Of small reads one after another."""
    found = []
    for _ in range(reads):
        started = time.perf_counter()
        await node.batch(READS)
        found.append((time.perf_counter() - started) * 1000)
    return found


def p95(times: list[float]) -> float:
    """The 95th percentile, in ms."""
    return sorted(times)[int(len(times) * 0.95)]


async def measure(reads: int) -> None:
    """Plainly, over two without hedges, over two with them; each three times, and the middle one counts."""
    rows: dict[str, list[tuple[list[float], int]]] = {}
    for _ in range(3):
        for name in ("one node", "two, not hedged", "two, hedged"):
            async with (
                MemoryNode("").running() as first,
                MemoryNode("").running() as second,
                aiohttp.ClientSession() as session,
            ):
                assert isinstance(first, MemoryNode)
                assert isinstance(second, MemoryNode)
                first.stalls = lambda nth: STALL_S if nth % ONE_IN == ONE_IN - 1 else 0.0
                nodes = NodePool([NodeUrl(first.url), NodeUrl(second.url)], session, CHAIN_ID)
                if name == "two, not hedged":
                    nodes.hedging = Unhedged()
                asked: RpcNode = Node(first.url, session) if name == "one node" else nodes
                found = await times_ms(asked, reads)
                rows.setdefault(name, []).append((found, len(second.sent)))
    middle = {name: sorted(runs, key=lambda run: p95(run[0]))[1] for name, runs in rows.items()}
    base = p95(middle["two, not hedged"][0])
    for name, (found, beside) in middle.items():
        worst = max(found)
        print(
            f"{name:16} median {statistics.median(found):7.2f} ms   p95 {p95(found):7.2f} ms   "
            f"worst {worst:7.2f} ms   p95 is {p95(found) / base:.3f}x   {beside} asked of the second"
        )


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=200)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(parser.parse_args().reads))


if __name__ == "__main__":
    main()
