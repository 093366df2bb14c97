"""Money that is not eth: got by real swaps, given where no swap brings it, unproven where there is no way."""

import pytest

from roundtrip.chain.rpc.client import Meter, RpcCall
from roundtrip.chain.simulate.balance_slots import guess_calls, read_guesses
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import CompletedBuy, Missing, Sold
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import MAX, ContractDeployer, calldata, v3_pool
from roundtrip_development.devnet.launchpad import CurveToken, LaunchRequest, approve_quote, curve_buy, launch
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.gathering import gather_evidence


@pytest.fixture
def deployer(rpc: SyncRpc) -> ContractDeployer:
    return ContractDeployer(rpc, rpc.call("eth_accounts")[0])


def new_money(deployer: ContractDeployer, built: Built, usdg_in_pool: int) -> str:
    """A token that the launchpad takes as a quote, a unit for a dollar; with so many dollars in its only
    pool, or with no pool at all."""
    code = compile_contract(PROJECT / "contracts/tokens/plain.vy")
    money = deployer.create(code, ["string", "string", "uint256"], ["Thin", "THN", 10**9 * 10**18]).lower()
    if usdg_in_pool:
        manager = built.contracts["v3PositionManager"]
        for asset in (money, built.contracts["usdg"]):
            deployer.send(asset, calldata("approve(address,uint256)", manager, MAX))
        amounts = {money: usdg_in_pool * 10**18, built.contracts["usdg"]: usdg_in_pool * 10**6}
        v3_pool(deployer, built.contracts, amounts, 500, fill=True)
    approve_quote(deployer, built.contracts["launchpadFactory"], money, 3_000 * 10**18, 7_500 * 10**18)
    deployer.check_receipts()
    return money


async def launched(ctx: Context, deployer: ContractDeployer, built: Built, money: str) -> CurveToken:
    """A launch against this money, bought once, its first seconds over."""
    made = launch(deployer, built.contracts, LaunchRequest("Odd", "ODD", money))
    curve_buy(deployer, made, 500 * 10**18)
    deployer.check_receipts()
    now_s = int(deployer.chain.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    deployer.chain.call("evm_setNextBlockTimestamp", now_s + 60)
    deployer.chain.call("evm_mine")
    await ctx.heads.refresh()
    return made


@pytest.mark.parametrize("key", ["curve_other", "graduated_other"])
async def test_other_money_is_bought_on_the_way_over_usdg(ctx: Context, built: Built, key: str) -> None:
    meter = Meter()
    evidence = await gather_evidence(ctx, Address(built.tokens[key]), meter)
    assert judge(evidence, POLICY).verdict.level == "ok"
    (rate,) = evidence.market.rates
    assert [hop.to for hop in rate.route] == [built.contracts["usdg"], built.contracts["share"]]
    assert evidence.given == ()
    # The rate is asked once, and known for the next check of any token against it.
    assert meter.trips == 3
    again = Meter()
    await gather_evidence(ctx, Address(built.tokens[key]), again)
    assert again.trips == 2


async def test_money_that_no_swap_brings_is_given(
    ctx: Context, deployer: ContractDeployer, built: Built
) -> None:
    money = new_money(deployer, built, usdg_in_pool=20)
    made = await launched(ctx, deployer, built, money)
    evidence = await gather_evidence(ctx, Address(made.token), Meter())
    assert evidence.given == (money,)
    assert judge(evidence, POLICY).verdict.level == "ok"
    (venue,) = evidence.venues
    assert all(isinstance(buy.outcome, CompletedBuy) for buy in venue.buys)
    assert all(isinstance(cell.outcome, Sold) for cell in venue.cells)


async def test_money_without_any_way_is_unproven(
    ctx: Context, deployer: ContractDeployer, built: Built
) -> None:
    money = new_money(deployer, built, usdg_in_pool=0)
    made = await launched(ctx, deployer, built, money)
    evidence = await gather_evidence(ctx, Address(made.token), Meter())
    verdict = judge(evidence, POLICY).verdict
    assert (verdict.code, verdict.level) == ("unproven", "unknown"), verdict.text
    assert all(isinstance(buy.outcome, Missing) for venue in evidence.venues for buy in venue.buys)


async def test_a_pool_against_nobodys_money_is_counted_and_changes_nothing(
    ctx: Context, deployer: ContractDeployer, built: Built
) -> None:
    code = compile_contract(PROJECT / "contracts/tokens/plain.vy")
    junk = deployer.create(code, ["string", "string", "uint256"], ["Junk", "JNK", 10**27]).lower()
    token = built.tokens["plain"]
    for asset in (junk, token):
        deployer.send(asset, calldata("approve(address,uint256)", built.contracts["v3PositionManager"], MAX))
    v3_pool(deployer, built.contracts, {junk: 10**21, token: 10**21}, 3000, fill=True)
    deployer.check_receipts()
    await ctx.heads.refresh()
    evidence = await gather_evidence(ctx, Address(token), Meter())
    assert evidence.pools_found == 2
    assert judge(evidence, POLICY).verdict.level == "ok"


@pytest.mark.parametrize("asset", ["usdg", "share", "weth"])
async def test_where_a_balance_lies_is_found(ctx: Context, built: Built, asset: str) -> None:
    address = Address(built.contracts[asset])
    wallet = Address("0x" + "77" * 20)
    head = ctx.heads.current()
    calls: list[RpcCall] = guess_calls(address, wallet, head.block)
    slot = read_guesses(address, await ctx.node.batch(calls))
    assert slot is not None
    assert slot.layout == ("solidity" if asset == "weth" else "vyper")
