"""The league, farmed: whatever one person can arrange alone counts for nothing."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.domain.practice import practice as rules
from roundtrip.domain.practice.practice import WEEK_S as LENGTH_S
from roundtrip.store.practice import league
from roundtrip.store.practice.league import LeagueCounts
from roundtrip.store.server.rows import Connection
from support.leagued import (
    BUYERS,
    DAY_S,
    DEPLOYER,
    FUNDER,
    NOW,
    NUMBER,
    QUOTE,
    TOKEN,
    WEEK_S,
    YOUNG,
    Leagued,
    block,
    curve_of,
    new_account,
)
from support.made_index import ETH, number_address
from support.told_blocks import START_S
from unit.venues.logs import NETWORK

COUNTS = None
OWN = number_address(0xAAAA)
"""The farmer's token."""
FARMER, PURSE = number_address(0xFA), number_address(0xFB)
CROWD = tuple(number_address(0xC000 + n) for n in range(30))


@pytest.fixture
async def made(connection: Connection) -> Leagued:
    return await Leagued(connection).made()


async def nobody_is_on_it(made: Leagued) -> bool:
    counts = await league.count_entered(made.connection, WEEK_S, "all")
    return counts == LeagueCounts(0, 0) and await made.board() == []


async def test_an_honest_sell_counts(made: Leagued) -> None:
    account = await new_account(made.connection)
    for _ in range(3):
        assert await made.sells(account) == COUNTS
    (first,) = await made.board()
    assert (first.designation, first.profit_wei, first.sells, first.won) == (
        account.designation,
        3 * ETH,
        3,
        3,
    )
    assert (first.best_token, first.best_profit_wei) == (TOKEN, ETH)


async def test_a_buyer_of_the_token_who_is_no_kin_counts(made: Leagued) -> None:
    assert await made.sells(await new_account(made.connection, BUYERS[0])) == COUNTS


# --- a pool of one's own ---------------------------------------------------------------------------


async def test_a_young_token_counts_for_nobody_however_many_bought_it(made: Leagued) -> None:
    await made.launched(YOUNG, NUMBER - DAY_S + 1)
    await made.bought(YOUNG, *CROWD)
    assert await made.sells(await new_account(made.connection), token=YOUNG) == rules.YOUNG
    assert await nobody_is_on_it(made)


async def test_a_day_old_to_the_second_it_does(made: Leagued) -> None:
    await made.launched(YOUNG, NUMBER - DAY_S)
    await made.bought(YOUNG, *CROWD)
    assert await made.sells(await new_account(made.connection), token=YOUNG) == COUNTS


async def pays_a_crowd(made: Leagued) -> None:
    for one in CROWD:
        await made.index.funded(one, PURSE, START_S - DAY_S)


async def pays_payers(made: Leagued) -> None:
    """Fresh wallets that each pay one fresh wallet."""
    for n, one in enumerate(CROWD):
        await made.index.funded(number_address(0xCC00 + n), PURSE, START_S + 2)
        await made.index.funded(one, number_address(0xCC00 + n), START_S + 3)


async def pays_as_an_exchange(made: Leagued) -> None:
    """Fresh wallets of somebody who paid so many that he looks like an exchange."""
    await made.met(PURSE)
    await made.index.crowd(PURSE, FAIRNESS.most_funded + 1)
    for one in CROWD:
        await made.index.funded(one, PURSE, START_S + 3)


async def pays_by_a_bridge(made: Leagued) -> None:
    """Fresh wallets that nobody is known to have paid."""
    await made.met(*CROWD, at_s=START_S + 3)


async def deploys_and_pays(made: Leagued) -> None:
    """They are the deployer's own."""
    for one in CROWD:
        await made.index.funded(one, DEPLOYER, START_S - DAY_S)


