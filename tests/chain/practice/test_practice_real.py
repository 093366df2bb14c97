"""Practice trades by the service's own means on the real local chain: a sell pays what a holder gets."""

import pytest

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.services.practice.account import practice_account
from roundtrip.services.practice.buy import practice_buy
from roundtrip.services.practice.schema import PracticeBuyParams, PracticeSellParams
from roundtrip.services.practice.sell import practice_sell
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.stories import Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.actors import code_of
from support.clocks import Clock
from support.practised import ETH, Holder, account_of, buys, pass_s, refused, sells, wei
from support.practising import conserved, new_account
from support.wallet import Wallet, calldata
from truth.animals import V4
from truth.cases import Case

# --- to the wei ------------------------------------------------------------------------------------

SOLD = ["plain", "usdg_pool", "v4_eth", "curve", "graduated", "v4_fee_on_sell", "graduated_taxed"]
"""Pools of either version and of usdg, a curve, and tokens that take a part of each sell."""


@pytest.mark.parametrize("key", SOLD)
async def test_a_sell_pays_what_a_holder_of_as_much_really_gets(
    shop: Context, rpc: SyncRpc, built: Built, account: Account, key: str
) -> None:
    token = built.tokens[key]
    await shop.heads.refresh()
    holder = Holder(shop, rpc, built, token)
    holder.buy()
    raw = int((await buys(shop, account, token, "0.1"))["receivedRaw"])
    assert 0 < raw < holder.wallet.tokens(token)
    found = await account_of(shop, account)
    sold = await sells(shop, account, token)
    market, number = shop.heads.current().market, int(rpc.call("eth_blockNumber"), 16)
    fill = holder.sell(raw)
    assert fill.ok
    assert (fill.sold_raw, sold["soldRaw"], sold["block"]) == (raw, str(raw), number)
    assert wei(sold["got"]) == quote_in_wei(fill.back_raw, holder.venue.quote, market)
    assert [one["worth"] for one in found["positions"]] == [sold["got"]]
    assert sold["venue"]["pays"] == holder.venue.quote
    assert wei(sold["profit"]) == wei(sold["got"]) - wei(sold["cost"]) < 0
    async with shop.pool.acquire() as connection:
        await conserved(connection, account.id)


async def test_a_sell_in_three_parts_in_a_block_pays_what_one_sell_does(
    shop: Context, built: Built, account: Account
) -> None:
    token, other = built.tokens["plain"], await new_account(shop)
    for one in (account, other):
        await buys(shop, one, token, "0.3")
    parts = [await sells(shop, account, token, percent) for percent in (20, 50, 100)]
    whole = await sells(shop, other, token)
    assert {part["block"] for part in parts} == {whole["block"]}
    assert sum(int(part["soldRaw"]) for part in parts) == int(whole["soldRaw"])
    assert sum(wei(part["got"]) for part in parts) == wei(whole["got"])
    assert [(await account_of(shop, one))["eth"] for one in (account, other)] == [whole["ethLeft"]] * 2
    # Each part alone would have brought more.
    assert wei(parts[2]["got"]) * 5 < wei(whole["got"]) * 2


async def test_what_it_cost_the_node_is_told(shop: Context, built: Built, account: Account) -> None:
    token = built.tokens["plain"]
    await shop.heads.refresh()
    done = (
        await practice_buy(shop, PracticeBuyParams(token, "0.1"), account, None),
        await practice_account(shop, Nothing(), account),
        await practice_sell(shop, PracticeSellParams(token, 100), account, None),
    )
    costs = [one.meter for one in done]
    assert [cost.trips for cost in costs if cost is not None and cost.calls > 0] == [3, 1, 2]


# --- traps -----------------------------------------------------------------------------------------


def put(rpc: SyncRpc, built: Built, story: Story) -> tuple[ContractDeployer, str]:
    """A token, and who owns it."""
    owner = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    token = put_token(owner, built.contracts, story, code_of(story.source))
    owner.check_receipts()
    return owner, token


REFUSED = {
    "blacklist_after_buy": ' not now, not within a day. The token says "blacklisted".',
    "owner_only_sell": ' not now, not within a day. The token says "trading not open".',
    "fee_on_sell": "its pool rejects a sell that arrives short.",
    "cooldown": 'Selling this much of it fails at this block with "cooldown".',
    "max_transaction": 'Selling this much of it fails at this block with "max transaction".',
}


