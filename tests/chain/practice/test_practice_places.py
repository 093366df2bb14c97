"""Where practice positions are traded, on the real local chain: one place each, as long as it is there."""

from roundtrip.domain.accounts.account import Account
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.launchpad import graduate
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.practised import Holder, account_of, buys, pass_s, refused, sells, wei
from support.practising import conserved, new_account

MOVED = "UPDATE accounts.practice_position SET at = $2 WHERE account_id = $1"
AT = "SELECT at FROM accounts.practice_position WHERE account_id = $1"


async def test_who_buys_where_it_is_cheap_sells_there(
    shop: Context, rpc: SyncRpc, built: Built, account: Account, clock: Clock
) -> None:
    """The thin pool's price is an eighth below the deep one's."""
    token, left = built.tokens["two_pools"], 10**18
    for _ in range(4):
        bought = await buys(shop, account, token, "0.01")
        # A real buyer would sell it in the deep one.
        assert "It sells back on another venue" in bought["text"]
        assert "A practice position sells in the pool that it was bought in" in bought["text"]
        (held,) = (await account_of(shop, account))["positions"]
        sold = await sells(shop, account, token)
        assert sold["venue"]["at"] == bought["venue"]["at"]
        assert held["worth"] == sold["got"]
        assert wei(sold["ethLeft"]) < left
        left = wei(sold["ethLeft"])
        pass_s(rpc, clock, 601)
    async with shop.pool.acquire() as connection:
        await conserved(connection, account.id)


async def test_a_buy_says_what_a_check_warns_of(shop: Context, built: Built, account: Account) -> None:
    bought = await buys(shop, account, built.tokens["hook_bait"], "0.01")
    assert bought["verdict"]["level"] == "ok"
    assert "A check of the token says: " in bought["text"]
    assert "takes no sell" in bought["text"]


async def test_more_of_a_position_is_bought_where_it_is(
    shop: Context, built: Built, account: Account, clock: Clock
) -> None:
    token, other = built.tokens["two_pools"], await new_account(shop)
    first = await buys(shop, account, token, "0.01")
    more = await buys(shop, account, token, "0.4")
    alone = await buys(shop, other, token, "0.4")
    assert first["venue"]["at"] == more["venue"]["at"] != alone["venue"]["at"]
    assert int(more["receivedRaw"]) < int(alone["receivedRaw"])
    # What is sold is over, and the next position may be elsewhere.
    await sells(shop, account, token)
    clock.now_s += 601
    assert (await buys(shop, account, token, "0.4"))["venue"]["at"] == alone["venue"]["at"]


async def test_where_its_pool_is_gone_it_is_sold_and_bought_in_another(
    shop: Context, built: Built, account: Account
) -> None:
    token, gone = built.tokens["two_pools"], "0x" + "99" * 20
    bought = await buys(shop, account, token, "0.4")
    async with shop.pool.acquire() as connection:
        await connection.execute(MOVED, account.id, gone)
    sold = await sells(shop, account, token, 50)
    assert (sold["venue"]["at"], sold["position"] is None) == (bought["venue"]["at"], False)
    await buys(shop, account, token, "0.1")
    async with shop.pool.acquire() as connection:
        at = await connection.fetchval(AT, account.id)
    assert at == bought["venue"]["at"]


async def test_what_was_bought_on_a_curve_is_sold_in_its_launchs_pool(
    shop: Context, rpc: SyncRpc, built: Built, account: Account
) -> None:
    token = built.tokens["curve_nearly_full"]
    bought = await buys(shop, account, token, "0.1")
    assert bought["venue"]["kind"] == "launchpad_curve"
    holder = Holder(shop, rpc, built, token)
    assert holder.trader.buy(10**18)
    # Neither here nor there, for a while: no reason to give it up.
    await refused(shop, account, token)
    graduate(ContractDeployer(rpc, rpc.call("eth_accounts")[0]), built.contracts, token)
    sold = await sells(shop, account, token)
    assert sold["venue"]["kind"] == "launchpad_pool"
    assert wei(sold["got"]) > 0