@pytest.mark.parametrize(
    "prepares", [pays_a_crowd, pays_payers, pays_as_an_exchange, pays_by_a_bridge, deploys_and_pays]
)
async def test_a_crowd_out_of_one_purse_is_none(
    made: Leagued, prepares: Callable[[Leagued], Awaitable[None]]
) -> None:
    """Wash trades among wallets of one person, by whatever way he paid them: an old token with thirty
    buyers, and then nineteen more that are real."""
    await made.launched(OWN, DAY_S)
    await prepares(made)
    await made.bought(OWN, *CROWD)
    farmer = await new_account(made.connection, FARMER)
    assert await made.sells(farmer, token=OWN) == rules.FEW
    await made.bought(OWN, *BUYERS[: FAIRNESS.least_buyers - 2])
    assert await made.sells(farmer, token=OWN) == rules.FEW
    assert await nobody_is_on_it(made)
    assert await made.kept() == []
    await made.bought(OWN, *BUYERS)
    assert await made.sells(farmer, token=OWN) == COUNTS


# --- those behind a token that is fair -------------------------------------------------------------


async def is_the_deployer(made: Leagued) -> Address:
    return DEPLOYER


async def was_paid_by_the_deployer(made: Leagued) -> Address:
    await made.index.funded(FARMER, DEPLOYER)
    return FARMER


async def paid_the_deployer(made: Leagued) -> Address:
    await made.index.funded(DEPLOYER, FARMER)
    return FARMER


async def has_the_deployers_funder(made: Leagued) -> Address:
    await made.index.funded(DEPLOYER, FUNDER)
    await made.index.funded(FARMER, FUNDER, START_S + 2 * DAY_S)
    return FARMER


async def left_the_same_exchange_that_day(made: Leagued) -> Address:
    await made.index.crowd(FUNDER, FAIRNESS.most_funded + 1)
    await made.index.funded(DEPLOYER, FUNDER)
    await made.index.funded(FARMER, FUNDER, START_S + DAY_S)
    return FARMER


KIN = (
    is_the_deployer,
    was_paid_by_the_deployer,
    paid_the_deployer,
    has_the_deployers_funder,
    left_the_same_exchange_that_day,
)


@pytest.mark.parametrize("behind", KIN)
async def test_who_is_behind_a_token_wins_nothing_with_it(
    made: Leagued, behind: Callable[[Leagued], Awaitable[Address]]
) -> None:
    """Also once it is kept as fair; and with others' tokens he may win."""
    farmer = await new_account(made.connection, await behind(made))
    for _ in range(3):
        assert await made.sells(farmer) == rules.KIN
    assert await nobody_is_on_it(made)
    assert await made.sells(await new_account(made.connection)) == COUNTS
    await made.keep(TOKEN)
    assert await made.sells(farmer) == rules.KIN
    await made.launched(OWN, DAY_S, number_address(0xDF))
    await made.bought(OWN, *BUYERS)
    assert await made.sells(farmer, token=OWN) == COUNTS


async def test_who_left_the_same_exchange_another_day_is_no_kin(made: Leagued) -> None:
    await made.index.crowd(FUNDER, FAIRNESS.most_funded + 1)
    await made.index.funded(DEPLOYER, FUNDER)
    await made.index.funded(FARMER, FUNDER, START_S + DAY_S + 1)
    assert await made.sells(await new_account(made.connection, FARMER)) == COUNTS


async def test_his_loss_is_left_out_like_his_gain(made: Leagued) -> None:
    assert await made.sells(await new_account(made.connection, DEPLOYER), -ETH) == rules.KIN
    assert await nobody_is_on_it(made)


# --- what cannot be found out ----------------------------------------------------------------------


async def test_without_an_index_nothing_counts(connection: Connection) -> None:
    alone = await Leagued(connection).emptied()
    assert await alone.sells(await new_account(connection)) == rules.NO_INDEX
    assert await nobody_is_on_it(alone)


async def test_a_token_that_stands_in_no_fact_counts_for_nobody(made: Leagued) -> None:
    assert await made.sells(await new_account(made.connection), token=OWN) == rules.NOT_KNOWN


