"""Calls that use much gas: one request has a budget, and what does not fit into it is unproven and counts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.nodes import node_of
from support.simulated import simulated
from support.wallet import UnsignedStep, Wallet

BURNER = "0x" + "b0" * 20
BURNS_ALL = "0x5b612000600020505a614e201060005700"
"""Hashes while more than 20,000 gas is left, and succeeds."""
NEEDS_FOUR_MILLION = "0x5a623d090010600e5760006000fd5b00"
"""Reverts while 4,000,000 gas or less is left."""
INVALID = "0xfe"
BUDGET = 30_000_000


@dataclass
class GasCounter:
    """The node, and what the caller's own calls used in all simulations that it ran."""

    node: Any
    used: int = 0
    asked: list[str] = field(default_factory=list)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        answers: list[msgspec.Raw | RpcError] = await self.node.batch(calls, meter, timeout_s, budgeted)
        for call, answer in zip(calls, answers, strict=True):
            self._count(call, answer)
        return answers

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        return [await self.batch(group, meter) for group in groups]

    def _count(self, call: RpcCall, answer: msgspec.Raw | RpcError) -> None:
        if call.method == "eth_createAccessList":
            self.asked.append(call.params[0]["gas"])  # type: ignore[index]
        if call.method != "eth_simulateV1" or isinstance(answer, RpcError):
            return
        blocks = call.params[0]["blockStateCalls"]  # type: ignore[index]
        for sent, ran in zip(blocks, json.loads(bytes(answer)), strict=False):
            for one, came in zip(sent.get("calls", []), ran["calls"], strict=True):
                if one.get("to") == BURNER:
                    self.used += int(came["gasUsed"], 16)


@pytest.fixture
def counting(ctx: Context) -> Context:
    return replace(ctx, node=GasCounter(node_of(ctx)))


def used(ctx: Context) -> int:
    assert isinstance(ctx.node, GasCounter)
    return ctx.node.used


@pytest.mark.parametrize("calls", [1, 2, 3, 6])
async def test_calls_that_burn_all_gas_stay_within_the_budget_and_count(
    counting: Context, rpc: SyncRpc, wallet: Wallet, calls: int
) -> None:
    rpc.call("anvil_setCode", BURNER, BURNS_ALL)
    await counting.heads.refresh()
    result = await simulated(counting, wallet.address, *[UnsignedStep(BURNER, "0x", 0)] * calls, fund=True)
    assert result.counted
    assert used(counting) <= BUDGET
    if calls > 1:
        assert (result.code, result.level) == ("unproven", "unknown")
        assert "too much gas" in result.text, result.text
        assert "This is not a pass." in result.text


async def test_a_call_that_needs_more_gas_than_most_is_run_with_more(
    counting: Context, rpc: SyncRpc, wallet: Wallet
) -> None:
    rpc.call("anvil_setCode", BURNER, NEEDS_FOUR_MILLION)
    await counting.heads.refresh()
    result = await simulated(counting, wallet.address, UnsignedStep(BURNER, "0x", 0))
    assert result.code == "ok", result.text


async def test_what_fails_and_uses_all_its_gas_is_told_to_fail(
    counting: Context, rpc: SyncRpc, wallet: Wallet
) -> None:
    rpc.call("anvil_setCode", BURNER, INVALID)
    await counting.heads.refresh()
    result = await simulated(counting, wallet.address, UnsignedStep(BURNER, "0x", 0), fund=True)
    assert (result.code, result.level) == ("tx_reverts", "warn"), result.text


async def test_calls_that_fail_at_an_older_head_have_one_budget_for_both_blocks(
    counting: Context, rpc: SyncRpc, wallet: Wallet
) -> None:
    rpc.call("anvil_setCode", BURNER, INVALID)
    await counting.heads.refresh()
    head = counting.heads.current().block.number
    rpc.call("evm_mine")
    result = await simulated(counting, wallet.address, UnsignedStep(BURNER, "0x", 0), fund=True)
    assert (result.code, counting.heads.current().block.number) == ("tx_reverts", head + 1)
    assert used(counting) <= BUDGET


async def test_an_access_list_has_a_bound(counting: Context, rpc: SyncRpc, wallet: Wallet) -> None:
    rpc.call("anvil_setCode", BURNER, BURNS_ALL)
    await counting.heads.refresh()
    await simulated(counting, wallet.address, *[UnsignedStep(BURNER, "0x", 0)] * 6, fund=True)
    assert isinstance(counting.node, GasCounter)
    assert sum(int(gas, 16) for gas in counting.node.asked) <= BUDGET
