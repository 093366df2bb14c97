"""Streams of spans over nodes that wait, fail and tell what they were asked."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.span_stream import spans
from roundtrip.chain.blocks.spans import BlockRead
from roundtrip.chain.rpc.client import RpcCall
from support.scripted_chain import ScriptedChain


class CountedWaits:
    """Counts waits and goes on at once."""

    def __init__(self) -> None:
        self.waited_s: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waited_s.append(seconds)
        await asyncio.sleep(0)


def stream(
    made: ScriptedChain,
    first: int = 0,
    last: Callable[[], int] | int | None = None,
    width: Width | None = None,
    **options: Any,
) -> AsyncIterator[list[BlockRead]]:
    """At a clock that stands still."""
    options = {"wait": CountedWaits(), "clock": lambda: 0.0, **options}
    return spans(made, first, made.last if last is None else last, width or Width(), **options)


async def numbers(found: AsyncIterator[list[BlockRead]]) -> list[list[int]]:
    return [[block.ref.number for block in blocks] async for blocks in found]


async def turns() -> None:
    """Lets everything go on that can."""
    for _ in range(50):
        await asyncio.sleep(0)


def asked_for(calls: Sequence[RpcCall]) -> tuple[int, int]:
    """The first and the last block of a span; of what is asked for of a block alone, that one."""
    wanted: Any = calls[0].params[0]
    if calls[0].method == "eth_getBlockByNumber":
        return int(wanted, 16), int(wanted, 16)
    return int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)


def failing(fails: Callable[[int, int], Exception | None]) -> Callable[[Sequence[RpcCall]], Any]:
    """Raises for a span what ``fails`` says."""

    async def before(calls: Sequence[RpcCall]) -> None:
        fault = fails(*asked_for(calls))
        if fault is not None:
            raise fault

    return before
