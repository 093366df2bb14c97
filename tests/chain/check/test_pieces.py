"""A cap on one sale beside a trap, on the local chain: ten sales of a tenth tell them apart.

The token's cap is 1 % of its supply, and 0.1 eth buys more than 5 %.
"""

from dataclasses import replace

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence, ProbeCell, RefusedCall, Sold
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.gathering import gather_evidence
from support.signing import Signer, prepared
from support.simulated import simulated
from support.simulating import ETH, steps_of
from support.wallet import PoolSpec, Wallet
from truth.simulated import TokenSpot, trip

POOL = PoolPlan("weth", 3000, 1000, 9000)
REPEATED = 4
"""What the main wallet cannot sell keeps the small buy after it from bringing enough in so thin a pool: that
buy is repeated alone before the isolation round."""
TEN = "ten sales of a tenth went through within a day"


def put(rpc: SyncRpc, built: Built, max_bps: int, pools: tuple[PoolPlan, ...] = (POOL,)) -> str:
    """A token of which one sale moves at most this share of the supply."""
    story = Story(
        "capped", "", "tokens/max_transaction.vy", "Capped", "CAP",
        extra_types=("uint256",), extra_values=(max_bps,), pools=pools,
    )  # fmt: skip
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    token = put_token(
        deployer, built.contracts, story, compile_contract(PROJECT / "contracts" / story.source)
    )
    deployer.check_receipts()
    return token


@pytest.fixture
def capped(rpc: SyncRpc, built: Built) -> str:
    return put(rpc, built, 100)


async def checked(ctx: Context, token: str, deep: bool = False) -> tuple[Evidence, int]:
    """A check's evidence and its trips."""
    await ctx.heads.refresh()
    meter = Meter()
    return await gather_evidence(ctx, Address(token), meter, deep=deep), meter.trips


def pieces_of(evidence: Evidence) -> list[ProbeCell]:
    return [cell for venue in evidence.venues for cell in venue.cells if cell.probe.seller == "pieces"]


async def test_a_cap_on_one_sale_is_a_warning_that_says_what_goes_through(ctx: Context, capped: str) -> None:
    evidence, trips = await checked(ctx, capped)
    (venue,) = (venue for venue in evidence.venues if venue.cells)
    bought = judge(evidence, POLICY).readings[evidence.venues.index(venue)].bought
    assert bought is not None
    assert bought.received_raw * 20 > 10**27
    verdict = judge(evidence, POLICY).verdict
    assert (verdict.code, verdict.level) == ("ok", "warn")
    refused = 'A sale of half of it is refused (the token says "max transaction")'
    assert verdict.text.startswith(f"{refused}; {TEN} for a loss of 0.")
    (cell,) = pieces_of(evidence)
    assert isinstance(cell.outcome, Sold)
    assert cell.outcome.sold_raw == cell.outcome.held_raw == bought.received_raw
    assert trips == REPEATED


async def test_a_smaller_cap_than_a_tenth_is_a_trap(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    evidence, trips = await checked(ctx, put(rpc, built, 10))
    assert judge(evidence, POLICY).verdict.code == "cannot_sell"
    (cell,) = pieces_of(evidence)
    assert isinstance(cell.outcome, RefusedCall)
    assert trips == REPEATED


@pytest.mark.parametrize("key", ["blacklist_after_buy", "owner_only_sell"])
async def test_a_trap_stays_a_trap(ctx: Context, built: Built, key: str) -> None:
    evidence, trips = await checked(ctx, built.tokens[key])
    verdict = judge(evidence, POLICY).verdict
    assert (verdict.code, verdict.level) == ("cannot_sell", "danger")
    (cell,) = pieces_of(evidence)
    assert isinstance(cell.outcome, RefusedCall)
    assert cell.outcome.step == "sell"
    assert trips == {"blacklist_after_buy": 4, "owner_only_sell": 3}[key], (
        "what reads block numbers buys twice"
    )


@pytest.mark.parametrize(
    ("key", "trips"), [("plain", 2), ("cooldown", 3), ("two_pools", 2), ("v4_fee_on_sell", 2)]
)
async def test_a_token_that_one_sale_sells_is_not_sold_in_pieces(
    ctx: Context, built: Built, key: str, trips: int
) -> None:
    evidence, made = await checked(ctx, built.tokens[key])
    assert pieces_of(evidence) == []
    assert made == trips


async def test_ten_sales_simulated_come_to_the_wei_to_ten_real_ones(
    ctx: Context, rpc: SyncRpc, built: Built, capped: str
) -> None:
    spot = TokenSpot("weth", PoolSpec("weth", 3000))
    made = await trip(ctx, rpc, built, capped, [spot], spot)
    real = made.sells[0, POLICY.day_s, 1000]
    answer = made.said.answer
    assert (made.said.code, made.said.level) == ("ok", "warn")
    assert (int(answer["sellBack"]["back"]["raw"]), real.sold_raw) == (real.back_raw, real.held_raw)
    assert (answer["sellBack"]["shareBps"], answer["sellBack"]["afterS"]) == (10_000, POLICY.day_s)
    assert answer["sellBack"]["reverts"] == "max transaction"
    assert TEN in made.said.text


async def test_a_simulated_buy_of_a_trap_is_told_as_one(ctx: Context, built: Built, rpc: SyncRpc) -> None:
    wallet = Wallet(rpc, built.contracts, "caught")
    await ctx.heads.refresh()
    token = built.tokens["blacklist_after_buy"]
    result = await simulated(ctx, wallet.address, *steps_of(wallet, token, PoolSpec("weth", 3000), ETH // 10))
    assert (result.code, result.level) == ("cannot_sell", "danger")


async def test_a_buy_under_a_cap_is_prepared_and_warned_of(
    ctx: Context, rpc: SyncRpc, built: Built, capped: str
) -> None:
    wallet = Signer(rpc, built.contracts, "capped buyer", eth=6)
    await ctx.heads.refresh()
    trade = await prepared(ctx, "buy", capped, wallet.address, amount="0.1")
    assert trade.code == "ok"
    assert trade.answer["verdict"]["level"] == "warn"
    assert trade.answer["refused"] is False


async def test_a_deep_check_of_a_capped_token_still_tries_its_sale(ctx: Context, capped: str) -> None:
    plain, _ = await checked(ctx, capped)
    deep, _ = await checked(ctx, capped, deep=True)
    assert len(pieces_of(deep)) == 1
    assert judge(deep, POLICY).verdict.text.startswith(judge(plain, POLICY).verdict.text.split(" for a ")[0])


async def test_a_small_gas_budget_never_makes_a_cap_a_trap(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    token = put(rpc, built, 100, (PoolPlan("weth", 3000, 1000, 4500), PoolPlan("weth", 500, 1000, 4500)))
    wallet = Wallet(rpc, built.contracts, "frugal")
    await ctx.heads.refresh()
    codes = []
    for budget in range(2_000_000, 30_000_001, 700_000):
        poor = replace(ctx, policy=replace(POLICY, trade_gas_budget=budget))
        result = await simulated(
            poor, wallet.address, *steps_of(wallet, token, PoolSpec("weth", 3000), ETH // 10)
        )
        codes.append(result.code)
    assert set(codes) == {"unproven", "ok"}
