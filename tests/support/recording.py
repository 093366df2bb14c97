"""A node that writes down what transfers it was asked for, and may say or do something else in between."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, RpcNode
from roundtrip.domain.base.errors import NodeFault

Answer = msgspec.Raw | RpcError


def says_nothing_else(call: RpcCall) -> Answer | None:
    """For ``instead``."""
    return None


@dataclass
class Recording:
    """In front of ``node``. ``spans``: first and last block of every range of logs that was asked for by
    numbers. ``batched``: every call of a single batch, and whether it counts for the node's budget.
    ``instead``: what is answered to a call in the node's place; None: what the node says."""

    node: RpcNode
    spans: list[tuple[int, int]] = field(default_factory=list)
    batched: list[tuple[RpcCall, bool]] = field(default_factory=list)
    instead: Callable[[RpcCall], Answer | None] = says_nothing_else

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        for call in calls:
            self._note(call)
            self.batched.append((call, budgeted))
        answer = [self.instead(call) for call in calls]
        answers = await self.node.batch(calls, meter, timeout_s, budgeted)
        return [given if one is None else one for one, given in zip(answer, answers, strict=True)]

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[Answer] | NodeFault]:
        for call in (call for group in groups for call in group):
            self._note(call)
        answers = await self.node.batches(groups, meter)
        messages: list[list[Answer] | NodeFault] = []
        for group, given in zip(groups, answers, strict=True):
            if isinstance(given, NodeFault):
                messages.append(given)
                continue
            own = [self.instead(call) for call in group]
            messages.append([one if mine is None else mine for mine, one in zip(own, given, strict=True)])
        return messages

    def _note(self, call: RpcCall) -> None:
        if call.method == "eth_getLogs" and "fromBlock" in (wanted := filter_of(call)):
            self.spans.append((int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)))


def filter_of(call: RpcCall) -> dict[str, Any]:
    """Which logs are asked for."""
    wanted = call.params[0]
    assert isinstance(wanted, dict)
    return wanted
