"""A node with its own daily budget of calls, for work that may use very many."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roundtrip.domain.base.errors import NodeFault

from .client import Answer, Budget, Meter, RpcCall, RpcNode, send_each


@dataclass(frozen=True, slots=True)
class BudgetedNode:
    """Sends calls to ``node`` and counts them in ``budget`` instead of the node's own budget. Where
    ``budget`` has no limit they count in the node's, so that something bounds them. ``clock``: seconds since
    1970. ``counts_all``: then count calls that are not ``budgeted``, too."""

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
    ) -> list[Answer]:
        """As ``Node.batch``, ``budgeted`` or not. Raises ServiceFull with the code of the spent budget."""
        self.budget.spend(len(calls), self.clock())
        in_node_budget = (budgeted or self.counts_all) and not self.budget.calls_per_day
        return await self.node.batch(calls, meter, timeout_s, budgeted=in_node_budget)

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[Answer] | NodeFault]:
        """As ``Node.batches``."""
        return await send_each(self, groups, meter)
