"""Who stands before a node: what is kept is what was sent, and any difference is found."""

import copy
import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError
from roundtrip.chain.rpc.recorder import CallComparer, CallRecorder
from roundtrip.domain.base.errors import NodeFault

CODE = RpcCall("eth_getCode", ["0x11", {"blockHash": "0xab"}])
SIMULATED = RpcCall(
    "eth_simulateV1", [{"blockStateCalls": [{"calls": [{"gas": "0x1"}]}], "validation": True}]
)
CHAIN = RpcCall("eth_chainId", [])


class NotingNode:
    """A node that notes what reaches it."""

    def __init__(self) -> None:
        self.reached: list[list[RpcCall]] = []

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        self.reached.append(list(calls))
        return [msgspec.Raw(b'"0x1"')] * len(calls)

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        return [await self.batch(calls, meter) for calls in groups]


def _count(told: list[msgspec.Raw | RpcError] | NodeFault) -> int:
    assert not isinstance(told, NodeFault)
    return len(told)


async def asked(node: CallRecorder | CallComparer) -> None:
    """Two trips: two batches at once, then one."""
    assert [*map(_count, await node.batches([[CODE, CHAIN], [SIMULATED]], Meter()))] == [2, 1]
    assert len(await node.batch([CHAIN])) == 1


async def kept() -> list[Any]:
    recording = CallRecorder(NotingNode())
    await asked(recording)
    return [json.loads(zlib.decompress(trip)) for trip in recording.trips]


async def test_what_is_kept_is_what_is_sent() -> None:
    code = {"jsonrpc": "2.0", "id": 0, "method": "eth_getCode", "params": ["0x11", {"blockHash": "0xab"}]}
    chain = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
    trips = await kept()
    assert trips[0][0] == [code, chain]
    assert trips[0][1][0]["params"][0]["validation"] is True
    assert trips[1] == [[{**chain, "id": 0}]]


async def test_what_was_asked_is_kept_where_the_node_failed() -> None:
    class Gone(NotingNode):
        async def batch(self, *asked: Any, **how: Any) -> list[msgspec.Raw | RpcError]:
            raise NodeFault("gone")

    recording = CallRecorder(Gone())
    with pytest.raises(NodeFault):
        await recording.batch([CHAIN])
    assert len(recording.trips) == 1


async def test_the_same_again_does_not_part() -> None:
    comparing = CallComparer(NotingNode(), await kept())
    await asked(comparing)
    comparing.end()
    assert (comparing.difference, comparing.calls, comparing.trip) == (None, 4, 2)


Change = Callable[[list[Any]], object]
CHANGES: dict[str, tuple[Change, str]] = {
    "another method": (
        lambda t: t[0][0][0].update(method="eth_sendRawTransaction"),
        "round 1, batch 1, call 1 (eth_getCode) differs at .method",
    ),
    "another parameter": (
        lambda t: t[0][0][0]["params"][1].update(blockHash="0xac"),
        "round 1, batch 1, call 1 (eth_getCode) differs at .params[1].blockHash",
    ),
    "a number for a truth": (
        lambda t: t[0][1][0]["params"][0].update(validation=1),
        "round 1, batch 2, call 1 (eth_simulateV1) differs at .params[0].validation",
    ),
    "a step more": (
        lambda t: t[0][1][0]["params"][0]["blockStateCalls"][0]["calls"].append({}),
        "round 1, batch 2, call 1 (eth_simulateV1) differs at .params[0].blockStateCalls[0].calls",
    ),
    "another id": (
        lambda t: t[0][0][1].update(id=7),
        "round 1, batch 1, call 2 (eth_chainId) differs at .id",
    ),
    "a call less": (lambda t: t[0][0].pop(), "round 1, batch 1 has 1 calls, and a check sends 2"),
    "a batch more": (lambda t: t[1].append([]), "round 2 has 2 batches, and a check sends 1"),
    "a trip less": (lambda t: t.pop(), "round 2 is missing"),
    "a trip more": (lambda t: t.append([[]]), "the file has 3 rounds, and a check sends 2"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_every_change_is_found_and_nothing_of_it_is_sent(name: str) -> None:
    change, answer = CHANGES[name]
    trips = copy.deepcopy(await kept())
    change(trips)
    node = NotingNode()
    comparing = CallComparer(node, trips)
    await asked(comparing)
    comparing.end()
    assert comparing.difference == answer
    assert node.reached == [[CODE, CHAIN], [SIMULATED], [CHAIN]]
