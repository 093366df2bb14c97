"""Bad days of the node: upstream or unproven, never ok, never a trap."""

import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.client import Budget
from roundtrip.domain.base.errors import NodeFault, RoundtripError, ServiceFull
from roundtrip.domain.base.policy import POLICY
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.faulty_node import ANSWER_FAULTS, WIRE_FAULTS, FaultyNode
from support.fixtures import PROJECT
from support.nodes import node_of
from truth.animals import Animal

FAULTS = (*ANSWER_FAULTS, *WIRE_FAULTS)


async def outcome(ctx: Context, token: str, tokens_doing: bool = False) -> str:
    try:
        answered = await check(ctx, CheckParams(token))
    except RoundtripError as error:
        return error.code
    if answered.answer.verdict.code == "unproven":
        assert answered.answer.verdict.level == "unknown"
        assert answered.counted is tokens_doing
        assert answered.ttl_ms == (POLICY.answer_ttl_ms if tokens_doing else POLICY.node_fault_ttl_ms)
    return answered.answer.verdict.code


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("story", ["plain", "owner_only_sell", "no_pool"])
async def test_a_node_that_fails_from_the_start(
    shaky: Context, faulty: FaultyNode, built: Built, fault: str, story: str
) -> None:
    faulty.fault = fault
    assert await outcome(shaky, built.tokens[story]) in ("upstream", "unproven")


@pytest.mark.parametrize("fault", [f for f in FAULTS if f != "wrong chain id"])
@pytest.mark.parametrize("story", ["plain", "owner_only_sell"])
async def test_a_node_that_fails_on_the_second_trip(
    shaky: Context, faulty: FaultyNode, built: Built, fault: str, story: str
) -> None:
    faulty.fault, faulty.after = fault, 1
    # An answer too large to read is put down to the token: it would be so again.
    code = await outcome(shaky, built.tokens[story], fault == "endless")
    if story == "owner_only_sell" and fault in ("half an answer", "the other half"):
        # Half of the probes may be enough to prove that it is a trap; never that it is none.
        assert code in ("unproven", "cannot_sell")
    else:
        assert code == "unproven"


@pytest.mark.parametrize("fault", [f for f in FAULTS if f != "wrong chain id"])
async def test_a_node_that_answers_the_main_wallets_sells_and_not_the_crowd(
    shaky: Context, faulty: FaultyNode, built: Built, fault: str
) -> None:
    faulty.fault, faulty.after = fault, 3
    assert await outcome(shaky, built.tokens["plain"], fault == "endless") == "unproven"


@pytest.mark.parametrize("fault", [f for f in FAULTS if f != "wrong chain id"])
@pytest.mark.parametrize("story", ["plain", "owner_only_sell"])
async def test_a_node_that_fails_on_the_trip_of_the_ten_sales(
    shaky: Context, faulty: FaultyNode, built: Built, fault: str, story: str
) -> None:
    # Trip 1 is two requests, trip 2 is two; some faults leave answers of the third whole.
    faulty.fault, faulty.after = fault, 4
    code = await outcome(shaky, built.tokens[story], fault == "endless")
    if story == "plain":
        assert code == "ok"
    elif fault in ("half an answer", "the other half"):
        assert code in ("unproven", "cannot_sell")
    else:
        assert code == "unproven"


@pytest.mark.parametrize("fault", [f for f in FAULTS if f != "wrong chain id"])
async def test_a_node_that_fails_on_the_trip_of_the_owners_calls(
    shaky: Context, faulty: FaultyNode, rpc: SyncRpc, built: Built, fault: str
) -> None:
    """The check's own verdict stands; of the owner it is never said that nothing can be changed."""
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    story = Animal("mintable").story()
    code = compile_contract(PROJECT / "contracts" / story.source)
    token = put_token(deployer, built.contracts, story, code)
    deployer.check_receipts()
    await shaky.heads.refresh()
    sound = (await check(shaky, CheckParams(token, "1"))).answer.verdict
    assert sound.text.endswith("We tried 1 function of its owner: it did not stop the sell.")
    # Trip 1 is two requests; trip 2 is the sells, the crowd, and three of what the owner can call, in any
    # order.
    faulty.fault, faulty.after = fault, 7
    if fault == "endless":
        # A busy machine needs longer to read as much as the client reads at most.
        node_of(shaky).timeout_s = 20.0
    answered = await check(shaky, CheckParams(token, "1"))
    assert (answered.answer.verdict.code, answered.answer.verdict.level) == ("ok", "ok")
    assert "could not find out" in answered.answer.verdict.text
    assert answered.ttl_ms == (POLICY.deep_ttl_ms if fault == "endless" else POLICY.node_fault_ttl_ms)


async def test_a_node_that_is_gone(shaky: Context, built: Built) -> None:
    node_of(shaky).url = "http://127.0.0.1:1"
    assert await outcome(shaky, built.tokens["plain"]) == "upstream"


async def test_without_a_head_there_is_no_answer(shaky: Context, faulty: FaultyNode, built: Built) -> None:
    faulty.fault = "wrong chain id"
    with pytest.raises(NodeFault, match="chain 1, not 4663"):
        await shaky.heads.refresh()
    faulty.fault = None
    assert await outcome(shaky, built.tokens["plain"]) == "upstream"


async def test_a_head_that_is_too_old_is_no_head(shaky: Context, built: Built) -> None:
    now = [0.0]
    heads = Heads(shaky.node, shaky.chain_id, shaky.contracts, stale_s=15.0, clock=lambda: now[0])
    await heads.refresh()
    now[0] = 15.0
    assert heads.current().block.number > 0
    now[0] = 15.1
    with pytest.raises(NodeFault):
        heads.current()


async def test_a_spent_budget_is_told(shaky: Context, built: Built) -> None:
    node_of(shaky).budget = Budget(calls_per_day=10_000)
    first = await check(shaky, CheckParams(built.tokens["plain"]))
    assert first.answer.verdict.code == "ok"
    # One call is short of as much again.
    node_of(shaky).budget.calls_per_day = 2 * node_of(shaky).budget.spent - 1
    with pytest.raises(ServiceFull) as refused:
        await check(shaky, CheckParams(built.tokens["plain"]))
    assert refused.value.code == "budget_spent"
    assert refused.value.retry_after_s is not None
    assert 0 < refused.value.retry_after_s <= 86_401
