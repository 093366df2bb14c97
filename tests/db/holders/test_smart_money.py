"""Who is known for winning, and who comes back: held against slow recounts of the same facts."""

import random
from collections.abc import AsyncIterator
from typing import get_args

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import ZERO_ADDRESS, Address, TxHash
from roundtrip.domain.market.fairness import Fairness
from roundtrip.domain.market.winners import SPANS, Window
from roundtrip.store.boards import winners
from roundtrip.store.holders import smart_money
from roundtrip.store.holders.smart_money import MAX_WINS_LOOKED_AT, BoardRow, SmartCrowd, WinningClose
from roundtrip.store.index import cursor, deployers, tokens
from roundtrip.store.index.deployers import MAX_LAUNCHES, LaunchSpot
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import linked
from support.hex_columns import as_address
from support.tables import append_blocks, begin_index, own_database
from support.told_winners import (
    BEST,
    BUYERS,
    DEPLOYER,
    HIS_FRIEND,
    LOSER,
    MILLION,
    SECOND,
    TOKEN,
    YOUNG,
    Won,
    buys,
    curve,
    launches,
    sells,
)
from support.winner_rules import ClosedToken
from support.won import Facts, facts, strewn
from unit.venues.network import address

ETH = 10**18
STRANGER = address(0x57A)
FAIRNESS = Fairness(young_s=54_000, least_buyers=3, most_funded=2)
few = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
async def own(database_url: str) -> AsyncIterator[Connection]:
    async with own_database(database_url, "smart_money") as url:
        connection = await asyncpg.connect(url)
        yield connection
        await connection.close()


@pytest.fixture
async def won(own: Connection) -> Won:
    """A chain on which somebody wins, in the index."""
    result = Won()
    await append_blocks(own, await begin_index(own, result.chain.parent), result.chain.blocks)
    return result


async def counted(connection: Connection, *spans: str, fairness: Fairness | None = None) -> None:
    stands = await cursor.cursor(connection)
    assert stands is not None
    more = () if fairness is None else (fairness,)
    for span in spans:
        async with connection.transaction():
            board = await winners.count_board(connection, span, stands.block, *more)
            assert await winners.keep(connection, board, stands)


# --- boards ----------------------------------------------------------------------------------------


