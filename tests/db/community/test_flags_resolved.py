"""Flags settled, who may flag what, and what it says of an account."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from roundtrip.domain.base.errors import CallerFault, NodeFault, ServiceFull
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.community.flag_calls import MAX_A_DAY, MAX_OPEN, RUNS_WEI, SETTLED_S, WEEK_S
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.kinds.flags import EVERY_S
from roundtrip.jobs.kinds.flags import calls as job_calls
from roundtrip.jobs.registry import KINDS
from roundtrip.services.community import flag_resolution as looking
from roundtrip.services.community.flag_resolution import review_flags
from roundtrip.services.community.flag_token import FlagParams, flag_token
from roundtrip.services.community.proven_flags import ProvenParams, proven_calls
from roundtrip.store.community import flags as calls
from roundtrip.store.maintenance.backup import forget
from roundtrip.store.server import jobs
from support.flagged import HIS_KIN, LP, OTHER, TOKEN, TOKENS, FlagGround, burns, buys_in_pool
from support.flagging import CROWD, DOWN_WEI, NOW_WEI, refused, settle
from support.told_blocks import launched, sent
from support.told_winners import BUYERS, DAY_S, DEPLOYER, buys, sells
from unit.venues.network import address


async def test_all_flags_are_priced_in_one_trip(ground: FlagGround) -> None:
    account = await ground.account()
    for token in TOKENS:
        await ground.flag(account, "runs", token)
    await ground.look()
    assert ground.quotes.trips == 1


async def test_a_flag_is_settled_once(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "drains")
    await ground.block(burns(LP, 600))
    await ground.block(after_s=SETTLED_S)
    first, second = [await review_flags(ground.ctx, ground.quotes.prices()) for _ in range(2)]
    now = await ground.index.fetchval("SELECT made_at FROM accounts.flag WHERE id = $1", flag)
    own = [[one for one in reviews if one.id == flag] for reviews, _ in (first, second)]
    assert await calls.write_reviews(ground.index, own[0], now, first[1]) == 1
    assert await calls.write_reviews(ground.index, own[1], now, second[1]) == 0
    assert await ground.state(flag) == "proved"


async def test_more_flags_than_fit_a_trip_take_turns(
    ground: FlagGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "MAX_PRICED", 1)
    account = await ground.account()
    flags = [await ground.flag(account, "runs", token) for token in TOKENS[:2]]
    await ground.index.execute("DELETE FROM accounts.flag WHERE control_of IS NOT NULL")
    ground.quotes.pays |= dict.fromkeys(TOKENS, RUNS_WEI)
    await ground.look()
    assert sorted([await ground.state(one) for one in flags]) == ["open", "seen"]
    await ground.block(after_s=60)
    await ground.look()
    assert [await ground.state(one) for one in flags] == ["seen", "seen"]


async def test_the_job_settles_and_wishes_for_itself(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "drains")
    await ground.block(burns(LP, 600))
    await ground.block(after_s=SETTLED_S)
    await jobs.enqueue(ground.index, "calls", "open")
    worker = Worker(ground.ctx, {"calls": KINDS["calls"]}, lambda: 0.5)
    for run in await worker.take():
        await run
    assert await ground.state(flag) == "proved"
    wished = await jobs.to_come(ground.index, "calls", "open")
    assert wished is not None
    assert wished[0].timestamp() == ground.ctx.now_s() + EVERY_S
    assert wished[1] is None


async def test_without_an_index_the_job_waits(ground: FlagGround) -> None:
    await jobs.enqueue(ground.index, "calls", "open")
    await forget(ground.index)
    (job,) = await jobs.claim(ground.index, ["calls"], 1, 9, wish_time(ground))
    effect = await job_calls(ground.ctx, job)
    await effect(ground.index)
    assert await jobs.is_there(ground.index, "calls", "open")


def wish_time(ground: FlagGround) -> datetime:
    return datetime.fromtimestamp(ground.ctx.now_s(), UTC)


async def test_what_does_not_count_is_not_flagged(ground: FlagGround) -> None:
    young = address(0x70CE << 20)
    await ground.block(sent(launched(young, address(0xC0), DEPLOYER), sender=DEPLOYER))
    for token in (young, address(0x404)):
        assert "You cannot flag this token yet." in await refused(
            ground, "dead", token, address(int(token, 16) + 7)
        )


async def test_the_deployers_kin_do_not_flag(ground: FlagGround) -> None:
    assert "its deployer is your own wallet" in await refused(ground, "drains", wallet=DEPLOYER)


async def test_what_is_so_already_is_not_flagged(ground: FlagGround) -> None:
    ground.quotes.pays[OTHER] = DOWN_WEI
    assert "sells for 0.01 eth" in await refused(ground, "dead", OTHER)
    del ground.quotes.pays[OTHER]
    await ground.block(buys(DEPLOYER, 0.1, OTHER), after_s=DAY_S + 10)
    assert "no wallet independent of its deployer traded it" in await refused(ground, "dead", OTHER, HIS_KIN)


async def test_what_could_not_be_proved_is_not_flagged(ground: FlagGround) -> None:
    await ground.block(sells(DEPLOYER, 0.1, OTHER))
    assert "could not be proved" in await refused(ground, "drains", OTHER)
    ground.quotes.pays[OTHER] = RefusedCall("sell", None, 0)
    assert "cannot be sold" in await refused(ground, "runs", OTHER, HIS_KIN)
    ground.quotes.pays[OTHER] = RefusedCall("buy", None, 0)
    assert "0.1 eth does not buy the token now" in await refused(ground, "runs", OTHER, LP)


async def test_what_cannot_be_found_out_is_no_flag(ground: FlagGround) -> None:
    account = await ground.account()

    async def missing(*asked: object) -> Missing:
        return Missing("node", "it was asked in vain")

    prices = replace(ground.quotes.prices(), probe_buy=missing)
    with pytest.raises(NodeFault):
        await flag_token(ground.ctx, FlagParams(TOKEN, "runs"), account, prices)
    ground.node_is_away = True
    with pytest.raises(NodeFault):
        await ground.flag(account, "drains")
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.flag") == 0


async def test_an_index_that_is_behind_takes_no_flags(ground: FlagGround) -> None:
    account = await ground.account()
    ground.chain.block(after_s=SETTLED_S + 1)
    with pytest.raises(ServiceFull):
        await ground.flag(account, "drains")


async def test_the_same_flag_waits_once(ground: FlagGround) -> None:
    account = await ground.account()
    await ground.flag(account, "runs")
    with pytest.raises(CallerFault, match="still waiting"):
        await ground.flag(account, "runs")
    await ground.flag(account, "drains")


async def test_of_two_that_flag_the_same_at_once_one_does(ground: FlagGround) -> None:
    account = await ground.account()
    came = await asyncio.gather(*(ground.flag(account, "drains") for _ in range(3)), return_exceptions=True)
    refused = [one for one in came if isinstance(one, CallerFault)]
    assert len(refused) == 2
    assert (
        await ground.index.fetchval("SELECT count(*) FROM accounts.flag WHERE account_id = $1", account.id)
        == 1
    )


async def test_five_a_day_and_ten_at_once(ground: FlagGround) -> None:
    account = await ground.account()
    made = 0
    for kind in ("runs", "drains", "dead"):
        for token in TOKENS:
            if made and made % MAX_A_DAY == 0:
                with pytest.raises(
                    CallerFault, match="flags today, the maximum" if made < MAX_OPEN else "waiting"
                ):
                    await ground.flag(account, kind, token)
                if made == MAX_OPEN:
                    return
                await ground.block(*(buys(BUYERS[7], 0.1, one) for one in TOKENS), after_s=DAY_S)
            await ground.flag(account, kind, token)
            made += 1
    pytest.fail("there were more than ten")


async def test_everything_flagged_dead_is_right_as_often_as_chance(ground: FlagGround) -> None:
    """Two of four tokens die. Whoever flags all of them has every second one right, and so has chance."""
    account = await ground.account()
    flags = [await ground.flag(account, "dead", token) for token in TOKENS]
    drawn = [await ground.control(one) for one in flags]
    assert None not in drawn
    await ground.index.executemany(
        "UPDATE accounts.flag SET token = $2 WHERE control_of = $1",
        [(one, bytes.fromhex(token[2:])) for one, token in zip(flags, reversed(TOKENS), strict=True)],
    )
    ground.quotes.pays |= {TOKEN: DOWN_WEI, OTHER: DOWN_WEI, TOKENS[2]: NOW_WEI, TOKENS[3]: NOW_WEI}
    await ground.to_the_end()
    async with ground.pool.acquire() as connection:
        score = (await calls.scores(connection, [account.id]))[account.id]
    assert (score.proved, score.decided) == (2, 4)
    assert score.accuracy == score.base_rate == 0.5
    assert not score.is_ahead


async def test_controls_are_drawn_among_tokens_that_count(ground: FlagGround) -> None:
    drawn = set()
    for number in range(12):
        account = await ground.account(address(0x1000 + number), f"mite-{number}")
        flag = await ground.flag(account, "runs")
        control = await ground.control(flag)
        assert control is not None
        assert (control["kind"], control["account_id"], control["state"]) == ("runs", None, "open")
        drawn.add("0x" + control["token"].hex())
    assert drawn <= set(TOKENS)
    assert len(drawn) > 1


async def test_without_controls_of_its_own_an_account_has_everybodys(ground: FlagGround) -> None:
    one, other = await ground.account(), await ground.account(LP, "mite-two")
    first, second = await ground.flag(one, "drains"), await ground.flag(other, "drains", OTHER)
    await ground.index.execute("DELETE FROM accounts.flag WHERE control_of = $1", first)
    await ground.to_the_end()
    assert (await ground.state(first), await ground.state(second)) == ("failed", "failed")
    async with ground.pool.acquire() as connection:
        found = await calls.scores(connection, [one.id, other.id, 10**9])
    assert found[one.id] == found[other.id]
    assert (found[one.id].by_chance, found[one.id].drawn) == (0, 1)
    assert found[10**9].decided == 0


async def test_what_is_told_of_flags(ground: FlagGround) -> None:
    account = await ground.account()
    proved, waits = await ground.flag(account, "drains"), await ground.flag(account, "dead")
    flagged_s = ground.at.timestamp_s
    await ground.block(burns(LP, 600), after_s=3600)
    await settle(ground)
    assert (await ground.state(proved), await ground.state(waits)) == ("proved", "open")
    of_all = (await proven_calls(ground.ctx, ProvenParams())).answer
    of_token = (await proven_calls(ground.ctx, ProvenParams(TOKEN.upper().replace("X", "x")))).answer
    assert of_all.waiting == []
    assert of_all.rows == of_token.rows
    (row,) = of_all.rows
    assert (row.token.address, row.kind, row.mite.designation) == (TOKEN, "drains", "mite-test")
    assert (row.before_s, row.flagged_at.timestamp()) == (3600, flagged_s)
    assert (row.receipt.by, row.receipt.paid_eth) == ("liquidity", None)
    assert (row.mite.proved, row.mite.decided, row.mite.accuracy) == (1, 1, 1.0)
    assert row.mite.ahead_of_chance == (await calls.scores(ground.index, [account.id]))[account.id].is_ahead
    (waiting,) = of_token.waiting
    assert (waiting.kind, waiting.ends_at.timestamp()) == ("dead", flagged_s + WEEK_S)
    assert "1. mite-test predicted that " in of_all.text
    assert (
        "drains, 1 hour before half of its liquidity left. 1 of 1 decided flag of that account" in of_all.text
    )
    assert "1 flag on it is still waiting: 1 dead." in of_token.text
    nothing = (await proven_calls(ground.ctx, ProvenParams(OTHER))).answer
    assert (nothing.rows, nothing.waiting) == ([], [])
    assert "No flag" in nothing.text


async def test_it_is_bought_in_the_pool_where_most_is_traded(ground: FlagGround) -> None:
    """A pool beside it, of whoever flags, is not what is looked at."""
    flag = await ground.flag(await ground.account(), "drains")
    row = await ground.index.fetchrow("SELECT pool, liquidity FROM accounts.flag WHERE id = $1", flag)
    assert row is not None
    assert row["liquidity"] == 600 * 120
    await ground.block(*(buys(who, 9.0, TOKEN) for who in CROWD), buys_in_pool(BUYERS[1], 1))
    other = await ground.flag(await ground.account(HIS_KIN, "mite-two"), "drains")
    found = await ground.index.fetchrow("SELECT pool, deployer_raw FROM accounts.flag WHERE id = $1", other)
    assert found is not None
    assert (found["pool"], found["deployer_raw"]) == (None, 10**24)
