"""Transactions made to be misread: drains beside tiny trades, other people's trades, tales that tokens tell.
Nobody is said to have done what it did not do, and nothing that moved is left out."""

import pytest
from eth_abi.abi import encode

from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.services.lookup.explain import Explanation
from roundtrip.services.runtime.context import Context
from roundtrip.venues.account_events import APPROVAL
from roundtrip.venues.erc20 import TRANSFER_TOPIC
from support.explained import ETH, curve_of, explain_tx, newest, sums, swap
from support.loud import loud
from support.robot import robot
from support.wallet import Wallet, calldata

BOB, BOT, EVIL = "0x" + "b0b0" * 10, "0x" + "bb07" * 10, "0x" + "e711" * 10
APPROVE, MOVE = "approve(address,uint256)", "transferFrom(address,address,uint256)"
CURVE_BUY = "buy(uint256,uint256,address)"
USDG = 10**6


@pytest.fixture
def alice(rpc: SyncRpc, built: Built) -> Wallet:
    return Wallet(rpc, built.contracts, "alice attacks", eth=500)


@pytest.fixture
def victim(rpc: SyncRpc, built: Built) -> Wallet:
    return Wallet(rpc, built.contracts, "a victim")


def moved_of(answer: Explanation, wallet: str) -> tuple[dict[str, int], dict[str, int]]:
    (one,) = [other for other in answer.others if other.wallet == wallet]
    return {x.asset: int(x.raw) for x in one.paid}, {x.asset: int(x.raw) for x in one.got}


# --- what a trade hides ----------------------------------------------------------------------------


async def test_a_drain_beside_a_tiny_trade_is_told(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet, victim: Wallet
) -> None:
    contracts, plain = built.contracts, built.tokens["plain"]
    usdg, weth = contracts["usdg"], contracts["weth"]
    victim.get_usdg(1000 * USDG)
    victim.send(usdg, calldata(APPROVE, BOT, 2**256 - 1))
    tiny = (contracts["swapRouter02"], swap(weth, plain, alice.address, 1000), 1000)
    robot(rpc, BOT, tiny, (usdg, calldata(MOVE, victim.address, EVIL, 900 * USDG), 0))
    alice.send(BOT, "0xdeadbeef", 1000)
    answer = await explain_tx(indexed, newest(rpc))
    assert f"{victim.address} sent 900 usdg to {EVIL}." in answer.text
    assert [step.kind for step in answer.steps] == ["buy", "transfer"]
    assert moved_of(answer, victim.address) == ({"usdg": 900 * USDG}, {})


