"""What the local chain's tokens tell of their holders, the hostile ones too."""

from roundtrip.chain.holders.views import (
    FirstFunding,
    fetch_views,
    find_entry_point_txs,
    find_funding_txs,
    had_before,
)
from roundtrip.chain.rpc.client import Meter
from roundtrip.config.networks import CHAIN_ID
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.actors import FUNDER, SNIPERS
from roundtrip_development.devnet.deploy import await_receipt
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.trading import actor_address
from roundtrip_development.devnet.world import Built
from unit.venues.logs import TRANSFER

GAS = 300_000
HOSTILE = (
    "loops_on_views", "loops_on_balance", "loops_on_transfer", "megabyte_name", "megabyte_revert",
    "garbage_text", "malformed_text", "lying_balance", "not_a_token",
)  # fmt: skip

FUNDED = """
    SELECT '0x' || encode(wallet.address, 'hex') AS wallet, '0x' || encode(funder.address, 'hex') AS funder,
        funded_number
    FROM facts.origin JOIN facts.address AS wallet ON wallet.id = wallet_id
    JOIN facts.address AS funder ON funder.id = funder_id WHERE wallet.address = ANY($1::bytea[])
"""


def holders_of(rpc: SyncRpc, token: str) -> list[Address]:
    """Everybody whom it was ever moved to."""
    wanted = {"fromBlock": "0x0", "toBlock": "latest", "address": token, "topics": [TRANSFER.topic]}
    return sorted({Address("0x" + log["topics"][2][26:]) for log in rpc.call("eth_getLogs", wanted)})


def word(rpc: SyncRpc, token: str, data: str) -> int:
    return int(rpc.call("eth_call", {"to": token, "data": data}, "latest"), 16)


async def test_it_is_what_the_token_tells_one_by_one(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    for key in ("plain", "graduated", "six_decimals", "curve"):
        token = Address(built.tokens[key].lower())
        holders = holders_of(rpc, token)
        assert holders
        pinned = ctx.heads.current().block
        views = await fetch_views(ctx.node, token, holders, holders, pinned, GAS, CHAIN_ID, Meter())
        assert views.supply_raw == word(rpc, token, "0x18160ddd")
        assert views.balances == {
            one: word(rpc, token, "0x70a08231" + one[2:].rjust(64, "0")) for one in holders
        }
        assert views.contracts == {one: rpc.call("eth_getCode", one, "latest") != "0x" for one in holders}


async def test_nothing_that_a_token_answers_is_an_error(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    pinned, holder = ctx.heads.current().block, Address("0x" + "ab" * 20)
    for key in HOSTILE:
        token = Address(built.tokens[key].lower())
        views = await fetch_views(ctx.node, token, [holder], [holder, token], pinned, GAS, CHAIN_ID, Meter())
        assert views.contracts == {holder: False, token: True}, key
        if key in ("loops_on_balance", "not_a_token"):
            assert views.balances == {holder: None}, key


async def test_it_is_as_it_was_at_the_pinned_block(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    pinned, token = ctx.heads.current().block, Address(built.tokens["plain"].lower())
    holders = holders_of(rpc, token)
    before = await fetch_views(ctx.node, token, holders, [], pinned, GAS, CHAIN_ID, Meter())
    rich = max(holders, key=lambda one: before.balances[one] or 0)
    rpc.call("anvil_impersonateAccount", rich)
    rpc.call("anvil_setBalance", rich, hex(10**18))
    data = "0xa9059cbb" + holders[0][2:].rjust(64, "0") + f"{7:064x}"
    moved = rpc.call("eth_sendTransaction", {"from": rich, "to": token, "data": data, "gas": hex(10**6)})
    assert await_receipt(rpc, moved)["status"] == "0x1"
    assert await fetch_views(ctx.node, token, holders, [], pinned, GAS, CHAIN_ID, Meter()) == before


async def test_no_transaction_of_the_built_chain_ran_operations(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    wanted = {"fromBlock": "0x0", "toBlock": "latest", "address": built.tokens["graduated"]}
    sent = {TxHash(log["transactionHash"]) for log in rpc.call("eth_getLogs", wanted)}
    nobodys = TxHash("0x" + "ab" * 32)
    found = await find_entry_point_txs(ctx.node, [*sent, nobodys], Meter())
    assert found == dict.fromkeys(sent, False) | {nobodys: None}


async def test_who_funded_the_snipers_did_so_in_a_transfer(indexed: Context, rpc: SyncRpc) -> None:
    snipers = [Address(actor_address(name)) for name in SNIPERS]
    rows = await indexed.pool.fetch(FUNDED, [bytes.fromhex(one[2:]) for one in snipers])
    wanted = [
        FirstFunding(Address(row["funder"]), Address(row["wallet"]), row["funded_number"]) for row in rows
    ]
    assert {one.wallet for one in wanted} == set(snipers)
    assert {one.funder for one in wanted} == {actor_address(FUNDER)}
    found = await find_funding_txs(indexed.node, wanted, Meter())
    for one in wanted:
        payment = found[one.wallet]
        assert payment is not None
        sent = rpc.call("eth_getTransactionByHash", payment.tx_hash)
        assert (sent["from"].lower(), sent["to"].lower()) == (one.funder, one.wallet)
        assert int(sent["blockNumber"], 16) == one.block_number
        assert int(sent["value"], 16) == payment.paid_wei > 0
    first = [(one.wallet, one.block_number) for one in wanted]
    # The built chain is loaded without its old states.
    assert set((await had_before(indexed.node, first, indexed.contracts.weth, Meter())).values()) == {None}
    later = [one._replace(block_number=one.block_number + 1) for one in wanted]
    assert set((await find_funding_txs(indexed.node, later, Meter())).values()) == {None}
