"""Unlocks: those of the newest reading are kept, and each account is alerted of each once, a day before."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.unlocks import ALERTED_BEFORE_S, CALENDAR_S, ComingUnlock, Unlock
from roundtrip.domain.watch.rules import Rule, Who
from roundtrip.jobs.kinds.unlocks import unlocks
from roundtrip.services.liquidity.unlocks import MAX_UNLOCKS, list_unlocks
from roundtrip.services.support.index_reader import Nothing
from roundtrip.store.index.tokens import id_of
from roundtrip.store.liquidity.positions import put_unlocks, read_coming, read_coming_of
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches
from support.alert_ground import AlertGround
from support.alerting import accounts
from support.told_blocks import bought, sent
from unit.sync.telling import ALICE, BOB, CURVE, DEV, HIGH
from unit.venues.network import address

NOW_S = 1_790_000_000
NOW = datetime.fromtimestamp(NOW_S, UTC)
UNLOCK_S = NOW_S + ALERTED_BEFORE_S
MANAGER, OTHER = address(0x9A), address(0x9B)


@dataclass
class UnlockContext:
    """All that the job and the calendar need of a context."""

    at_s: int = NOW_S
    pool: Any = None

    def now_s(self) -> float:
        return self.at_s

    def index_pool(self) -> Any:
        return self.pool


def locked(token: Address = HIGH, number: int = 1, at_s: int = UNLOCK_S, **parts: Any) -> Unlock:
    return Unlock(token, MANAGER, number, parts.get("holder", BOB), at_s, parts.get("share_bps", 3_000))


async def run(index: Connection, at_s: int = NOW_S) -> list[tuple[int, str, int]]:
    """The job runs; every alert of an unlock there is then."""
    job = Job(1, "unlocks", "coming", {}, NOW, UUID(int=1), NOW, 1)
    effect = await unlocks(UnlockContext(at_s), job)  # type: ignore[arg-type]
    async with index.transaction():
        await effect(index)
    rows = await index.fetch("SELECT * FROM accounts.alert WHERE kind = 'unlock' ORDER BY id")
    return [(row["account_id"], row["said"], row["at_s"]) for row in rows]


@pytest.fixture
async def index(ground: AlertGround) -> Connection:
    await ground.index.execute("TRUNCATE facts.unlock, jobs.job CASCADE")
    return ground.index


async def test_a_reading_replaces_the_one_before(index: Connection) -> None:
    await put_unlocks(index, HIGH, [locked(number=1), locked(number=2)], 10)
    await put_unlocks(index, OTHER, [locked(OTHER, share_bps=None), locked(OTHER, 2**256 - 1)], 10)
    both = [ComingUnlock(HIGH, BOB, UNLOCK_S, 6_000, 2), ComingUnlock(OTHER, BOB, UNLOCK_S, None, 2)]
    assert sorted(await read_coming(index, NOW_S, UNLOCK_S, 10)) == sorted(both)
    await put_unlocks(index, HIGH, [locked(at_s=2**256 - 1)], 11)
    await put_unlocks(index, HIGH, [locked()], 10)
    await put_unlocks(index, OTHER, [], 12)
    assert await read_coming(index, NOW_S, UNLOCK_S, 10) == []
    assert [one.at_s for one in await read_coming(index, NOW_S, 2**31 - 1, 10)] == [2**31 - 1]


async def test_what_a_reading_did_not_try_stays(index: Connection) -> None:
    await put_unlocks(index, HIGH, [locked(number=1), locked(number=2), locked(number=2**256 - 1)], 10)
    untried = {(locked().manager, 2), (locked().manager, 2**256 - 1), (OTHER, 1)}
    await put_unlocks(index, HIGH, [locked(number=3, share_bps=500)], 11, untried)
    (coming,) = await read_coming(index, NOW_S, UNLOCK_S, 10)
    assert (coming.positions, coming.share_bps) == (3, 2 * (locked().share_bps or 0) + 500)


async def test_who_watches_is_alerted_once_a_day_before(index: Connection, ground: AlertGround) -> None:
    account = ground.account
    await watches.add_rule(index, account, Rule(Who("any"), "selling", None, HIGH), None, 0, NOW)
    await put_unlocks(index, HIGH, [locked(number=1), locked(number=2)], 10)
    await put_unlocks(index, OTHER, [locked(OTHER)], 10)
    assert await run(index, NOW_S - 1) == []
    (alert,) = await run(index)
    assert alert == (account, alert[1], UNLOCK_S)
    assert alert[1].startswith("In a day, on ")
    what = f"60 % of the active liquidity of the pools of 2 locked positions of {HIGH}"
    assert f"{what} can be withdrawn by {BOB}." in alert[1]
    # Whoever reads it anew, the job starts over: it is told.
    await put_unlocks(index, HIGH, [locked(number=1, share_bps=5_000), locked(number=2)], 11)
    assert await run(index, NOW_S + 600) == [alert]
    assert await run(index, UNLOCK_S) == [alert]
    # No id was drawn for what was told before: the event stream waits for ids that it misses.
    last_id = "SELECT pg_sequence_last_value(pg_get_serial_sequence('accounts.alert', 'id')::regclass)"
    assert await index.fetchval(last_id) == await index.fetchval("SELECT max(id) FROM accounts.alert")
    next_runs = await index.fetch("SELECT run_at FROM jobs.job WHERE kind = 'unlocks'")
    assert [row["run_at"] for row in next_runs] != []


async def test_what_accounts_watch_or_hold_is_read(index: Connection, ground: AlertGround) -> None:
    rows = "SELECT key, run_at FROM jobs.job WHERE kind = 'liquidity' ORDER BY key"
    await run(index)
    before = {row["key"] for row in await index.fetch(rows)}
    await watches.add_rule(index, ground.account, Rule(Who("any"), "selling", None, OTHER), None, 0, NOW)
    await run(index)
    assert {row["key"] for row in await index.fetch(rows)} == before | {OTHER}
    # The reading enqueues the next one itself: it is not pulled forward.
    later = NOW + timedelta(days=1)
    await index.execute("UPDATE jobs.job SET run_at = $1 WHERE kind = 'liquidity'", later)
    await run(index, NOW_S + 300)
    assert {row["run_at"] for row in await index.fetch(rows)} == {later}


async def test_none_is_alerted_of_what_went_away_or_has_passed(
    index: Connection, ground: AlertGround
) -> None:
    rule = Rule(Who("deployer", HIGH), "removing")
    await watches.add_rule(index, ground.account, rule, DEV, 0, NOW)
    await put_unlocks(index, HIGH, [locked(), locked(number=2, at_s=NOW_S)], 10)
    await put_unlocks(index, HIGH, [locked(number=2, at_s=NOW_S)], 11)
    assert await run(index) == []
    await put_unlocks(index, HIGH, [locked(number=3, at_s=NOW_S + 1)], 12)
    assert [account for account, _, _ in await run(index)] == [ground.account]


async def test_followers_of_the_deployer_and_holders_are_alerted(
    index: Connection, ground: AlertGround
) -> None:
    await watches.add_follow(index, ground.account, DEV, "dev", 0, NOW)
    holder, _ = await accounts(index, 2, [ALICE])
    await ground.block(sent(bought(CURVE, ALICE, ALICE, 10**15, 10**24), sender=ALICE))
    await put_unlocks(index, HIGH, [locked()], 10)
    assert {account for account, _, _ in await run(index)} == {ground.account, holder}


async def test_the_calendar_of_an_account_has_what_it_watches_and_holds(
    index: Connection, ground: AlertGround
) -> None:
    account, to_s = ground.account, NOW_S + CALENDAR_S
    await put_unlocks(index, HIGH, [locked(), locked(number=2, at_s=to_s + 1)], 10)
    await put_unlocks(index, OTHER, [locked(OTHER, at_s=to_s)], 10)
    high = await id_of(index, HIGH)
    assert high is not None
    coming = [ComingUnlock(HIGH, BOB, UNLOCK_S, 3_000, 1)]
    assert await read_coming_of(index, account, [], NOW_S, to_s, 10) == []
    assert await read_coming_of(index, account, [high], NOW_S, to_s, 10) == coming
    await watches.add_follow(index, account, DEV, "", 0, NOW)
    assert await read_coming_of(index, account, [], NOW_S, to_s, 10) == coming
    assert await read_coming_of(index, account + 1, [], NOW_S, to_s, 10) == []
    await watches.add_rule(index, account, Rule(Who("any"), "buying", None, OTHER), None, 0, NOW)
    found = await read_coming_of(index, account, [], NOW_S, to_s, 10)
    assert [one.token for one in found] == [HIGH, OTHER]


async def test_the_calendar_says_what_comes(index: Connection, ground: AlertGround) -> None:
    (holder,) = await accounts(index, 1, [ALICE])
    await ground.block(sent(bought(CURVE, ALICE, ALICE, 10**15, 10**24), sender=ALICE))
    account = Account(holder, "mite-held", ALICE)
    ctx: Any = UnlockContext(NOW_S, ground.pool)
    empty = (await list_unlocks(ctx, Nothing(), account)).answer
    assert (empty.unlocks, empty.is_whole) == ([], True)
    await put_unlocks(index, HIGH, [locked(number=n, at_s=UNLOCK_S + n) for n in range(MAX_UNLOCKS + 1)], 10)
    result = (await list_unlocks(ctx, Nothing(), account)).answer
    assert (len(result.unlocks), result.is_whole) == (MAX_UNLOCKS, False)
    first = result.unlocks[0]
    assert (first.token, first.holder, first.share_bps, first.positions) == (HIGH, BOB, 3_000, 1)
    assert result.text.endswith(first.text)
