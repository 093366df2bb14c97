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
from roundtrip_development.devnet.world import Built
from support.nodes import node_of
from support.simulated import simulated
from support.wallet import PoolSpec, UnsignedStep, Wallet

BURNER = "0x" + "b0" * 20
BURNS_ALL = "0x5b612000600020505a614e201060005700"
"""Hashes while more than 20,000 gas is left, and succeeds."""
NEEDS_FOUR_MILLION = "0x5a623d090010600e5760006000fd5b00"
"""Reverts while 4,000,000 gas or less is left."""
REFUSES_FOUR_MILLION = "0x5a623d090011600e5760006000fd5b00"
"""Reverts while 4,000,000 gas or more is left."""
INVALID = "0xfe"
BUDGET = 30_000_000
BOB, ETH = "0x" + "b1b1" * 10, 10**18


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


@pytest.fixture
def steps(built: Built, wallet: Wallet) -> list[UnsignedStep]:
    """A buy for a hundredth of an eth."""
    return wallet.buy_steps(built.tokens["plain"], PoolSpec("weth", 3000), ETH // 100)


async def put_burner(ctx: Context, rpc: SyncRpc, code: str) -> None:
    """Puts the code at ``BURNER``, for the next block."""
    rpc.call("anvil_setCode", BURNER, code)
    await ctx.heads.refresh()


def used(ctx: Context) -> int:
    assert isinstance(ctx.node, GasCounter)
    return ctx.node.used


@pytest.mark.parametrize("calls", [1, 2, 3, 6])
async def test_calls_that_burn_all_gas_stay_within_the_budget_and_count(
    counting: Context, rpc: SyncRpc, wallet: Wallet, calls: int
) -> None:
    await put_burner(counting, rpc, BURNS_ALL)
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
    await put_burner(counting, rpc, NEEDS_FOUR_MILLION)
    result = await simulated(counting, wallet.address, UnsignedStep(BURNER, "0x", 0))
    assert result.code == "ok", result.text


async def test_what_fails_and_uses_all_its_gas_is_told_to_fail(
    counting: Context, rpc: SyncRpc, wallet: Wallet
) -> None:
    await put_burner(counting, rpc, INVALID)
    result = await simulated(counting, wallet.address, UnsignedStep(BURNER, "0x", 0), fund=True)
    assert (result.code, result.level) == ("tx_reverts", "warn"), result.text


async def test_calls_that_fail_at_an_older_head_have_one_budget_for_both_blocks(
    counting: Context, rpc: SyncRpc, wallet: Wallet
) -> None:
    await put_burner(counting, rpc, INVALID)
    head = counting.heads.current().block.number
    rpc.call("evm_mine")
    result = await simulated(counting, wallet.address, UnsignedStep(BURNER, "0x", 0), fund=True)
    assert (result.code, counting.heads.current().block.number) == ("tx_reverts", head + 1)
    assert used(counting) <= BUDGET


async def test_an_access_list_has_a_bound(counting: Context, rpc: SyncRpc, wallet: Wallet) -> None:
    await put_burner(counting, rpc, BURNS_ALL)
    await simulated(counting, wallet.address, *[UnsignedStep(BURNER, "0x", 0)] * 6, fund=True)
    assert isinstance(counting.node, GasCounter)
    assert sum(int(gas, 16) for gas in counting.node.asked) <= BUDGET


# --- the wallet's own limits -----------------------------------------------------------------------


@pytest.mark.parametrize("share_bps", [0, 1_000, 2_500, 5_000, 9_990])
async def test_a_limit_that_is_too_low_is_named(
    ctx: Context, wallet: Wallet, steps: list[UnsignedStep], share_bps: int
) -> None:
    enough = await simulated(ctx, wallet.address, *steps)
    (used,) = enough.gas()
    limit = used * share_bps // 10_000
    short = await simulated(ctx, wallet.address, *steps, gas=[limit])
    assert (enough.code, short.code, short.level, short.counted) == ("ok", "tx_reverts", "warn", True)
    more = f"its gas limit is {limit:,}, and with more it goes through and uses {used:,}."
    assert short.text == f"It would run out of gas: {more}"
    assert (short.spent(), short.received(), short.answer["calls"][0]["ok"]) == ({}, {}, False)


@pytest.mark.parametrize("gas", [[2_000_000], [30_000_000], [None], [], [500_000]])
async def test_a_limit_that_is_enough_changes_nothing(
    ctx: Context, wallet: Wallet, steps: list[UnsignedStep], gas: list[int | None]
) -> None:
    plain = await simulated(ctx, wallet.address, *steps)
    limited = await simulated(ctx, wallet.address, *steps, gas=gas)
    assert (limited.code, limited.text, limited.gas()) == (plain.code, plain.text, plain.gas())


async def test_of_several_calls_the_one_with_too_little_gas_is_named(
    ctx: Context, built: Built, wallet: Wallet
) -> None:
    steps = [UnsignedStep(built.contracts["weth"], "0xd0e30db0", 5), UnsignedStep(BOB, "0x", 7)]
    short = await simulated(ctx, wallet.address, *steps, gas=[None, 20_000])
    assert short.text == (
        "Call 2 of 2 would run out of gas: its gas limit is 20,000, and with more it goes through and uses "
        "21,000."
    )
    assert [call["ok"] for call in short.answer["calls"]] == [True, False]


@pytest.mark.parametrize("limit", [60_000, 2_900_000, 3_000_000, 3_900_000])
async def test_a_contract_that_asks_for_gas_fails_with_its_own_reason(
    ctx: Context, rpc: SyncRpc, wallet: Wallet, limit: int
) -> None:
    await put_burner(ctx, rpc, NEEDS_FOUR_MILLION)
    short = await simulated(ctx, wallet.address, UnsignedStep(BURNER, "0x", 0), gas=[limit])
    assert short.code == "tx_reverts"
    assert short.text.startswith(f"It would fail; it gives no reason: its gas limit is {limit:,}, and with ")


@pytest.mark.parametrize("number", [1, 2])
async def test_a_limit_that_is_too_high_is_named(
    ctx: Context, rpc: SyncRpc, wallet: Wallet, number: int
) -> None:
    await put_burner(ctx, rpc, REFUSES_FOUR_MILLION)
    steps = [UnsignedStep(BOB, "0x", 7), UnsignedStep(BURNER, "0x", 0)][-number:]
    result = await simulated(ctx, wallet.address, *steps, gas=[None, 9_000_000][-number:])
    assert result.code == "tx_reverts"
    assert "its gas limit is 9,000,000, and with another it goes through and uses 2" in result.text


@pytest.mark.parametrize("limit", [None, 5_000_000])
async def test_a_limit_is_not_blamed_for_another_calls_need(
    ctx: Context, rpc: SyncRpc, wallet: Wallet, limit: int | None
) -> None:
    await put_burner(ctx, rpc, NEEDS_FOUR_MILLION)
    steps = [UnsignedStep(BOB, "0x", 7), UnsignedStep(BURNER, "0x", 0)]
    result = await simulated(ctx, wallet.address, *steps, gas=[50_000, limit])
    plain = await simulated(ctx, wallet.address, *steps)
    assert (result.code, result.text) == (plain.code, plain.text)
