"""Sells of a token that refuses SwapRouter02: written through Permit2 and the Universal Router."""

from datetime import datetime

import pytest

from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from roundtrip_verify import Network, Request, verify
from support.faulty_node import FaultyNode
from support.fixtures import PROJECT
from support.signing import Prepared, Signer, prepared
from support.wallet import calldata

AMOUNT = {"weth": "0.1", "usdg": "350"}
POOL = {"weth": PoolPlan("weth", 3000), "usdg": PoolPlan("usdg", 3000, quote_milli=70_000_000)}
MAX = 2**256 - 1
DUST_WEI = 10**18


def refusing(rpc: SyncRpc, built: Built, *pools: PoolPlan) -> str:
    story = Story(
        "", "", "", "Picky", "PICK", pools=pools, extra_types=("uint160",),
        extra_values=(int(built.contracts["swapRouter02"], 16),),
    )  # fmt: skip
    owner = ContractDeployer(rpc, built.accounts[0])
    code = compile_contract(PROJECT / "contracts/truth/refuses_router.vy")
    token = put_token(owner, built.contracts, story, code)
    owner.check_receipts()
    return token


def signer(rpc: SyncRpc, built: Built) -> Signer:
    wallet = Signer(rpc, built.contracts, "picky holder")
    wallet.fill_usdg(400 * 10**6)
    return wallet


def leave_weth(wallet: Signer, built: Built, wei: int) -> None:
    """In the Universal Router, whose next caller may take it."""
    weth, router = built.contracts["weth"], built.contracts["universalRouter"]
    assert wallet.send(weth, calldata("deposit()"), wei).ok
    assert wallet.send(weth, calldata("transfer(address,uint256)", router, wei)).ok


def assert_verified(built: Built, trade: Prepared, wallet: Signer, amount: str = "all") -> None:
    token, side = trade.answer["token"]["address"], trade.answer["side"]
    network = Network.read({"chainId": 4663, "contracts": built.contracts})
    report = verify(trade.answer, network, Request(wallet.address, token, side, amount))
    assert report.findings == ()
    assert any("sends the output only to the wallet that signs" in text for text in report.proven)


@pytest.mark.parametrize("quote", ["weth", "usdg"])
async def test_a_holder_sells_where_the_usual_router_is_refused(
    ctx: Context, rpc: SyncRpc, built: Built, quote: str
) -> None:
    token, wallet = refusing(rpc, built, POOL[quote]), signer(rpc, built)
    buy = await prepared(ctx, "buy", token, wallet.address, amount=AMOUNT[quote])
    assert (buy.answer["check"]["verdict"]["code"], buy.answer["check"]["verdict"]["level"]) == ("ok", "warn")
    assert wallet.trade(buy).token_raw == buy.raw
    refused = rpc.call("evm_snapshot")
    assert not wallet.sell(token, quote, 3000, wallet.tokens(token)).ok
    assert rpc.call("evm_revert", refused)
    sell = await prepared(ctx, "sell", token, wallet.address, amount="all")
    # Three, one for the other route, and one in which the check tries ten smaller sales.
    assert (sell.code, sell.trips, sell.spend_raw) == ("ok", 5, buy.raw)
    assert (
        "The usual router is refused: this sell goes through Permit2 and the Universal Router." in sell.text
    )
    assert "through Permit2 and the Universal Router, for at least" in sell.does[-1]
    assert [step["to"] for step in sell.steps] == [
        token, built.contracts["permit2"], built.contracts["universalRouter"],
    ]  # fmt: skip
    assert_verified(built, sell, wallet)
    done = wallet.trade(sell)
    assert (done.ok, -done.token_raw, done.money_raw) == (True, buy.raw, sell.raw)
    assert wallet.tokens(token) == 0
    assert wallet.leftovers([token, built.contracts["weth"], built.contracts["usdg"]]) == {}


@pytest.mark.parametrize("quote", ["weth", "usdg"])
async def test_it_brings_its_minimum_in_time_or_nothing(
    ctx: Context, rpc: SyncRpc, built: Built, quote: str
) -> None:
    token, wallet = refusing(rpc, built, POOL[quote]), signer(rpc, built)
    assert wallet.buy(token, quote, 3000, {"weth": 10**17, "usdg": 350 * 10**6}[quote])
    sell = await prepared(ctx, "sell", token, wallet.address, amount="all", slippageBps=300)
    assert 0 <= sell.raw * 97 // 100 - sell.min_raw <= 1
    deadline_s = int(datetime.fromisoformat(sell.answer["validUntil"]).timestamp())
    later = rpc.call("evm_snapshot")
    done = wallet.trade(sell, deadline_s + 1)
    assert ([receipt.ok for receipt in done.receipts], done.money_raw) == ([True, True, False], 0)
    assert rpc.call("evm_revert", later)
    owner = ContractDeployer(rpc, built.accounts[0])
    slipped = rpc.call("evm_snapshot")
    other = Signer(rpc, built.contracts, "picky other")
    owner.receipt(
        owner.send(token, calldata("transfer(address,uint256)", other.address, 10 * sell.spend_raw))
    )
    first = await prepared(ctx, "sell", token, other.address, amount="all", slippageBps=5000)
    assert other.trade(first).ok
    # What lies in the router does not stand in for what the pool pays less.
    leave_weth(other, built, DUST_WEI)
    done = wallet.trade(sell)
    assert [receipt.ok for receipt in done.receipts] == [True, True, False]
    assert (done.token_raw, done.money_raw) == (0, 0)
    assert rpc.call("evm_revert", slipped)
    assert wallet.trade(sell).money_raw == sell.raw


