"""Leases of calls on a real database: the statement beside the model of it, and processes that are killed."""

import asyncio
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from multiprocessing.connection import Connection as Pipe
from random import Random

import pytest

from roundtrip.api.admission.call_counter import CallCounter, DatabaseCalls
from roundtrip.api.admission.gate import CallRefused, Gate
from roundtrip.api.admission.leases import MAX_LEASED
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.request.callers import CallerRequest
from roundtrip.domain.accounts.account import Account, Allowances, CallAllowance
from roundtrip.domain.base.types import Address
from roundtrip.store.accounts import accounts
from roundtrip.store.accounts.call_counts import CountedCall, LeaseChange, RefundedCall, move, recent, write
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from support.counting import Counts, hashed, key_of, put_account

DAY, NEXT = date(2025, 10, 9), date(2025, 10, 10)
NOW_MS = 1_760_000_000_000
KILLED = 10
WALLETS = [Address(f"0x{number:040x}") for number in range(0xBEEF, 0xBEEF + 2)]


async def days(connection: Connection) -> dict[tuple[int, date], tuple[int, int]]:
    """Calls made and leased."""
    rows = await connection.fetch("SELECT account_id, day, calls, leased FROM accounts.day")
    return {(row["account_id"], row["day"]): (row["calls"] - row["leased"], row["leased"]) for row in rows}


async def test_what_is_leased_leaves_no_room_and_is_not_counted_as_made(own: Connection) -> None:
    number = await put_account(own, WALLETS[0], "k")
    assert await move(own, [LeaseChange(number, DAY, wanted=64, per_day=512)], {}) == {(number, DAY): 2}
    call = CountedCall(None, NOW_MS, hashed("k"), DAY, 3)
    live_keys = await write(own, [call, call])
    assert [live_key and live_key.has_room for live_key in live_keys] == [True, False]
    assert await accounts.calls_on(own, number, DAY) == 1
    assert await move(own, [LeaseChange(number, DAY, spent=1, returned=1)], {}) == {(number, DAY): 0}
    assert await days(own) == {(number, DAY): (2, 0)}


async def test_the_release_before_takes_leased_calls_for_made_ones(own: Connection) -> None:
    """The release before compares ``calls`` with the limit, and knows no leases. No refund, not even one of
    that release, gives a leased call to somebody else."""
    number = await put_account(own, WALLETS[0], "k")
    await move(own, [LeaseChange(number, DAY, wanted=64, per_day=2_048)], {})
    assert await own.fetchval("SELECT calls FROM accounts.day") == 8
    await write(own, [], [RefundedCall(None, NOW_MS, number, DAY)])
    assert await days(own) == {(number, DAY): (0, 8)}
    await own.execute("UPDATE accounts.day SET calls = calls - 1")
    assert await accounts.calls_by_day(own, number, DAY, 1) == [(DAY, 0)]
    assert await move(own, [LeaseChange(number, DAY, spent=3, returned=5)], {}) == {(number, DAY): 0}
    assert await days(own) == {(number, DAY): (3, 0)}


async def test_calls_of_leases_are_calls_of_their_minute(own: Connection) -> None:
    await move(own, [], {("account:1", NOW_MS): 3, ("account:1", NOW_MS + 1): 1})
    counts = await recent(own, NOW_MS - 60_000, NOW_MS + 60_000, 10)
    assert counts == [("account:1", NOW_MS, 3), ("account:1", NOW_MS + 1, 1)]