async def test_rights_and_money_given_beside_a_tiny_trade_are_told(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """By a wallet that lets a contract act for it."""
    contracts, plain = built.contracts, built.tokens["plain"]
    usdg, weth = contracts["usdg"], contracts["weth"]
    alice.get_usdg(500 * USDG)
    robot(
        rpc,
        alice.address,
        (contracts["swapRouter02"], swap(weth, plain, alice.address, 1000), 1000),
        (plain, calldata(APPROVE, EVIL, 2**127), 0),
        (usdg, calldata("transfer(address,uint256)", EVIL, 400 * USDG), 0),
        (weth, calldata("deposit()"), ETH),
        (weth, calldata("transfer(address,uint256)", EVIL, ETH), 0),
    )
    alice.send(alice.address, "0x11223344")
    answer = await explain_tx(indexed, newest(rpc))
    assert [step.kind for step in answer.steps] == ["buy", "approval", "transfer", "wrap", "transfer"]
    assert answer.steps[0].who == alice.address, "its own eth stands in no log"
    for text in (f"allowed {EVIL} to take up to", f"sent 400 usdg to {EVIL}", f"sent 1 weth to {EVIL}"):
        assert f"{alice.address} {text}" in answer.text


async def test_trades_that_are_made_up_push_no_real_one_out(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """Nor a transfer out of what is told."""
    contracts, plain = built.contracts, built.tokens["plain"]
    swap_topic = "0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67"
    data = "0x" + encode(["int256"] * 5, [-ETH, ETH, 2**96, 1, 0]).hex()
    made_up = [f"0x{0xDEAD0000 + number:040x}" for number in range(405)]
    for one in made_up:
        loud(rpc, one, ([swap_topic, alice.address, alice.address], data))
    buy = (contracts["swapRouter02"], swap(contracts["weth"], plain, alice.address, ETH // 100), ETH // 100)
    robot(rpc, BOT, *[(one, "0x", 0) for one in made_up], buy)
    alice.send(BOT, "0xdeadbeef", ETH // 100)
    answer = await explain_tx(indexed, newest(rpc))
    assert ([step.kind for step in answer.steps], answer.steps[0].who) == (["buy"], alice.address)
    assert "reported 405 trades: we ignored them." in answer.text
    assert "We did not examine 385 of those contracts." in answer.text
    alice.get_usdg(USDG)
    alice.send(contracts["usdg"], calldata("transfer(address,uint256)", BOT, USDG))
    robot(rpc, BOT, *[buy] * 7, (contracts["usdg"], calldata("transfer(address,uint256)", EVIL, USDG), 0))
    alice.send(BOT, "0xdeadbeef", 7 * ETH // 100)
    assert f"{BOT} sent 1 usdg to {EVIL}." in (await explain_tx(indexed, newest(rpc))).text


# --- whose a trade is ------------------------------------------------------------------------------


async def test_who_has_what_was_bought_is_named(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    contracts, plain = built.contracts, built.tokens["plain"]
    data = swap(contracts["weth"], plain, BOB, ETH // 10)
    alice.send(contracts["swapRouter02"], data, ETH // 10)
    answer = await explain_tx(indexed, newest(rpc))
    (step,) = answer.steps
    assert (step.who, step.to) == (alice.address, BOB)
    assert f", delivered to {BOB}." in answer.text
    assert moved_of(answer, BOB)[1].keys() == {plain}


async def test_what_a_bot_buys_for_itself_is_not_its_callers(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    contracts, plain = built.contracts, built.tokens["plain"]
    weth, router = contracts["weth"], contracts["swapRouter02"]
    rpc.call("anvil_setBalance", BOT, hex(10 * ETH))
    robot(
        rpc,
        BOT,
        (weth, calldata("deposit()"), ETH),
        (weth, calldata(APPROVE, router, ETH), 0),
        (router, swap(weth, plain, BOT, ETH // 10), 0),
    )
    alice.send(BOT, "0xdeadbeef")
    answer = await explain_tx(indexed, newest(rpc))
    (buy,) = [step for step in answer.steps if step.kind == "buy"]
    assert (buy.who, buy.to) == (None, BOT)
    assert "was bought for 0.1 weth in the v3 pool" in buy.text
    assert sums(answer) == ({}, {})
    assert f"{alice.address} bought" not in answer.text


async def test_what_a_bot_buys_on_a_curve_is_not_its_callers(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    token = built.tokens["curve"]
    curve = curve_of(rpc, built, token)
    rpc.call("anvil_setBalance", BOT, hex(10 * ETH))
    robot(rpc, BOT, (curve, calldata(CURVE_BUY, ETH // 100, 0, BOT), ETH // 100))
    alice.send(BOT, "0xdeadbeef")
    own = await explain_tx(indexed, newest(rpc))
    assert (own.steps[0].who, own.steps[0].to) == (None, BOT)
    assert f"{alice.address} bought" not in own.text
    alice.send(BOT, "0xdeadbeef", ETH // 100)
    paid = await explain_tx(indexed, newest(rpc))
    assert (paid.steps[0].who, paid.steps[0].to) == (alice.address, BOT)


@pytest.mark.parametrize("what", ["usdg", "plain"])
async def test_a_victims_money_is_not_sold_by_who_drains_it(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet, victim: Wallet, what: str
) -> None:
    contracts = built.contracts
    weth, router = contracts["weth"], contracts["swapRouter02"]
    token = contracts["usdg"] if what == "usdg" else built.tokens["plain"]
    if what == "usdg":
        victim.get_usdg(900 * USDG)
    else:
        victim.buy(token, "weth", 3000, ETH // 10)
    raw = victim.tokens(token)
    victim.send(token, calldata(APPROVE, BOT, 2**256 - 1))
    robot(
        rpc,
        BOT,
        (token, calldata(MOVE, victim.address, BOT, raw), 0),
        (token, calldata(APPROVE, router, raw), 0),
        (router, swap(token, weth, alice.address, raw, 500 if what == "usdg" else 3000), 0),
    )
    alice.send(BOT, "0xdeadbeef")
    answer = await explain_tx(indexed, newest(rpc))
    (trade,) = [step for step in answer.steps if step.kind in ("buy", "sell")]
    assert (trade.who, trade.to) == (None, alice.address)
    assert f"{alice.address} sold" not in answer.text
    assert f"{alice.address} bought" not in answer.text
    assert moved_of(answer, victim.address)[0] == {"usdg" if what == "usdg" else token: raw}
    assert victim.address in answer.text


async def test_a_way_over_two_pools_is_of_who_went_it(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    contracts, plain = built.contracts, built.tokens["plain"]
    hops = (contracts["usdg"], 500, contracts["weth"], 3000, plain)
    path = b"".join(
        bytes.fromhex(hop[2:]) if isinstance(hop, str) else hop.to_bytes(3, "big") for hop in hops
    )
    alice.get_usdg(100 * USDG)
    alice.send(contracts["usdg"], calldata(APPROVE, contracts["swapRouter02"], 2**256 - 1))
    way = calldata("exactInput((bytes,address,uint256,uint256))", (path, alice.address, 100 * USDG, 0))
    alice.send(contracts["swapRouter02"], way)
    answer = await explain_tx(indexed, newest(rpc))
    assert [(step.who, step.to) for step in answer.steps] == [(alice.address, None)] * 2
    assert (answer.others, sums(answer)[0]) == ([], {"usdg": 100 * USDG})


async def test_of_two_buys_each_is_for_whom_it_is(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    contracts = built.contracts
    plain, other = built.tokens["plain"], built.tokens["two_pools"]
    buys = [
        (contracts["swapRouter02"], swap(contracts["weth"], token, to, ETH // 100), ETH // 100)
        for token, to in ((plain, alice.address), (other, EVIL))
    ]
    robot(rpc, BOT, *buys)
    alice.send(BOT, "0xdeadbeef", ETH // 50)
    answer = await explain_tx(indexed, newest(rpc))
    assert [(step.who, step.to) for step in answer.steps] == [(alice.address, None), (alice.address, EVIL)]
    assert f"delivered to {EVIL}" in answer.text


@pytest.mark.parametrize("story", ["fee_on_buy", "transfer_tax"])
async def test_trades_of_a_token_that_keeps_a_part_are_its_traders(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet, story: str
) -> None:
    token = built.tokens[story]
    held = alice.buy(token, "weth", 3000, ETH // 10)
    assert held
    buy = await explain_tx(indexed, newest(rpc))
    alice.sell(token, "weth", 3000, held)
    sell = await explain_tx(indexed, newest(rpc))
    for answer, kind in ((buy, "buy"), (sell, "sell")):
        assert {step.who for step in answer.steps if step.kind == kind} == {alice.address}
    assert sums(buy)[1] == {token: held}
    assert (", less than the pools paid out" in buy.text) is (story == "fee_on_buy")


# --- tales -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("topic", "says"), [(TRANSFER_TOPIC, "sent"), (APPROVAL, "allowed")])
async def test_a_tale_of_a_third_one_is_told_as_that(
    indexed: Context, rpc: SyncRpc, alice: Wallet, victim: Wallet, topic: str, says: str
) -> None:
    loud(rpc, BOB, ([topic, victim.address, EVIL], "0x" + encode(["uint256"], [10**24]).hex()))
    alice.send(BOB, "0x12345678")
    answer = await explain_tx(indexed, newest(rpc))
    assert f"{BOB} says that {victim.address} {says} " in answer.text
    assert answer.steps[0].text.startswith(f"{BOB} says that {victim.address} {says} ")
    assert "as their contracts report them" in answer.text
    assert answer.others == []


async def test_amounts_that_nobody_can_have_are_not_spelled_out(
    indexed: Context, rpc: SyncRpc, alice: Wallet
) -> None:
    loud(rpc, BOB, *[([TRANSFER_TOPIC, BOB, alice.address], "0x" + "ff" * 32)] * 3)
    alice.send(BOB, "0x12345678")
    answer = await explain_tx(indexed, newest(rpc))
    assert f"sent an impossible amount of {BOB} to {alice.address} (3 times)." in answer.text


@pytest.mark.parametrize("token", ["plain", "usdg"])
async def test_a_transfer_of_nothing_is_a_known_trick(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet, victim: Wallet, token: str
) -> None:
    """It puts an address that looks like a known one into a stranger's history."""
    asset = built.contracts["usdg"] if token == "usdg" else built.tokens["plain"]
    alice.send(asset, calldata(MOVE, victim.address, EVIL, 0))
    answer = await explain_tx(indexed, newest(rpc))
    assert (
        "nothing moved (a transfer of 0 is a known trick to put a false address into your history)"
        in answer.text
    )
