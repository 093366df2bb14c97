"""League and flags by the service's own means, of a token that a real crowd bought."""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import WEI_PER_ETH
from roundtrip.domain.community.flag_calls import APART_S, SETTLED_S, Kind
from roundtrip.domain.practice.practice import FEW, KIN, YOUNG
from roundtrip.services.community.flag_token import FlagParams, flag_token
from roundtrip.services.community.proven_flags import ProvenCalls, ProvenParams, proven_calls
from roundtrip.services.practice.buy import practice_buy
from roundtrip.services.practice.league import LeagueParams, league
from roundtrip.services.practice.schema import PracticeBuyParams, PracticeSellParams
from roundtrip.services.practice.sell import practice_sell
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet import launchpad
from roundtrip_development.devnet.demo.crowd import visitor
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.crowded import Crowded, crowded_over
from support.ground import Ground, view
from support.practising import read

ETH = WEI_PER_ETH
PUMPS = [visitor(number) for number in range(5, 10)]
"""Each paid by another purse."""


@pytest.fixture
async def fair(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str, indexed_url: str
) -> AsyncIterator[Crowded]:
    async with crowded_over(ctx, rpc, built, database_url, indexed_url) as found:
        yield found


async def bought(fair: Crowded, account: Account, token: str, eth: str) -> dict[str, Any]:
    return read((await practice_buy(fair.ctx, PracticeBuyParams(token, eth), account, None)).answer)


async def sold(fair: Crowded, account: Account, token: str, percent: float = 100) -> dict[str, Any]:
    return read((await practice_sell(fair.ctx, PracticeSellParams(token, percent), account, None)).answer)


async def board(fair: Crowded, who: Any = "all") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read((await league(fair.ctx, LeagueParams(who))).answer)["rows"]
    return found


# --- the league ------------------------------------------------------------------------------------


async def test_three_sells_of_a_fair_token_stand_in_the_league(fair: Crowded) -> None:
    winner, loser = await fair.account(), await fair.account()
    await bought(fair, winner, fair.token, "0.3")
    await fair.buy(visitor(5), ETH)
    await bought(fair, loser, fair.token, "0.3")
    profits: dict[int, list[Decimal]] = {winner.id: [], loser.id: []}
    for percent in (30, 50, 100):
        assert await board(fair) == []
        for account in (winner, loser):
            answer = await sold(fair, account, fair.token, percent)
            assert (answer["counted"], answer["whyNot"]) == (True, None)
            profits[account.id].append(Decimal(answer["profit"]))
    assert min(profits[winner.id]) > 0 > max(profits[loser.id])
    first, last = await board(fair)
    for row, account, won in ((first, winner, 3), (last, loser, 0)):
        assert (row["designation"], row["sells"], row["won"]) == (account.designation, 3, won)
        assert Decimal(row["profitEth"]) == sum(profits[account.id])
    assert first["best"]["token"]["address"] == fair.token
    assert Decimal(first["best"]["profitEth"]) == max(profits[winner.id])
    assert (await board(fair, "people"), await board(fair, "agents")) == ([first, last], [])


