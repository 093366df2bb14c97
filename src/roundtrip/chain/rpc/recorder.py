"""Wrappers around a node: one records the calls, the other compares them with a recording."""

import asyncio
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from roundtrip.domain.base.errors import NodeFault

from .client import REVERTED, Answer, Meter, RpcCall, RpcError, RpcNode, entries

A = TypeVar("A")

_LEVEL = 1
"""The fastest: ten times as fast as the best compression, and half as large again."""


@dataclass(slots=True)
class CallRecorder:
    """Sends calls to the node and records them: each trip is packed while the node works on it."""

    node: RpcNode
    trips: list[bytes] = field(default_factory=list)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        """A trip of one batch."""
        calls = _encode_simulations(calls)
        packing, index = asyncio.create_task(_pack([calls])), self._reserve_trip()
        try:
            return await self.node.batch(calls, meter, timeout_s, budgeted)
        finally:
            self.trips[index] = await packing

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[Answer] | NodeFault]:
        """A trip of several batches."""
        groups = [_encode_simulations(calls) for calls in groups]
        packing, index = asyncio.create_task(_pack(groups)), self._reserve_trip()
        try:
            return await self.node.batches(groups, meter)
        finally:
            self.trips[index] = await packing

    def _reserve_trip(self) -> int:
        """The trip's index: trips that overlap are kept in the order they were sent."""
        self.trips.append(b"")
        return len(self.trips) - 1


def _encode_simulations(calls: Sequence[RpcCall]) -> list[RpcCall]:
    """The calls, those that are large as JSON: it is sent and packed."""
    return [
        RpcCall(call.method, msgspec.Raw(msgspec.json.encode(call.params)))
        if call.method == "eth_simulateV1"
        else call
        for call in calls
    ]


async def _pack(groups: Sequence[Sequence[RpcCall]]) -> bytes:
    """Packs a trip, once its requests are on their way."""
    for _ in range(TURNS_TO_SEND):
        await asyncio.sleep(0)
    return await asyncio.to_thread(pack, groups)


TURNS_TO_SEND = 3
"""Turns of the event loop that it takes to send several batches at once."""


def pack(groups: Sequence[Sequence[RpcCall]]) -> bytes:
    """A trip's batches, with each request as it is sent, as compressed JSON."""
    return zlib.compress(msgspec.json.encode([entries(calls) for calls in groups]), _LEVEL)


@dataclass(slots=True)
class CallComparer:
    """Sends the caller's requests to the node, never the recorded ones, and compares the two.

    ``expected``: the recorded trips, as read from JSON. ``difference``: the first difference. ``calls``: how
    many requests were equal before it. ``failed``: why the node did not answer.
    """

    node: RpcNode
    expected: Sequence[Sequence[Sequence[object]]]
    trip: int = 0
    calls: int = 0
    difference: str | None = None
    failed: str | None = None

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        """A trip of one batch."""
        self._compare([calls])
        try:
            return self._note_failures(await self.node.batch(calls, meter, timeout_s, budgeted))
        except NodeFault as fault:
            self.failed = fault.message
            raise

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[Answer] | NodeFault]:
        """A trip of several batches."""
        self._compare(groups)
        return [self._note_failures(answers) for answers in await self.node.batches(groups, meter)]

    def end(self) -> None:
        """Ends the comparison: trips that were recorded and not made are a difference."""
        if self.difference is None and self.trip < len(self.expected):
            self.difference = f"the file has {len(self.expected)} rounds, and a check sends {self.trip}"

    def _note_failures(self, answers: A) -> A:
        """Returns the answers unchanged, after noting whether the node failed in one."""
        if isinstance(answers, NodeFault):
            self.failed = answers.message
        elif isinstance(answers, list):
            for answer in answers:
                if isinstance(answer, RpcError) and answer.code != REVERTED:
                    self.failed = answer.message or f"error {answer.code}"
        return answers

    def _compare(self, groups: Sequence[Sequence[RpcCall]]) -> None:
        self.trip += 1
        if self.difference is not None:
            return
        if self.trip > len(self.expected):
            self.difference = f"round {self.trip} is missing"
            return
        recorded = self.expected[self.trip - 1]
        if len(recorded) != len(groups):
            self.difference = (
                f"round {self.trip} has {len(recorded)} batches, and a check sends {len(groups)}"
            )
            return
        for number, (calls, recorded_calls) in enumerate(zip(groups, recorded, strict=True), 1):
            where = f"round {self.trip}, batch {number}"
            self.difference = self._compare_batch(where, calls, recorded_calls)
            if self.difference is not None:
                return

    def _compare_batch(self, where: str, calls: Sequence[RpcCall], recorded: Sequence[object]) -> str | None:
        if len(recorded) != len(calls):
            return f"{where} has {len(recorded)} calls, and a check sends {len(calls)}"
        for number, (entry, recorded_entry) in enumerate(zip(entries(calls), recorded, strict=True), 1):
            if _canonical(entry) != _canonical(recorded_entry):
                path = first_difference(msgspec.json.decode(msgspec.json.encode(entry)), recorded_entry)
                return f"{where}, call {number} ({entry['method']}) differs at {path}"
            self.calls += 1
        return None


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


_MAX_PATH = 80


def first_difference(value: object, other: object) -> str:
    """The path of the first place where two JSON values differ."""
    path = ""
    while True:
        if isinstance(value, dict) and isinstance(other, dict) and value.keys() == other.keys():
            key = next((key for key in value if _canonical(value[key]) != _canonical(other[key])), None)
            step = f".{key}"
        elif isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
            key = next((n for n in range(len(value)) if _canonical(value[n]) != _canonical(other[n])), None)
            step = f"[{key}]"
        else:
            return (path or ".")[:_MAX_PATH]
        if key is None:
            return (path or ".")[:_MAX_PATH]
        value, other, path = value[key], other[key], path + step
