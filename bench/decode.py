"""Measures how fast logs are decoded, beside eth_abi.

    python -m bench.decode [--logs 20000]

Prints thousands of logs a second for each frequent event. Compare the ratios: machines are noisy.
"""

import argparse
import time
from collections.abc import Callable

from eth_abi.abi import decode, encode

from roundtrip.config.networks import ROBINHOOD
from roundtrip.venues import amm_v3, amm_v4, erc20, launchpad_curve
from roundtrip.venues.base import Log
from roundtrip.venues.decode import Decoder

ROUNDS = 5
EVENTS: dict[str, tuple[str, int, tuple[str, ...], tuple[int, ...]]] = {
    "v3 swap": (amm_v3.SWAP, 2, ("int256", "int256", "uint160", "uint128", "int24"),
                (-(10**21), 10**18, 2**96, 10**22, -5)),
    "v4 swap": (amm_v4.SWAP, 2, ("int128", "int128", "uint160", "uint128", "int24", "uint24"),
                (-(10**21), 10**18, 2**96, 10**22, -5, 3000)),
    "transfer": (erc20.TRANSFER_TOPIC, 2, ("uint256",), (10**18,)),
    "curve buy": (launchpad_curve.CURVE_BUY, 2, ("uint256",) * 4, (10**18, 10**24, 10**16, 0)),
    "unknown event": ("0x" + "ab" * 32, 2, ("uint256",), (1,)),
}  # fmt: skip
"""First topic, how many addresses follow it, and the types and values of the data."""


def logs_of(topic: str, types: tuple[str, ...], values: tuple[int, ...], count: int) -> list[Log]:
    """Logs as they come off the wire: no two share a string."""
    data = encode(types, values)
    sender = ROBINHOOD.contracts.v4_pool_manager
    return [
        Log(sender, ("".join([topic]), f"0x{2 * n:064x}", f"0x{2 * n + 1:064x}"), bytes(bytearray(data)))
        for n in range(count)
    ]


def rate(read: Callable[[Log], object], logs: list[Log]) -> float:
    """Logs a second, the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for log in logs:
            read(log)
        best = min(best, time.perf_counter() - started)
    return len(logs) / best


def plainly(types: tuple[str, ...], indexed: int) -> Callable[[Log], object]:
    """The same log, read by eth_abi: its data, and its topics as addresses."""

    def read(log: Log) -> object:
        addresses = [decode(["address"], bytes.fromhex(topic[2:])) for topic in log.topics[1 : 1 + indexed]]
        return addresses, decode(types, log.data)

    return read


def main() -> None:
    """One line an event."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=20_000)
    count = parser.parse_args().logs
    decoder = Decoder(ROBINHOOD.contracts)
    for name, (topic, indexed, types, values) in EVENTS.items():
        logs = logs_of(topic, types, values, count)
        assert (decoder(logs[0]) is None) is (topic not in decoder.topics)
        ours, other = rate(decoder, logs), rate(plainly(types, indexed), logs[: count // 10])
        k_ours, k_other = ours / 1000, other / 1000
        print(f"{name:10} {k_ours:7.0f} thousand/s   eth_abi {k_other:5.0f}   ratio {ours / other:5.1f}")


if __name__ == "__main__":
    main()