async def test_a_token_whose_beginning_is_not_known_counts_for_nobody(made: Leagued) -> None:
    await made.bought(OWN, *BUYERS)
    account = await new_account(made.connection)
    assert await made.sells(account, token=OWN) == rules.NO_BEGINNING
    pool = await made.index.pool(OWN, QUOTE)
    await made.connection.execute("UPDATE facts.pool SET at_s = $2 WHERE id = $1", pool, START_S)
    await made.traded(pool, BUYERS[0], NUMBER - 9)
    assert await made.sells(account, token=OWN) == COUNTS


async def test_a_token_is_as_old_as_it_was_at_the_block_of_the_sell(made: Leagued) -> None:
    account = await new_account(made.connection)
    assert await made.sells(account, number=2 * DAY_S - 1) == rules.YOUNG
    assert await made.sells(account) == COUNTS
    # Kept by now; still, the block of that sell is before.
    await made.keep(TOKEN)
    assert await made.sells(account, number=2 * DAY_S - 1) == rules.YOUNG
    assert await made.sells(account, number=2 * DAY_S) == COUNTS


async def test_an_index_that_is_behind_makes_no_token_older(made: Leagued) -> None:
    await made.connection.execute("DELETE FROM facts.cursor")
    await made.index.begin(0, 2 * DAY_S - 1)
    assert await made.sells(await new_account(made.connection)) == rules.YOUNG


# --- pools that somebody made for it ---------------------------------------------------------------

AWAY = "0x" + "a7" * 20
POOL_ID = "0x" + "b8" * 32


async def is_not_there(made: Leagued, venue: str | None = AWAY) -> bool:
    found = await made.sells(await new_account(made.connection), venue=venue)
    return found == rules.ELSEWHERE


async def test_a_pool_of_ones_own_on_a_fair_token_counts_for_nothing(made: Leagued) -> None:
    """Opened a moment ago, and pumped for a block: also where nothing else was traded that day."""
    assert await is_not_there(made)
    own = await made.opened(TOKEN, AWAY, NUMBER - 1)
    assert await is_not_there(made)
    await made.traded(own, FARMER, NUMBER, 900 * ETH)
    assert await is_not_there(made)
    assert await nobody_is_on_it(made)
    assert await made.sells(await new_account(made.connection)) == COUNTS


async def test_nor_an_old_one_in_which_less_is_traded_than_elsewhere(made: Leagued) -> None:
    own = await made.opened(TOKEN, AWAY, DAY_S)
    await made.index.trade(TOKEN, BUYERS[0], NUMBER - 5, str(NETWORK.weth), 3 * ETH)
    await made.connection.execute("UPDATE facts.pool SET quote_id = $1", await made.index.id_of(NETWORK.weth))
    for number in (2 * DAY_S - 1, NUMBER - 4):
        await made.traded(own, FARMER, number, 2 * ETH)
    assert await is_not_there(made)
    await made.traded(own, BUYERS[1], NUMBER - 3, 2 * ETH)
    assert await made.sells(await new_account(made.connection), venue=AWAY) == COUNTS


async def test_where_it_is_traded_most_counts_once_it_is_a_day_old(made: Leagued) -> None:
    pool = await made.opened(TOKEN, AWAY, 2 * DAY_S)
    await made.traded(pool, BUYERS[0], NUMBER - 5)
    account = await new_account(made.connection)
    assert await made.sells(account, venue=AWAY) == COUNTS
    assert await made.sells(account, venue=AWAY, number=NUMBER - 1) == rules.ELSEWHERE


