"""Amounts that are not round, on the local chain: what a check says of tokens that do not sell whole,
that round, or whose trades use much gas."""

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.legs import nearly_all_amounts
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.services.liquidity.handler import find_liquidity
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token, v3_pool, v4_pool
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.gathering import gather_evidence
from support.signing import prepared
from support.simulated import simulated
from support.simulating import ETH, steps_of
from support.wallet import Place, Wallet
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


KEEPING = {
    "ten units": ((10, 0, 0, 0), "All but a few base units of it sells at once for a loss of 0.60 %"),
    "one unit": ((1, 0, 0, 0), "All but a few base units of it sells at once for a loss of 0.60 %"),
    "0.45 %": ((0, 45, 0, 0), "99 % of it sells at once for a loss of 0.60 %"),
    "1 % on top": ((0, 0, 100, 0), "99 % of it sells at once for a loss of 1.58 %"),
    "5 % on top": ((0, 0, 500, 0), "95 % of it sells at once for a loss of 5.31 %"),
}
CLOSING = {"ten units": (10, 0, 0, 600), "1.5 %": (0, 150, 0, 600), "30 %": (0, 3000, 0, 600)}


def real_sells(rpc: SyncRpc, built: Built, token: str, pool: PoolPlan, after_s: int) -> dict[int, bool]:
    """Whether a real wallet sells so many bps of what it bought, so long after; 10,000: all but ten units,
    10,001: all."""
    wallet = Wallet(rpc, built.contracts, f"sells {token} {after_s}")
    assert wallet.buy(token, pool.quote, pool.fee_pips, ETH // 10, pool.version)
    held_raw = wallet.tokens(token)
    rpc.call("evm_increaseTime", after_s)
    rpc.call("evm_mine")
    amounts = {bps: held_raw * bps // 10_000 for bps in (9000, 9500, 9900)}
    sold = {}
    for bps, raw in (amounts | {10_000: held_raw - 10, 10_001: held_raw}).items():
        snapshot = rpc.call("evm_snapshot")
        sold[bps] = wallet.sell(token, pool.quote, pool.fee_pips, raw, pool.version).ok
        assert rpc.call("evm_revert", snapshot)
    return sold


@pytest.mark.parametrize("plan", [V3, V4], ids=["v3", "v4"])
@pytest.mark.parametrize("key", KEEPING)
async def test_the_largest_part_that_sells_is_named_with_its_loss(
    ctx: Context, rpc: SyncRpc, built: Built, key: str, plan: PoolPlan
) -> None:
    extra, text = KEEPING[key]
    token = put(rpc, built, "keeps_rest", extra, plan)
    verdict = (await judged(ctx, token)).verdict
    assert (verdict.code, verdict.level) == ("ok", "warn")
    assert verdict.text.startswith(f"{text}, but not all of it"), verdict.text
    sold = real_sells(rpc, built, token, plan, 60)
    assert not sold[10_001]
    share_bps = 10_000 if text.startswith("All but") else int(text.split(" %")[0]) * 100
    assert max(bps for bps, ok in sold.items() if ok) == share_bps


@pytest.mark.parametrize("key", CLOSING)
async def test_what_sells_in_part_now_and_not_later_stays_a_trap(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    token = put(rpc, built, "keeps_rest", CLOSING[key])
    verdict = (await judged(ctx, token)).verdict
    assert (verdict.code, verdict.level) == ("cannot_sell", "danger")
    assert "but not after an hour or a day" in verdict.text
    assert not any(real_sells(rpc, built, token, V3, 3600).values())


RATES = (1000, 1001, 1050, 1313, 1777, 700)
"""Thousandths."""


def rounding(rpc: SyncRpc, built: Built, milli: int, trap: tuple[int, int] = (0, 0)) -> str:
    """A token whose balances are shares at this rate."""
    token = put(rpc, built, "rounding_balances", trap)
    deployer = ContractDeployer(rpc, built.accounts[0])
    deployer.send(token, calldata("rebase(uint256)", milli * 10**24 + 1_234_567_891_234_567))
    deployer.check_receipts()
    return token


def really_sells(rpc: SyncRpc, built: Built, token: str, after_s: int) -> bool:
    """Whether any part from half on sells, tried as a check tries it: with small buys by others between."""
    wallet = Wallet(rpc, built.contracts, f"rounds {token} {after_s}")
    other = Wallet(rpc, built.contracts, f"others {token} {after_s}")
    assert wallet.buy(token, "weth", 3000, ETH // 10)
    rpc.call("evm_increaseTime", after_s)
    held_raw = wallet.tokens(token)
    for amounts in nearly_all_amounts(held_raw, POLICY):
        if any(wallet.sell(token, "weth", 3000, raw).ok for raw in amounts):
            return True
        assert other.buy(token, "weth", 3000, ETH // 10_000)
    return False


@pytest.mark.parametrize("milli", RATES)
async def test_a_balance_that_rounds_is_no_danger(
    ctx: Context, rpc: SyncRpc, built: Built, milli: int
) -> None:
    token = rounding(rpc, built, milli)
    verdict = (await judged(ctx, token)).verdict
    assert (verdict.code, verdict.level) == ("ok", "warn"), verdict.text
    assert "takes a cut" not in verdict.text
    assert really_sells(rpc, built, token, 60)


@pytest.mark.parametrize("milli", RATES)
@pytest.mark.parametrize("trap", [(1, 0), (2, 600)], ids=["always short", "short later"])
async def test_a_trap_that_looks_like_rounding_is_one(
    ctx: Context, rpc: SyncRpc, built: Built, milli: int, trap: tuple[int, int]
) -> None:
    token = rounding(rpc, built, milli, trap)
    verdict = (await judged(ctx, token)).verdict
    assert (verdict.code, verdict.level) == ("cannot_sell", "danger"), verdict.text
    assert not really_sells(rpc, built, token, 3600)


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


@pytest.mark.parametrize("plan", [V3, V4], ids=["v3", "v4"])
@pytest.mark.parametrize(("key", "part"), [("ten units", "all but a few base units"), ("1 % on top", "99 %")])
async def test_a_simulated_buy_walks_the_same_probes(
    ctx: Context, rpc: SyncRpc, built: Built, key: str, part: str, plan: PoolPlan
) -> None:
    token = put(rpc, built, "keeps_rest", KEEPING[key][0], plan)
    wallet = Wallet(rpc, built.contracts, "simulates")
    await ctx.heads.refresh()
    place = Place(plan.quote, plan.fee_pips, plan.version)
    result = await simulated(ctx, wallet.address, *steps_of(wallet, token, place, ETH // 10))
    assert (result.code, result.level) == ("ok", "warn")
    assert f"{part} of it does, for a loss of " in result.text, result.text


async def test_a_simulated_buy_of_what_closes_is_a_trap(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    token = put(rpc, built, "keeps_rest", CLOSING["1.5 %"])
    wallet = Wallet(rpc, built.contracts, "simulates")
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, *steps_of(wallet, token, Place("weth", 3000), ETH // 10))
    assert (result.code, result.level) == ("cannot_sell", "danger")


@pytest.mark.parametrize("milli", RATES)
async def test_a_simulated_buy_of_what_rounds_is_no_danger(
    ctx: Context, rpc: SyncRpc, built: Built, milli: int
) -> None:
    token = rounding(rpc, built, milli)
    wallet = Wallet(rpc, built.contracts, "simulates")
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, *steps_of(wallet, token, Place("weth", 3000), ETH // 10))
    # By luck all of it sells.
    assert result.code == "ok", result.text