async def test_what_permit2_may_take_already_is_no_step(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    token, wallet = refusing(rpc, built, POOL["weth"]), signer(rpc, built)
    assert wallet.buy(token, "weth", 3000, 10**17)
    permit2, router = built.contracts["permit2"], built.contracts["universalRouter"]
    assert wallet.send(token, calldata("approve(address,uint256)", permit2, MAX)).ok
    assert wallet.send(token, calldata("approve(address,uint256)", built.contracts["swapRouter02"], MAX)).ok
    grant = calldata("approve(address,address,uint160,uint48)", token, router, 2**160 - 1, 2**48 - 1)
    assert wallet.send(permit2, grant).ok
    sell = await prepared(ctx, "sell", token, wallet.address, percent=50)
    assert (len(sell.steps), len(sell.answer["alreadyDone"])) == (1, 2)
    assert sell.answer["alreadyDone"][0].startswith("Permit2 may already take ")
    assert_verified(built, sell, wallet, sell.answer["spend"]["amount"])
    assert wallet.trade(sell).money_raw == sell.raw


async def test_the_better_pool_is_taken_and_a_v4_pool_needs_no_other_route(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    thin, deep = PoolPlan("usdg", 3000, quote_milli=3_500_000, supply_bps=1000), PoolPlan("weth", 10_000)
    token, wallet = refusing(rpc, built, thin, deep), signer(rpc, built)
    assert wallet.buy(token, "weth", 10_000, 10**17)
    sell = await prepared(ctx, "sell", token, wallet.address, amount="all")
    assert sell.answer["venue"]["pays"] == "eth"
    beside = refusing(rpc, built, POOL["weth"], PoolPlan("eth", supply_bps=1000, version=4))
    assert wallet.buy(beside, "weth", 3000, 10**17)
    sell = await prepared(ctx, "sell", beside, wallet.address, amount="all")
    assert (sell.answer["venue"]["kind"], sell.trips) == ("amm_v4", 4)
    assert "refused" not in sell.text


async def test_a_sell_that_only_the_node_lost_is_not_said_to_fail(
    shaky: Context, faulty: FaultyNode, rpc: SyncRpc, built: Built
) -> None:
    token, wallet = refusing(rpc, built, POOL["weth"]), signer(rpc, built)
    assert wallet.buy(token, "weth", 3000, 10**17)
    outcomes = []
    for after in range(2, 16):
        await shaky.heads.refresh()
        faulty.fault, faulty.after = "all errors", after
        try:
            outcomes.append((await prepared(shaky, "sell", token, wallet.address, amount="all")).code)
        except RoundtripError as error:
            outcomes.append(error.code)
        finally:
            faulty.fault, faulty.after = None, 0
    assert set(outcomes) == {"upstream", "ok"}
    assert outcomes[-1] == "ok"


async def test_a_sell_over_a_cap_says_what_part_of_it_sells_by_the_other_route(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    token, wallet = refusing(rpc, built, POOL["weth"]), signer(rpc, built)
    owner = ContractDeployer(rpc, built.accounts[0])
    owner.receipt(owner.send(token, calldata("transfer(address,uint256)", wallet.address, 300_000 * 10**18)))
    assert wallet.send(token, calldata("cap()")).ok
    with pytest.raises(CallerFault) as raised:
        await prepared(ctx, "sell", token, wallet.address, amount="all")
    # A third is the cap, and a quarter the largest part tried below it.
    assert raised.value.message.endswith(" A smaller part sells: 75000 tokens went through.")
    sell = await prepared(ctx, "sell", token, wallet.address, amount="75000")
    assert wallet.trade(sell).money_raw == sell.raw


async def test_weth_that_lies_in_the_router_counts_for_nothing(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    token, wallet = refusing(rpc, built, POOL["weth"]), signer(rpc, built)
    assert wallet.buy(token, "weth", 3000, 10**17)
    clean = await prepared(ctx, "sell", token, wallet.address, amount="all")
    leave_weth(wallet, built, DUST_WEI)
    sell = await prepared(ctx, "sell", token, wallet.address, amount="all")
    assert (sell.raw, sell.min_raw) == (clean.raw, clean.min_raw)
    assert wallet.trade(sell).money_raw == sell.raw + DUST_WEI


async def test_more_than_the_wallet_holds_is_told_as_ever(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    token, wallet = refusing(rpc, built, POOL["weth"]), signer(rpc, built)
    assert wallet.buy(token, "weth", 3000, 10**17)
    with pytest.raises(CallerFault, match="The wallet holds") as raised:
        await prepared(ctx, "sell", token, wallet.address, amount="999999999")
    assert raised.value.code == "would_fail"
