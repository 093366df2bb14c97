"""Who stands before a node: one keeps what is asked, the other holds it against what was asked before."""

import asyncio
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from roundtrip.domain.base.errors import NodeFault

from .client import REVERTED, Meter, RpcCall, RpcError, RpcNode, entries

A = TypeVar("A")

_LEVEL = 1
"""The smallest: ten times as fast as the best, and half as large again."""


@dataclass(slots=True)
class CallRecorder:
    """Asks the node, and keeps the calls: each trip packed while the node works on it."""

    node: RpcNode
    trips: list[bytes] = field(default_factory=list)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        """A trip of one batch."""
        packing, at = asyncio.create_task(_pack([calls])), self._place()
        try:
            return await self.node.batch(calls, meter, timeout_s, budgeted)
        finally:
            self.trips[at] = await packing

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        """A trip of several."""
        packing, at = asyncio.create_task(_pack(groups)), self._place()
        try:
            return await self.node.batches(groups, meter)
        finally:
            self.trips[at] = await packing

    def _place(self) -> int:
        """Of trips at the same time, in the order they were sent."""
        self.trips.append(b"")
        return len(self.trips) - 1


async def _pack(groups: Sequence[Sequence[RpcCall]]) -> bytes:
    """The trip's batches, each request as it is sent, as compressed JSON. The requests go out first."""
    for _ in range(_TURNS_TO_SEND):
        await asyncio.sleep(0)
    return await asyncio.to_thread(pack, groups)


_TURNS_TO_SEND = 3
"""Turns of the loop that several batches at once take to be written out."""


def pack(groups: Sequence[Sequence[RpcCall]]) -> bytes:
    """A trip as compressed JSON."""
    return zlib.compress(msgspec.json.encode([entries(calls) for calls in groups]), _LEVEL)


@dataclass(slots=True)
class CallComparer:
    """Asks the node the caller's own requests, never those it compares them with.

    ``expected``: the trips of another time, as read from JSON. ``parted``: where the two differ first.
    ``calls``: so many requests were the same before. ``failed``: what the node did not answer.
    """

    node: RpcNode
    expected: Sequence[Sequence[Sequence[object]]]
    trip: int = 0
    calls: int = 0
    parted: str | None = None
    failed: str | None = None

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        """A trip of one batch."""
        self._compare([calls])
        try:
            return self._looked_at(await self.node.batch(calls, meter, timeout_s, budgeted))
        except NodeFault as fault:
            self.failed = fault.message
            raise

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        """A trip of several."""
        self._compare(groups)
        return [self._looked_at(told) for told in await self.node.batches(groups, meter)]

    def end(self) -> None:
        """Nothing more is asked: what is left was asked in excess."""
        if self.parted is None and self.trip < len(self.expected):
            self.parted = f"there are {len(self.expected)} trips, and a check makes {self.trip}"

    def _looked_at(self, told: A) -> A:
        """The answers, once it is noted whether the node failed in one."""
        if isinstance(told, NodeFault):
            self.failed = told.message
        elif isinstance(told, list):
            for answer in told:
                if isinstance(answer, RpcError) and answer.code != REVERTED:
                    self.failed = answer.message or f"error {answer.code}"
        return told

    def _compare(self, groups: Sequence[Sequence[RpcCall]]) -> None:
        self.trip += 1
        if self.parted is not None:
            return
        if self.trip > len(self.expected):
            self.parted = f"trip {self.trip} is not there"
            return
        theirs = self.expected[self.trip - 1]
        if len(theirs) != len(groups):
            self.parted = f"trip {self.trip} has {len(theirs)} batches, and a check sends {len(groups)}"
            return
        for number, (calls, told) in enumerate(zip(groups, theirs, strict=True), 1):
            self.parted = self._batch_parts(f"trip {self.trip}, batch {number}", calls, told)
            if self.parted is not None:
                return

    def _batch_parts(self, where: str, calls: Sequence[RpcCall], told: Sequence[object]) -> str | None:
        if len(told) != len(calls):
            return f"{where} has {len(told)} calls, and a check sends {len(calls)}"
        for number, (own, other) in enumerate(zip(entries(calls), told, strict=True), 1):
            if _bytes(own) != _bytes(other):
                path = first_difference(_plain(own), other)
                return f"{where}, call {number} ({own['method']}) differs at {path}"
            self.calls += 1
        return None


def _bytes(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _plain(value: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(value))


_MOST_PATH = 80


def first_difference(own: object, other: object) -> str:
    """The path of the first place where two JSON values differ."""
    path = ""
    while True:
        if isinstance(own, dict) and isinstance(other, dict) and own.keys() == other.keys():
            key = next((key for key in own if _bytes(own[key]) != _bytes(other[key])), None)
            step = f".{key}"
        elif isinstance(own, list) and isinstance(other, list) and len(own) == len(other):
            key = next((n for n in range(len(own)) if _bytes(own[n]) != _bytes(other[n])), None)
            step = f"[{key}]"
        else:
            return (path or ".")[:_MOST_PATH]
        if key is None:
            return (path or ".")[:_MOST_PATH]
        own, other, path = own[key], other[key], path + step
