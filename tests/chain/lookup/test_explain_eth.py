"""Eth of which no log tells: what was measured, what could not be, and that nothing is made up."""

import pytest
from eth_abi.abi import encode

from roundtrip.services.runtime.context import Context
from roundtrip.venues.account_events import DEPOSIT
from roundtrip.venues.erc20 import TRANSFER_TOPIC
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.explained import ETH, curve_of, explain_tx, in_one_block, newest, sums, swap
from support.loud import loud
from support.robot import robot
from support.wallet import PoolSpec, UnsignedStep, Wallet, calldata

BOB, BOT, EVIL = "0x" + "b0b0" * 10, "0x" + "bb07" * 10, "0x" + "e711" * 10
ZERO = "0x" + "0" * 40
APPROVE = "approve(address,uint256)"
CURVE_BUY = "buy(uint256,uint256,address)"


@pytest.fixture
def alice(rpc: SyncRpc, built: Built) -> Wallet:
    return Wallet(rpc, built.contracts, "alice and her eth", eth=500)


# --- eth that cannot be measured -------------------------------------------------------------------


@pytest.mark.parametrize("measured", [True, False])
async def test_what_a_curve_gave_back_was_not_paid(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet, measured: bool
) -> None:
    curve = curve_of(rpc, built, built.tokens["curve"])
    step = UnsignedStep(curve, calldata(CURVE_BUY, 100 * ETH, 0, alice.address), 100 * ETH)
    before = alice.eth()
    if measured:
        spent = alice.send(step.to, step.data, step.value_wei).gas_wei
        tx_hash, beside = newest(rpc), 0
    else:
        tx_hash, beside = in_one_block(rpc, alice, step), 1
        spent = alice.receipt(tx_hash).gas_wei
    answer = await explain_tx(indexed, tx_hash)
    left = before - alice.eth() - spent
    if beside:
        number = hex(answer.tx_block or 0)
        other = rpc.call("eth_getBlockByNumber", number, False)["transactions"][-1]
        left -= alice.receipt(other).gas_wei + beside
    assert 0 < left < 5 * ETH
    assert sums(answer)[0] == {"eth": left}
    assert (answer.eth_by, answer.incomplete) == ("balance" if measured else "events", False)
    assert "100 eth" not in answer.text


async def test_eth_sent_along_is_not_said_to_be_paid(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """Of 1 eth 0.9 came back, and all that is logged is an approval, or nothing."""
    plain = built.tokens["plain"]
    for more in [[(plain, calldata(APPROVE, EVIL, 5), 0)], []]:
        robot(rpc, BOT, (alice.address, "0x", 9 * ETH // 10), *more)
        answer = await explain_tx(indexed, in_one_block(rpc, alice, UnsignedStep(BOT, "0xdeadbeef", ETH)))
        assert (answer.eth_by, answer.incomplete) == ("events", True)
        assert f"In total {alice.address} sent along 1 eth" in answer.text
        assert "paid 1 eth" not in answer.text
        assert (
            "We do not know whether contracts also sent it eth, or sent some back (it sent more"
            in answer.text
        )


async def test_a_sell_for_eth_that_was_not_measured_is_no_gift(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    plain = built.tokens["plain"]
    held = alice.buy(plain, "weth", 3000, ETH // 10)
    assert held
    approve, sell = alice.sell_steps(plain, PoolSpec("weth", 3000), held)
    alice.send(approve.to, approve.data)
    answer = await explain_tx(indexed, in_one_block(rpc, alice, sell))
    assert (answer.eth_by, answer.incomplete, sums(answer)) == ("events", True, ({plain: held}, {}))
    assert answer.steps[0].got is not None
    assert answer.steps[0].got.asset == "weth"
    assert "and got an amount of eth that we could not find out (the pool paid about 0.09" in answer.text


async def test_a_sell_whose_eth_went_elsewhere_is_told_as_that(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """The router unwraps it for somebody of whom no log tells."""
    plain, router = built.tokens["plain"], built.contracts["swapRouter02"]
    held = alice.buy(plain, "weth", 3000, ETH // 10)
    assert held
    alice.send(plain, calldata(APPROVE, router, held))
    itself = "0x" + "0" * 39 + "2"
    calls = [
        swap(plain, built.contracts["weth"], itself, held),
        calldata("unwrapWETH9(uint256,address)", 0, EVIL),
    ]
    alice.send(router, calldata("multicall(bytes[])", [bytes.fromhex(call[2:]) for call in calls]))
    answer = await explain_tx(indexed, newest(rpc))
    assert (answer.status, sums(answer)) == ("success", ({plain: held}, {}))
    assert "It did not receive what the pool paid." in answer.text


async def test_plain_eth_is_exact_only_where_nobody_could_hand_it_back(
    indexed: Context, rpc: SyncRpc, alice: Wallet
) -> None:
    to_wallet = await explain_tx(indexed, in_one_block(rpc, alice, UnsignedStep(BOB, "0x", ETH)))
    assert (to_wallet.eth_by, to_wallet.incomplete) == ("events", False)
    robot(rpc, BOT, (alice.address, "0x", ETH // 2))
    to_bot = await explain_tx(indexed, in_one_block(rpc, alice, UnsignedStep(BOT, "0x", ETH)))
    assert (to_bot.eth_by, to_bot.incomplete) == ("events", True)


async def test_eth_sent_to_what_wraps_it_for_itself_is_told(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    robot(rpc, BOT, (built.contracts["weth"], calldata("deposit()"), ETH))
    alice.send(BOT, "0x", ETH)
    answer = await explain_tx(indexed, newest(rpc))
    assert f"{alice.address} sent 1 eth to {BOT}." in answer.text


async def test_eth_that_all_came_back_is_told(indexed: Context, rpc: SyncRpc, alice: Wallet) -> None:
    robot(rpc, BOT, (alice.address, "0x", ETH))
    alice.send(BOT, "0x", ETH)
    answer = await explain_tx(indexed, newest(rpc))
    assert sums(answer) == ({}, {})
    assert "It got back as much eth as it sent." in answer.text


# --- weth of another make --------------------------------------------------------------------------


async def test_weth_that_is_made_and_burned_by_transfers(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """As some weth is; and one that tells of it both ways tells of it once."""
    weth, much = built.contracts["weth"], "0x" + encode(["uint256"], [ETH]).hex()
    for text in (
        [([TRANSFER_TOPIC, ZERO, alice.address], much)],
        [([TRANSFER_TOPIC, ZERO, alice.address], much), ([DEPOSIT, alice.address], much)],
    ):
        loud(rpc, weth, *text)
        alice.send(weth, calldata("deposit()"), ETH)
        made = await explain_tx(indexed, newest(rpc))
        assert ([step.kind for step in made.steps], sums(made)) == (["wrap"], ({"eth": ETH}, {"weth": ETH}))
    loud(rpc, weth, ([TRANSFER_TOPIC, alice.address, ZERO], much))
    alice.send(weth, calldata("withdraw(uint256)", ETH))
    burned = await explain_tx(indexed, newest(rpc))
    assert ([step.kind for step in burned.steps], sums(burned)) == (["unwrap"], ({"weth": ETH}, {}))
