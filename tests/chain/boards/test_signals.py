"""Odd things, provoked on the real local chain: each is told with its figures, and what is usual is not."""

from collections.abc import AsyncIterator

import pytest
from eth_utils.crypto import keccak

from roundtrip.domain.base.types import Address
from roundtrip.services.boards.signals import Signal, Signals, signals
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing, when
from roundtrip.store.index import tokens
from roundtrip.store.server.migrate import migrate
from roundtrip_development.devnet import launchpad
from roundtrip_development.devnet.deploy import MAX, ContractDeployer, v3_pool
from roundtrip_development.devnet.launchpad import CurveToken, LaunchRequest
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.databases import connected, database
from support.ground import Ground, view
from support.trader import Market, MarketTrader
from support.wallet import Wallet, calldata

ZERO, DEAD = "0x" + "0" * 40, "0x" + "0" * 36 + "dead"
FRIEND = "0x" + "f1" * 20
ETH, SUPPLY = 10**18, 10**27
SERIAL = 9
"""An account that launched nothing before."""
ADDED = "0x" + keccak(text="IncreaseLiquidity(uint256,uint128,uint256,uint256)").hex()
_DECREASE = "decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))"


@pytest.fixture
async def empty(database_url: str) -> AsyncIterator[str]:
    async with database(database_url, "signals") as url:
        async with connected(url) as connection:
            await migrate(connection)
        yield url


@pytest.fixture
def ground(ctx: Context, rpc: SyncRpc, built: Built, empty: str) -> Ground:
    found = Ground(ctx, rpc, built, empty)
    # What the built chain ended with is past.
    found.pass_s(3601)
    return found


async def read_signals(ground: Ground, *launches: CurveToken) -> Signals:
    """The answer, once these tokens were read."""
    async with ground.followed() as ctx:
        async with ctx.pool.acquire() as connection:
            for made in launches:
                given = Address(made.token), "FR\u200bSH", "Fresh", 18, SUPPLY, 1
                await tokens.keep(connection, *given)
        return (await signals(ctx, Nothing())).answer


def held(ground: Ground, made: CurveToken, wallet: str) -> int:
    return view(ground.rpc, made.token, "balanceOf(address)", wallet)


def give(sender: ContractDeployer, made: CurveToken, taker: str, tokens_raw: int) -> str:
    sent = sender.send(made.token, calldata("transfer(address,uint256)", taker, tokens_raw))
    sender.receipt(sent)
    return sent


def size(one: Signal) -> tuple[str | None, int | None, int | None, float | None]:
    return one.size.amount, one.size.supply_bps, one.size.pool_bps, one.size.eth


def whole(tokens_raw: int) -> str:
    digits = f"{tokens_raw // ETH}.{tokens_raw % ETH:018d}"
    return digits.rstrip("0").rstrip(".")


