"""What happened on the real local chain, as rules see it."""

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from roundtrip.devnet import launchpad
from roundtrip.devnet.deploy import MAX, v3_pool
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.watch.rules import VERBS, Happening, Rule, Watch, Who
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.migrate import migrate
from roundtrip.store.watch.happenings import IndexedBlock, read_happenings, replay_rule
from support.databases import connected, database
from support.ground import Ground, view
from support.wallet import calldata

FRIEND = "0x" + "f1" * 20
ETH, SUPPLY = 10**18, 10**27
_DECREASE = "decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))"


@pytest.fixture
async def empty(database_url: str) -> AsyncIterator[str]:
    async with database(database_url, "happenings") as url:
        async with connected(url) as connection:
            await migrate(connection)
        yield url


@pytest.fixture
def ground(ctx: Context, rpc: SyncRpc, built: Built, empty: str) -> Ground:
    return Ground(ctx, rpc, built, empty)


async def read_since(ground: Ground, after: int) -> list[Happening]:
    """What happened in the blocks after ``after``."""
    await ground.follow()
    async with connected(ground.url) as connection, connection.transaction():
        [row] = await connection.fetch("SELECT number, at_s FROM facts.cursor")
        return await read_happenings(
            connection, ground.ctx.contracts, IndexedBlock(after, 0), IndexedBlock(row["number"], row["at_s"])
        )


def height(ground: Ground) -> int:
    return int(ground.rpc.call("eth_blockNumber"), 16)


async def test_of_the_built_chain_a_replay_counts_the_same(ground: Ground) -> None:
    """Nobody there gives tokens away or takes liquidity out: the tests below do."""
    everything = await read_since(ground, -1)
    counts = Counter(one.verb for one in everything)
    assert set(counts) == {*VERBS} - {"moving", "draining", "removing"}
    # Some quotes have no price there.
    known = {one.verb for one in everything if one.eth_wei}
    assert {"buying", "graduating"} <= known
    async with connected(ground.url) as connection, connection.transaction():
        [row] = await connection.fetch(
            "SELECT number, at_s, (SELECT min(at_s) FROM facts.block) FROM facts.cursor"
        )
        to, first_s = IndexedBlock(row["number"], row["at_s"]), row["min"]
        assert to.at_s - first_s < 400 * 86_400
        for verb in VERBS:
            watch = Watch(Rule(Who("any"), verb), None)
            found = await replay_rule(connection, ground.ctx.contracts, watch, first_s - 1, to)
            assert (found.hits, found.at_least) == (counts[verb], False)
            own = [one for one in everything if one.verb == verb]
            assert list(found.last) == own[::-1][:10]


async def test_what_was_bought_sold_moved_and_launched_is_told_with_its_worth(ground: Ground) -> None:
    after = height(ground)
    made = ground.launch(31)
    launchpad.curve_buy(ground.buyer, made, ETH // 2)
    held = view(ground.rpc, made.token, "balanceOf(address)", ground.buyer.account)
    before = view(ground.rpc, made.curve, "trackedQuote()")
    launchpad.curve_sell(ground.buyer, made, held // 2)
    ground.buyer.check_receipts()
    brought = before - view(ground.rpc, made.curve, "trackedQuote()")
    ground.buyer.receipt(
        ground.buyer.send(made.token, calldata("transfer(address,uint256)", FRIEND, held // 4))
    )
    found = {one.verb: one for one in await read_since(ground, after) if one.token == made.token}
    assert list(found) == ["launching", "buying", "selling", "moving"]
    launch, buy, sell, move = found.values()
    assert (launch.wallet, launch.eth_wei, launch.micro_usd) == (ground.me.account, 0, 0)
    assert (buy.wallet, buy.eth_wei, buy.part_raw, buy.whole_raw) == (
        ground.buyer.account,
        ETH // 2,
        held,
        SUPPLY,
    )
    assert buy.micro_usd is not None
    assert buy.micro_usd > 0
    assert (sell.eth_wei, sell.part_raw) == (brought, held // 2)
    assert (move.wallet, move.part_raw) == (ground.buyer.account, held // 4)
    assert move.eth_wei == held // 4 * brought // (held // 2)


async def test_who_takes_liquidity_out_drains_so_much_of_the_pool(ground: Ground) -> None:
    contracts, by = ground.built.contracts, ground.second
    made = ground.launch(32)
    launchpad.curve_buy(by, made, ETH // 2)
    held = view(ground.rpc, made.token, "balanceOf(address)", by.account)
    by.send(contracts["weth"], calldata("deposit()"), ETH)
    for token in (made.token, contracts["weth"]):
        by.send(token, calldata("approve(address,uint256)", contracts["v3PositionManager"], MAX))
    v3_pool(by, contracts, {made.token: held // 2, contracts["weth"]: ETH}, 3000, fill=True)
    minted = by.receipt(by.sent[-1])["logs"]
    (position, liquidity) = next(
        (int(log["topics"][1], 16), int(log["data"][2:66], 16))
        for log in minted
        if len(log["topics"]) == 2 and log["address"].lower() == contracts["v3PositionManager"].lower()
    )
    by.check_receipts()
    after = height(ground)
    taken = (position, liquidity // 4, 0, 0, 2**40)
    by.receipt(by.send(contracts["v3PositionManager"], calldata(_DECREASE, taken)))
    (one,) = [each for each in await read_since(ground, after) if each.verb == "draining"]
    assert (one.wallet, one.token, one.share_ppm()) == (by.account, made.token, 250_000)
    assert one.eth_wei is not None
    assert ETH // 4 - 1000 <= one.eth_wei <= ETH // 4
