"""An answer that something does not exist is true at the node's newest block, however old the head is."""

from dataclasses import replace
from typing import cast

import asyncpg
import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import CallerFault, NodeFault, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.holder_record.sources import read_source
from roundtrip.services.liquidity.handler import read_liquidity
from roundtrip.services.runtime import newest_block
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.newest_block import is_newest, wait_for_block
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.services.trade.prepare import PrepareBuyParams, PrepareSellParams, prepare_buy, prepare_sell
from roundtrip.store.server import connections
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.faulty_node import FaultyNode
from support.fixtures import PROJECT
from support.made_index import MadeIndex
from support.signing import Signer
from support.simulated import pay, simulated, transfer
from support.wallet import calldata

ETH = 10**18
SOMEBODY = "0x" + "ab" * 20
POOL = PoolPlan("weth", 3000, 10_000)


@pytest.fixture(autouse=True)
def own_head(rpc: SyncRpc) -> None:
    """A head that no other test had: these tests read its state after newer blocks, and the node forgets the
    state of a block to which it is reset again and again."""
    rpc.call("evm_mine")


def launched(rpc: SyncRpc, built: Built, *pools: PoolPlan) -> str:
    """A token that was launched after the head."""
    owner = ContractDeployer(rpc, built.accounts[0])
    code = compile_contract(PROJECT / "contracts/tokens/plain.vy")
    token = put_token(owner, built.contracts, Story("", "", "", pools=pools), code)
    owner.check_receipts()
    return token


def given(rpc: SyncRpc, built: Built, token: str, to: str) -> None:
    owner = ContractDeployer(rpc, built.accounts[0])
    owner.receipt(owner.send(token, calldata("transfer(address,uint256)", to, 10**24)))