async def test_an_insider_who_sells_is_told_with_all_of_it(ground: Ground) -> None:
    """Two sells, of which the larger is the evidence."""
    made = ground.launch(7)
    launchpad.curve_buy(ground.me, made, ETH // 2)
    all_raw = held(ground, made, ground.me.account)
    before = view(ground.rpc, made.curve, "trackedQuote()")
    small = launchpad.curve_sell(ground.me, made, all_raw // 5)
    large = launchpad.curve_sell(ground.me, made, all_raw // 2)
    ground.me.check_receipts()
    paid = before - view(ground.rpc, made.curve, "trackedQuote()")
    block = ground.rpc.call("eth_getBlockByNumber", "latest", False)
    answer = await read_signals(ground, made)
    (one,) = answer.signals
    assert small != large
    assert (one.kind, one.wallet, one.other, one.tx) == ("insider_sold", ground.me.account, None, large)
    assert (one.block, one.time) == (int(block["number"], 16), when(int(block["timestamp"], 16)))
    assert (one.token.address, one.token.symbol) == (made.token, "FRSH")
    sold_raw = all_raw // 5 + all_raw // 2
    assert size(one) == (whole(sold_raw), sold_raw * 10_000 // SUPPLY, None, paid / ETH)
    share = f"{sold_raw * 10_000 // SUPPLY / 100:.2f} % of the supply"
    assert one.text.startswith(
        f'{ground.me.account}, the deployer of "FRSH" ({made.token}) or a wallet that it funded, sold '
        f"{share} for 0.3"
    )
    assert answer.text.startswith(
        "Unusual events on launches within the last hour: insiders selling (1). The newest:\n1. "
    )
    assert answer.text.endswith(one.text)
    assert (answer.block, answer.block_time) == (one.block, one.time)


async def test_small_sells_and_those_of_others_are_silent(ground: Ground) -> None:
    made = ground.launch(7)
    for buyer in (ground.me, ground.buyer):
        launchpad.curve_buy(buyer, made, ETH // 2)
    launchpad.curve_sell(ground.buyer, made, held(ground, made, ground.buyer.account))
    launchpad.curve_sell(ground.me, made, SUPPLY // 200)
    give(ground.me, made, FRIEND, SUPPLY // 200)
    give(ground.buyer, made, FRIEND, held(ground, made, ground.buyer.account))
    give(ground.me, made, DEAD, SUPPLY // 200)
    ground.me.check_receipts()
    answer = await read_signals(ground, made)
    assert answer.signals == []
    assert answer.text == "We found no unusual event on launches within the last hour."


async def test_whom_the_deployer_paid_first_is_behind_the_launch(ground: Ground, built: Built) -> None:
    made = ground.launch(7)
    helper = Wallet(ground.rpc, built.contracts, "helper", wei=0)
    ground.me.receipt(ground.me.send(helper.address, "0x", ETH))
    trader = MarketTrader(helper, built.contracts, Market(made.token, ZERO, made.curve))
    bought = trader.buy(ETH // 2)
    assert bought
    fill = trader.sell(bought)
    answer = await read_signals(ground, made)
    (one,) = answer.signals
    assert (one.kind, one.wallet) == ("insider_sold", helper.address)
    assert size(one) == (whole(bought), bought * 10_000 // SUPPLY, None, fill.back_raw / ETH)


async def test_an_insider_who_moves_its_tokens_is_told_with_who_got_them(ground: Ground) -> None:
    made = ground.launch(7)
    launchpad.curve_buy(ground.me, made, ETH // 2)
    moved_raw = held(ground, made, ground.me.account) // 2
    sent = give(ground.me, made, FRIEND, moved_raw)
    (one,) = (await read_signals(ground, made)).signals
    assert (one.kind, one.wallet, one.other, one.tx) == ("insider_moved", ground.me.account, FRIEND, sent)
    assert size(one) == (whole(moved_raw), moved_raw * 10_000 // SUPPLY, None, None)
    assert one.text.endswith(f"of the supply to {FRIEND}.")


async def test_a_large_burn_is_told_whoever_burns(ground: Ground) -> None:
    made = ground.launch(7)
    launchpad.curve_buy(ground.buyer, made, ETH // 2)
    burned_raw = held(ground, made, ground.buyer.account)
    sent = give(ground.buyer, made, DEAD, burned_raw)
    (one,) = (await read_signals(ground, made)).signals
    assert (one.kind, one.wallet, one.other, one.tx) == ("large_burn", ground.buyer.account, None, sent)
    assert size(one) == (whole(burned_raw), burned_raw * 10_000 // SUPPLY, None, None)


async def test_who_launches_again_and_again_is_told_once(ground: Ground, rpc: SyncRpc, built: Built) -> None:
    serial = ContractDeployer(rpc, built.accounts[SERIAL])
    launches = []
    for salt in range(5):
        asked = LaunchRequest("Serial", "SER", salt=salt)
        launches.append(launchpad.launch(serial, built.contracts, asked))
        if salt == 3:
            assert (await read_signals(ground)).signals == []
    last = serial.sent[-1]
    (one,) = (await read_signals(ground)).signals
    assert (one.kind, one.wallet, one.tx) == ("serial_launcher", serial.account, last)
    assert one.token.address == launches[-1].token.lower()
    assert size(one) == (None, None, None, None)
    assert one.text == (
        f"{serial.account} launched {one.token.address}, the last of 5 within the hour. "
        "It made 5 launches; 0 became a pool."
    )
    # Who graduated enough is none: the launcher of the samples.
    ground.launch(7)
    assert len((await read_signals(ground)).signals) == 1


def put_pool(ground: Ground, made: CurveToken, eth_wei: int) -> tuple[int, int]:
    """A v3 pool of the second's with so much weth, in which somebody trades; its position and how much
    liquidity that is."""
    contracts, by = ground.built.contracts, ground.second
    launchpad.curve_buy(by, made, ETH // 2)
    by.send(contracts["weth"], calldata("deposit()"), eth_wei)
    for token in (made.token, contracts["weth"]):
        by.send(token, calldata("approve(address,uint256)", contracts["v3PositionManager"], MAX))
    amounts = {made.token: held(ground, made, by.account) // 2, contracts["weth"]: eth_wei}
    v3_pool(by, contracts, amounts, 3000, fill=True)
    (added,) = [log for log in by.receipt(by.sent[-1])["logs"] if log["topics"][0] == ADDED]
    by.check_receipts()
    trader = Wallet(ground.rpc, contracts, "trader")
    bought = trader.buy(made.token, "weth", 3000, ETH // 12)
    assert bought
    assert trader.sell(made.token, "weth", 3000, bought).ok
    return int(added["topics"][1], 16), int(added["data"][2:66], 16)


def take(ground: Ground, position: int, liquidity: int) -> str:
    manager = ground.built.contracts["v3PositionManager"]
    sent = ground.second.send(manager, calldata(_DECREASE, (position, liquidity, 0, 0, 2**40)))
    ground.second.receipt(sent)
    return sent


@pytest.mark.parametrize("wait_s", [0, 7200])
async def test_liquidity_that_leaves_is_told_with_its_share(ground: Ground, wait_s: int) -> None:
    """Whether it came within the same hour or before."""
    made = ground.launch(7)
    position, liquidity = put_pool(ground, made, 2 * ETH)
    ground.pass_s(wait_s)
    assert (await read_signals(ground, made)).signals == []
    take(ground, position, liquidity // 20)
    assert (await read_signals(ground, made)).signals == [], "a twentieth is usual"
    sent = take(ground, position, liquidity // 2)
    (one,) = (await read_signals(ground, made)).signals
    assert (one.kind, one.wallet, one.other, one.tx) == ("liquidity_left", ground.second.account, None, sent)
    assert one.size.pool_bps in (5499, 5500)
    assert one.size.eth == pytest.approx(1.1, rel=1e-3)
    assert one.size.amount is not None
    assert one.size.supply_bps is not None
    assert one.text.startswith(
        f"{ground.second.account} removed {one.size.pool_bps / 100:.2f} % of the liquidity of a pool of"
    )


async def test_what_was_worth_little_or_came_back_has_not_left(ground: Ground) -> None:
    made = ground.launch(7)
    position, liquidity = put_pool(ground, made, ETH // 20)
    take(ground, position, liquidity)
    assert (await read_signals(ground, made)).signals == []
    other = ground.launch(8)
    position, liquidity = put_pool(ground, other, 2 * ETH)
    take(ground, position, liquidity)
    (one,) = (await read_signals(ground, made, other)).signals
    assert (one.size.pool_bps, one.token.address) == (10_000, other.token)
    manager, weth = ground.built.contracts["v3PositionManager"], ground.built.contracts["weth"]
    by = ground.second
    collect = calldata("collect((uint256,address,uint128,uint128))", (position, by.account, 2**127, 2**127))
    by.receipt(by.send(manager, collect))
    low_is_weth = int(weth, 16) < int(other.token, 16)
    most = (2 * ETH, SUPPLY) if low_is_weth else (SUPPLY, 2 * ETH)
    again = "increaseLiquidity((uint256,uint256,uint256,uint256,uint256,uint256))"
    by.receipt(by.send(manager, calldata(again, (position, *most, 0, 0, 2**40))))
    assert (await read_signals(ground, made, other)).signals == []


async def test_where_the_supply_is_not_known_that_is_said(ground: Ground) -> None:
    made, sold = ground.launch(7), ground.launch(8)
    launchpad.curve_buy(ground.me, made, ETH // 2)
    give(ground.me, made, FRIEND, held(ground, made, ground.me.account))
    launchpad.curve_buy(ground.me, sold, ETH // 2)
    launchpad.curve_sell(ground.me, sold, held(ground, sold, ground.me.account))
    ground.me.check_receipts()
    answer = await read_signals(ground)
    (one,) = answer.signals
    assert (one.kind, one.token.symbol) == ("insider_sold", None)
    assert size(one)[:3] == (None, None, None)
    assert one.text.startswith(f"{ground.me.account}, the deployer of {sold.token} ")
    assert " sold an unknown share of the supply for 0.4" in one.text
    assert answer.text.endswith(
        "Not measured: 1 event, because the token's supply or the pool's liquidity is not known yet."
    )


async def test_an_hour_later_nothing_is_told(ground: Ground) -> None:
    made = ground.launch(7)
    launchpad.curve_buy(ground.buyer, made, ETH // 2)
    give(ground.buyer, made, DEAD, held(ground, made, ground.buyer.account))
    ground.pass_s(3590)
    assert len((await read_signals(ground, made)).signals) == 1
    ground.pass_s(20)
    assert (await read_signals(ground, made)).signals == []
