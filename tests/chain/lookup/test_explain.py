"""Every sort of transaction, really sent, and told with the amounts that balances moved by."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest
from eth_abi.abi import encode

from roundtrip.chain.rpc.client import Node
from roundtrip.domain.base.errors import NodeFault
from roundtrip.services.runtime.context import Context
from roundtrip.venues.entry_point import BEFORE_EXECUTION, ENTRY_POINTS, USER_OPERATION_EVENT
from roundtrip.venues.erc20 import TRANSFER_TOPIC
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.launchpad import LaunchRequest, graduate, launch, launch_and_buy
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.explained import ETH, explain_tx, kinds, newest, sums
from support.faulty_node import ANSWER_FAULTS, WIRE_FAULTS, FaultyNode
from support.loud import loud
from support.mining import by_hand
from support.trader import Market, MarketTrader
from support.wallet import PoolSpec, Wallet, calldata

BOB = "0x" + "b0b0" * 10
APPROVE = "approve(address,uint256)"


@pytest.fixture
def alice(rpc: SyncRpc, built: Built) -> Wallet:
    return Wallet(rpc, built.contracts, "alice explains")


# --- money and rights ------------------------------------------------------------------------------


async def test_a_plain_transfer_of_eth(indexed: Context, rpc: SyncRpc, alice: Wallet) -> None:
    before = alice.eth()
    sent = alice.send(BOB, "0x", ETH // 10)
    answer = await explain_tx(indexed, newest(rpc))
    assert (answer.status, answer.kind, kinds(answer)) == ("success", "transfer", ["transfer"])
    assert sums(answer) == ({"eth": ETH // 10}, {})
    assert before - alice.eth() == ETH // 10 + sent.gas_wei
    assert answer.fee_eth == sent.gas_wei / ETH
    assert (answer.sender, answer.to, answer.whose, answer.eth_by) == (
        alice.address, BOB, alice.address, "balance",
    )  # fmt: skip
    assert answer.text.startswith(f"{alice.address} sent 0.1 eth to {BOB}. It is in block ")
    block = rpc.call("eth_getBlockByNumber", "latest", False)
    assert answer.tx_block == int(block["number"], 16)
    assert answer.tx_time is not None
    assert answer.tx_time.timestamp() == int(block["timestamp"], 16)


async def test_a_transfer_of_a_token_is_as_its_contract_tells(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    plain = built.tokens["plain"]
    assert alice.buy(plain, "weth", 3000, ETH // 100)
    alice.send(plain, calldata("transfer(address,uint256)", BOB, 5 * ETH))
    answer = await explain_tx(indexed, newest(rpc))
    assert (answer.kind, kinds(answer), sums(answer)) == ("transfer", ["transfer"], ({plain: 5 * ETH}, {}))
    assert f'{alice.address} sent 5 "PLAIN" ({plain}) to {BOB}.' in answer.text
    assert "Token amounts are as their contracts report them." in answer.text


@pytest.mark.parametrize(
    ("amount", "says"),
    [
        (2**256 - 1, "allowed {} to take any amount of its"),
        (3 * ETH, "allowed {} to take up to 3 "),
        (0, "revoked the right of {} to take its"),
    ],
)
async def test_an_approval(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet, amount: int, says: str
) -> None:
    plain = built.tokens["plain"]
    alice.send(plain, calldata(APPROVE, BOB, amount))
    answer = await explain_tx(indexed, newest(rpc))
    assert (answer.kind, kinds(answer), sums(answer)) == ("approval", ["approval"], ({}, {}))
    assert says.format(BOB) in answer.text
    assert (answer.steps[0].who, answer.steps[0].to) == (alice.address, BOB)


async def test_a_right_given_by_permit2(indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet) -> None:
    data = calldata(
        "approve(address,address,uint160,uint48)", built.tokens["plain"], BOB, 2**160 - 1, 1_900_000_000
    )
    alice.send(built.contracts["permit2"], data)
    answer = await explain_tx(indexed, newest(rpc))
    assert answer.kind == "approval"
    assert f"{alice.address} allowed {BOB} to take any amount of its" in answer.text
    assert "through Permit2, until 2030-03-17" in answer.text


async def test_weth_made_and_unmade(indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet) -> None:
    weth = built.contracts["weth"]
    alice.send(weth, calldata("deposit()"), ETH)
    made = await explain_tx(indexed, newest(rpc))
    assert (made.kind, kinds(made), sums(made)) == ("wrap", ["wrap"], ({"eth": ETH}, {"weth": ETH}))
    alice.send(weth, calldata("withdraw(uint256)", ETH // 4))
    back = await explain_tx(indexed, newest(rpc))
    assert (back.kind, kinds(back), sums(back)) == (
        "wrap", ["unwrap"], ({"weth": ETH // 4}, {"eth": ETH // 4}),
    )  # fmt: skip
    assert f"{alice.address} unwrapped 0.25 weth into eth." in back.text


# --- trades ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("has_index", [True, False])
async def test_a_buy_and_a_sell_in_a_v3_pool(
    indexed: Context, ctx: Context, rpc: SyncRpc, built: Built, alice: Wallet, has_index: bool
) -> None:
    """Also where there is no index: the pool is asked for its key, the token for its name."""
    asked, plain = indexed if has_index else ctx, built.tokens["plain"]
    bought = alice.buy(plain, "weth", 3000, ETH // 10)
    assert bought
    buy = await explain_tx(asked, newest(rpc))
    assert (buy.kind, kinds(buy), buy.steps[0].venue) == ("trade", ["buy"], "amm_v3")
    assert sums(buy) == ({"eth": ETH // 10}, {plain: bought})
    assert buy.steps[0].at is not None
    assert buy.steps[0].at in buy.text
    assert buy.got[0].symbol == "PLAIN"
    filled = alice.sell(plain, "weth", 3000, bought)
    sell = await explain_tx(asked, newest(rpc))
    assert (sell.kind, kinds(sell), sell.eth_by) == ("trade", ["sell"], "balance")
    assert sums(sell) == ({plain: bought}, {"eth": filled.back_raw})
    paid, got = sell.steps[0].paid, sell.steps[0].got
    assert paid is not None
    assert got is not None
    assert (paid.raw, got.raw, got.asset) == (str(bought), str(filled.back_raw), "weth")


@pytest.mark.parametrize("story", ["curve", "curve_taxed", "graduated", "graduated_taxed"])
@pytest.mark.parametrize("has_index", [True, False])
async def test_trades_of_a_launchpad_token(
    indexed: Context, ctx: Context, rpc: SyncRpc, built: Built, alice: Wallet, story: str, has_index: bool
) -> None:
    asked, token, zero = indexed if has_index else ctx, built.tokens[story], "0x" + "0" * 40
    asked_curve = {
        "to": built.contracts["launchpadFactory"],
        "data": calldata("getLaunchedToken(address)", token),
    }
    curve = "0x" + str(rpc.call("eth_call", asked_curve, "latest"))[2 + 64 + 24 : 2 + 128]
    on_curve = story.startswith("curve")
    market = Market(token, zero, curve if on_curve else "", 0, 200, built.contracts["launchpadHook"])
    trader = MarketTrader(alice, built.contracts, market)
    eth = alice.eth()
    bought = trader.buy(ETH // 50)
    assert bought
    buy = await explain_tx(asked, newest(rpc))
    venue = "launchpad_curve" if on_curve else "launchpad_pool"
    assert (buy.kind, kinds(buy), buy.steps[0].venue) == ("trade", ["buy"], venue)
    assert sums(buy) == ({"eth": ETH // 50}, {token: bought})
    assert buy.steps[0].got is not None
    assert buy.steps[0].got.raw == str(bought), "the hook's fee is off"
    assert eth > alice.eth()
    filled = trader.sell(bought)
    sell = await explain_tx(asked, newest(rpc))
    assert kinds(sell) == ["sell"]
    assert sums(sell) == ({token: bought}, {"eth": filled.back_raw})
    assert sell.steps[0].got is not None
    assert sell.steps[0].got.raw == str(filled.back_raw)


async def test_eth_over_a_block_in_which_others_acted_is_said_to_be_that(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    other = Wallet(rpc, built.contracts, "somebody else")
    with by_hand(rpc):
        steps = alice.buy_steps(built.tokens["plain"], PoolSpec("weth", 3000), ETH // 10)
        (mine,) = alice.queue(steps, 1_000_000, 10**10, 10**9)
        twice = [replace(steps[0], to=BOB, data="0x", value_wei=1)] * 2
        first, second = other.queue(twice, 100_000, 10**10, 10**9)
        rpc.call("evm_mine")
    answer = await explain_tx(indexed, mine)
    assert "measured its eth over the whole block, in which others also acted" in answer.text
    for tx_hash in (first, second):
        one = await explain_tx(indexed, tx_hash)
        assert (one.eth_by, sums(one)) == ("events", ({"eth": 1}, {}))


# --- launches --------------------------------------------------------------------------------------


async def test_a_launch_and_what_it_buys_for_somebody(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    deployer = ContractDeployer(rpc, built.accounts[3])
    made = launch(deployer, built.contracts, LaunchRequest("Fresh", "FRESH", salt=11))
    first = await explain_tx(indexed, newest(rpc))
    assert (first.kind, kinds(first)) == ("launch", ["launch"])
    assert f'{built.accounts[3]} launched "FRESH" ({made.token}) on the curve {made.curve}' in first.text
    assert sums(first) == ({"eth": 5 * 10**14}, {})
    bought = launch_and_buy(deployer, built.contracts, LaunchRequest("More", "MORE", salt=12), ETH // 10, BOB)
    second = await explain_tx(indexed, newest(rpc))
    assert (second.kind, kinds(second)) == ("launch", ["launch", "buy"])
    assert (second.whose, sums(second)) == (built.accounts[3], ({"eth": ETH // 10 + 5 * 10**14}, {}))
    assert (second.steps[1].who, second.steps[1].at) == (BOB, bought.curve)
    assert f'"MORE" ({bought.token}) was bought for {BOB} with 0.1 eth on the curve' in second.text
    held = int(rpc.call("eth_call", {"to": bought.token, "data": calldata("balanceOf(address)", BOB)}), 16)
    (other,) = second.others
    assert (other.wallet, [(one.asset, one.raw) for one in other.got]) == (BOB, [(bought.token, str(held))])


async def test_the_steps_of_a_graduation(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    deployer = ContractDeployer(rpc, built.accounts[0])
    token = built.tokens["curve_full"]
    graduate(deployer, built.contracts, token)
    opened = await explain_tx(indexed, newest(rpc))
    number = int(rpc.call("eth_blockNumber"), 16) - 1
    swept = await explain_tx(
        indexed, rpc.call("eth_getBlockByNumber", hex(number), False)["transactions"][-1]
    )
    assert (swept.kind, kinds(swept)) == ("graduation", ["graduation"])
    assert "is sold out and was emptied for its pool" in swept.text
    assert opened.kind == "graduation"
    assert kinds(opened)[-1] == "graduation"
    assert {"pool_opened", "liquidity_added"} <= set(kinds(opened))
    assert "the token has graduated" in opened.text


# --- what is not known -----------------------------------------------------------------------------


async def test_a_contract_that_is_not_known(indexed: Context, rpc: SyncRpc, alice: Wallet) -> None:
    loud(rpc, BOB)
    alice.send(BOB, "0xdeadbeef", 7)
    answer = await explain_tx(indexed, newest(rpc))
    assert (answer.kind, kinds(answer), sums(answer)) == ("call", ["call"], ({"eth": 7}, {}))
    assert f"called the unknown contract {BOB}" in answer.text
    assert "(function selector 0xdeadbeef)" in answer.text


async def test_a_contract_is_made(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    made = ContractDeployer(rpc, built.accounts[2]).create("0x6001600c60003960016000f300")
    rpc.call("evm_mine")
    number = int(rpc.call("eth_blockNumber"), 16) - 1
    block = rpc.call("eth_getBlockByNumber", hex(number), False)
    answer = await explain_tx(indexed, block["transactions"][-1])
    assert (answer.kind, answer.to) == ("contract_made", None)
    assert answer.steps[0].at == made.lower()


async def test_a_strangers_words_are_a_strangers(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """Nobody traded: a contract says that it is a pool, and a curve, and that usdg moved; its symbol turns
    the sentence around."""
    swap = "0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67"
    curve_buy_topic = "0xec36bf571f136799e8dc0b0b8bea4b04d8bd3d43de838aab0d5fc21d4cbfc455"
    data = "0x" + encode(["int256"] * 5, [-(10**18), 10**18, 2**96, 1, 0]).hex()
    filled = "0x" + encode(["uint256"] * 4, [10**18, 10**18, 0, 0]).hex()
    moved = "0x" + encode(["uint256"], [10**24]).hex()
    topics = [alice.address, alice.address]
    loud(
        rpc,
        BOB,
        ([swap, *topics], data),
        ([curve_buy_topic, *topics], filled),
        ([TRANSFER_TOPIC, BOB, alice.address], moved),
    )
    alice.send(BOB, "0x12345678")
    answer = await explain_tx(indexed, newest(rpc))
    assert (answer.kind, kinds(answer)) == ("transfer", ["transfer"])
    assert sums(answer) == ({}, {BOB: 10**24})
    assert "reported 2 trades: we ignored them." in answer.text
    assert f"base units of {BOB}" in answer.text, "it tells no decimals"
    assert "as their contracts report them" in answer.text


async def test_a_strangers_symbol_is_cleaned_and_quoted(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    odd = built.tokens["strange_name"]
    alice.send(odd, calldata(APPROVE, BOB, 1))
    answer = await explain_tx(indexed, newest(rpc))
    texts = [
        answer.text,
        answer.steps[0].text,
        (answer.steps[0].token and answer.steps[0].token.symbol) or "",
    ]
    for text in texts:
        assert text.isprintable(), ascii(text)
        assert "\u202e" not in text
    assert odd in answer.text


# --- account abstraction ---------------------------------------------------------------------------


async def test_a_bundle_names_the_accounts_of_its_operations(
    indexed: Context, rpc: SyncRpc, alice: Wallet
) -> None:
    entry = sorted(ENTRY_POINTS)[0]
    accounts = ["0x" + "a1" * 20, "0x" + "a2" * 20]

    def ended(account: str, went: bool) -> tuple[list[str], str]:
        data = encode(["uint256", "bool", "uint256", "uint256"], [0, went, 0, 0])
        return [USER_OPERATION_EVENT, "0x01", account, "0x00"], "0x" + data.hex()

    rows = [([BEFORE_EXECUTION], "0x"), ended(accounts[0], True), ended(accounts[1], False)]
    loud(rpc, entry, *rows)
    alice.send(entry, "0x1fad948c")
    answer = await explain_tx(indexed, newest(rpc))
    assert (answer.kind, kinds(answer), answer.whose) == ("operations", ["operation", "operation"], None)
    assert [one.wallet for one in answer.others] == accounts
    assert f"submitted operations of the accounts {accounts[0]}, {accounts[1]}" in answer.text
    assert f"An operation of the account {accounts[1]} failed." in answer.text
    loud(rpc, entry, *rows[:2])
    alice.send(entry, "0x1fad948c")
    one = await explain_tx(indexed, newest(rpc))
    assert (one.whose, one.others) == (accounts[0], [])


# --- much at once ---------------------------------------------------------------------------------


async def test_many_steps_are_counted_and_not_all_told(indexed: Context, rpc: SyncRpc, alice: Wallet) -> None:
    moved = ["0x" + encode(["uint256"], [1 + number // 2]).hex() for number in range(60)]
    loud(rpc, BOB, *[([TRANSFER_TOPIC, alice.address, BOB], raw) for raw in moved])
    alice.send(BOB, "0x12345678")
    answer = await explain_tx(indexed, newest(rpc))
    assert (len(answer.steps), answer.more_steps) == (40, 20)
    assert sums(answer) == ({BOB: 930}, {})
    assert f"sent 6 base units of {BOB} to {BOB} (2 times)." in answer.text
    assert "\n48 more steps are not shown here.\n" in answer.text


async def test_the_whole_history_of_the_local_chain_can_be_told(
    indexed: Context, ctx: Context, rpc: SyncRpc
) -> None:
    """What it is does not hang on whether there is an index."""
    for number in range(40, int(rpc.call("eth_blockNumber"), 16), 40):
        for tx_hash in rpc.call("eth_getBlockByNumber", hex(number), False)["transactions"]:
            with_index, without = await explain_tx(indexed, tx_hash), await explain_tx(ctx, tx_hash)
            assert with_index.status == "success"
            assert (with_index.kind, sums(with_index)) == (without.kind, sums(without)), tx_hash


async def test_whose_trade_it_was_its_tokens_moved(indexed: Context, rpc: SyncRpc) -> None:
    """Of all that was traded on the local chain, which is all somebody's."""
    counted = 0
    for number in range(45, int(rpc.call("eth_blockNumber"), 16), 25):
        for tx_hash in rpc.call("eth_getBlockByNumber", hex(number), False)["transactions"]:
            logs = rpc.call("eth_getTransactionReceipt", tx_hash)["logs"]
            for step in (await explain_tx(indexed, tx_hash)).steps:
                if step.kind not in ("buy", "sell"):
                    continue
                assert step.token is not None
                assert step.who is not None
                moved = 0
                for log in logs:
                    if log["address"] == step.token.address and log["topics"][0] == TRANSFER_TOPIC:
                        sender, recipient = ("0x" + topic[-40:] for topic in log["topics"][1:3])
                        sign = (recipient == step.who) - (sender == step.who)
                        moved += sign * int(log["data"], 16)
                assert moved > 0 if step.kind == "buy" else moved < 0, tx_hash
                counted += 1
    assert counted > 10


# --- nodes that lie --------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def over(ctx: Context, node: FaultyNode) -> AsyncIterator[Context]:
    async with aiohttp.ClientSession() as session:
        yield replace(ctx, node=Node(node.url, session, 0.5))


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("fault", [*ANSWER_FAULTS, *WIRE_FAULTS])
async def test_a_faulty_node_makes_no_account(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet, fault: str, after: int
) -> None:
    """Whatever it does: the same account as from a sound one, or the chain did not answer."""
    assert alice.buy(built.tokens["plain"], "weth", 3000, ETH // 10)
    tx_hash = newest(rpc)
    whole = await explain_tx(indexed, tx_hash)
    async with FaultyNode(rpc.url).running() as node, over(indexed, node) as asked:
        node.fault, node.after = fault, after
        try:
            answer = await explain_tx(asked, tx_hash)
        except NodeFault:
            return
        assert answer == whole
