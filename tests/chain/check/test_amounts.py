"""Amounts that are not round, on the local chain: what a check says of tokens that do not sell whole,
that round, or whose trades use much gas."""

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.devnet.compile import compile_contract
from roundtrip.devnet.deploy import ContractDeployer, calldata, put_token, v3_pool, v4_pool
from roundtrip.devnet.stories import PoolPlan, Story
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.services.check.pipeline import gather_evidence
from roundtrip.services.liquidity.gather import find_liquidity
from roundtrip.services.runtime.context import Context
from support.fixtures import PROJECT
from support.signing import prepared
from support.simulating import ETH
from support.wallet import Wallet
from truth.gas_tokens import GasToken

ZERO = "0x" + "0" * 40
V3 = PoolPlan()
V4 = PoolPlan("eth", version=4)


def put(rpc: SyncRpc, built: Built, source: str, extra: tuple[int, ...], pool: PoolPlan | None = V3) -> str:
    """A token of ``contracts/truth`` with its pool; its address."""
    story = Story(
        source, "", f"truth/{source}.vy", "Amounts", "AMT",
        extra_types=("uint256",) * len(extra), extra_values=extra, pools=(pool,) if pool else (),
    )  # fmt: skip
    deployer = ContractDeployer(rpc, built.accounts[0])
    token = put_token(
        deployer, built.contracts, story, compile_contract(PROJECT / "contracts" / story.source)
    )
    deployer.check_receipts()
    return token


async def judged(ctx: Context, token: str) -> Judgement:
    await ctx.heads.refresh()
    return judge(await gather_evidence(ctx, Address(token), Meter()), POLICY)


async def test_a_side_buy_has_the_gas_of_the_buy_that_it_explains(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """A transfer of more gas than side buys have, which hashes 34,000 times."""
    token = GasToken(34_000, 0, 3_400_000).put(rpc, built)
    judgement = await judged(ctx, token)
    assert judgement.verdict.code == "ok", judgement.verdict
    assert "one step uses 3," in judgement.verdict.text
    assert Wallet(rpc, built.contracts, "small buyer").buy(token, "weth", 3000, 10**14)


@pytest.mark.parametrize("version", [3, 4])
async def test_a_token_of_which_one_unit_costs_more_is_rounded_to_zero_and_not_kept(
    ctx: Context, rpc: SyncRpc, built: Built, version: int
) -> None:
    """Ten units at 12.5 eth each."""
    deployer, contracts = ContractDeployer(rpc, built.accounts[0]), built.contracts
    code = compile_contract(PROJECT / "contracts" / "zoo" / "odd_0_decimals.vy")
    token = deployer.create(code, ["string", "string", "uint256"], ["Whole", "WHOLE", 10]).lower()
    if version == 3:
        deployer.send(token, calldata("approve(address,uint256)", contracts["v3PositionManager"], 10))
        v3_pool(deployer, contracts, {token: 8, contracts["weth"]: 100 * ETH}, 3000, True)
    else:
        v4_pool(deployer, contracts, {token: 8, ZERO: 100 * ETH}, 3000, True, ZERO, None)
    deployer.check_receipts()
    judgement = await judged(ctx, token)
    assert (judgement.verdict.code, judgement.verdict.level) == ("unproven", "unknown")
    assert judgement.verdict.text.startswith(
        "1 eth buys less than one unit of this token: the pool rounds it to zero, and you get nothing."
    ), judgement.verdict.text
    wallet = Wallet(rpc, contracts, "rounded")
    assert wallet.buy(token, "weth" if version == 3 else "eth", 3000, ETH // 10, version) == 0


@pytest.mark.parametrize("version", [3, 4])
async def test_pools_against_other_tokens_are_named_and_no_absence(
    ctx: Context, rpc: SyncRpc, built: Built, version: int
) -> None:
    """The other token has a pool against weth, and this one only a pool against that token."""
    between = put(rpc, built, "keeps_rest", (0, 0, 0, 0))
    token = put(rpc, built, "keeps_rest", (0, 0, 0, 0), None)
    deployer, contracts, amounts = ContractDeployer(rpc, built.accounts[0]), built.contracts, {}
    for side in (token, between):
        amounts[side] = 10**24
        deployer.send(side, calldata("approve(address,uint256)", contracts["v3PositionManager"], 10**24))
    if version == 3:
        v3_pool(deployer, contracts, amounts, 3000, True)
    else:
        v4_pool(deployer, contracts, amounts, 3000, True, ZERO, None)
    deployer.check_receipts()
    judgement = await judged(ctx, token)
    verdict = judgement.verdict
    assert (verdict.code, verdict.level) == ("unproven", "unknown")
    start = "Its only pool is against a token that we do not trade through: 0x"
    assert verdict.text.startswith(start), verdict.text
    assert f" against {between}." in verdict.text
    head = ctx.heads.current()
    found = await find_liquidity(ctx, head, Address(token), None, Meter())
    assert (found.depth.pools, found.has_all_pools()) == ((), False)
    assert found.depth.absence.startswith(start)
    with pytest.raises(CallerFault, match="Its only pool is against a token") as refused:
        await prepared(ctx, "buy", token, built.accounts[0], amount="0.1")
    assert refused.value.code == "no_route"
