"""Flags over a database and a chain written by hand: what proves them, what does not, and who may flag."""

import pytest

from roundtrip.domain.check.evidence import RefusedCall
from roundtrip.domain.community.flag_calls import APART_S, RUNS_WEI, SETTLED_S, WEEK_S
from roundtrip.store.community import flags as calls
from support.flagged import FLAGGER, HIS_KIN, LP, OTHER, TOKEN, TOKENS, FlagGround, burns, mints
from support.flagging import CROWD, DOWN_WEI, NOW_WEI, refused, settle
from support.told_winners import BUYERS, DAY_S, DEPLOYER, HIS_FRIEND, buys, curve, sells
from unit.venues.network import address

# --- runs ------------------------------------------------------------------------------------------


async def rise(ground: FlagGround, *by: str) -> None:
    """These buy for an eth each, and it pays three times as much."""
    await ground.block(*(buys(who, 1.0, TOKEN) for who in by))  # type: ignore[arg-type]
    ground.quotes.pays[TOKEN] = RUNS_WEI
    await ground.look()
    await ground.block(after_s=APART_S)
    await ground.look()


async def test_a_token_runs(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "runs")
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


async def opened(ground: FlagGround, at: str, kind: str = "amm_v3", tick_spacing: int = 60) -> int:
    """A pool of OTHER, just now; its number."""
    found: int = await ground.index.fetchval(
        "INSERT INTO facts.pool (at, kind, token_id, quote_id, in_money_from, fee_pips, tick_spacing,"
        " block_number, log_index, at_s) SELECT decode($1, 'hex'), $2, token_id, quote_id, 0, 0, $3, $4, 999,"
        " $5 FROM facts.pool WHERE at = decode($6, 'hex') RETURNING id",
        at[2:], kind, tick_spacing, ground.at.number, ground.at.timestamp_s, curve(OTHER)[2:],
    )  # fmt: skip
    return found


async def test_a_pool_of_ones_own_that_pays_more_proves_nothing(ground: FlagGround) -> None:
    """Where the token was traded most as it was flagged its tokens were bought, and are sold."""
    flag = await ground.flag(await ground.account(), "runs", OTHER)
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
    ground: FlagGround, kind: str
) -> None:
    pool = await opened(ground, OWN_POOL)
    await ground.index.execute(
        "INSERT INTO facts.trade (at_s, block_number, log_index, pool_id, trader_id, buys, token_raw,"
        " quote_raw, tx_hash) SELECT $1, $2, 998, $3, id, true, 1, 10^24, $4 FROM facts.address"
        " WHERE address = decode($5, 'hex')",
        ground.at.timestamp_s, ground.at.number, pool, bytes(32), BUYERS[0][2:],
    )  # fmt: skip
    assert "younger" in await refused(ground, kind, OTHER)


async def test_what_nobody_trades_does_not_run_yet(ground: FlagGround) -> None:
    await ground.block(after_s=DAY_S)
    assert "the token had no trade in the last day" in await refused(ground, "runs", OTHER)


async def test_a_curve_that_becomes_a_pool_is_sold_there(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "runs", OTHER)
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


async def test_a_pump_of_a_moment_proves_nothing(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "runs")
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
async def test_who_pumps_it_himself_is_not_right(ground: FlagGround, by: tuple[str, ...]) -> None:
    flag = await ground.flag(await ground.account(), "runs")
    for _ in range(3):
        await rise(ground, *by)
    assert await ground.state(flag) == "open"
    await ground.to_the_end()
    assert await ground.state(flag) == "failed"


async def test_a_crowd_beside_a_little_of_ones_own_is_a_crowd(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "runs")
    await ground.block(buys(FLAGGER, 0.3, TOKEN))
    await rise(ground, *CROWD)
    assert await ground.state(flag) == "proved"


async def test_what_comes_late_is_wrong(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "runs")
    await ground.block(after_s=WEEK_S - 5)
    ground.quotes.pays[TOKEN] = NOW_WEI
    await ground.look()
    await rise(ground, *CROWD)
    assert await ground.state(flag) == "seen"
    await ground.block(after_s=SETTLED_S)
    await ground.look()
    assert await ground.state(flag) == "failed"


# --- dead ------------------------------------------------------------------------------------------


async def test_a_token_dies(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "dead", OTHER)
    ground.quotes.pays[OTHER] = DOWN_WEI
    await ground.block(sells(BUYERS[2], 0.4, OTHER))
    await ground.block(after_s=DAY_S + SETTLED_S - 2)
    await ground.look()
    assert await ground.state(flag) == "open"
    await ground.block(after_s=3)
    await ground.look()
    assert await ground.state(flag) == "proved"


async def test_a_token_that_cannot_be_sold_pays_nothing(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "dead", OTHER)
    ground.quotes.pays[OTHER] = RefusedCall("sell", None, 0)
    await ground.block(after_s=DAY_S + SETTLED_S)
    await ground.look()
    assert await ground.state(flag) == "proved"


