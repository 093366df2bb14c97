"""Payments in the local chain's own usdg: what is counted, and what is not."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from roundtrip.domain.accounts.account import MAX_CREDITS
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.faulty_node import Batch
from support.fixtures import closed_database
from support.mining import by_hand
from support.nodes import QuirkyNode, node_of, over, pair
from support.paying import (
    USDG,
    PayingShop,
    a_shop,
    account_of,
    answer_of,
    refusal,
    some_address,
    with_payments,
)
from support.wallet import calldata

CONTRACTS = Path(__file__).resolve().parents[3] / "contracts"
WAIT_S = 60


@pytest.fixture
async def shop(ctx: Context, rpc: SyncRpc, built: Built) -> PayingShop:
    return await a_shop(ctx, rpc, built)


# --- what is counted -------------------------------------------------------------------------------


async def test_a_payment_is_counted_once_it_is_final_and_never_again(shop: PayingShop) -> None:
    tx = shop.pay(5_234_567)
    await shop.ctx.heads.refresh()
    code, text = await shop.refused(tx)
    assert code == "no_such_tx"
    assert "not final yet" in text
    assert "Nothing was credited. Send the hash again in about" in text
    shop.payer.mine(63)
    assert (await shop.refused(tx))[0] == "no_such_tx"
    shop.payer.mine(1)
    assert await answer_of(shop.ctx, "redeem_payment", shop.account, tx=tx.upper().replace("X", "x")) == {
        "credited": 5_234,
        "usdg": "5.234567",
        "balance": 5_234,
    }
    for _ in range(2):
        assert (await shop.refused(tx))[0] == "already_used"
    assert await shop.balance() == 5_234
    second = shop.pay(1 * USDG)
    shop.payer.finalize()
    answer = await answer_of(shop.ctx, "redeem_payment", shop.account, tx=second)
    assert answer == {"credited": 1_000, "usdg": "1", "balance": 6_234}
    reply = await answer_of(shop.ctx, "my_mite", shop.account)
    assert reply["credits"] == 6_234
    assert "20,000 are left today. You also have 6,234 paid calls. You have 1 live key of" in reply["text"]


async def test_the_status_tells_how_to_pay(shop: PayingShop) -> None:
    status = await answer_of(shop.ctx, "credits", shop.account)
    how = status["pay"].pop("how")
    assert status == {
        "open": True,
        "balance": 0,
        "free": {"perMinute": 60, "perDay": 20_000},
        "holders": {"perMinute": 300, "perDay": 200_000, "min": 100_000, "live": False},
        "pay": {
            "payTo": shop.pay_to,
            "asset": shop.payer.usdg.lower(),
            "symbol": "USDG",
            "callsPerUsdg": 1_000,
        },
    }
    assert f"Send usdg to {shop.pay_to} in a plain transfer, from the wallet that the key belongs to" in how
    assert "1 usdg buys 1,000 calls" in how


async def test_closed_payments_leave_the_balance(shop: PayingShop) -> None:
    tx, other = shop.pay(), shop.pay()
    shop.payer.finalize()
    await answer_of(shop.ctx, "redeem_payment", shop.account, tx=tx)
    closed = replace(shop.ctx, payments=None, has_own_token=True, holder_min=7)
    status = await answer_of(closed, "credits", shop.account)
    assert (status["open"], status["pay"], status["balance"]) == (False, None, 5_000)
    assert (status["holders"]["min"], status["holders"]["live"]) == (7, True)
    for paid_tx in (tx, other):
        assert (await refusal(closed, shop.account, paid_tx))[0] == "not_open"


async def test_many_posts_of_one_payment_over_several_processes_count_it_once(
    shop: PayingShop, database_url: str
) -> None:
    tx = shop.pay()
    shop.payer.finalize()
    pools = [await connections.create_pool(database_url, min_size=1, max_size=4) for _ in range(3)]

    async def posted(turn: int) -> str:
        try:
            process_ctx = replace(shop.ctx, pool=pools[turn % 3])
            await answer_of(process_ctx, "redeem_payment", shop.account, tx=tx)
        except RoundtripError as error:
            return error.code
        return "ok"

    async with asyncio.timeout(WAIT_S):
        outcomes = await asyncio.gather(*(posted(turn) for turn in range(50)))
    assert sorted(outcomes) == ["already_used"] * 49 + ["ok"]
    assert await shop.balance() == 5_000
    for pool in pools:
        await pool.close()


async def hands(shop: PayingShop) -> tuple[ContractDeployer, str]:
    """Whoever sends, and a contract that does what it is asked."""
    sender = shop.payer.wallet(some_address(), 0)
    sender.gas = 8_000_000
    made = sender.create(compile_contract(CONTRACTS / "truth" / "hands.vy"))
    # At an address of its own: the chain is put back after a test, and accounts stay.
    address = some_address()
    shop.payer.rpc.call("anvil_setCode", address, shop.payer.rpc.call("eth_getCode", made, "latest"))
    shop.payer.wallet(address)
    return sender, address


def acts(*deeds: tuple[str, str]) -> str:
    """Several calls by the contract, in one transaction."""
    given = [(to, 0, bytes.fromhex(data[2:])) for to, data in deeds]
    return calldata("act((address,uint256,bytes)[])", given)


def transfer(to: str, amount_raw: int) -> str:
    return calldata("transfer(address,uint256)", to, amount_raw)


async def test_a_contract_wallet_pays_whoever_sends_its_transaction(shop: PayingShop) -> None:
    sender, contract = await hands(shop)
    usdg = shop.payer.usdg
    paid = [(usdg, transfer(shop.pay_to, raw)) for raw in (USDG, 2 * USDG)]
    aside = (usdg, transfer(some_address(), 7 * USDG))
    tx = sender.send(contract, acts(paid[0], aside, paid[1]))
    sender.check_receipts()
    shop.payer.finalize()
    owner, stranger = (
        await account_of(shop.ctx, Address(contract)),
        await account_of(shop.ctx, some_address()),
    )
    code, text = await shop.refused(tx, stranger)
    assert code == "no_payment"
    assert f"Wallet {contract} paid, but your key belongs to {stranger.wallet}" in text
    answer = await answer_of(shop.ctx, "redeem_payment", owner, tx=tx)
    assert answer == {"credited": 3_000, "usdg": "3", "balance": 3_000}
    # Now that it was counted for its owner.
    assert (await shop.refused(tx, stranger))[0] == "already_used"


async def test_what_several_wallets_pay_in_one_transaction_is_each_ones_own(shop: PayingShop) -> None:
    sender, contract = await hands(shop)
    usdg = shop.payer.usdg
    shop.wallet.send(usdg, calldata("approve(address,uint256)", contract, 10 * USDG))
    pulled = calldata("transferFrom(address,address,uint256)", shop.wallet.account, shop.pay_to, 4 * USDG)
    tx = sender.send(contract, acts((usdg, pulled), (usdg, transfer(shop.pay_to, USDG))))
    sender.check_receipts()
    shop.payer.finalize()
    other = await account_of(shop.ctx, Address(contract))
    assert (await answer_of(shop.ctx, "redeem_payment", shop.account, tx=tx))["credited"] == 4_000
    assert (await answer_of(shop.ctx, "redeem_payment", other, tx=tx))["credited"] == 1_000
    for account in (shop.account, other):
        assert (await shop.refused(tx, account))[0] == "already_used"


# --- what is not -----------------------------------------------------------------------------------


async def test_what_the_chain_does_not_know_is_no_transaction(shop: PayingShop) -> None:
    code, text = await shop.refused("0x" + "12" * 32)
    assert code == "no_such_tx"
    assert "does not know this transaction" in text


async def test_what_is_in_no_block_is_told_so(shop: PayingShop) -> None:
    rpc = shop.payer.rpc
    with by_hand(rpc):
        sent = {"from": shop.wallet.account, "to": shop.payer.usdg, "data": transfer(shop.pay_to, USDG)}
        tx = rpc.call("eth_sendTransaction", sent | {"gas": hex(500_000)})
        code, text = await shop.refused(tx)
        assert (code, "not in a block yet" in text) == ("no_such_tx", True)


async def test_a_payment_that_a_reorganisation_took_back_is_gone(shop: PayingShop) -> None:
    tx = shop.pay()
    assert (await shop.refused(tx))[0] == "no_such_tx"
    shop.payer.rpc.call("anvil_reorg", 1, [])
    shop.payer.finalize()
    code, text = await shop.refused(tx)
    assert code == "no_such_tx"
    assert "does not know this transaction" in text or "not in a block yet" in text
    # In another block after all.
    again = shop.pay()
    shop.payer.finalize()
    assert (await answer_of(shop.ctx, "redeem_payment", shop.account, tx=again))["credited"] == 5_000


async def test_what_failed_paid_nothing(shop: PayingShop) -> None:
    tx = shop.pay(10**15)
    shop.payer.finalize()
    assert (await shop.refused(tx))[0] == "tx_failed"


async def test_what_is_no_payment_is_told_why(shop: PayingShop) -> None:
    payer, somebody = shop.payer, some_address()
    other = payer.wallet(somebody)
    shop.wallet.gas = 8_000_000
    fake = shop.wallet.create(compile_contract(CONTRACTS / "tokens" / "usdg.vy"), ["uint256"], [10**15])
    cases = {
        payer.pay(other, shop.pay_to, USDG): f"Wallet {somebody} paid, but your key belongs to",
        payer.pay(shop.wallet, shop.pay_to, USDG, fake): f"paid token {fake.lower()}, not usdg",
        payer.pay(
            shop.wallet, somebody, USDG
        ): f"Your wallet sent its usdg to {somebody}, not to {shop.pay_to}",
        payer.pay(shop.wallet, shop.pay_to, 999): "0.000999 usdg is less than the price of one call",
        payer.pay(shop.wallet, shop.pay_to, 0): "The transaction sent no usdg from your wallet",
        shop.wallet.send(shop.pay_to, "0x", 10**16): "The transaction paid eth",
        shop.wallet.send(somebody, "0x", 1): "The transaction sent no usdg from your wallet",
        payer.pay(other, somebody, USDG): "The transaction sent no usdg from your wallet",
    }
    payer.finalize()
    for tx, why in cases.items():
        code, text = await shop.refused(tx)
        assert (code, why in text) == ("no_payment", True), text
    # No token and no wallet is refused for good: the one that paid has its own key.
    owner = await account_of(shop.ctx, somebody)
    paid = next(iter(cases))
    assert (await answer_of(shop.ctx, "redeem_payment", owner, tx=paid))["credited"] == 1_000


async def test_who_pays_himself_has_paid_nothing(shop: PayingShop) -> None:
    itself = with_payments(shop.ctx, shop.account.wallet)
    await shop.ctx.heads.refresh()
    await answer_of(itself, "credits", shop.account)
    tx = shop.payer.pay(shop.wallet, shop.account.wallet, 5 * USDG)
    shop.payer.finalize()
    assert (await refusal(itself, shop.account, tx))[0] == "no_payment"


async def test_more_than_anybody_can_count_is_refused_and_stays(shop: PayingShop) -> None:
    dear = with_payments(shop.ctx, shop.pay_to, 10**6)
    rest_raw = MAX_CREDITS - 10
    await shop.ctx.pool.execute(
        "INSERT INTO accounts.balance (account_id, credits) VALUES ($1, $2)", shop.account.id, rest_raw
    )
    tx, fits = shop.pay(11), shop.pay(10)
    shop.payer.finalize()
    code, text = await refusal(dear, shop.account, tx)
    assert (code, f"{MAX_CREDITS:,} credits" in text) == ("no_payment", True)
    assert not [row for row in await shop.counted() if row["tx_hash"].hex() == tx[2:]]
    assert (await answer_of(dear, "redeem_payment", shop.account, tx=fits))["balance"] == MAX_CREDITS


async def test_one_payment_of_more_than_anybody_can_count(shop: PayingShop) -> None:
    bank = ContractDeployer(shop.payer.rpc, shop.payer.built.accounts[0])
    mint = calldata("mint(address,uint256)", shop.account.wallet, 2**120)
    owner = shop.payer.rpc.call("eth_call", {"to": shop.payer.usdg, "data": calldata("owner()")}, "latest")
    assert owner[-40:] == bank.account[2:].lower()
    bank.receipt(bank.send(shop.payer.usdg, mint))
    tx = shop.pay(2**119)
    shop.payer.finalize()
    assert (await shop.refused(tx))[0] == "no_payment"


# --- faults ----------------------------------------------------------------------------------------


async def test_without_a_database_it_is_busy(shop: PayingShop) -> None:
    tx = shop.pay()
    shop.payer.finalize()
    gone = replace(shop.ctx, pool=closed_database())
    assert (await refusal(gone, shop.account, tx))[0] == "busy"
    with pytest.raises(RoundtripError) as caught:
        await answer_of(gone, "credits", shop.account)
    assert caught.value.code == "busy"
    assert (await answer_of(shop.ctx, "redeem_payment", shop.account, tx=tx))["credited"] == 5_000


async def test_without_a_node_it_is_the_nodes_fault_and_nothing_is_used_up(shop: PayingShop) -> None:
    tx = shop.pay()
    shop.payer.finalize()
    dead = replace(shop.ctx, node=over(shop.ctx, "http://127.0.0.1:1").node)
    assert (await refusal(dead, shop.account, tx))[0] == "upstream"
    assert (await answer_of(dead, "credits", shop.account))["balance"] == 0
    assert (await answer_of(shop.ctx, "redeem_payment", shop.account, tx=tx))["credited"] == 5_000
    # What was counted is known without the chain.
    assert (await refusal(dead, shop.account, tx))[0] == "already_used"


class Forked(QuirkyNode):
    """It stands on a fork that is no more: of blocks by their number it knows ``number`` and no other."""

    number: str | None = None

    async def answered(self, body: Batch) -> Batch:
        answers = await super().answered(body)
        asked = {call["id"]: call for call in body if call["method"] == "eth_getBlockByNumber"}
        for answer in answers:
            call = asked.get(answer["id"])
            if self.number and call and call["params"][0] not in (self.number, "finalized"):
                answer["result"] = None
        return answers


async def test_what_a_node_on_another_fork_fills_in_is_not_believed(shop: PayingShop) -> None:
    tx = shop.pay()
    receipt = shop.payer.rpc.call("eth_getTransactionReceipt", tx)
    shop.payer.finalize()
    # The final block is another one than the payment's.
    shop.payer.mine(3)
    forked = Forked(node_of(shop.ctx).url)
    async with pair(node_of(shop.ctx).url) as (_, second), forked.running():
        forked.number = receipt["blockNumber"]
        several = replace(shop.ctx, node=over(shop.ctx, forked.url, second.url, timeout_s=4.0).node)
        code, text = await refusal(several, shop.account, tx)
        assert (code, "several nodes" in text) == ("upstream", True), text
        # The same two, each of which knows all of it.
        forked.number = None
        several = replace(shop.ctx, node=over(shop.ctx, forked.url, second.url, timeout_s=4.0).node)
        assert (await answer_of(several, "redeem_payment", shop.account, tx=tx))["credited"] == 5_000