@pytest.mark.parametrize("key", REFUSED)
async def test_a_trap_is_bought_and_not_sold(
    shop: Context, rpc: SyncRpc, built: Built, account: Account, key: str
) -> None:
    """As a real wallet fares, which bought before."""
    token = built.tokens[key]
    wallet = Wallet(rpc, built.contracts, "trapped")
    assert wallet.buy(token, "weth", 3000, ETH * 2 // 5)
    answer = await buys(shop, account, token, "0.3")
    # A wait is none that it sells straight back after.
    assert answer["sellsBack"] == "no"
    assert "You cannot sell it straight back. " in answer["text"]
    raw = int(answer["receivedRaw"])
    # The check has no opinion on what sells later, or in parts.
    stuck = key not in ("cooldown", "max_transaction")
    why = await refused(shop, account, token, stuck)
    assert why.endswith(REFUSED[key])
    if not stuck:
        assert [one["why"] for one in (await account_of(shop, account))["positions"]] == [why]
    assert raw < wallet.tokens(token)
    assert not wallet.sell(token, "weth", 3000, raw).ok


async def test_what_sells_at_once_and_not_later_is_sold_at_once(
    shop: Context, built: Built, account: Account
) -> None:
    token = built.tokens["time_bomb"]
    answer = await buys(shop, account, token, "0.3")
    assert (answer["sellsBack"], answer["verdict"]["code"]) == ("yes", "cannot_sell")
    assert "You cannot sell it straight back" not in answer["text"]
    assert "but not after an hour or a day" in answer["text"]
    assert wei((await sells(shop, account, token))["got"]) > ETH // 4


@pytest.mark.parametrize(("held_s", "sells_then"), [(1500, True), (1900, False), (4000, False)])
async def test_what_stops_selling_is_paid_only_at_an_age_at_which_a_wallet_sells_it(
    shop: Context, rpc: SyncRpc, built: Built, account: Account, clock: Clock, held_s: int, sells_then: bool
) -> None:
    """Also where more of it was bought since, which the token does not count."""
    token, other = built.tokens["time_bomb"], await new_account(shop)
    wallet = Wallet(rpc, built.contracts, f"stops {held_s}")
    assert wallet.buy(token, "weth", 3000, ETH // 5)
    for one in (account, other):
        await buys(shop, one, token, "0.1")
    pass_s(rpc, clock, held_s)
    assert wallet.buy(token, "weth", 3000, ETH // 5)
    await shop.heads.refresh()
    raw = int((await buys(shop, other, token, "0.1"))["receivedRaw"])
    if sells_then:
        for one in (account, other):
            assert wei((await sells(shop, one, token))["got"]) > ETH // 20
    else:
        stuck = held_s >= shop.policy.hour_s
        why = await refused(shop, account, token, stuck)
        assert ("but not after an hour or a day" if stuck else "Selling this much of it fails") in why
        with pytest.raises(CallerFault, match="We could not find out what it sells for"):
            await sells(shop, other, token)
        (position,) = (await account_of(shop, other))["positions"]
        assert (position["worth"], position["stuckAt"]) == (None, None)
    assert wallet.sell(token, "weth", 3000, raw).ok is sells_then


async def test_what_stops_after_a_week_is_not_paid_after_it(
    shop: Context, rpc: SyncRpc, built: Built, account: Account, clock: Clock
) -> None:
    bomb = Story("bomb", "", "tokens/escalating.vy", extra_types=("uint256",), extra_values=(604_800,))
    _, token = put(rpc, built, bomb)
    await shop.heads.refresh()
    assert (await buys(shop, account, token, "0.1"))["sellsBack"] == "yes"
    pass_s(rpc, clock, 700_000)
    assert "Selling this much of it fails at this block" in await refused(shop, account, token)


async def test_who_waits_as_long_as_the_token_has_him_wait_sells(
    shop: Context, rpc: SyncRpc, built: Built, account: Account, clock: Clock
) -> None:
    token = built.tokens["cooldown"]
    wallet = Wallet(rpc, built.contracts, "waits")
    assert wallet.buy(token, "weth", 3000, ETH // 5)
    raw = int((await buys(shop, account, token, "0.1"))["receivedRaw"])
    await refused(shop, account, token)
    pass_s(rpc, clock, 61)
    sold = await sells(shop, account, token)
    assert wei(sold["got"]) == wallet.sell(token, "weth", 3000, raw).back_raw


async def test_what_its_owner_paused_after_the_buy_is_not_sold_until_he_lets_it(
    shop: Context, rpc: SyncRpc, built: Built, account: Account
) -> None:
    owner, token = put(rpc, built, Story("paused", "", "zoo/pausable_owner.vy", "Paused", "PSD"))
    assert (await buys(shop, account, token, "0.1"))["sellsBack"] == "yes"
    owner.receipt(owner.send(token, calldata("setSelling(bool)", False)))
    assert "selling off" in await refused(shop, account, token, stuck=True)
    owner.receipt(owner.send(token, calldata("setSelling(bool)", True)))
    assert (await sells(shop, account, token))["position"] is None


async def test_where_nobody_paid_in_yet_nothing_is_paid_out(
    shop: Context, rpc: SyncRpc, built: Built, account: Account
) -> None:
    """Practice eth is in no pool: what the buy would have left there is not paid back."""
    token = built.tokens["one_sided"]
    assert (await buys(shop, account, token, "0.1"))["sellsBack"] == "yes"
    why = "Selling this much of it fails at this block; it gives no reason."
    assert await refused(shop, account, token) == why
    assert [one["why"] for one in (await account_of(shop, account))["positions"]] == [why]
    await shop.heads.refresh()
    Holder(shop, rpc, built, token).buy()
    assert wei((await sells(shop, account, token))["got"]) > ETH // 20


async def test_a_tax_that_only_buyers_pay_is_paid(
    shop: Context, rpc: SyncRpc, built: Built, account: Account, clock: Clock
) -> None:
    """A tenth for each hour since the purchase."""
    _, token = put(rpc, built, Case((("held_step_bps", 1000),), V4).story())
    wallet = Wallet(rpc, built.contracts, "taxed")
    assert wallet.buy(token, "eth", 3000, ETH // 5, version=4)
    raw = int((await buys(shop, account, token, "0.1"))["receivedRaw"])
    pass_s(rpc, clock, 3 * 3600)
    got_wei = wei((await sells(shop, account, token))["got"])
    fill = wallet.sell(token, "eth", 3000, raw, version=4)
    assert fill.ok
    assert fill.back_raw * 99 < got_wei * 100 <= fill.back_raw * 100