async def test_a_token_that_is_traded_or_worth_something_lives(ground: FlagGround) -> None:
    account = await ground.account()
    traded, worth = await ground.flag(account, "dead", OTHER), await ground.flag(account, "dead", TOKENS[2])
    ground.quotes.pays |= {OTHER: DOWN_WEI, TOKENS[2]: DOWN_WEI + 1}
    for _ in range(9):
        await ground.block(buys(BUYERS[2], 0.1, OTHER), after_s=DAY_S)
        await ground.look()
    assert [await ground.state(one) for one in (traded, worth)] == ["failed", "failed"]


@pytest.mark.parametrize("who", [DEPLOYER, HIS_FRIEND])
async def test_the_deployer_keeps_nothing_alive(ground: FlagGround, who: str) -> None:
    flag = await ground.flag(await ground.account(), "dead", OTHER)
    ground.quotes.pays[OTHER] = DOWN_WEI
    await ground.block(buys(who, 0.1, OTHER), after_s=DAY_S + SETTLED_S)  # type: ignore[arg-type]
    await ground.look()
    assert await ground.state(flag) == "proved"


@pytest.mark.parametrize("who", [FLAGGER, HIS_KIN])
async def test_who_dumps_it_himself_is_not_right(ground: FlagGround, who: str) -> None:
    flag = await ground.flag(await ground.account(), "dead", OTHER)
    await ground.block(sells(who, 2.0, OTHER), sells(BUYERS[2], 0.4, OTHER))  # type: ignore[arg-type]
    ground.quotes.pays[OTHER] = DOWN_WEI
    await ground.to_the_end()
    assert await ground.state(flag) == "failed"


# --- drains ----------------------------------------------------------------------------------------


async def test_liquidity_leaves(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "drains")
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


async def test_liquidity_that_comes_back_has_not_left(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "drains")
    await ground.block(burns(LP, 600))
    await ground.block(mints(LP, 500), after_s=SETTLED_S - 1)
    await settle(ground)
    await settle(ground)
    assert await ground.state(flag) == "open"


@pytest.mark.parametrize("who", [FLAGGER, HIS_KIN])
async def test_who_pulls_his_own_liquidity_is_not_right(ground: FlagGround, who: str) -> None:
    await ground.block(mints(HIS_KIN, 900))
    flag = await ground.flag(await ground.account(), "drains")
    await ground.block(burns(who, 900))  # type: ignore[arg-type]
    await ground.to_the_end()
    assert await ground.state(flag) == "failed"


async def test_the_deployer_sells_half_of_what_he_holds(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "drains", OTHER)
    half = ground.index.fetchval("SELECT deployer_raw FROM accounts.flag WHERE id = $1", flag)
    assert await half == 10**24
    await ground.block(sells(DEPLOYER, 0.4, OTHER))
    await ground.look()
    assert await ground.state(flag) == "open"
    await settle(ground)
    assert await ground.state(flag) == "proved"


async def test_a_deployer_who_buys_again_has_not_sold(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "drains", OTHER)
    await ground.block(sells(DEPLOYER, 0.4, OTHER))
    await ground.block(buys(DEPLOYER, 0.4, OTHER), after_s=60)
    await settle(ground)
    assert await ground.state(flag) == "open"


async def test_what_leaves_after_the_week_is_late(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "drains")
    await ground.block(burns(LP, 600), after_s=WEEK_S + 1)
    await settle(ground)
    assert await ground.state(flag) == "failed"


async def test_what_left_within_the_week_is_found_however_late_it_is_looked_at(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "drains")
    await ground.block(burns(LP, 600), after_s=WEEK_S)
    await ground.block(after_s=30 * DAY_S)
    await ground.look()
    assert await ground.state(flag) == "proved"


# --- what cannot be found out ----------------------------------------------------------------------


async def test_what_nobody_could_price_in_the_last_day_is_void(ground: FlagGround) -> None:
    account = await ground.account()
    flags = [await ground.flag(account, kind, OTHER) for kind in ("runs", "dead")]
    ground.quotes.pays[OTHER] = NOW_WEI
    await ground.block(after_s=2 * DAY_S)
    await ground.look()
    del ground.quotes.pays[OTHER]
    await ground.to_the_end()
    assert [await ground.state(one) for one in flags] == ["void", "void"]
    async with ground.pool.acquire() as connection:
        score = (await calls.scores(connection, [account.id]))[account.id]
    assert (score.proved, score.decided) == (0, 0)


async def test_a_node_that_is_away_settles_nothing_and_facts_still_do(ground: FlagGround) -> None:
    account = await ground.account()
    runs, drains = await ground.flag(account, "runs"), await ground.flag(account, "drains")
    ground.node_is_away = True
    await rise(ground, *CROWD)
    await ground.block(burns(LP, 600))
    await settle(ground)
    assert (await ground.state(runs), await ground.state(drains)) == ("open", "proved")


async def test_an_index_that_begins_after_the_flag_tells_nothing(ground: FlagGround) -> None:
    flag = await ground.flag(await ground.account(), "drains")
    await ground.block(burns(LP, 600))
    await ground.index.execute("UPDATE facts.cursor SET start_number = $1", ground.at.number + 1)
    await ground.to_the_end()
    assert await ground.state(flag) == "void"
