"""Flags over a database and a chain told by hand: what proves them, what does not, and who may flag."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from roundtrip.domain.calls import APART_S, MOST_A_DAY, MOST_OPEN, RUNS_WEI, SETTLED_S, WEEK_S
from roundtrip.domain.errors import CallerFault, NodeFault, ServiceFull
from roundtrip.domain.evidence import Missing, Refused
from roundtrip.jobs.calls import EVERY_S
from roundtrip.jobs.calls import calls as job_calls
from roundtrip.jobs.kinds import KINDS
from roundtrip.jobs.worker import Worker
from roundtrip.services import calls as looking
from roundtrip.services.calls import look
from roundtrip.services.flag_token import FlagParams, flag_token
from roundtrip.services.proven_calls import ProvenParams, proven_calls
from roundtrip.store import calls, jobs
from roundtrip.store.forget import forget
from support.flagged import (
    FLAGGER,
    HIS_KIN,
    LP,
    OTHER,
    TOKEN,
    TOKENS,
    Ground,
    burns,
    buys_in_pool,
    mints,
)
from support.told_blocks import launched, sent
from support.told_winners import BUYERS, DAY_S, DEPLOYER, HIS_FRIEND, buys, curve, sells
from unit.venues.network import address

CROWD = BUYERS[3:6]
DOWN_WEI = 10**16
NOW_WEI = 9 * 10**16


async def refused(ground: Ground, kind: str, token: str = TOKEN, wallet: str = FLAGGER) -> str:
    mite = await ground.mite(wallet=wallet, designation=f"mite-{wallet[-4:]}")  # type: ignore[arg-type]
    with pytest.raises(CallerFault) as raised:
        await ground.flag(mite, kind, token)  # type: ignore[arg-type]
    assert raised.value.code == "bad_input"
    return raised.value.message


# --- runs ------------------------------------------------------------------------------------------


async def rise(ground: Ground, *by: str) -> None:
    """These buy for an eth each, and it pays three times as much."""
    await ground.block(*(buys(who, 1.0, TOKEN) for who in by))  # type: ignore[arg-type]
    ground.quotes.pays[TOKEN] = RUNS_WEI
    await ground.look()
    await ground.block(after_s=APART_S)
    await ground.look()


async def test_a_token_runs(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "runs")
    await ground.block(*(buys(who, 1.0, TOKEN) for who in CROWD))
    ground.quotes.pays[TOKEN] = RUNS_WEI
    await ground.look()
    assert await ground.state(flag) == "seen"
    await ground.block(after_s=APART_S - 1)
    await ground.look()
    assert await ground.state(flag) == "seen"
    await ground.block()
    await ground.look()
    assert await ground.state(flag) == "proved"
    row = await ground.index.fetchrow("SELECT * FROM accounts.flag WHERE id = $1", flag)
    assert row is not None
    assert (row["settled_by"], row["settled_wei"]) == ("price", RUNS_WEI)
    assert (row["settled_block"], row["settled_s"]) == (ground.at.number, ground.at.timestamp_s)


OWN_POOL, BECAME = "0x" + "a7" * 20, "0x" + "b8" * 32


async def opened(ground: Ground, at: str, kind: str = "amm_v3", tick_spacing: int = 60) -> int:
    """A pool of OTHER, just now; its number."""
    found: int = await ground.index.fetchval(
        "INSERT INTO facts.pool (at, kind, token_id, quote_id, in_money_from, fee_pips, tick_spacing,"
        " block_number, log_index, at_s) SELECT decode($1, 'hex'), $2, token_id, quote_id, 0, 0, $3, $4, 999,"
        " $5 FROM facts.pool WHERE at = decode($6, 'hex') RETURNING id",
        at[2:], kind, tick_spacing, ground.at.number, ground.at.timestamp_s, curve(OTHER)[2:],
    )  # fmt: skip
    return found


async def test_a_pool_of_ones_own_that_pays_more_proves_nothing(ground: Ground) -> None:
    """Where the token was traded most as it was flagged its tokens were bought, and are sold."""
    flag = await ground.flag(await ground.mite(), "runs", OTHER)
    assert ground.quotes.bought_at[0] == curve(OTHER)
    await opened(ground, OWN_POOL)
    await ground.block(*(buys(who, 1.0, OTHER) for who in CROWD))
    ground.quotes.pays[OTHER] = NOW_WEI
    ground.quotes.pays_at[OWN_POOL] = RUNS_WEI
    for _ in range(3):
        await ground.block(after_s=APART_S)
        await ground.look()
    assert await ground.state(flag) == "open"
    ground.quotes.pays_at[curve(OTHER)] = RUNS_WEI
    for _ in range(2):
        await ground.look()
        await ground.block(after_s=APART_S)
    assert await ground.state(flag) == "proved"


@pytest.mark.parametrize("kind", ["runs", "dead"])
async def test_a_young_pool_in_which_it_is_traded_most_is_nothing_to_hold_a_flag_against(
    ground: Ground, kind: str
) -> None:
    pool = await opened(ground, OWN_POOL)
    await ground.index.execute(
        "INSERT INTO facts.trade (at_s, block_number, log_index, pool_id, trader_id, buys, token_raw,"
        " quote_raw, tx_hash) SELECT $1, $2, 998, $3, id, true, 1, 10^24, $4 FROM facts.address"
        " WHERE address = decode($5, 'hex')",
        ground.at.timestamp_s, ground.at.number, pool, bytes(32), BUYERS[0][2:],
    )  # fmt: skip
    assert "younger" in await refused(ground, kind, OTHER)


async def test_what_nobody_trades_does_not_run_yet(ground: Ground) -> None:
    await ground.block(after_s=DAY_S)
    assert "nobody traded it for a day" in await refused(ground, "runs", OTHER)


async def test_a_curve_that_becomes_a_pool_is_sold_there(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "runs", OTHER)
    await ground.block(*(buys(who, 1.0, OTHER) for who in CROWD))
    ground.quotes.pays[OTHER] = NOW_WEI
    ground.quotes.pays_at[BECAME] = RUNS_WEI
    await ground.look()
    assert await ground.state(flag) == "open"
    await ground.index.execute(
        "INSERT INTO facts.launch_step (block_number, log_index, at_s, token_id, step, tx_hash)"
        " SELECT $1, 997, $2, token_id, 'pooled', $3 FROM facts.launch WHERE at = decode($4, 'hex')",
        ground.at.number, ground.at.timestamp_s, bytes(32), curve(OTHER)[2:],
    )  # fmt: skip
    # Which pool it became is not known: nobody could find out, whatever is paid elsewhere.
    ground.quotes.pays[OTHER] = RUNS_WEI
    await ground.look()
    await opened(ground, OWN_POOL, "launchpad_pool", tick_spacing=10)
    await ground.look()
    assert await ground.state(flag) == "open"
    ground.quotes.pays[OTHER] = NOW_WEI
    await opened(ground, BECAME, "launchpad_pool", tick_spacing=200)
    await ground.look()
    assert await ground.state(flag) == "seen"


async def test_a_pump_of_a_moment_proves_nothing(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "runs")
    await ground.block(*(buys(who, 1.0, TOKEN) for who in CROWD))
    for pays in (RUNS_WEI, RUNS_WEI - 1, RUNS_WEI, RUNS_WEI - 1):
        ground.quotes.pays[TOKEN] = pays
        await ground.look()
        await ground.block(after_s=APART_S - 1)
    assert await ground.state(flag) == "open"


@pytest.mark.parametrize(
    "by",
    [
        (FLAGGER,),
        (FLAGGER, *CROWD),
        (HIS_KIN, HIS_KIN, *CROWD),
        (DEPLOYER, HIS_FRIEND, *CROWD[:2]),
        CROWD[:2],
        tuple(address(0xFEE + n) for n in range(9)),
        (),
    ],
    ids=["alone", "among", "by kin", "by the deployer", "by two", "by fresh wallets", "by nobody"],
)
async def test_who_pumps_it_himself_is_not_right(ground: Ground, by: tuple[str, ...]) -> None:
    flag = await ground.flag(await ground.mite(), "runs")
    for _ in range(3):
        await rise(ground, *by)
    assert await ground.state(flag) == "open"
    await ground.to_the_end()
    assert await ground.state(flag) == "failed"


async def test_a_crowd_beside_a_little_of_ones_own_is_a_crowd(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "runs")
    await ground.block(buys(FLAGGER, 0.3, TOKEN))
    await rise(ground, *CROWD)
    assert await ground.state(flag) == "proved"


async def test_what_comes_late_is_wrong(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "runs")
    await ground.block(after_s=WEEK_S - 5)
    ground.quotes.pays[TOKEN] = NOW_WEI
    await ground.look()
    await rise(ground, *CROWD)
    assert await ground.state(flag) == "seen"
    await ground.block(after_s=SETTLED_S)
    await ground.look()
    assert await ground.state(flag) == "failed"


# --- dead ------------------------------------------------------------------------------------------


async def test_a_token_dies(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "dead", OTHER)
    ground.quotes.pays[OTHER] = DOWN_WEI
    await ground.block(sells(BUYERS[2], 0.4, OTHER))
    await ground.block(after_s=DAY_S + SETTLED_S - 2)
    await ground.look()
    assert await ground.state(flag) == "open"
    await ground.block(after_s=3)
    await ground.look()
    assert await ground.state(flag) == "proved"


async def test_a_token_that_cannot_be_sold_pays_nothing(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "dead", OTHER)
    ground.quotes.pays[OTHER] = Refused("sell", None, 0)
    await ground.block(after_s=DAY_S + SETTLED_S)
    await ground.look()
    assert await ground.state(flag) == "proved"


async def test_a_token_that_is_traded_or_worth_something_lives(ground: Ground) -> None:
    mite = await ground.mite()
    traded, worth = await ground.flag(mite, "dead", OTHER), await ground.flag(mite, "dead", TOKENS[2])
    ground.quotes.pays |= {OTHER: DOWN_WEI, TOKENS[2]: DOWN_WEI + 1}
    for _ in range(9):
        await ground.block(buys(BUYERS[2], 0.1, OTHER), after_s=DAY_S)
        await ground.look()
    assert [await ground.state(one) for one in (traded, worth)] == ["failed", "failed"]


@pytest.mark.parametrize("who", [DEPLOYER, HIS_FRIEND])
async def test_the_deployer_keeps_nothing_alive(ground: Ground, who: str) -> None:
    flag = await ground.flag(await ground.mite(), "dead", OTHER)
    ground.quotes.pays[OTHER] = DOWN_WEI
    await ground.block(buys(who, 0.1, OTHER), after_s=DAY_S + SETTLED_S)  # type: ignore[arg-type]
    await ground.look()
    assert await ground.state(flag) == "proved"


@pytest.mark.parametrize("who", [FLAGGER, HIS_KIN])
async def test_who_dumps_it_himself_is_not_right(ground: Ground, who: str) -> None:
    flag = await ground.flag(await ground.mite(), "dead", OTHER)
    await ground.block(sells(who, 2.0, OTHER), sells(BUYERS[2], 0.4, OTHER))  # type: ignore[arg-type]
    ground.quotes.pays[OTHER] = DOWN_WEI
    await ground.to_the_end()
    assert await ground.state(flag) == "failed"


# --- drains ----------------------------------------------------------------------------------------


async def settle(ground: Ground) -> None:
    await ground.block(after_s=SETTLED_S)
    await ground.look()


async def test_liquidity_leaves(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "drains")
    await ground.block(burns(LP, 299))
    await settle(ground)
    assert await ground.state(flag) == "open"
    await ground.block(burns(LP, 1), after_s=60)
    left_s = ground.at.timestamp_s
    await ground.look()
    assert await ground.state(flag) == "open"
    await settle(ground)
    assert await ground.state(flag) == "proved"
    row = await ground.index.fetchrow("SELECT * FROM accounts.flag WHERE id = $1", flag)
    assert row is not None
    assert (row["settled_by"], len(row["settled_tx"])) == ("liquidity", 32)
    assert row["settled_s"] < left_s


async def test_liquidity_that_comes_back_has_not_left(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "drains")
    await ground.block(burns(LP, 600))
    await ground.block(mints(LP, 500), after_s=SETTLED_S - 1)
    await settle(ground)
    await settle(ground)
    assert await ground.state(flag) == "open"


@pytest.mark.parametrize("who", [FLAGGER, HIS_KIN])
async def test_who_pulls_his_own_liquidity_is_not_right(ground: Ground, who: str) -> None:
    await ground.block(mints(HIS_KIN, 900))
    flag = await ground.flag(await ground.mite(), "drains")
    await ground.block(burns(who, 900))  # type: ignore[arg-type]
    await ground.to_the_end()
    assert await ground.state(flag) == "failed"


async def test_the_deployer_sells_half_of_what_he_holds(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "drains", OTHER)
    half = ground.index.fetchval("SELECT deployer_raw FROM accounts.flag WHERE id = $1", flag)
    assert await half == 10**24
    await ground.block(sells(DEPLOYER, 0.4, OTHER))
    await ground.look()
    assert await ground.state(flag) == "open"
    await settle(ground)
    assert await ground.state(flag) == "proved"


async def test_a_deployer_who_buys_again_has_not_sold(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "drains", OTHER)
    await ground.block(sells(DEPLOYER, 0.4, OTHER))
    await ground.block(buys(DEPLOYER, 0.4, OTHER), after_s=60)
    await settle(ground)
    assert await ground.state(flag) == "open"


async def test_what_leaves_after_the_week_is_late(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "drains")
    await ground.block(burns(LP, 600), after_s=WEEK_S + 1)
    await settle(ground)
    assert await ground.state(flag) == "failed"


async def test_what_left_within_the_week_is_found_however_late_it_is_looked_at(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "drains")
    await ground.block(burns(LP, 600), after_s=WEEK_S)
    await ground.block(after_s=30 * DAY_S)
    await ground.look()
    assert await ground.state(flag) == "proved"


# --- what cannot be found out ----------------------------------------------------------------------


async def test_what_nobody_could_price_in_the_last_day_is_void(ground: Ground) -> None:
    mite = await ground.mite()
    flags = [await ground.flag(mite, kind, OTHER) for kind in ("runs", "dead")]
    ground.quotes.pays[OTHER] = NOW_WEI
    await ground.block(after_s=2 * DAY_S)
    await ground.look()
    del ground.quotes.pays[OTHER]
    await ground.to_the_end()
    assert [await ground.state(one) for one in flags] == ["void", "void"]
    async with ground.pool.acquire() as connection:
        score = (await calls.scores(connection, [mite.id]))[mite.id]
    assert (score.proved, score.decided) == (0, 0)


async def test_a_node_that_is_away_settles_nothing_and_facts_still_do(ground: Ground) -> None:
    mite = await ground.mite()
    runs, drains = await ground.flag(mite, "runs"), await ground.flag(mite, "drains")
    ground.node_is_away = True
    await rise(ground, *CROWD)
    await ground.block(burns(LP, 600))
    await settle(ground)
    assert (await ground.state(runs), await ground.state(drains)) == ("open", "proved")


async def test_an_index_that_begins_after_the_flag_tells_nothing(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "drains")
    await ground.block(burns(LP, 600))
    await ground.index.execute("UPDATE facts.cursor SET start_number = $1", ground.at.number + 1)
    await ground.to_the_end()
    assert await ground.state(flag) == "void"


# --- settling --------------------------------------------------------------------------------------


async def test_all_flags_are_priced_in_one_trip(ground: Ground) -> None:
    mite = await ground.mite()
    for token in TOKENS:
        await ground.flag(mite, "runs", token)
    await ground.look()
    assert ground.quotes.trips == 1


async def test_a_flag_is_settled_once(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "drains")
    await ground.block(burns(LP, 600))
    await ground.block(after_s=SETTLED_S)
    first, second = [await look(ground.ctx, ground.quotes.prices()) for _ in range(2)]
    now = await ground.index.fetchval("SELECT made_at FROM accounts.flag WHERE id = $1", flag)
    own = [[one for one in found.flags if one.id == flag] for found in (first, second)]
    assert await calls.put(ground.index, own[0], now, first.newest_s) == 1
    assert await calls.put(ground.index, own[1], now, second.newest_s) == 0
    assert await ground.state(flag) == "proved"


async def test_more_flags_than_fit_a_trip_take_turns(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_PRICED", 1)
    mite = await ground.mite()
    flags = [await ground.flag(mite, "runs", token) for token in TOKENS[:2]]
    await ground.index.execute("DELETE FROM accounts.flag WHERE control_of IS NOT NULL")
    ground.quotes.pays |= dict.fromkeys(TOKENS, RUNS_WEI)
    await ground.look()
    assert sorted([await ground.state(one) for one in flags]) == ["open", "seen"]
    await ground.block(after_s=60)
    await ground.look()
    assert [await ground.state(one) for one in flags] == ["seen", "seen"]


async def test_the_job_settles_and_wishes_for_itself(ground: Ground) -> None:
    flag = await ground.flag(await ground.mite(), "drains")
    await ground.block(burns(LP, 600))
    await ground.block(after_s=SETTLED_S)
    await jobs.enqueue(ground.index, "calls", "open")
    worker = Worker(ground.ctx, {"calls": KINDS["calls"]}, lambda: 0.5)
    for run in await worker.take():
        await run
    assert await ground.state(flag) == "proved"
    wished = await jobs.to_come(ground.index, "calls", "open")
    assert wished is not None
    assert wished.run_at.timestamp() == ground.ctx.now_s() + EVERY_S
    assert wished.last_error is None


async def test_without_an_index_the_job_waits(ground: Ground) -> None:
    await jobs.enqueue(ground.index, "calls", "open")
    await forget(ground.index)
    (job,) = await jobs.claim(ground.index, ["calls"], 1, 9, wish_time(ground))
    effect = await job_calls(ground.ctx, job)
    await effect(ground.index)
    assert await jobs.is_there(ground.index, "calls", "open")


def wish_time(ground: Ground) -> datetime:
    return datetime.fromtimestamp(ground.ctx.now_s(), UTC)


# --- who may flag what -----------------------------------------------------------------------------


async def test_what_does_not_count_is_not_flagged(ground: Ground) -> None:
    young = address(0x70CE << 20)
    await ground.block(sent(launched(young, address(0xC0), DEPLOYER), sender=DEPLOYER))
    for token in (young, address(0x404)):
        assert "only those count" in await refused(ground, "dead", token, address(int(token, 16) + 7))


async def test_the_deployers_kin_do_not_flag(ground: Ground) -> None:
    assert "your own wallet's" in await refused(ground, "drains", wallet=DEPLOYER)


async def test_what_is_so_already_is_not_flagged(ground: Ground) -> None:
    ground.quotes.pays[OTHER] = DOWN_WEI
    assert "pays 0.01 eth" in await refused(ground, "dead", OTHER)
    del ground.quotes.pays[OTHER]
    await ground.block(buys(DEPLOYER, 0.1, OTHER), after_s=DAY_S + 10)
    assert "nobody traded it for a day" in await refused(ground, "dead", OTHER, HIS_KIN)


async def test_what_could_not_be_proved_is_not_flagged(ground: Ground) -> None:
    await ground.block(sells(DEPLOYER, 0.1, OTHER))
    assert "could not be proved" in await refused(ground, "drains", OTHER)
    ground.quotes.pays[OTHER] = Refused("sell", None, 0)
    assert "cannot be sold" in await refused(ground, "runs", OTHER, HIS_KIN)
    ground.quotes.pays[OTHER] = Refused("buy", None, 0)
    assert "does not buy it" in await refused(ground, "runs", OTHER, LP)


async def test_what_cannot_be_found_out_is_no_flag(ground: Ground) -> None:
    mite = await ground.mite()

    async def missing(*asked: object) -> Missing:
        return Missing("node", "it was asked in vain")

    prices = replace(ground.quotes.prices(), probe_buy=missing)
    with pytest.raises(NodeFault):
        await flag_token(ground.ctx, FlagParams(TOKEN, "runs"), mite, prices)
    ground.node_is_away = True
    with pytest.raises(NodeFault):
        await ground.flag(mite, "drains")
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.flag") == 0


async def test_an_index_that_is_behind_takes_no_flags(ground: Ground) -> None:
    mite = await ground.mite()
    ground.chain.block(after_s=SETTLED_S + 1)
    with pytest.raises(ServiceFull):
        await ground.flag(mite, "drains")


async def test_the_same_flag_waits_once(ground: Ground) -> None:
    mite = await ground.mite()
    await ground.flag(mite, "runs")
    with pytest.raises(CallerFault, match="still waits"):
        await ground.flag(mite, "runs")
    await ground.flag(mite, "drains")


async def test_of_two_that_flag_the_same_at_once_one_does(ground: Ground) -> None:
    mite = await ground.mite()
    came = await asyncio.gather(*(ground.flag(mite, "drains") for _ in range(3)), return_exceptions=True)
    refused = [one for one in came if isinstance(one, CallerFault)]
    assert len(refused) == 2
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.flag WHERE mite_id = $1", mite.id) == 1


async def test_five_a_day_and_ten_at_once(ground: Ground) -> None:
    mite = await ground.mite()
    made = 0
    for kind in ("runs", "drains", "dead"):
        for token in TOKENS:
            if made and made % MOST_A_DAY == 0:
                with pytest.raises(CallerFault, match="day of UTC" if made < MOST_OPEN else "waiting"):
                    await ground.flag(mite, kind, token)
                if made == MOST_OPEN:
                    return
                await ground.block(*(buys(BUYERS[7], 0.1, one) for one in TOKENS), after_s=DAY_S)
            await ground.flag(mite, kind, token)
            made += 1
    pytest.fail("there were more than ten")


# --- what it says of a mite ------------------------------------------------------------------------


async def test_everything_flagged_dead_is_right_as_often_as_chance(ground: Ground) -> None:
    """Two of four tokens die. Whoever flags all of them has every second one right, and so has chance."""
    mite = await ground.mite()
    flags = [await ground.flag(mite, "dead", token) for token in TOKENS]
    drawn = [await ground.control(one) for one in flags]
    assert None not in drawn
    await ground.index.executemany(
        "UPDATE accounts.flag SET token = $2 WHERE control_of = $1",
        [(one, bytes.fromhex(token[2:])) for one, token in zip(flags, reversed(TOKENS), strict=True)],
    )
    ground.quotes.pays |= {TOKEN: DOWN_WEI, OTHER: DOWN_WEI, TOKENS[2]: NOW_WEI, TOKENS[3]: NOW_WEI}
    await ground.to_the_end()
    async with ground.pool.acquire() as connection:
        score = (await calls.scores(connection, [mite.id]))[mite.id]
    assert (score.proved, score.decided) == (2, 4)
    assert score.accuracy == score.base_rate == 0.5
    assert not score.is_ahead


async def test_controls_are_drawn_among_tokens_that_count(ground: Ground) -> None:
    drawn = set()
    for number in range(12):
        mite = await ground.mite(address(0x1000 + number), f"mite-{number}")
        flag = await ground.flag(mite, "runs")
        control = await ground.control(flag)
        assert control is not None
        assert (control["kind"], control["mite_id"], control["state"]) == ("runs", None, "open")
        drawn.add("0x" + control["token"].hex())
    assert drawn <= set(TOKENS)
    assert len(drawn) > 1


async def test_without_controls_of_its_own_a_mite_has_everybodys(ground: Ground) -> None:
    one, other = await ground.mite(), await ground.mite(LP, "mite-two")
    first, second = await ground.flag(one, "drains"), await ground.flag(other, "drains", OTHER)
    await ground.index.execute("DELETE FROM accounts.flag WHERE control_of = $1", first)
    await ground.to_the_end()
    assert (await ground.state(first), await ground.state(second)) == ("failed", "failed")
    async with ground.pool.acquire() as connection:
        found = await calls.scores(connection, [one.id, other.id, 10**9])
    assert found[one.id] == found[other.id]
    assert (found[one.id].by_chance, found[one.id].drawn) == (0, 1)
    assert found[10**9].decided == 0


async def test_what_is_told_of_flags(ground: Ground) -> None:
    mite = await ground.mite()
    proved, waits = await ground.flag(mite, "drains"), await ground.flag(mite, "dead")
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
    assert row.mite.ahead_of_chance == (await calls.scores(ground.index, [mite.id]))[mite.id].is_ahead
    (waiting,) = of_token.waiting
    assert (waiting.kind, waiting.ends_at.timestamp()) == ("dead", flagged_s + WEEK_S)
    assert "mite-test flagged" in of_all.text
    assert "drains 1 hour before half of its liquidity left" in of_all.text
    assert "1 flag on it is still waiting: dead 1" in of_token.text
    nothing = (await proven_calls(ground.ctx, ProvenParams(OTHER))).answer
    assert (nothing.rows, nothing.waiting) == ([], [])
    assert "No flag" in nothing.text


async def test_it_is_bought_in_the_pool_where_most_is_traded(ground: Ground) -> None:
    """A pool beside it, of whoever flags, is not what is looked at."""
    flag = await ground.flag(await ground.mite(), "drains")
    row = await ground.index.fetchrow("SELECT pool, liquidity FROM accounts.flag WHERE id = $1", flag)
    assert row is not None
    assert row["liquidity"] == 600 * 120
    await ground.block(*(buys(who, 9.0, TOKEN) for who in CROWD), buys_in_pool(BUYERS[1], 1))
    other = await ground.flag(await ground.mite(HIS_KIN, "mite-two"), "drains")
    found = await ground.index.fetchrow("SELECT pool, deployer_raw FROM accounts.flag WHERE id = $1", other)
    assert found is not None
    assert (found["pool"], found["deployer_raw"]) == (None, 10**24)
