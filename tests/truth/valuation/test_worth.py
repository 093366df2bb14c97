"""What tokens are said to be worth, against what real wallets really get for them in real transactions."""

from dataclasses import dataclass, replace

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.holdings import (
    HoldingToSell,
    SellValue,
    Valued,
    slot_of,
    worth,
    worth_in_parts,
)
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.trader import Market, MarketTrader
from support.wallet import Fill, Wallet
from truth.animals import ANIMALS, V4, Animal
from truth.cases import Case

ETH = 10**18


async def valued(ctx: Context, *holdings: HoldingToSell, trips: int = 1) -> list[Valued]:
    """At the newest block, in so many trips."""
    head, meter = await ctx.heads.refresh(), Meter()
    found = await worth(ctx, head, holdings, meter)
    assert meter.trips == trips
    return found


async def given(ctx: Context, token: str) -> BalanceSlot:
    slot = await slot_of(ctx, await ctx.heads.refresh(), Address(token), Meter())
    assert slot is not None
    return slot


def in_wei(ctx: Context, fill: Fill, quote: str) -> int:
    """What a real sell brought; of usdg at the rate of the newest block."""
    found = quote_in_wei(fill.back_raw, quote, ctx.heads.current().market)
    assert found is not None
    return found


# --- honest tokens, to the wei ---------------------------------------------------------------------


@dataclass(frozen=True)
class BoughtPlace:
    """A token of the local chain, its only pool, and what is bought there."""

    key: str
    pool: PoolPlan
    paid_raw: int = 2 * 10**17


PLACES = (
    BoughtPlace("plain", PoolPlan()),
    BoughtPlace("six_decimals", PoolPlan()),
    BoughtPlace("v4_eth", PoolPlan("eth", version=4)),
    BoughtPlace("v4_fee_on_sell", PoolPlan("eth", version=4)),
    BoughtPlace("usdg_pool", PoolPlan("usdg", 3000), 700 * 10**6),
    BoughtPlace("v4_usdg", PoolPlan("usdg", 500, version=4), 700 * 10**6),
    BoughtPlace("fee_on_buy", PoolPlan()),
    BoughtPlace("no_return_value", PoolPlan()),
)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.key)
async def test_it_is_what_a_real_wallet_gets(
    ctx: Context, rpc: SyncRpc, built: Built, place: BoughtPlace
) -> None:
    """By its own tokens, and by as many that are given."""
    token, pool = built.tokens[place.key], place.pool
    wallet = Wallet(rpc, built.contracts, f"worth {place.key}")
    if pool.quote == "usdg":
        wallet.get_usdg(place.paid_raw)
    assert wallet.buy(token, pool.quote, pool.fee_pips, place.paid_raw, pool.version)
    held_raw = wallet.tokens(token)
    slot = await given(ctx, token)
    own, as_given = await valued(
        ctx,
        HoldingToSell(Address(token), held_raw, seller=Address(wallet.address)),
        HoldingToSell(Address(token), held_raw, slot=slot),
    )
    fill = wallet.sell(token, pool.quote, pool.fee_pips, held_raw, pool.version)
    assert fill.ok
    assert isinstance(own, SellValue)
    assert isinstance(as_given, SellValue)
    assert own.wei == as_given.wei == in_wei(ctx, fill, pool.quote)
    assert own.venue.quote == pool.quote