@pytest.mark.parametrize("seed", range(5))
async def test_the_statement_does_what_the_model_of_it_does(own: Connection, seed: int) -> None:
    """The tests of the gate use this model."""
    draw, numbers = Random(seed), [await put_account(own, WALLETS[n], f"k{n}") for n in range(2)]
    accounts_of = {
        hashed(f"k{n}"): Account(number, f"mite-{WALLETS[n][-12:]}", WALLETS[n])
        for n, number in enumerate(numbers)
    }
    model = Counts(live=accounts_of)
    for _ in range(40):
        places = draw.sample([(number, day) for number in numbers for day in (DAY, NEXT)], draw.randint(1, 4))
        changes = [
            LeaseChange(number, day, draw.randint(0, 9), draw.choice([0, 0, 5]), draw.choice([0, 64]), 2_000)
            for number, day in places
        ]
        assert await move(own, changes, {}) == await model.move_leases(changes, {})
        per_day = draw.choice([100, 2_000])
        calls = [CountedCall(None, NOW_MS, hashed(f"k{draw.randint(0, 1)}"), DAY, per_day) for _ in range(5)]
        refunds = [RefundedCall(None, NOW_MS, draw.choice(numbers), DAY) for _ in range(draw.randint(0, 3))]
        assert await write(own, calls, refunds) == await model.write(calls, refunds, 0)
    kept = {key: (calls, model.leased[key]) for key, calls in model.days.items()}
    assert await days(own) == kept


# --- many processes --------------------------------------------------------------------------------


def serve(dsn: str, per_day: int, go: Pipe, reports: Pipe) -> None:
    """A process that calls until the day's calls are used up. It reports each call before the next."""
    asyncio.run(_serve(dsn, per_day, go, reports))


async def _serve(dsn: str, per_day: int, go: Pipe, reports: Pipe) -> None:
    os.write(reports.fileno(), b"r")
    go.poll(None)
    async with gate_over_database(dsn, per_day) as gate:
        while (code := await ask(gate)) != "daily_limit":
            os.write(reports.fileno(), b"." if code == "in" else b"?")
            await asyncio.sleep(0 if code == "in" else 0.1)


@asynccontextmanager
async def gate_over_database(dsn: str, per_day: int) -> AsyncIterator[Gate]:
    free = CallAllowance(10**9, per_day)
    async with connections.create_pool(dsn, min_size=0, max_size=1) as pool:
        counter = CallCounter(DatabaseCalls(pool), lambda: time.time_ns() // 1_000_000)
        gate = Gate(MinuteLimits(counter.now_ms), Allowances(CallAllowance(1), free, free), counter)
        async with gate.open():
            yield gate


async def ask(gate: Gate) -> str:
    try:
        await gate.admit(CallerRequest("address:x", key_of("k"), is_local=True), "day", needs_key=True)
    except CallRefused as refused:
        return refused.error.code
    return "in"


async def test_of_fifty_processes_some_are_killed_and_the_day_gives_no_more_than_it_has(
    own: Connection, database_url: str
) -> None:
    per_day, is_killed = 20_000, False
    await put_account(own, WALLETS[0], "k")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    (go, let_go), (ours, result) = context.Pipe(duplex=False), context.Pipe(duplex=False)
    started = [context.Process(target=serve, args=(database_url, per_day, go, result)) for _ in range(50)]
    for process in started:
        process.start()
    result.close()
    answer: Counter[int] = Counter()
    try:
        async with asyncio.timeout(240):
            while block := await asyncio.to_thread(os.read, ours.fileno(), 4096):
                answer.update(block)
                if answer[ord("r")] == len(started) and not let_go.closed:
                    let_go.close()
                if answer[ord(".")] > per_day // 3 and not is_killed:
                    is_killed = True
                    for process in started[:KILLED]:
                        process.kill()
    finally:
        for process in started:
            process.kill()
            process.join()
    # Calls that the other processes returned are there for the next one.
    async with gate_over_database(database_url, per_day) as gate:
        while (code := await ask(gate)) == "in":
            answer[ord(".")] += 1
    assert code == "daily_limit"
    admitted, wrong = answer[ord(".")], answer[ord("?")]
    ((calls, leased),) = (await days(own)).values()
    assert (wrong, calls + leased) == (0, per_day)
    assert await own.fetchval("SELECT calls FROM accounts.day") == per_day
    # What is leased at the end was the killed processes', and each of them was about to report one call.
    assert 0 < leased <= KILLED * MAX_LEASED
    assert calls - KILLED <= admitted <= per_day
