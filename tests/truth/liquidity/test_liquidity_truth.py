"""What the answer says of a token's liquidity, against who really takes it out and what a wallet loses."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from roundtrip.chain.liquidity import position_logs
from roundtrip.domain.check.evidence import Missing
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.token_check import start_check
from roundtrip.services.liquidity import gather, locks
from roundtrip.services.liquidity.handler import read_liquidity
from roundtrip.services.liquidity.schema import Liquidity, LiquidityPosition
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.store.server import connections
from roundtrip.store.server.migrate import migrate
from roundtrip_development.devnet import world
from roundtrip_development.devnet.deploy import put_token
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.databases import connected, database
from support.fixtures import context_for
from support.indexing import at, follow
from truth.liquidity_reality import (
    BPS,
    active_liquidity,
    claim_fees,
    in_range,
    loss_if_it_left,
    trade_both_ways,
    unclaimed_fees,
    who_hold_money,
)
from truth.liquidity_world import (
    EXPECTED,
    V3,
    V4,
    WORLDS,
    LiquidityGround,
    PutPosition,
    PutWorld,
    compiled,
    now_s,
)

SHARE_BPS, LOSS_BPS = 1, 100
"""How far the answer may be from what is real."""
TRADED = {"traded": V3, "traded, v4": V4}
NO_BUY = {"taxed quote": "a simulated wallet gets less of the quote than it pays for the token"}
"""Worlds in which no simulated buy succeeds: then it says that it could not find out the loss."""


@dataclass(frozen=True, slots=True)
class Stood:
    """All worlds on one chain that an index has followed, and a context over both."""

    ctx: Context
    ground: LiquidityGround
    worlds: dict[str, PutWorld]

    async def asked(self, name: str) -> Liquidity:
        """The answer about a world's token."""
        await self.ctx.heads.refresh()
        return (await read_liquidity(self.ctx, TokenParams(self.worlds[name].pool.token))).answer


@pytest.fixture(scope="module")
async def stood(places: world.DevnetFolders, built: Built, database_url: str) -> AsyncIterator[Stood]:
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as rpc:
        since, ground = int(rpc.call("eth_blockNumber"), 16), LiquidityGround(rpc, built)
        worlds = {name: put(ground) for name, put in WORLDS.items()}
        worlds |= {name: put_traded(ground, plan) for name, plan in TRADED.items()}
        async with database(database_url, "liquidity") as url:
            async with connected(url) as connection:
                await migrate(connection)
            await follow(rpc.url, built, url, since, at(int(rpc.call("eth_blockNumber"), 16)))
            async with (
                connections.create_pool(url, min_size=1, max_size=2) as pool,
                context_for(rpc.url, built, pool) as ctx,
            ):
                await ctx.heads.refresh()
                yield Stood(ctx, ground, worlds)


def put_traded(ground: LiquidityGround, plan: PoolPlan) -> PutWorld:
    """A pool of two positions that trades paid fees to, before one of them claimed some and after."""
    pool = ground.pool(plan)
    claimed, untouched = (ground.add(pool, ground.deployer.account, bps) for bps in (6000, 4000))
    trade_both_ways(ground, pool)
    claim_fees(ground, claimed, ground.roles["other"], most_raw=1)
    trade_both_ways(ground, pool)
    return ground.put(pool, claimed, untouched)


def told_of(answer: Liquidity, position: PutPosition) -> LiquidityPosition:
    """What the answer says of a position."""
    number = str(position.number) if position.number else None
    wanted = (position.owner, number, position.tick_lower, position.tick_upper)
    (reply,) = (
        one
        for venue in answer.venues
        for one in venue.positions
        if (one.manager, one.number, one.tick_lower, one.tick_upper) == wanted
    )
    return reply


def second(told: datetime) -> int:
    """Of a time that the answer tells."""
    return int(told.timestamp())


@pytest.mark.parametrize("name", WORLDS)
async def test_who_can_withdraw_is_who_really_can(stood: Stood, name: str) -> None:
    put, answer = stood.worlds[name], await stood.asked(name)
    for position, expected in zip(put.positions, EXPECTED[name], strict=False):
        result = told_of(answer, position)
        by = None if result.withdrawn_by is None else result.withdrawn_by.address
        assert (result.held_by, by) == (
            expected.held_by,
            next((put.roles[role] for role in expected.can_withdraw_now), None),
        ), answer.text
        until = None if result.unlock is None else (second(result.unlock.at), result.unlock.exact)
        ends = [(way.at_s, True) for way in position.exits if way.at_s] if expected.until_s else [None]
        assert until == ends[0], answer.text


async def test_where_there_is_no_pool_nothing_is_claimed(stood: Stood) -> None:
    ground = stood.ground
    story = Story("plain", "", "", pools=())
    poolless = put_token(ground.deployer, ground.contracts, story, compiled("plain", "tokens"))
    texts = {
        poolless: "No v3 or v4 pool trades it, so there is no liquidity to withdraw.",
        "0x" + "77" * 20: "There is no contract at this address.",
        ground.contracts["permit2"]: "The contract at this address does not answer like a token.",
        ground.contracts["weth"]: (
            "This is weth, the money that tokens trade against: we do not look up its liquidity."
        ),
    }
    await stood.ctx.heads.refresh()
    for address, text in texts.items():
        answer = (await read_liquidity(stood.ctx, TokenParams(address))).answer
        reply = (answer.text, answer.totals, answer.if_it_left, answer.venues, answer.tags_complete)
        assert reply == (text, None, None, [], True)