async def test_a_token_launched_since_the_head_is_checked(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    reply = await check(ctx, CheckParams(launched(rpc, built, POOL)))
    assert reply.answer.verdict.code == "ok", reply.answer.verdict.text
    assert not reply.is_absence


@pytest.mark.parametrize("key", ["no_contract", "no_pool", "empty_pool", "not_a_token"])
async def test_an_absence_is_of_the_newest_block_alone(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    rpc.call("evm_mine")
    reply = await check(ctx, CheckParams(built.tokens.get(key, SOMEBODY)))
    assert (reply.answer.verdict.code, reply.is_absence) == (key, True)
    assert reply.block == int(rpc.call("eth_blockNumber"), 16)
    assert await is_newest(ctx, reply.block)


async def test_no_pool_to_withdraw_from_is_of_the_newest_block_alone(
    by_hand: Context, made: MadeIndex, rpc: SyncRpc, built: Built
) -> None:
    rpc.call("evm_mine")
    reply = await read_liquidity(by_hand, TokenParams(SOMEBODY))
    assert reply.answer.text == "There is no contract at this address."
    assert (reply.block, reply.is_absence) == (int(rpc.call("eth_blockNumber"), 16), True)
    token = launched(rpc, built, POOL)
    reply = await read_liquidity(by_hand, TokenParams(token))
    assert (len(reply.answer.venues), reply.is_absence) == (1, False)


async def test_without_the_newest_block_no_absence_is_reported(
    shaky: Context, faulty: FaultyNode, built: Built
) -> None:
    faulty.fault, faulty.after = "wrong chain id", 1
    with pytest.raises(NodeFault):
        await check(shaky, CheckParams(built.tokens["no_pool"]))
    assert not await is_newest(shaky, shaky.heads.last_number())


async def test_a_check_is_not_older_than_the_index(
    by_hand: Context, made: MadeIndex, rpc: SyncRpc, built: Built, made_url: str
) -> None:
    """The index has the blocks that alerts are about."""
    before = by_hand.heads.current().block.number
    rpc.call("evm_mine")
    assert (await check(by_hand, CheckParams(built.tokens["plain"]))).block == before
    async with connections.create_pool(made_url, min_size=1, max_size=1) as pool:
        await pool.execute("UPDATE facts.cursor SET number = $1", before + 1)
    assert (await check(by_hand, CheckParams(built.tokens["plain"]))).block == before + 1


@pytest.mark.parametrize(
    ("ahead", "is_answered"),
    [(1, False), (newest_block.MAX_AHEAD, False), (newest_block.MAX_AHEAD + 1, True)],
)
async def test_a_node_a_little_behind_the_index_reports_no_absence(
    by_hand: Context, made: MadeIndex, rpc: SyncRpc, made_url: str, ahead: int, is_answered: bool
) -> None:
    """A node that is far behind is of a chain that began anew."""
    number = int(rpc.call("eth_blockNumber"), 16)
    async with connections.create_pool(made_url, min_size=1, max_size=1) as pool:
        await pool.execute("UPDATE facts.cursor SET number = $1", number + ahead)
    if is_answered:
        assert (await check(by_hand, CheckParams(SOMEBODY))).answer.verdict.code == "no_contract"
        return
    with pytest.raises(ServiceFull, match=f"does not have block {number + ahead:,} yet"):
        await check(by_hand, CheckParams(SOMEBODY))


# --- what rests on a balance -----------------------------------------------------------------------


async def test_what_was_just_got_can_be_sold(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    wallet, token = Signer(rpc, built.contracts, "seller"), built.tokens["plain"]
    await ctx.heads.refresh()
    given(rpc, built, token, wallet.address)
    params = PrepareSellParams(token=token, sender=wallet.address, amount="all")
    assert (await prepare_sell(ctx, params)).answer.verdict.code == "ok"


async def test_eth_that_just_came_can_be_spent(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    wallet = Signer(rpc, built.contracts, "buyer", wei=0)
    await ctx.heads.refresh()
    owner = ContractDeployer(rpc, built.accounts[0])
    owner.receipt(owner.send(wallet.address, "0x", ETH))
    params = PrepareBuyParams(token=built.tokens["plain"], sender=wallet.address, amount="0.1")
    assert (await prepare_buy(ctx, params)).answer.verdict.code == "ok"


async def test_what_just_came_can_be_sent_on(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    """Eth that a wallet was short of, and a token that it had none of."""
    wallet, token = Signer(rpc, built.contracts, "sender", wei=0), built.tokens["plain"]
    await ctx.heads.refresh()
    owner = ContractDeployer(rpc, built.accounts[0])
    owner.receipt(owner.send(wallet.address, "0x", 2 * ETH))
    given(rpc, built, token, wallet.address)
    for step in (pay(SOMEBODY, ETH), transfer(token, SOMEBODY, 10**20)):
        assert (await simulated(ctx, wallet.address, step)).code == "nothing_received"


async def test_what_is_refused_is_refused_at_the_newest_block(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    wallet = Signer(rpc, built.contracts, "nobody")
    await ctx.heads.refresh()
    rpc.call("evm_mine")
    params = PrepareSellParams(token=built.tokens["plain"], sender=wallet.address, amount="all")
    with pytest.raises(CallerFault, match="holds none"):
        await prepare_sell(ctx, params)
    assert await is_newest(ctx, ctx.heads.last_number())


async def test_holders_of_a_token_launched_since_the_head_are_read(
    indexed: Context, rpc: SyncRpc, built: Built
) -> None:
    token = Address(launched(rpc, built, POOL))
    assert (await read_source(indexed, token, Meter())).token == token


# --- a block that the caller has seen --------------------------------------------------------------


async def test_a_block_that_exists_is_reached_at_once(ctx: Context, rpc: SyncRpc) -> None:
    number = ctx.heads.current().block.number
    await wait_for_block(ctx, number)
    assert ctx.heads.current().block.number == number
    rpc.call("evm_mine")
    await wait_for_block(ctx, number + 1)
    assert ctx.heads.current().block.number == number + 1


async def test_a_missing_block_is_waited_for_and_then_busy(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_block, "REACH_S", 0.1)
    number = ctx.heads.current().block.number
    for ahead in (1, newest_block.MAX_AHEAD + 1):
        with pytest.raises(ServiceFull, match=f"does not have block {number + ahead:,} yet") as caught:
            await wait_for_block(ctx, number + ahead)
        assert (caught.value.code, caught.value.retry_after_s) == ("busy", 1)


async def test_without_a_database_the_head_is_not_refreshed(ctx: Context, built: Built) -> None:
    class Closed:
        def acquire(self, **how: object) -> object:
            raise OSError

    alone = replace(ctx, pool=cast(asyncpg.Pool, Closed()))
    assert await newest_block.head_of_index(alone) == (ctx.heads.current(), 0)