async def test_a_wallets_row_is_of_the_nearest_board(own: Connection, won: Won) -> None:
    assert await smart_money.load_winners(own) == {}
    await counted(own, "all", "7d")
    rows = {
        BEST: BoardRow(BEST, "7d", 1, 5 * ETH // 2, 1, 1),
        SECOND: BoardRow(SECOND, "7d", 2, ETH // 4, 2, 1),
    }
    assert await smart_money.load_winners(own) == rows
    await counted(own, "24h")
    await own.execute(
        "DELETE FROM facts.winner WHERE span = '24h' AND rank = 1;"
        " UPDATE facts.winner SET rank = 1 WHERE span = '24h'"
    )
    nearer = BoardRow(SECOND, "24h", 1, ETH // 4, 2, 1)
    assert await smart_money.load_winners(own) == {**rows, SECOND: nearer}


async def test_of_strewn_facts_the_nearest_board_is_what_a_slow_look_says(own: Connection) -> None:
    seen = set()
    for seed in range(6):
        await strewn(own, random.Random(seed))
        slow = await facts(own, FAIRNESS)
        await counted(own, *SPANS, fairness=FAIRNESS)
        rows: dict[Address, BoardRow] = {}
        for span in reversed(get_args(Window)):
            for rank, one in enumerate(slow.winners(span), 1):
                row = BoardRow(one.wallet, span, rank, one.profit_wei, one.closed, one.won)
                rows[one.wallet] = row
        assert await smart_money.load_winners(own) == rows
        seen |= {row.span for row in rows.values()}
    assert len(seen) > 1


# --- wins ------------------------------------------------------------------------------------------


async def test_the_biggest_win_is_one_that_counts(own: Connection, won: Won) -> None:
    """A fortune out of a young token is none, nor what the deployer and his friend made. Before anybody has
    counted nothing is known to be fair."""
    everybody = [*BUYERS, DEPLOYER, HIS_FRIEND, STRANGER]
    assert await smart_money.load_biggest_wins(own, everybody) == {}
    await counted(own, "all")
    await tokens.keep(own, TOKEN, "WON", None, 18, None, 1)
    closed_s = won.chain.blocks[4].ref.timestamp_s
    found = await smart_money.load_biggest_wins(own, everybody)
    assert found == {
        BEST: WinningClose(TOKEN, "WON", ETH // 2, 3 * ETH, closed_s),
        SECOND: WinningClose(TOKEN, "WON", ETH // 2, ETH, closed_s + 1),
    }
    assert found[BEST].profit_wei == 5 * ETH // 2
    assert await smart_money.load_biggest_wins(own, [BEST, LOSER]) == {BEST: found[BEST]}
    assert await smart_money.load_biggest_wins(own, []) == {}


def slowly(slow: Facts, fair: set[Address]) -> dict[Address, list[ClosedToken]]:
    """Of each wallet the best, and whichever were as good."""
    best: dict[Address, list[ClosedToken]] = {}
    for one in sorted(slow.closings, key=lambda one: (-one.profit_wei, one.spot)):
        begun = slow.begun.get(one.token)
        kin = slow.wallets.is_kin(one.wallet, None if begun is None else begun.deployer)
        if one.profit_wei > 0 and one.token in fair and not kin:
            own = best.setdefault(one.wallet, [])
            if not own or own[0].profit_wei == one.profit_wei:
                own.append(one)
    return best


@few
@given(seed=st.integers(0, 2**20), spans=st.sets(st.sampled_from(list(SPANS))))
async def test_biggest_wins_are_what_a_slow_recount_says(own: Connection, seed: int, spans: set[str]) -> None:
    """Whatever was counted before: what a board remembers as the best is found anyway."""
    await strewn(own, random.Random(seed))
    await counted(own, *spans, fairness=FAIRNESS)
    slow = await facts(own, FAIRNESS)
    wallets = [as_address(row["address"]) for row in await own.fetch("SELECT address FROM facts.address")]
    best = slowly(slow, slow.kept_fair)
    found = await smart_money.load_biggest_wins(own, wallets, FAIRNESS)
    assert found.keys() == best.keys()
    for wallet, win in found.items():
        assert win in [
            WinningClose(one.token, None, one.spent_wei, one.got_wei, one.spot.at_s) for one in best[wallet]
        ]


async def test_what_a_board_remembers_is_told_of_who_closed_too_much_since(own: Connection, won: Won) -> None:
    """Behind as many made up wins as are looked at."""
    await counted(own, "all")
    young = await own.fetchval("SELECT id FROM facts.address WHERE address = $1", bytes.fromhex(YOUNG[2:]))
    wallet = await own.fetchval("SELECT id FROM facts.address WHERE address = $1", bytes.fromhex(BEST[2:]))
    before = await smart_money.load_biggest_wins(own, [BEST])
    await own.executemany(
        "INSERT INTO facts.closing VALUES ($1, 0, $2, $3, $4, 0, $5)",
        [(200 + n, 1_770_000_000 + n, wallet, young, 99 * ETH) for n in range(MAX_WINS_LOOKED_AT)],
    )
    assert await smart_money.load_biggest_wins(own, [BEST]) == before != {}
    await own.execute("DELETE FROM facts.winner")
    assert await smart_money.load_biggest_wins(own, [BEST]) == {}


# --- the crowd that comes back ---------------------------------------------------------------------


async def test_only_a_wallets_own_buys_count_as_bought(own: Connection, won: Won) -> None:
    """And no dust of its own beside what others bought for it."""
    asked = [BEST, STRANGER, BUYERS[5]]
    assert await smart_money.load_own_buyers(own, TOKEN, asked, MILLION) == {BEST, BUYERS[5]}
    assert await smart_money.load_own_buyers(own, TOKEN, asked, MILLION + 1) == frozenset()
    assert await smart_money.load_own_buyers(own, STRANGER, asked, 1) == frozenset()


async def test_who_bought_the_deployers_other_launches(own: Connection, won: Won) -> None:
    everybody = [*BUYERS, DEPLOYER, HIS_FRIEND, STRANGER]

    async def crowd(token: Address, deployer: Address = DEPLOYER) -> SmartCrowd:
        return await smart_money.load_repeat_buyers(own, deployer, token, everybody)

    assert await crowd(TOKEN) == SmartCrowd(2, {LOSER: 1})
    assert await crowd(YOUNG) == SmartCrowd(2, dict.fromkeys((*BUYERS, HIS_FRIEND), 1))
    assert await crowd(STRANGER) == SmartCrowd(2, {**dict.fromkeys((*BUYERS, HIS_FRIEND), 1), LOSER: 2})
    assert await crowd(TOKEN, BEST) == SmartCrowd(0, {})
    assert await crowd(TOKEN, STRANGER) == SmartCrowd(0, {})


async def test_who_only_sold_bought_nothing(own: Connection, won: Won) -> None:
    """They came by it otherwise."""
    await own.execute("UPDATE facts.position SET buys = 0")
    assert await smart_money.load_repeat_buyers(own, DEPLOYER, YOUNG, BUYERS) == SmartCrowd(2, {})


async def test_of_a_busy_deployer_the_newest_launches_count(own: Connection) -> None:
    result = Won().chain
    many = [address(0x70D0 + n << 8) for n in range(MAX_LAUNCHES + 2)]
    result.block(*(launches(token) for token in many))
    result.block(*(buys(BEST, 0.1, token) for token in many[:4]), buys(BEST, 0.1, many[-1]))
    result.block(sells(BEST, 0.1, many[-1]))
    await append_blocks(own, await begin_index(own, result.parent), result.blocks)
    found = [
        await smart_money.load_repeat_buyers(own, DEPLOYER, token, [BEST]) for token in (many[0], many[-1])
    ]
    assert found == [SmartCrowd(MAX_LAUNCHES, {BEST: 3}), SmartCrowd(MAX_LAUNCHES, {BEST: 3})]


# --- launches, families ----------------------------------------------------------------------------


async def test_where_a_token_was_launched(own: Connection, won: Won) -> None:
    block = won.chain.blocks[1]
    spot = LaunchSpot(
        block.ref.number, block.ref.timestamp_s, TxHash(block.transactions[0].hash), DEPLOYER, DEPLOYER, 2,
        ZERO_ADDRESS, curve(TOKEN),
    )  # fmt: skip
    assert await deployers.launch_of(own, TOKEN) == spot
    assert await deployers.launch_of(own, BEST) is None
    assert await deployers.launch_of(own, address(0x404)) is None


async def test_how_many_wallets_each_funder_paid(own: Connection, won: Won) -> None:
    funder = address(0xF000)
    asked = [funder, DEPLOYER, BEST, address(0x404)]
    assert await linked.count_funded_by_address(own, asked) == {
        funder: 1,
        DEPLOYER: 1,
        BEST: 0,
        address(0x404): 0,
    }