@pytest.mark.parametrize(
    ("name", "tags", "is_complete"),
    [
        ("deployer", ["deployer"], True),
        # Nobody is known who sent the locker its first eth.
        ("time lock", ["contract"], False),
        ("burned", [], True),
        ("two hundred wallets", [], False),
    ],
)
async def test_who_holds_it_is_tagged(stood: Stood, name: str, tags: list[str], is_complete: bool) -> None:
    answer = await stood.asked(name)
    holder = told_of(answer, stood.worlds[name].positions[0]).holder
    assert holder is not None
    assert (holder.tags, answer.tags_complete) == (tags, is_complete)


@pytest.mark.parametrize("name", ["time lock", "back door", "stuck"])
async def test_what_could_not_be_tried_is_unknown(
    stood: Stood, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async def send_nothing(_: locks.LockTrials, plans: dict[Any, Any]) -> dict[Any, Missing]:
        return dict.fromkeys(plans, Missing("token", "the simulation was too large"))

    monkeypatch.setattr(locks.LockTrials, "_send", send_nothing)
    answer = await stood.asked(name)
    assert told_of(answer, stood.worlds[name].positions[0]).held_by == "unknown"
    assert "this is not a pass" in answer.text


async def test_a_lock_is_none_where_the_node_does_not_tell_who_is_approved(
    stood: Stood, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(position_logs, "read_operators", lambda answer: None)
    answer = await stood.asked("time lock")
    assert told_of(answer, stood.worlds["time lock"].positions[0]).held_by == "contract"


async def test_a_pool_that_could_not_be_read_is_told(stood: Stood, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "could not read" not in (await stood.asked("burned")).text

    async def lose_one(*values: Any) -> BuyRoundResult:
        bought = await start_check(*values)
        lost = replace(bought.data.venues[0], facts=Missing("node", "no answer"))
        return replace(bought, data=replace(bought.data, venues=[*bought.data.venues, lost]))

    monkeypatch.setattr(gather, "start_check", lose_one)
    assert "We could not read all of its pools: this is not a pass." in (await stood.asked("burned")).text


@pytest.mark.parametrize("name", WORLDS)
async def test_shares_are_those_of_the_pool(stood: Stood, name: str) -> None:
    put, answer = stood.worlds[name], await stood.asked(name)
    reply = {position: told_of(answer, position) for position in put.positions}
    active = active_liquidity(stood.ground, put.pool) if put.positions else 0
    for position, found in reply.items():
        assert found.in_range == in_range(stood.ground, position)
        share_bps = BPS * position.liquidity / active if found.in_range else 0
        assert found.share_bps == pytest.approx(share_bps, abs=SHARE_BPS)
    assert sum(int(found.liquidity) for found in reply.values() if found.in_range) == active
    assert answer.totals is not None
    # A curve is the launchpad's.
    curves_bps = sum(venue.share_bps or 0 for venue in answer.venues if not venue.positions)
    whole: dict[str, float] = {"launchpad": curves_bps}
    for venue in answer.venues:
        for one in venue.positions:
            part_bps = one.share_bps * (venue.share_bps or 0) / BPS
            whole[one.held_by] = whole.get(one.held_by, 0) + part_bps
    assert sum(whole.values()) == pytest.approx(BPS, abs=len(reply) + 2)
    for status, bps in whole.items():
        assert getattr(answer.totals, f"{status}_bps") == pytest.approx(bps, abs=len(reply) + 2)


@pytest.mark.parametrize("name", WORLDS)
async def test_the_loss_if_it_left_is_the_real_one(stood: Stood, name: str) -> None:
    put, ground = stood.worlds[name], stood.ground
    answer = await stood.asked(name)
    left = free_by_wallet(ground, put)
    if not left:
        assert answer.if_it_left is None, answer.text
        return
    most = max(sum(one.liquidity for one in positions) for positions in left.values())
    assert answer.if_it_left is not None, answer.text
    taken = left[answer.if_it_left.by.address]
    assert sum(one.liquidity for one in taken) == most
    assert answer.if_it_left.known == (name not in NO_BUY), answer.text
    if name in NO_BUY:
        assert "could not find out what you would then get back" in answer.text
        return
    now_bps, left_bps = (loss_if_it_left(ground, put.pool, gone) for gone in ((), taken))
    # Where no sale succeeds, nothing comes back.
    result = answer.if_it_left
    assert [BPS if bps is None else bps for bps in (result.now_loss_bps, result.loss_bps)] == [
        pytest.approx(now_bps, abs=LOSS_BPS),
        pytest.approx(left_bps, abs=LOSS_BPS),
    ]


@pytest.mark.parametrize("name", TRADED)
async def test_unclaimed_fees_are_what_the_holder_gets(stood: Stood, name: str) -> None:
    put, answer = stood.worlds[name], await stood.asked(name)
    for position in put.positions:
        fees = told_of(answer, position).fees
        assert fees is not None
        real = unclaimed_fees(stood.ground, position)
        assert min(real.values()) > 10**12
        assert [int(fees.token.raw), int(fees.quote.raw)] == [real[put.pool.token], real[put.pool.quote]]


def free_by_wallet(ground: LiquidityGround, put: PutWorld) -> dict[str, list[PutPosition]]:
    """What each wallet can really take out now that can take out some of the money."""
    found: dict[str, list[PutPosition]] = {}
    for position in put.positions:
        for wallet in position.free_to(now_s(ground.rpc) + 1):
            found.setdefault(wallet, []).append(position)
    money = who_hold_money(ground, {one: None for positions in found.values() for one in positions})
    return {
        wallet: positions for wallet, positions in found.items() if any(one in money for one in positions)
    }
