"""Calls that have a budget of their own are taken off that, and off no other."""

from collections.abc import Sequence
from typing import Any

import pytest

from roundtrip.chain.blocks.spans import ask
from roundtrip.chain.rpc.client import Budget, Meter, RpcCall
from roundtrip.chain.rpc.daily_budget import BudgetedNode
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from support.one_batch import OneBatchNode
from unit.chain.samples import raw

CALL = RpcCall("eth_chainId", [])


class DailyNode(OneBatchNode):
    """``budget``: as of a node that has one."""

    def __init__(self) -> None:
        self.budget = Budget(calls_per_day=100)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Any]:
        if budgeted:
            self.budget.spend(len(calls), 0.0)
        if len(calls) == 3:
            raise NodeFault("three are too many")
        if meter is not None:
            meter.trips, meter.calls = meter.trips + 1, meter.calls + len(calls)
        return [raw("0x1")] * len(calls)


async def test_every_call_is_taken_off_its_own_budget_and_none_off_the_nodes() -> None:
    node, budget, meter = DailyNode(), Budget(calls_per_day=10), Meter()
    own = BudgetedNode(node, budget, lambda: 5.0)
    assert len(await own.batch([CALL, CALL], meter)) == 2
    assert len(await ask(own, [CALL])) == 1
    given = await own.batches([[CALL], [CALL, CALL, CALL], [CALL]], meter)
    assert [isinstance(one, NodeFault) for one in given] == [False, True, False]
    assert (budget.spent, node.budget.spent) == (8, 0)
    assert (meter.trips, meter.calls) == (2, 4)


async def test_when_it_is_spent_nothing_is_asked() -> None:
    own = BudgetedNode(DailyNode(), Budget(calls_per_day=2), lambda: 5.0)
    with pytest.raises(ServiceFull) as raised:
        await own.batches([[CALL, CALL], [CALL]], Meter())
    assert raised.value.code == "budget_spent"
    with pytest.raises(ServiceFull):
        await own.batch([CALL])


async def test_where_it_has_none_of_its_own_the_node_pays() -> None:
    node = DailyNode()
    own = BudgetedNode(node, Budget(), lambda: 5.0)
    await own.batch([CALL, CALL])
    assert node.budget.spent == 2
    await own.batch([CALL], budgeted=False)
    assert node.budget.spent == 2
    counting = BudgetedNode(node, Budget(), lambda: 5.0, counts_all=True)
    await counting.batch([CALL], budgeted=False)
    assert node.budget.spent == 3
