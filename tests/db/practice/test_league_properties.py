"""The SQL of the league is what its rules say, slowly and obviously, whatever facts there are."""

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.market.fairness import Fairness
from roundtrip.domain.practice import practice as rules
from roundtrip.domain.practice.practice import WEEK_S as LENGTH_S
from roundtrip.domain.practice.practice import Who, monday_s
from roundtrip.store.boards import fair_tokens
from roundtrip.store.practice import league
from roundtrip.store.practice.league import LeagueCounts
from roundtrip.store.server.rows import Connection
from support import league_rules
from support.hex_columns import as_address
from support.leagued import NOW, WEEK_S, Leagued, new_account
from support.made_index import number_address
from support.won import Facts, block, facts, strewn
from unit.venues.logs import NETWORK

FAIRNESSES = st.builds(
    Fairness,
    young_s=st.sampled_from((0, 1, 60, 54_000)),
    least_buyers=st.integers(1, 3),
    most_funded=st.integers(0, 3),
)
"""For facts of forty wallets."""
STRANGER = Address("0x" + "5a" * 20)
few = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def why_not(
    slow: Facts, kept: dict[Address, int], wallet: Address, token: Address, at: BlockRef
) -> str | None:
    """By the rules alone; each is sold where it was launched."""
    found, begun = _why_not(slow, kept, wallet, token, at), slow.begun.get(token)
    was_launched = begun is not None and begun.deployer is not None
    return found if found is not None or was_launched else rules.ELSEWHERE


def _why_not(
    slow: Facts, kept: dict[Address, int], wallet: Address, token: Address, at: BlockRef
) -> str | None:
    """By ``domain/market/winners.py`` alone."""
    begun = slow.begun.get(token)
    if slow.wallets.is_kin(wallet, None if begun is None else begun.deployer):
        return rules.KIN
    if kept.get(token, at.number + 1) <= at.number:
        return None
    if begun is None:
        return rules.NO_BEGINNING
    at_s = min(at.timestamp_s, slow.at_s)
    if begun.at_s > at_s - slow.wallets.fairness.young_s:
        return rules.YOUNG
    return None if slow.wallets.is_fair(begun, slow.buyers.get(token, ()), at_s) else rules.FEW


async def held_against(
    connection: Connection, dice: random.Random, fairness: Fairness
) -> Counter[str | None]:
    """Every token with some wallets, and sells of it in some blocks; how often each reason was told."""
    newest = await strewn(connection, dice)
    slow = await facts(connection, fairness)
    rows = await connection.fetch("SELECT id, address FROM facts.address")
    names = {row["id"]: as_address(row["address"]) for row in rows}
    rows = await connection.fetch("SELECT token_id, block_number FROM facts.fair_token")
    kept = {names[row["token_id"]]: row["block_number"] for row in rows}
    account, entries = await new_account(connection), Counter[str | None]()
    tokens = [names[one] for one in range(41, 51)]
    for token in tokens:
        begun = slow.begun.get(token)
        deployer = None if begun is None else begun.deployer
        funder = slow.wallets.funder(deployer)
        for wallet in {STRANGER, deployer, funder, *dice.sample(list(names.values()), 4)} - {None}:
            assert wallet is not None
            seen = await fair_tokens.read_fairness(connection, token, wallet, fairness)
            assert seen is not None
            assert (seen.begun_s, seen.fair_from) == (begun and begun.at_s, kept.get(token))
            assert seen.is_kin == slow.wallets.is_kin(wallet, deployer)
            at = block(newest.number - dice.choice((0, 0, 0, 27, 300, -5)))
            undone = connection.transaction()
            await undone.start()
            counted = await league.count_sell(
                connection,
                replace(account, wallet=wallet),
                token,
                1,
                at,
                NOW,
                venue="0x",
                contracts=NETWORK,
                fairness=fairness,
            )
            await undone.rollback()
            assert counted == why_not(slow, kept, wallet, token, at)
            entries[counted] += 1
    return entries


@few
@given(seed=st.integers(0, 2**20), fairness=FAIRNESSES)
async def test_what_counts_is_what_the_rules_say(index: Connection, seed: int, fairness: Fairness) -> None:
    await held_against(index, random.Random(seed), fairness)


async def test_strewn_facts_have_sells_of_every_sort(index: Connection) -> None:
    """What the property above is worth."""
    answer: Counter[str | None] = Counter()
    for seed in range(12):
        answer += await held_against(index, random.Random(seed), Fairness(54_000, 2, 2))
    assert answer.keys() == {
        None, rules.KIN, rules.NO_BEGINNING, rules.YOUNG, rules.FEW, rules.ELSEWHERE
    }  # fmt: skip
    assert min(answer.values()) >= 10, answer


SELLS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0xA, 0xC),
        st.one_of(st.integers(-3, 3), st.integers(-(2**260), 2**260)),
        st.integers(-3, 2 * LENGTH_S // 1000).map(lambda places: WEEK_S + places * 1000),
    ),
    max_size=40,
)


@few
@given(sells=SELLS, agents=st.sets(st.integers(0, 5)))
async def test_a_board_is_what_the_sells_of_its_week_come_to(
    index: Connection, sells: list[tuple[int, int, int, int]], agents: set[int]
) -> None:
    """In whatever order they come, of the weeks before and after, too."""
    undone = index.transaction()
    await undone.start()
    made = await Leagued(index).made()
    accounts = [await new_account(index) for _ in range(6)]
    for n in agents:
        await league.tag(index, accounts[n].id, f"Bot {n}", NOW)
    tokens = {n: Address(f"0x{n:040x}") for n in (0xA, 0xB, 0xC)}
    for token in tokens.values():
        await index.execute("INSERT INTO facts.fair_token VALUES ($1, 0)", await made.index.id_of(token))
        await made.index.launch(token, number_address(0xDE), number_address(0xE), at=b"\x0c")
    result: dict[tuple[int, int], list[league_rules.CountedSell]] = {}
    for n, token_number, profit_wei, at_s in sells:
        sold = league_rules.CountedSell(accounts[n].id, tokens[token_number], profit_wei, at_s)
        now = datetime.fromtimestamp(at_s, UTC)
        at = BlockRef(1, "0x", at_s)
        counted = await league.count_sell(
            index, accounts[n], tokens[token_number], profit_wei, at, now, venue="0x0c", contracts=NETWORK
        )
        assert counted is None
        result.setdefault((monday_s(at_s), n), []).append(sold)
    names = {one.id: one.designation for one in accounts}
    for week in (WEEK_S - LENGTH_S, WEEK_S, WEEK_S + LENGTH_S, WEEK_S + 2 * LENGTH_S):
        entries = [
            league_rules.build_entry(own, is_agent=n in agents)
            for (of, n), own in result.items()
            if of == week
        ]
        for who in get_args(Who):
            slow = league_rules.board(entries, who)
            found = await league.board(index, week, who, 100)
            assert [
                (one.designation, one.is_agent, one.profit_wei, one.sells, one.won, one.best_token,
                 one.best_profit_wei) for one in found
            ] == [
                (names[one.account_id], one.is_agent, one.profit_wei, one.sells, one.won, one.best_token,
                 one.best_profit_wei) for one in slow
            ]  # fmt: skip
            assert list(found[:2]) == list(await league.board(index, week, who, 2))
            fewer = len(league_rules.filter_entries(entries, who)) - len(slow)
            assert await league.count_entered(index, week, who) == LeagueCounts(len(slow), fewer)
    await undone.rollback()