async def test_what_a_deployer_could_arrange_counts_for_nothing(
    fair: Crowded, ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """His own token, a young one, an old one that few bought: each sells with a profit, and none is in."""
    count = "SELECT count(*) FROM accounts.league_week"
    before = await fair.ctx.pool.fetchval(count)
    ground = Ground(ctx, rpc, built, fair.url)
    made = ground.launch(91)
    await fair.follow()
    stranger = await fair.account()
    sellers = [
        (made.token, stranger, YOUNG),
        (made.token, await fair.account(ground.me.account), KIN),
        (fair.token, await fair.account(fair.deployer), KIN),
    ]
    for token, account, _ in sellers:
        await bought(fair, account, token, "0.1")
    launchpad.curve_buy(ground.buyer, made, ETH)
    await fair.buy(visitor(5), ETH)
    for token, account, why in sellers:
        answer = await sold(fair, account, token)
        assert (answer["counted"], answer["whyNot"]) == (False, why)
        assert Decimal(answer["profit"]) > 0
        assert f"It does not count for the league: {why}." in answer["text"]
    await fair.pass_s(90_000)
    await bought(fair, stranger, made.token, "0.1")
    assert (await sold(fair, stranger, made.token))["whyNot"] == FEW
    assert await fair.ctx.pool.fetchval(count) == before


# --- flags -----------------------------------------------------------------------------------------


async def flagged(fair: Crowded, account: Account, kind: Kind) -> int:
    return (await flag_token(fair.ctx, FlagParams(fair.token, kind), account)).answer.id


async def calls_of(fair: Crowded) -> ProvenCalls:
    return (await proven_calls(fair.ctx, ProvenParams(fair.token))).answer


async def row(fair: Crowded, flag_id: int) -> Any:
    return await fair.ctx.pool.fetchrow("SELECT * FROM accounts.flag WHERE id = $1", flag_id)


async def test_a_token_can_be_flagged_once_it_counts(fair: Crowded) -> None:
    account = await fair.account()
    with pytest.raises(CallerFault, match="cannot flag this token yet"):
        await flagged(fair, account, "runs")
    await fair.work("winners", 4)
    received = (await bought(fair, account, fair.token, "0.1"))["receivedRaw"]
    for kind in ("runs", "dead"):
        kept = await row(fair, await flagged(fair, account, kind))
        # What an ordinary buy really brings is what is held against it.
        assert (str(kept["held_raw"]), kept["state"]) == (received, "open")
        [control] = await fair.ctx.pool.fetch("SELECT * FROM accounts.flag WHERE control_of = $1", kept["id"])
        assert (control["token"], control["held_raw"]) == (kept["token"], kept["held_raw"])
    assert [one.kind for one in (await calls_of(fair)).waiting] == ["dead", "runs"]


async def test_a_token_that_runs_by_others_money_proves_the_flag(fair: Crowded) -> None:
    await fair.work("winners", 4)
    account = await fair.account()
    flag_id = await flagged(fair, account, "runs")
    await fair.work("calls")
    assert (await row(fair, flag_id))["state"] == "open"
    for wallet in PUMPS:
        await fair.buy(wallet, 2 * ETH)
    await fair.work("calls")
    seen = await row(fair, flag_id)
    assert (seen["state"], seen["seen_wei"] > 3 * ETH // 10) == ("seen", True)
    await fair.pass_s(APART_S)
    await fair.work("calls")
    (proof,) = (await calls_of(fair)).rows
    assert (proof.kind, proof.mite.designation, proof.mite.proved) == ("runs", account.designation, 1)
    assert (proof.receipt.by, proof.receipt.tx) == ("price", None)
    assert proof.receipt.paid_eth == float(seen["seen_wei"]) / ETH
    # What the flag was held against is what a wallet that holds as much really gets.
    assert await fair.sell(PUMPS[0], int(seen["held_raw"])) == seen["seen_wei"]


async def test_a_deployer_that_really_sells_proves_a_flag_that_it_drains(fair: Crowded, rpc: SyncRpc) -> None:
    await fair.work("winners", 4)
    account = await fair.account()
    flag_id = await flagged(fair, account, "drains")
    held = view(rpc, fair.token, "balanceOf(address)", fair.deployer)
    assert held > 0
    await fair.sell(fair.deployer, held // 4)
    await fair.pass_s(SETTLED_S + 1)
    await fair.work("calls")
    assert (await row(fair, flag_id))["state"] == "open"
    await fair.sell(fair.deployer, held // 2)
    block = int(rpc.call("eth_blockNumber"), 16)
    await fair.work("calls")
    assert (await row(fair, flag_id))["state"] == "open", "it is not settled yet"
    await fair.pass_s(SETTLED_S + 1)
    await fair.work("calls")
    (proof,) = (await calls_of(fair)).rows
    assert (proof.kind, proof.receipt.by, proof.receipt.block) == ("drains", "deployer", block)
    sent = rpc.call("eth_getTransactionByHash", proof.receipt.tx)
    assert (sent["from"], int(sent["blockNumber"], 16)) == (fair.deployer, block)
    assert (await calls_of(fair)).waiting == []
