"""How long blocks and all their logs take to be read and checked, beside only asking for them.

    python bench/spans.py [--logs 50000] [--rounds 5]

Two chains: the local one, over HTTP, and one made up in memory with many logs a block, where only the work
in this process counts, in time of the processor. Prints medians; compare the ratios: machines are noisy.
"""

import argparse
import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.span_stream import spans
from roundtrip.chain.blocks.spans import check_answers, read_span
from roundtrip.chain.rpc.client import Meter, Node, RpcCall, RpcError, RpcNode, quantity
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT / "tests"))

from support.scripted_chain import ScriptedChain  # noqa: E402

LOGS_A_BLOCK = 60
SPAN = 40
WORDS = 4_000
"""As many wallets, pools and tokens as have a busy day."""


def calls_of(first: int, last: int) -> list[RpcCall]:
    """What a span asks for."""
    wanted = RpcCall("eth_getLogs", [{"fromBlock": hex(first), "toBlock": hex(last)}])
    return [wanted] + [
        RpcCall("eth_getBlockByNumber", [hex(number), True]) for number in range(first, last + 1)
    ]


async def plainly(node: RpcNode, first: int, last: int) -> None:
    """The same calls, their JSON read and nothing checked."""
    _decoded(await node.batch(calls_of(first, last), budgeted=False))


async def median_ms(
    work: Callable[[], Awaitable[object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Of so many rounds, after one that warms up."""
    times: list[float] = []
    for _ in range(rounds + 1):
        started = clock()
        await work()
        times.append((clock() - started) * 1000)
    return statistics.median(times[1:])


def told(name: str, ms: float, logs: int, plain_ms: float) -> None:
    print(f"{name:44} {ms:8.1f} ms  {logs / ms * 1000:10,.0f} logs/s  {ms / plain_ms:5.2f} x plain")


async def local(rounds: int) -> None:
    """The local chain's whole past."""
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    with world.start_world(places, built, NodeOptions(state=built.state)) as running:
        async with aiohttp.ClientSession() as session:
            node = Node(running.url, session, 60.0)
            head = (await node.batch([RpcCall("eth_getBlockByNumber", ["latest", False])]))[0]
            assert not isinstance(head, RpcError)
            last = quantity(msgspec.json.decode(head, type=dict[str, msgspec.Raw])["number"])
            logs = sum(len(block.entries) for block in await read_span(node, 0, last))

            async def streamed() -> None:
                async for _ in spans(node, 0, last, Width()):
                    pass

            async def counted() -> None:
                await plainly(node, 0, last)

            print(f"the local chain: {last + 1} blocks, {logs} logs")
            plain_ms = await median_ms(counted, rounds)
            told("  asked for and read as JSON", plain_ms, logs, plain_ms)
            told("  one span", await median_ms(lambda: read_span(node, 0, last), rounds), logs, plain_ms)
            told("  a stream of spans", await median_ms(streamed, rounds), logs, plain_ms)


async def made_up(most: int, rounds: int, words: int) -> None:
    """A chain in memory; its answers are made before the clock runs."""
    chain = ScriptedChain(7, max(SPAN, most // LOGS_A_BLOCK), 2 * LOGS_A_BLOCK, words)
    logs = sum(map(len, chain.logs))
    answers: list[tuple[range, list[msgspec.Raw | RpcError]]] = []
    for first in range(0, chain.last + 1, SPAN):
        numbers = range(first, min(first + SPAN, chain.last + 1))
        answers.append((numbers, await chain.batch(calls_of(numbers[0], numbers[-1]), Meter())))
    size = sum(len(bytes(one)) for _, group in answers for one in group if not isinstance(one, RpcError))
    last = chain.last
    print(f"made up, topics of {words or 'ever new'} words: {last + 1} blocks, {logs} logs,")
    print(f"  {size / 2**20:.0f} MB, {SPAN} blocks a span")
    # The chain itself is no part of what a sync holds: it is kept out of collections.
    del chain
    gc.collect()
    gc.freeze()
    longest = 0.0

    async def read() -> None:
        nonlocal longest
        for numbers, (found, *blocks) in answers:
            longest = max(longest, _longest_hold_s(check_answers([found], blocks, numbers)))

    async def json_only() -> None:
        for _, group in answers:
            _decoded(group)

    plain_ms = await median_ms(json_only, rounds, time.process_time)
    told("  read as JSON", plain_ms, logs, plain_ms)
    told("  read and checked", await median_ms(read, rounds, time.process_time), logs, plain_ms)
    print(f"  longest hold of the event loop: {longest * 1000:.1f} ms")


def _longest_hold_s(reading: Coroutine[Any, Any, object]) -> float:
    """Runs it to its end; the longest it went on without letting others have their turn."""
    longest = 0.0
    while True:
        started = time.process_time()
        try:
            reading.send(None)
        except StopIteration:
            return longest
        finally:
            longest = max(longest, time.process_time() - started)


def _decoded(group: Sequence[msgspec.Raw | RpcError]) -> None:
    for answer in group:
        if not isinstance(answer, RpcError):
            msgspec.json.decode(answer)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    await local(given.rounds)
    await made_up(given.logs, given.rounds, WORDS)
    await made_up(given.logs, given.rounds, 0)


if __name__ == "__main__":
    asyncio.run(main())
