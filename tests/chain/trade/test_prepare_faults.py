"""Bad days of the node while a trade is prepared: upstream or unproven, never a trade that was not proven."""

from dataclasses import replace

import pytest

from roundtrip.chain.rpc.client import Budget
from roundtrip.domain.base.errors import NodeFault, RoundtripError, ServiceFull
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.faulty_node import ANSWER_FAULTS, WIRE_FAULTS, FaultyNode
from support.nodes import node_of
from support.signing import Prepared, Signer, prepared
from support.wallet import calldata

NOW_S = 2_000_000_000
FAULTS = (*ANSWER_FAULTS, *WIRE_FAULTS)
LATE_FAULTS = (
    "half an answer", "the other half", "first answer only", "no eth_simulateV1", "fewer calls", "odd fields",
    "swapped answers", "all null", "all errors", "numbers", "nonsense", "cut off",
)  # fmt: skip
AMOUNT = {"buy": "0.1", "sell": "90000000"}
MAX_REQUESTS = 12
"""More than a preparation sends."""


@pytest.fixture
def shaky(shaky: Context) -> Context:
    """At a known time."""
    return replace(shaky, now_s=lambda: float(NOW_S))


@pytest.fixture
def holder(rpc: SyncRpc, built: Built) -> Signer:
    """Has eth and some of every token that is asked for here."""
    wallet, owner = Signer(rpc, built.contracts, "holder"), ContractDeployer(rpc, built.accounts[0])
    for key in ("plain", "owner_only_sell", "v4_fee_on_sell"):
        data = calldata("transfer(address,uint256)", wallet.address, 10**26)
        owner.receipt(owner.send(built.tokens[key], data))
    return wallet


async def came_of(
    ctx: Context, faulty: FaultyNode, side: str, token: str, sender: str, fault: str, after: int
) -> Prepared | str:
    """The answer or the error's code, of a node that fails after so many requests."""
    await ctx.heads.refresh()
    faulty.fault, faulty.after = fault, after + 1
    try:
        # The head is asked for once more, before anything.
        return await prepared(ctx, side, token, sender, amount=AMOUNT[side])
    except RoundtripError as error:
        return error.code
    finally:
        faulty.fault, faulty.after = None, 0


def but_for_gas(trade: Prepared) -> list[tuple[str, ...]]:
    return [(step["does"], step["to"], step["data"], step["value"]) for step in trade.steps]


def assert_honest(came: Prepared | str, whole: Prepared) -> None:
    """Upstream, a refusal as unproven, or the very trade that a good node gives."""
    if isinstance(came, str):
        assert came == "upstream"
    elif came.answer["refused"]:
        assert came.steps == []
        assert came.code in {"unproven", whole.code}
        if came.code == "unproven":
            assert (came.answer["verdict"]["level"], came.counted) == ("unknown", False)
    else:
        assert whole.answer["refused"] is False
        assert but_for_gas(came) == but_for_gas(whole)
        assert came.code == whole.code
        assert came.answer["expect"] == whole.answer["expect"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("side", ["buy", "sell"])
async def test_a_node_that_fails_from_the_start(
    shaky: Context, faulty: FaultyNode, built: Built, holder: Signer, fault: str, side: str
) -> None:
    for key in ("plain", "owner_only_sell"):
        came = await came_of(shaky, faulty, side, built.tokens[key], holder.address, fault, 0)
        assert came == "upstream"


CASES = [
    (fault, side, key)
    for fault in LATE_FAULTS
    for side, key in (("buy", "plain"), ("buy", "owner_only_sell"), ("sell", "v4_fee_on_sell"))
]


@pytest.mark.parametrize(("fault", "side", "key"), CASES)
async def test_a_node_that_fails_on_the_way(
    shaky: Context, faulty: FaultyNode, built: Built, holder: Signer, fault: str, side: str, key: str
) -> None:
    token = built.tokens[key]
    whole = await prepared(shaky, side, token, holder.address, amount=AMOUNT[side])
    found = [
        await came_of(shaky, faulty, side, token, holder.address, fault, after)
        for after in range(1, MAX_REQUESTS + 1)
    ]
    for came in found:
        assert_honest(came, whole)
    # The last of these failed past the last request; others did not.
    last, codes = found[-1], {came if isinstance(came, str) else came.code for came in found}
    assert isinstance(last, Prepared)
    assert but_for_gas(last) == but_for_gas(whole)
    assert codes & {"upstream", "unproven"}


@pytest.mark.parametrize("fault", ["all errors", "no eth_simulateV1", "first answer only", "cut off"])
async def test_a_buy_whose_sell_was_not_seen_is_not_written(
    shaky: Context, faulty: FaultyNode, built: Built, holder: Signer, fault: str
) -> None:
    """Somewhere on the way only the sells are lost: refused as unproven, and not counted."""
    found = []
    for after in range(1, MAX_REQUESTS + 1):
        came = await came_of(shaky, faulty, "buy", built.tokens["plain"], holder.address, fault, after)
        if isinstance(came, Prepared) and came.answer["refused"]:
            found.append(came)
    for one in found:
        assert (one.code, one.steps, one.counted) == ("unproven", [], False)
        assert one.text.startswith("Refused. ")
    assert found


async def test_a_sell_is_written_though_the_check_is_not_known(
    shaky: Context, faulty: FaultyNode, built: Built, holder: Signer
) -> None:
    """What is sold was rehearsed; a check that the node spoiled holds nobody back."""
    token = built.tokens["plain"]
    whole = await prepared(shaky, "sell", token, holder.address, amount=AMOUNT["sell"])
    for after in range(1, MAX_REQUESTS + 1):
        for fault in ("all errors", "fewer calls"):
            came = await came_of(shaky, faulty, "sell", token, holder.address, fault, after)
            if isinstance(came, Prepared):
                assert came.answer["refused"] is False
                assert but_for_gas(came) == but_for_gas(whole)


async def test_a_node_that_is_gone(shaky: Context, built: Built, holder: Signer) -> None:
    node_of(shaky).url = "http://127.0.0.1:1"
    for side in ("buy", "sell"):
        with pytest.raises(NodeFault):
            await prepared(shaky, side, built.tokens["plain"], holder.address, amount="1")


async def test_a_spent_budget_is_told(shaky: Context, built: Built, holder: Signer) -> None:
    token = built.tokens["plain"]
    node_of(shaky).budget = Budget(calls_per_day=10_000)
    await prepared(shaky, "buy", token, holder.address, amount="0.1")
    node_of(shaky).budget.calls_per_day = 2 * node_of(shaky).budget.spent - 5
    with pytest.raises(ServiceFull):
        await prepared(shaky, "buy", token, holder.address, amount="0.1")