@pytest.mark.parametrize("key", ["curve", "curve_taxed", "graduated", "graduated_taxed", "graduated_usdg"])
async def test_a_launchs_tokens_are_worth_what_a_real_wallet_gets(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    token = Address(built.tokens[key])
    await ctx.heads.refresh()
    assert ctx.heads.venue_index is not None
    venue = ctx.heads.venue_index.venues_of(token)[-1]
    market = Market(
        token,
        venue.quote_address,
        venue.pool or "" if venue.kind == "launchpad_curve" else "",
        venue.fee_pips,
        venue.tick_spacing,
        venue.hook or ZERO_ADDRESS,
    )
    wallet = Wallet(rpc, built.contracts, f"worth {key}")
    paid_raw = 10**17 if venue.quote == "eth" else 350 * 10**6
    if venue.quote == "usdg":
        wallet.get_usdg(paid_raw)
    trader = MarketTrader(wallet, built.contracts, market)
    assert trader.buy(paid_raw)
    held_raw = wallet.tokens(token)
    slot = await given(ctx, token)
    own, as_given = await valued(
        ctx,
        HoldingToSell(token, held_raw, seller=Address(wallet.address)),
        HoldingToSell(token, held_raw, slot=slot),
    )
    fill = trader.sell(held_raw)
    assert fill.ok
    assert isinstance(own, SellValue), own
    assert isinstance(as_given, SellValue), as_given
    assert own.wei == as_given.wei == in_wei(ctx, fill, venue.quote)


# --- parts of a holding ----------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["plain", "usdg_pool", "two_pools", "both_versions", "graduated", "curve"])
async def test_parts_bring_together_what_the_whole_brings(ctx: Context, built: Built, key: str) -> None:
    """Sold one after another in a block, on whatever places, in two parts or three."""
    token = Address(built.tokens[key])
    slot, raw = await given(ctx, token), 2_000_000 * ETH
    whole, half, other, *thirds = await valued(
        ctx,
        HoldingToSell(token, raw, slot=slot),
        HoldingToSell(token, raw // 2, slot=slot),
        HoldingToSell(token, raw // 2, slot=slot, before_raw=raw // 2),
        HoldingToSell(token, raw // 4, slot=slot),
        HoldingToSell(token, raw // 4, slot=slot, before_raw=raw // 4),
        HoldingToSell(token, raw // 2, slot=slot, before_raw=raw // 2),
    )
    assert all(isinstance(one, SellValue) for one in (whole, half, other, *thirds)), (whole, half, other)
    assert wei_of(whole) == wei_of(half) + wei_of(other) == sum(map(wei_of, thirds))
    assert wei_of(other) < wei_of(half)


def wei_of(value: Valued) -> int:
    assert isinstance(value, SellValue)
    return value.wei


async def test_parts_that_sell_best_in_other_places_bring_no_more_than_the_whole(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """A few sell best in a cheap and thin pool, many in a dear and deep one."""
    pools = (PoolPlan("weth", 100, 200, 80), PoolPlan("weth", 10_000, 20_000, 8000))
    token = Address(put(rpc, built, Story("two", "", "tokens/plain.vy", pools=pools)))
    slot, few, all_raw = await given(ctx, token), 10**21, 10**25
    whole, first, rest, alone = await valued(
        ctx,
        HoldingToSell(token, all_raw, slot=slot),
        HoldingToSell(token, few, slot=slot),
        HoldingToSell(token, all_raw - few, slot=slot, before_raw=few),
        HoldingToSell(token, all_raw - few, slot=slot),
    )
    assert isinstance(first, SellValue)
    assert isinstance(whole, SellValue)
    assert first.venue != whole.venue
    assert first.wei + wei_of(rest) == whole.wei
    assert wei_of(rest) < wei_of(alone)


async def test_what_is_to_be_sold_in_one_place_is_sold_there_while_it_sells(
    ctx: Context, built: Built
) -> None:
    """In a thin pool and in a deep one; in none that was never there."""
    token = Address(built.tokens["two_pools"])
    slot, raw = await given(ctx, token), 10**21
    await ctx.heads.refresh()
    assert ctx.heads.venue_index is not None
    places = [venue.at() for venue in ctx.heads.venue_index.venues_of(token)]
    best, *own = await valued(
        ctx,
        HoldingToSell(token, raw, slot=slot),
        *(HoldingToSell(token, raw, slot=slot, at=place) for place in places),
    )
    assert [one.venue.at() for one in own if isinstance(one, SellValue)] == places
    assert wei_of(best) == max(map(wei_of, own)) > min(map(wei_of, own))
    (gone,) = await valued(ctx, HoldingToSell(token, raw, slot=slot, at="0x" + "99" * 20))
    assert gone == best


async def test_where_the_smaller_part_sells_and_both_are_too_much_it_says_so(
    ctx: Context, built: Built
) -> None:
    token = Address(built.tokens["max_transaction"])
    slot, most_raw = await given(ctx, token), 10**9 * ETH * 30 // 10_000
    alone, both, beyond = await valued(
        ctx,
        HoldingToSell(token, most_raw, slot=slot),
        HoldingToSell(token, 1, slot=slot, before_raw=most_raw),
        HoldingToSell(token, most_raw + 1, slot=slot),
    )
    assert isinstance(alone, SellValue)
    assert isinstance(both, RefusedCall)
    assert "sold just before" in (both.reason or "")
    assert isinstance(beyond, RefusedCall)


# --- traps -----------------------------------------------------------------------------------------


def put(
    rpc: SyncRpc, built: Built, story: Story, calls: tuple[tuple[str, tuple[object, ...]], ...] = ()
) -> str:
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    code = compile_contract(PROJECT / "contracts" / story.source)
    token = put_token(deployer, built.contracts, story, code)
    for signature, values in calls:
        deployer.send(token, calldata(signature, *values))
    deployer.check_receipts()
    return token


def pass_s(rpc: SyncRpc, seconds: int) -> None:
    now_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    rpc.call("evm_setNextBlockTimestamp", now_s + seconds)
    rpc.call("evm_mine")


BEFORE_A_BUY = 10**18
"""Given where nobody can buy any."""


def _named(animal: Animal) -> str:
    return f"{animal.source}{list(animal.extra)}v{animal.pools[0].version}{'+' if animal.calls else ''}"


def _comes_in_few_units(animal: Animal) -> bool:
    """A small buy brings too few whole units to sell a part of them, so its value is not known."""
    return animal.decimals == 0 and animal.pools[0].supply_bps < 100


@pytest.mark.parametrize("animal", [a for a in ANIMALS if not _comes_in_few_units(a)], ids=_named)
async def test_what_no_real_wallet_can_sell_is_worth_nothing_and_all_else_what_it_gets(
    ctx: Context, rpc: SyncRpc, built: Built, animal: Animal
) -> None:
    token = put(rpc, built, animal.story(), animal.calls)
    (pool,) = animal.pools
    wallet = Wallet(rpc, built.contracts, f"worth {token}")
    bought = wallet.buy(token, pool.quote, pool.fee_pips, 10**16, pool.version)
    held_raw = wallet.tokens(token) if bought else BEFORE_A_BUY
    pass_s(rpc, 13)
    slot = await slot_of(ctx, await ctx.heads.refresh(), Address(token), Meter())
    own, as_given = await valued(
        ctx,
        HoldingToSell(Address(token), held_raw, seller=Address(wallet.address)),
        HoldingToSell(Address(token), held_raw, slot=slot),
    )
    fill = wallet.sell(token, pool.quote, pool.fee_pips, held_raw, pool.version)
    if not fill.ok:
        assert not isinstance(as_given, SellValue)
        # Who sets the limits of gas by hand can sell within its band.
        assert animal.source == "detect_gas_band" or not isinstance(own, SellValue)
        return
    assert wei_of(own) == fill.back_raw
    if slot is None:
        assert animal.source == "reflection"
        assert isinstance(as_given, Missing)
    else:
        assert wei_of(as_given) == fill.back_raw


@pytest.mark.parametrize("key", ["blacklist_after_buy", "owner_only_sell", "detect_simulation"])
async def test_what_is_given_for_a_token_that_only_buyers_cannot_sell_is_refused(
    ctx: Context, built: Built, key: str
) -> None:
    token = Address(built.tokens[key])
    (found,) = await valued(ctx, HoldingToSell(token, 10**6 * ETH, slot=await given(ctx, token)))
    assert isinstance(found, RefusedCall), found


async def test_what_nobody_can_buy_and_nobody_sells_who_is_given_it_is_unknown(
    ctx: Context, built: Built
) -> None:
    token = Address(built.tokens["paused"])
    (found,) = await valued(ctx, HoldingToSell(token, 10**6 * ETH, slot=await given(ctx, token)))
    assert isinstance(found, Missing)
    assert "no wallet can buy it now" in found.why


async def test_the_token_says_why_a_bag_does_not_sell(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    """The router withholds the reason."""
    animal = Animal("pausable_owner")
    token, wallet = put(rpc, built, animal.story()), Wallet(rpc, built.contracts, "worth of a paused one")
    assert wallet.buy(token, "weth", 3000, 10**17)
    owner = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    owner.receipt(owner.send(token, calldata("setSelling(bool)", False)))
    holding = HoldingToSell(Address(token), wallet.tokens(token), seller=Address(wallet.address))
    (found,) = await worth_in_parts(ctx, await ctx.heads.refresh(), [holding], Meter())
    assert found == RefusedCall("sell", "selling off", 0)


@pytest.mark.parametrize("name", ["last_buyer_only", "detect_delays"])
async def test_what_sells_for_buyers_and_not_for_who_is_given_it_is_unknown(
    ctx: Context, rpc: SyncRpc, built: Built, name: str
) -> None:
    token = put(rpc, built, Animal(name).story())
    (found,) = await valued(ctx, HoldingToSell(Address(token), 10**21, slot=await given(ctx, token)))
    assert isinstance(found, Missing)
    assert found.fault == "token"


@pytest.mark.parametrize(
    ("key", "held_s", "sells"),
    [("cooldown", 0, False), ("cooldown", 60, True), ("time_bomb", 60, True), ("time_bomb", 1900, False)],
)
async def test_a_token_that_has_buyers_wait_is_asked_after_as_long_as_it_was_held(
    ctx: Context, rpc: SyncRpc, built: Built, key: str, held_s: int, sells: bool
) -> None:
    token = Address(built.tokens[key])
    wallet = Wallet(rpc, built.contracts, f"worth {key} {held_s}")
    assert wallet.buy(token, "weth", 3000, 10**17)
    held_raw = wallet.tokens(token)
    pass_s(rpc, held_s)
    (found,) = await valued(ctx, HoldingToSell(token, held_raw, slot=await given(ctx, token), held_s=held_s))
    fill = wallet.sell(token, "weth", 3000, held_raw)
    assert fill.ok is sells
    assert isinstance(found, SellValue if sells else RefusedCall)
    assert not isinstance(found, SellValue) or found.wei == fill.back_raw


async def test_a_tax_that_only_buyers_pay_is_taken_off(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    """A tenth for each hour since the purchase: who is given tokens pays none."""
    case = Case((("held_step_bps", 1000),), V4)
    token = put(rpc, built, case.story())
    wallet = Wallet(rpc, built.contracts, "taxed")
    assert wallet.buy(token, "eth", 3000, 10**17, version=4)
    held_raw, held_s = wallet.tokens(token), 3 * 3600
    pass_s(rpc, held_s)
    fresh, held = await valued(
        ctx,
        HoldingToSell(Address(token), held_raw, slot=await given(ctx, token)),
        HoldingToSell(Address(token), held_raw, slot=await given(ctx, token), held_s=held_s),
    )
    fill = wallet.sell(token, "eth", 3000, held_raw, version=4)
    assert fill.ok
    assert fill.back_raw * 99 < wei_of(held) * 100 <= fill.back_raw * 100
    assert wei_of(held) * 10 < wei_of(fresh) * 8


async def test_a_balance_that_the_token_does_not_confirm_is_no_balance(ctx: Context, built: Built) -> None:
    token = Address(built.tokens["plain"])
    slot = await given(ctx, token)
    (found,) = await valued(ctx, HoldingToSell(token, ETH, slot=replace(slot, base=slot.base + 1)))
    assert isinstance(found, Missing)
    assert "confirm" in found.why
    lying = Address(built.tokens["lying_balance"])
    assert await slot_of(ctx, await ctx.heads.refresh(), lying, Meter()) is None
    (answer,) = await valued(ctx, HoldingToSell(lying, ETH, slot=replace(slot, asset=lying)))
    assert isinstance(answer, Missing)


async def test_a_seller_who_has_less_shows_nothing(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    wallet = Wallet(rpc, built.contracts, "poor", wei=0)
    token, seller = Address(built.tokens["plain"]), Address(wallet.address)
    (found,) = await valued(ctx, HoldingToSell(token, ETH, seller=seller))
    assert isinstance(found, Missing)


async def test_a_seller_without_eth_is_given_what_the_gas_costs(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    token = Address(built.tokens["plain"])
    wallet = Wallet(rpc, built.contracts, "no gas")
    assert wallet.buy(token, "weth", 3000, 10**17)
    held_raw = wallet.tokens(token)
    rpc.call("anvil_setBalance", wallet.address, "0x0")
    (found,) = await valued(ctx, HoldingToSell(token, held_raw, seller=Address(wallet.address)))
    rpc.call("anvil_setBalance", wallet.address, hex(ETH))
    assert wei_of(found) == wallet.sell(token, "weth", 3000, held_raw).back_raw


async def test_what_strangers_left_in_the_routers_is_not_the_tokens(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    tokens = [Address(built.tokens[key]) for key in ("plain", "v4_weth", "v4_eth")]
    holdings = [HoldingToSell(token, 10**21, slot=await given(ctx, token)) for token in tokens]
    before = await valued(ctx, *holdings)
    stranger, weth = Wallet(rpc, built.contracts, "stranger"), built.contracts["weth"]
    assert stranger.send(weth, calldata("deposit()"), 4 * ETH).ok
    for router in ("swapRouter02", "universalRouter"):
        assert stranger.send(weth, calldata("transfer(address,uint256)", built.contracts[router], 2 * ETH)).ok
    rpc.call("anvil_setBalance", built.contracts["universalRouter"], hex(ETH))
    assert [wei_of(one) for one in await valued(ctx, *holdings)] == [wei_of(one) for one in before]
