"""A node's own time for a token's logs: requested in ranges, received, and not parsed.

    PYTHONPATH=src python -m bench.plain_logs [--transfers 100000] [--reuse]

For answers of 500 to 10,000 logs, one after another and four at once: the most that a node gives, and how
wide a range should be. ``parsed``: with each answer parsed into objects besides, which is the least that a
reader has to do.
"""

import argparse
import http.client
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from .crowd_token import CrowdToken, build, started

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
SWAP_V3 = "0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67"
LOGS_AN_ANSWER = (500, 2000, 4000, 10_000)
AT_ONCE = (1, 4)


class _Log(msgspec.Struct):
    """What a reader needs of a log."""

    address: str
    topics: list[str]
    data: str
    block_number: str = msgspec.field(name="blockNumber")
    block_hash: str = msgspec.field(name="blockHash")
    timestamp: str = msgspec.field(name="blockTimestamp")
    transaction: str = msgspec.field(name="transactionHash")
    log_index: str = msgspec.field(name="logIndex")
    removed: bool


class _Answer(msgspec.Struct):
    result: list[_Log]


@dataclass(frozen=True, slots=True)
class Plain:
    """What was received, and how long it took."""

    logs: int
    answers: int
    size: int
    seconds: float

    def said(self) -> str:
        """In figures."""
        return (
            f"{self.seconds / self.logs * 1e6:5.1f} us a log   {self.logs / self.answers:7,.0f} logs and"
            f" {self.size / self.answers / 2**20:5.2f} MB an answer   {self.seconds:6.2f} s in all"
        )


class Reader:
    """Asks one node from several threads, each with a connection of its own."""

    def __init__(self, url: str, found: CrowdToken) -> None:
        self._where, self._found = urlsplit(url).netloc, found
        self._local = threading.local()

    def body(self, first: int, last: int) -> bytes:
        """The request for a range: the token's transfers and its pool's trades."""
        asked = {
            "fromBlock": hex(first),
            "toBlock": hex(last),
            "address": [self._found.token, self._found.pool],
            "topics": [[TRANSFER, SWAP_V3]],
        }
        return json.dumps([{"jsonrpc": "2.0", "id": 0, "method": "eth_getLogs", "params": [asked]}]).encode()

    def post(self, body: bytes) -> bytes:
        """The answer's bytes."""
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection(self._where, timeout=120)
        self._local.connection.request("POST", "/", body, {"content-type": "application/json"})
        answer: bytes = self._local.connection.getresponse().read()
        return answer

    def read(self, width: int, at_once: int, look: Callable[[bytes], object]) -> Plain:
        """All of the token's blocks in ranges of ``width``."""
        found = self._found
        bodies = [
            self.body(first, min(first + width - 1, found.last_number))
            for first in range(found.first_number, found.last_number + 1, width)
        ]

        def one(body: bytes) -> tuple[int, int]:
            answer = self.post(body)
            look(answer)
            return len(answer), answer.count(b'"logIndex"')

        began = time.perf_counter()
        with ThreadPoolExecutor(at_once) as asking:
            sizes = list(asking.map(one, bodies))
        seconds = time.perf_counter() - began
        return Plain(sum(logs for _, logs in sizes), len(bodies), sum(size for size, _ in sizes), seconds)


def measure(url: str, found: CrowdToken) -> None:
    """Prints every figure."""
    reader = Reader(url, found)
    decoder = msgspec.json.Decoder(list[_Answer])
    logs_a_block = found.made * 1.1 / (found.last_number - found.first_number + 1)
    for logs in LOGS_AN_ANSWER:
        width = max(1, round(logs / logs_a_block))
        for at_once in AT_ONCE:
            print(
                f"{at_once} at once, {width:5} blocks   {reader.read(width, at_once, len).said()}", flush=True
            )
        print(f"parsed,    {width:5} blocks   {reader.read(width, 1, decoder.decode).said()}", flush=True)


def main() -> None:
    """Builds or finds the chain, and measures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transfers", type=int, default=100_000)
    parser.add_argument("--reuse", action="store_true")
    asked = parser.parse_args()
    built, found = build(asked.transfers, asked.reuse, print)
    with started(built) as node:
        measure(node.url, found)


if __name__ == "__main__":
    main()
