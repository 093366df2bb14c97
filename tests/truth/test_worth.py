"""What tokens are said to be worth, against what real wallets really get for them in real transactions."""

from dataclasses import dataclass

import pytest

from roundtrip.chain.rpc import Meter
from roundtrip.chain.storage import BalanceSlot
from roundtrip.devnet.stories import PoolPlan
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.price import quote_in_wei
from roundtrip.domain.types import ZERO_ADDRESS, Address
from roundtrip.services.context import Context
from roundtrip.services.worth import Holding, Valued, Worth, slot_of, worth
from support.trader import Market, Trader
from support.wallet import Fill, Wallet

ETH = 10**18


async def valued(ctx: Context, *holdings: Holding, trips: int = 1) -> list[Valued]:
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
class Place:
    """A token of the local chain, its only pool, and what is bought there."""

    key: str
    pool: PoolPlan
    paid_raw: int = 2 * 10**17


PLACES = (
    Place("plain", PoolPlan()),
    Place("six_decimals", PoolPlan()),
    Place("v4_eth", PoolPlan("eth", version=4)),
    Place("v4_fee_on_sell", PoolPlan("eth", version=4)),
    Place("usdg_pool", PoolPlan("usdg", 3000), 700 * 10**6),
    Place("v4_usdg", PoolPlan("usdg", 500, version=4), 700 * 10**6),
    Place("fee_on_buy", PoolPlan()),
    Place("no_return_value", PoolPlan()),
)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.key)
async def test_it_is_what_a_real_wallet_gets(ctx: Context, rpc: SyncRpc, built: Built, place: Place) -> None:
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
        Holding(Address(token), held_raw, seller=Address(wallet.address)),
        Holding(Address(token), held_raw, slot=slot),
    )
    fill = wallet.sell(token, pool.quote, pool.fee_pips, held_raw, pool.version)
    assert fill.ok
    assert isinstance(own, Worth)
    assert isinstance(as_given, Worth)
    assert own.wei == as_given.wei == in_wei(ctx, fill, pool.quote)
    assert own.venue.quote == pool.quote


@pytest.mark.parametrize("key", ["curve", "curve_taxed", "graduated", "graduated_taxed", "graduated_usdg"])
async def test_a_launchs_tokens_are_worth_what_a_real_wallet_gets(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    token = Address(built.tokens[key])
    await ctx.heads.refresh()
    assert ctx.heads.book is not None
    venue = ctx.heads.book.known(token)[-1]
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
    trader = Trader(wallet, built.contracts, market)
    assert trader.buy(paid_raw)
    held_raw = wallet.tokens(token)
    slot = await given(ctx, token)
    own, as_given = await valued(
        ctx,
        Holding(token, held_raw, seller=Address(wallet.address)),
        Holding(token, held_raw, slot=slot),
    )
    fill = trader.sell(held_raw)
    assert fill.ok
    assert isinstance(own, Worth), own
    assert isinstance(as_given, Worth), as_given
    assert own.wei == as_given.wei == in_wei(ctx, fill, venue.quote)
