"""What lies in curves is what their contracts say, to the wei, and the fullest of them are told of."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from roundtrip.devnet import launchpad
from roundtrip.devnet.launchpad import CurveToken
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.services.boards.graduating_soon import CurveFilling, GraduatingSoon, graduating_soon
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.rows import Connection
from support.databases import connected, database
from support.ground import LAUNCHER, Ground, view
from support.wallet import calldata

ZERO = "0x" + "0" * 40


def head(rpc: SyncRpc) -> dict[str, Any]:
    found: dict[str, Any] = rpc.call("eth_getBlockByNumber", "latest", False)
    return found


async def open_curves(connection: Connection) -> dict[str, int]:
    """What the index says lies in the curves that took no step."""
    rows = await connection.fetch(
        "SELECT pool.at, curve.raised_raw FROM facts.curve JOIN facts.pool ON pool.id = pool_id"
        " WHERE NOT EXISTS (SELECT FROM facts.launch_step AS step WHERE step.token_id = pool.token_id)"
    )
    return {"0x" + row["at"].hex(): int(row["raised_raw"]) for row in rows}


@pytest.fixture
async def empty(database_url: str) -> AsyncIterator[str]:
    async with database(database_url, "graduating") as url:
        async with connected(url) as connection:
            await migrate(connection)
        yield url


async def asked(ctx: Context) -> GraduatingSoon:
    return (await graduating_soon(ctx, Nothing())).answer


async def read_board(ground: Ground) -> GraduatingSoon:
    async with ground.followed() as ctx:
        return await asked(ctx)


async def test_every_open_curve_holds_what_the_index_says(indexed: Context, rpc: SyncRpc) -> None:
    async with indexed.pool.acquire() as connection:
        found = await open_curves(connection)
    assert len(found) > 20
    assert found == {curve: view(rpc, curve, "realQuoteReserve()") for curve in found}


async def test_the_fill_is_what_a_check_says(indexed: Context, built: Built) -> None:
    answer = await asked(indexed)
    assert len(answer.curves) == 20
    for one in answer.curves[:8]:
        result = (await check(indexed, CheckParams(one.token.address))).answer.launchpad
        assert result is not None
        assert result.curve_fill_bps == one.fill_bps, one.token.symbol


async def test_the_fullest_stand_first_and_what_took_a_step_is_gone(indexed: Context, built: Built) -> None:
    answer = await asked(indexed)
    shown = [one.token.address for one in answer.curves]
    first = ["curve_full", "curve_all_but_full", "curve_nearly_full"]
    assert shown[:3] == [built.tokens[key] for key in first]
    on_curve = ["curve", "curve_taxed", "curve_usdg", "curve_other"]
    assert {built.tokens[key] for key in on_curve} <= set(shown)
    for key in ("swept", "rescued", "graduated", "graduated_usdg"):
        assert built.tokens[key] not in shown
    order = [(-one.fill_bps, one.last_trade_at is None) for one in answer.curves]
    assert [fill for fill, _ in order] == sorted(fill for fill, _ in order)
    assert answer.text.startswith(f"Closest to filling their curve:\n1. {shown[1]}: ")
    assert f"Already full, their pool is not open yet:\n1. {shown[0]}\n" in answer.text
    assert shown[3] in answer.text
    assert shown[4] not in answer.text


async def test_every_field_of_a_sample_is_as_its_story(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    answer = await asked(indexed)
    by_token = {one.token.address: one for one in answer.curves}
    now = answer.block_time
    # The index followed another node, which mined its first block by its own clock.
    assert abs(now.timestamp() - int(head(rpc)["timestamp"], 16)) <= 1
    assert (answer.chain_id, answer.block) == (4663, int(head(rpc)["number"], 16))
    eth, usdg, share = (by_token[built.tokens[key]] for key in ("curve", "curve_usdg", "curve_other"))
    assert (eth.quote, eth.threshold, eth.threshold_raw) == ("eth", "4.2", str(42 * 10**17))
    assert float(eth.raised or "") == pytest.approx(4.2 * 0.3, rel=1e-9)
    assert eth.fill_bps in (2999, 3000)
    assert (usdg.quote, usdg.threshold, usdg.threshold_raw) == ("usdg", "8090", "8090000000")
    assert float(usdg.raised or "") == pytest.approx(8090 * 0.3, rel=1e-6)
    # Nobody has read what the share says of itself.
    assert (share.quote, share.raised, share.threshold) == (built.contracts["share"], None, None)
    assert share.threshold_raw == str(41_60 * 10**16)
    deployer = eth.deployer
    assert (deployer.address, deployer.sold_own, deployer.sold) == (built.accounts[LAUNCHER], 0, False)
    assert (deployer.launches, deployer.graduated) == (13, 4)
    assert (now - eth.launched_at).total_seconds() == eth.age_s
    assert eth.last_trade_at is not None
    assert eth.launched_at < eth.last_trade_at <= now
    assert (eth.buys, eth.buyers) == (3, 3)


def only(answer: GraduatingSoon, launched: CurveToken) -> CurveFilling:
    (found,) = [one for one in answer.curves if one.token.address == launched.token]
    return found


async def test_fees_that_are_swept_and_buy_back_are_counted_to_the_wei(
    ctx: Context, rpc: SyncRpc, built: Built, empty: str
) -> None:
    """Fees and the creator's tax lie beside the reserve; a curve that buys back puts some of them into it."""
    ground = Ground(ctx, rpc, built, empty)
    curves = [ground.launch(7, buyback=True, creator_tax_bps=700), ground.launch(8, creator_tax_bps=31)]
    for made in curves:
        launchpad.curve_buy(ground.buyer, made, 10**18 + 7)
        ground.buyer.check_receipts()
        held = view(rpc, made.token, "balanceOf(address)", ground.buyer.account)
        launchpad.curve_sell(ground.buyer, made, held // 3)
        ground.buyer.receipt(ground.buyer.send(made.curve, calldata("sweepFees()")))
        launchpad.curve_buy(ground.second, made, 3 * 10**17 + 1)
        ground.second.check_receipts()
    answer = await read_board(ground)
    async with connected(empty) as connection:
        found = await open_curves(connection)
        assert await connection.fetchval("SELECT count(*) FROM facts.buyback") == 1
    for made in curves:
        real = view(rpc, made.curve, "realQuoteReserve()")
        assert found[made.curve] == int(only(answer, made).raised_raw) == real
    assert found == {curve: view(rpc, curve, "realQuoteReserve()") for curve in found}


async def test_buys_age_and_trades_are_of_their_windows(
    ctx: Context, rpc: SyncRpc, built: Built, empty: str
) -> None:
    ground = Ground(ctx, rpc, built, empty)
    dumped = ground.launch(8)
    launchpad.curve_buy(ground.me, dumped, 10**17)
    ground.me.check_receipts()
    ground.pass_s(700)
    for buyer, wei in ((ground.buyer, 10**17), (ground.buyer, 2 * 10**17), (ground.second, 10**16)):
        launchpad.curve_buy(buyer, dumped, wei)
        buyer.check_receipts()
    sold = view(rpc, dumped.token, "balanceOf(address)", ground.me.account) * 6 // 10
    launchpad.curve_sell(ground.me, dumped, sold)
    ground.me.check_receipts()
    answer = await read_board(ground)
    one = only(answer, dumped)
    assert (one.buys, one.buyers) == (3, 2)
    assert one.age_s >= 700
    assert one.last_trade_at == answer.block_time
    assert one.deployer.sold
    assert (one.deployer.launches, one.deployer.graduated, one.deployer.sold_own) == (14, 4, 1)
    ground.pass_s(601)
    later = only(await read_board(ground), dumped)
    assert (later.buys, later.buyers) == (0, 0)
    ground.pass_s(86_400)
    empty_answer = await read_board(ground)
    assert empty_answer.curves == []
    assert empty_answer.text == "No launch on a curve was launched or traded within the last day."
    fresh = ground.launch(9)
    (one,) = (await read_board(ground)).curves
    assert (one.token.address, one.curve, one.quote) == (fresh.token, fresh.curve, "eth")
    assert (one.fill_bps, one.raised, one.age_s, one.last_trade_at) == (0, "0", 0, None)
