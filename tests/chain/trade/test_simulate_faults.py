"""Faults of the node: a simulation is unproven, or says what it would without the fault; never ok for a trap,
never a trap for a good token. Only a spent budget is an error."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from roundtrip.chain.rpc.client import Budget, Meter, Node, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.faulty_node import ANSWER_FAULTS, WIRE_FAULTS, FaultyNode
from support.nodes import node_of
from support.simulated import Strangers, approve, pay, simulated
from support.wallet import PoolSpec, UnsignedStep, Wallet, calldata

ETH = 10**18
FAULTS = (*ANSWER_FAULTS, *WIRE_FAULTS)
HALVES = ("half an answer", "the other half")
SOMEBODY = "0x" + "ab" * 20


def buy_steps(rpc: SyncRpc, built: Built, *keys: str) -> tuple[str, list[UnsignedStep]]:
    wallet = Wallet(rpc, built.contracts, "faults")
    bought = (wallet.buy_steps(built.tokens[key], PoolSpec("weth", 3000), ETH // 10)[0] for key in keys)
    return wallet.address, list(bought)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("key", ["plain", "owner_only_sell"])
async def test_a_node_that_fails_from_the_start(
    shaky: Context, faulty: FaultyNode, rpc: SyncRpc, built: Built, fault: str, key: str
) -> None:
    sender, steps = buy_steps(rpc, built, key)
    faulty.fault = fault
    result = await simulated(shaky, sender, *steps)
    assert (result.code, result.level) == ("unproven", "unknown"), result.text
    assert "This is not a pass" in result.text
    assert result.answer["block"] == shaky.heads.last_number() > 0
    # Called code can return more than the service reads, so that answer counts as the caller's call.
    assert result.counted is (fault == "endless")


# Nobody asks for the chain's id in the last trip.
LATER = [(fault, after) for fault in FAULTS for after in (1, 2) if (fault, after) != ("wrong chain id", 2)]


@pytest.mark.parametrize(("fault", "after"), LATER)
@pytest.mark.parametrize("key", ["plain", "owner_only_sell"])
async def test_a_node_that_fails_later(
    shaky: Context, faulty: FaultyNode, rpc: SyncRpc, built: Built, fault: str, key: str, after: int
) -> None:
    sender, steps = buy_steps(rpc, built, key)
    faulty.fault, faulty.after = fault, after
    result = await simulated(shaky, sender, *steps)
    if key == "owner_only_sell" and fault in HALVES:
        # Half of the probes may be enough to prove that it is a trap; never that it is none.
        assert result.code in ("unproven", "cannot_sell"), result.text
    elif fault == "wrong chain id":
        assert result.code in ("unproven", {"plain": "ok", "owner_only_sell": "cannot_sell"}[key])
    else:
        assert result.code == "unproven", result.text


async def test_a_node_that_is_gone(shaky: Context, rpc: SyncRpc, built: Built) -> None:
    sender, steps = buy_steps(rpc, built, "plain")
    node_of(shaky).url = "http://127.0.0.1:1"
    result = await simulated(shaky, sender, *steps)
    assert (result.code, result.counted, result.answer["calls"]) == ("unproven", False, [])


async def test_without_a_head_nothing_is_proven(shaky: Context, faulty: FaultyNode) -> None:
    faulty.fault = "wrong chain id"
    with pytest.raises(NodeFault):
        await shaky.heads.refresh()
    assert (await simulated(shaky, SOMEBODY, pay(SOMEBODY, 1))).code == "unproven"


async def test_a_spent_budget_is_told(shaky: Context, rpc: SyncRpc, built: Built) -> None:
    sender, steps = buy_steps(rpc, built, "plain")
    node_of(shaky).budget = Budget(calls_per_day=1)
    with pytest.raises(ServiceFull) as refused:
        await simulated(shaky, sender, *steps)
    assert refused.value.code == "budget_spent"


# --- nodes that know less --------------------------------------------------------------------------


class LimitedNode(Node):
    """A node without access lists. ``refuses``: batches with this token fail, but for those that also name
    ``spares``."""

    refuses, spares = "", ""

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        text = str(calls).lower()
        if self.refuses and self.refuses[2:] in text and (not self.spares or self.spares[2:] not in text):
            raise NodeFault("it hung up")
        answer = await super().batch(calls, meter, timeout_s, budgeted)
        missing = RpcError(-32601, "the method does not exist")
        return [
            missing if call.method == "eth_createAccessList" else one
            for call, one in zip(calls, answer, strict=True)
        ]


@pytest.fixture
def limited(ctx: Context) -> Context:
    """Over the real node, without access lists."""
    return replace(ctx, node=LimitedNode(node_of(ctx).url, node_of(ctx).session, 20.0))


@pytest.mark.parametrize(
    "way",
    [("take()",), ("take_behind_voices()",), ("take_behind_noise(uint256)", 4200)],
    ids=["plainly", "many emitters", "many events"],
)
async def test_without_access_lists_what_is_taken_is_found_by_events_or_unproven(
    limited: Context,
    rpc: SyncRpc,
    built: Built,
    tmp_path_factory: pytest.TempPathFactory,
    way: tuple[str, int],
) -> None:
    strangers = Strangers(rpc, tmp_path_factory.mktemp("odd"))
    wallet = Wallet(rpc, built.contracts, "robbed")
    token = strangers.token()
    mover = strangers.mover(token)
    strangers.do(mover, "gather(uint256)", 60)
    strangers.give(token, wallet.address, 7 * ETH)
    assert wallet.send(token, approve(token, mover).data).ok
    await limited.heads.refresh()
    result = await simulated(limited, wallet.address, UnsignedStep(mover, calldata(*way)))
    assert result.spent() == {token: 7 * ETH} or result.code == "unproven", result.text


async def test_no_token_is_named_but_the_one_that_could_not_be_read(
    limited: Context, rpc: SyncRpc, built: Built
) -> None:
    sender, steps = buy_steps(rpc, built, "plain", "six_decimals", "no_return_value")
    node = limited.node
    assert isinstance(node, LimitedNode)
    # The third token is checked in a later request, without the first two.
    node.refuses, node.spares = built.tokens["no_return_value"], built.tokens["plain"]
    result = await simulated(limited, sender, *steps)
    assert (result.code, result.level) == ("unproven", "unknown"), result.text
    assert result.answer["check"] is None or result.answer["check"]["address"] == node.refuses
