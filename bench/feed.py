"""How soon the feed hints at a new block: over the websocket, and by polling.

    python -m bench.feed [--seconds 20]

A local chain makes ten blocks a second. All feeds listen at once; a block's time counts from when the first
of them all heard of it. Prints medians and 95th percentiles; compare the ratios: machines are noisy.
"""

import argparse
import asyncio
import contextlib
import math
import statistics
import time
from pathlib import Path

import aiohttp

from roundtrip.chain.blocks.head_feed import Feed
from roundtrip.chain.rpc.client import Node
from roundtrip_development.devnet.node import NodeOptions, find_anvil, running

PROJECT = Path(__file__).resolve().parents[1]
FEEDS = {"websocket": None, "polling 50 ms": 50, "polling 200 ms": 200}


async def listen(feed: Feed, heard: dict[int, float]) -> None:
    """When each block was hinted at, by its taker's clock; one that was passed over counts with the next."""
    number = (await feed.next(-1)).number
    while True:
        hint = await feed.next(number)
        now_s = time.monotonic()
        heard.update(dict.fromkeys(range(number + 1, hint.number + 1), now_s))
        number = hint.number


def figures(times_ms: list[float]) -> str:
    """Median and 95th percentile."""
    ordered = sorted(times_ms)
    return f"median {statistics.median(ordered):7.2f} ms   p95 {ordered[int(len(ordered) * 0.95)]:7.2f} ms"


async def measure(url: str, seconds: float) -> None:
    """All feeds at once, and then what each heard."""
    found: dict[str, dict[int, float]] = {name: {} for name in FEEDS}
    async with aiohttp.ClientSession() as session, contextlib.AsyncExitStack() as stack:
        listening = []
        for name, poll_ms in FEEDS.items():
            ws_url = url.replace("http", "ws", 1) if poll_ms is None else None
            feed = Feed(Node(url, session), ws_url, session, poll_ms or 200)
            await stack.enter_async_context(feed.open())
            listening.append(listen(feed, found[name]))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*listening)
    common = sorted(set.intersection(*(set(heard) for heard in found.values())))[5:]
    first = {number: min(heard.get(number, math.inf) for heard in found.values()) for number in common}
    print(f"{len(common)} blocks")
    for name, heard in found.items():
        print(f"{name:16} {figures([(heard[number] - first[number]) * 1000 for number in common])}")


def main() -> None:
    """Starts the chain and measures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    with running(find_anvil(PROJECT), NodeOptions(block_time_s=0.1)) as node:
        asyncio.run(measure(node.url, asked.seconds))


if __name__ == "__main__":
    main()