async def test_what_a_curve_became_counts_and_what_looks_like_it_does_not(made: Leagued) -> None:
    """A pool with the launchpad's hook can be opened by anybody, by another key or too early."""
    await made.opened(TOKEN, POOL_ID, NUMBER - 1, kind="launchpad_pool", tick_spacing=200)
    await made.opened(TOKEN, AWAY, NUMBER - 1, kind="launchpad_pool", tick_spacing=10)
    assert await is_not_there(made, POOL_ID)
    await made.index.step(TOKEN, "swept", NUMBER - 1)
    assert await is_not_there(made, POOL_ID)
    await made.index.step(TOKEN, "pooled", NUMBER)
    assert await is_not_there(made)
    assert await made.sells(await new_account(made.connection), venue=POOL_ID) == COUNTS


async def test_what_was_bought_in_a_pool_of_ones_own_counts_nowhere(made: Leagued) -> None:
    """Cheap there for a block, and sold where everybody sells."""
    await made.opened(TOKEN, AWAY, NUMBER - 1)
    account = await new_account(made.connection)
    assert await made.sells(account, bought_at=AWAY) == rules.ELSEWHERE
    assert await made.sells(account, bought_at=curve_of(TOKEN)) == COUNTS


async def test_a_place_that_is_not_told_counts_for_nothing(made: Leagued) -> None:
    account = await new_account(made.connection)
    counted = await league.count_sell(
        made.connection, account, TOKEN, ETH, block(), NOW, venue=None, contracts=NETWORK
    )
    assert counted == rules.ELSEWHERE


# --- many sells out of one -------------------------------------------------------------------------


async def test_parts_of_a_sell_bring_what_the_whole_does(made: Leagued) -> None:
    whole, parts = await new_account(made.connection), await new_account(made.connection)
    for profit_wei in (7 * ETH + 5, 1, -1):
        await made.sells(whole, profit_wei)
    for profit_wei in (ETH, 2 * ETH, 4 * ETH, 5, 1, -1):
        await made.sells(parts, profit_wei)
    first, second = await made.board()
    # Fewer sells stand before more of the same profit.
    assert (first.designation, second.designation) == (whole.designation, parts.designation)
    assert first.profit_wei == second.profit_wei == 7 * ETH + 5


async def test_two_sells_are_no_entry_and_three_are_of_one_position_or_of_several(made: Leagued) -> None:
    account = await new_account(made.connection)
    for sold, entries in ((1, 0), (2, 0), (3, 1)):
        assert await made.sells(account, ETH) == COUNTS
        assert len(await made.board()) == entries
        assert (await league.count_entered(made.connection, WEEK_S, "all")) == LeagueCounts(
            entries, 1 - entries
        )
        assert sold == await made.connection.fetchval(
            "SELECT sells FROM accounts.league_week WHERE account_id = $1", account.id
        )


async def test_sells_that_do_not_count_make_no_entry_of_two_that_do(made: Leagued) -> None:
    await made.launched(YOUNG, NUMBER - 1)
    account = await new_account(made.connection)
    for token in (TOKEN, YOUNG, YOUNG, TOKEN, YOUNG):
        await made.sells(account, token=token)
    assert await made.board() == []
    assert await league.count_entered(made.connection, WEEK_S, "all") == LeagueCounts(0, 1)


async def test_a_loss_counts(made: Leagued) -> None:
    account = await new_account(made.connection)
    for profit_wei in (ETH, -3 * ETH, 0):
        await made.sells(account, profit_wei)
    (first,) = await made.board()
    assert (first.profit_wei, first.won, first.best_profit_wei) == (-2 * ETH, 1, ETH)


async def test_on_monday_everybody_begins_anew(made: Leagued) -> None:
    account = await new_account(made.connection)
    for _ in range(3):
        await made.sells(account)
    to_sunday = timedelta(days=3, hours=11, minutes=59, seconds=59)
    assert await made.sells(account, later=to_sunday) == COUNTS
    assert await made.sells(account, later=to_sunday + timedelta(seconds=1)) == COUNTS
    (first,) = await made.board()
    assert first.sells == 4
    assert await made.board(week=WEEK_S + LENGTH_S) == []
    assert await league.count_entered(made.connection, WEEK_S + LENGTH_S, "all") == LeagueCounts(0, 1)
