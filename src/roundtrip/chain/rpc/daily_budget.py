"""A node with a day's budget of calls beside the service's: what may use very many has its own."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from roundtrip.domain.base.errors import NodeFault

from .client import Budget, Meter, RpcCall, RpcError, RpcNode


@dataclass(frozen=True, slots=True)
class OwnBudget:
    """Asks ``node`` and takes every call off ``budget``, and none off the node's own; off the node's where
    ``budget`` has no limit: else nothing would bound them. ``clock``: seconds since 1970. ``counts_all``:
    off the node's also what others ask it for nothing."""

    node: RpcNode
    budget: Budget
    clock: Callable[[], float]
    counts_all: bool = False

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        """As ``Node.batch``, ``budgeted`` or not. Raises ServiceFull (budget_spent) when its budget is
        spent."""
        self.budget.spend(len(calls), self.clock())
        is_nodes = (budgeted or self.counts_all) and not self.budget.calls_per_day
        return await self.node.batch(calls, meter, timeout_s, budgeted=is_nodes)

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        """As ``Node.batches``."""
        own = [Meter() for _ in groups]
        asked = (self.batch(group, one) for group, one in zip(groups, own, strict=True))
        found = await asyncio.gather(*asked, return_exceptions=True)
        meter.add(*own)
        answers: list[list[msgspec.Raw | RpcError] | NodeFault] = []
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, NodeFault):
                raise one
            answers.append(one)
        return answers
