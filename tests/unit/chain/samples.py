"""Blocks, wallets and answers that several tests of this folder speak of."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from roundtrip.chain.rpc.client import RpcCall
from roundtrip.chain.simulate.request import StepResult
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.check.evidence import Environment
from unit.venues.network import address

PINNED = BlockRef(1_000, "0x" + "ab" * 32, 1_760_000_000)

ENVIRONMENT = Environment(
    buyer=address(0xB0),
    receiver=address(0xB1),
    reader=address(0xB2),
    nonce=17,
    coinbase=address(0xC0),
    prev_randao="0x" + "cd" * 32,
    base_fee_wei=100,
    max_fee_wei=207,
    tip_wei=7,
)
GAS_PRICE_WEI = 107
"""What the wallet pays for a unit of gas there: base fee and tip, which the most it offers allows."""


def raw(value: Any) -> msgspec.Raw:
    """A result as the node's JSON."""
    return msgspec.Raw(msgspec.json.encode(value))


def word(value: int) -> bytes:
    """An integer as a contract returns it."""
    return value.to_bytes(32, "big")


def did(data: bytes | int = b"", gas: int = 30_000) -> StepResult:
    """A call that went through."""
    return StepResult(True, gas, word(data) if isinstance(data, int) else data, False)


def refused(data: bytes = b"", gas: int = 30_000, out_of_gas: bool = False) -> StepResult:
    """A call that reverted."""
    return StepResult(False, gas, data, out_of_gas)


def error_string(text: str) -> bytes:
    """The bytes of Error(string)."""
    body = text.encode()
    padded = body.ljust(-(-len(body) // 32) * 32, b"\0")
    return bytes.fromhex("08c379a0") + word(32) + word(len(body)) + padded


def methods(calls: list[RpcCall]) -> list[str]:
    """What was asked, in order."""
    return [call.method for call in calls]


@contextmanager
def interpreters_recursion_limit() -> Iterator[None]:
    """What is nested too deep raises here as it does in a fresh interpreter: a library that compiles
    contracts lifts the limit so far that C code runs out of stack first."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
