"""The statement that counts calls, against a real database. Clocks are passed in."""

import asyncio
from contextlib import AsyncExitStack
from datetime import date

import asyncpg
import pytest

from roundtrip.api.admission.call_counter import CallCounter, DatabaseCalls
from roundtrip.api.admission.gate import Admitted, CallRefused, Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.request.callers import CallerRequest
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.base.types import Address
from roundtrip.store.accounts import call_counts
from roundtrip.store.accounts.call_counts import CountedCall, LiveKey, RefundedCall, forget, recent, write
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from support.counting import Wall, hashed, key_of, put_account
from support.processes import InTurns

DAY = date(2025, 10, 9)
NEXT = date(2025, 10, 10)
NOW_MS = 1_760_000_000_000
WALLETS = [Address(f"0x{number:040x}") for number in range(0xC0FFEE, 0xC0FFEE + 4)]


def call(key: str | None, ms: int = NOW_MS, day: date | None = DAY, per_day: int = 10) -> CountedCall:
    if key is None:
        return CountedCall("address:a", ms)
    return CountedCall(f"of {key}", ms, hashed(key), day, per_day)


async def days(connection: Connection) -> dict[tuple[int, date], int]:
    rows = await connection.fetch("SELECT account_id, day, calls FROM accounts.day")
    return {(row["account_id"], row["day"]): row["calls"] for row in rows}


async def minute(connection: Connection, now_ms: int = NOW_MS) -> dict[str, int]:
    counts: dict[str, int] = {}
    for caller, _, calls in await recent(connection, now_ms - 60_000, now_ms + 60_000, 1000):
        counts[caller] = counts.get(caller, 0) + calls
    return counts


def room(answers: list[LiveKey | None]) -> list[bool | None]:
    return [None if live_key is None else live_key.has_room for live_key in answers]


async def test_a_call_without_a_key_counts_by_the_minute_only(own: Connection) -> None:
    assert await write(own, [call(None), call(None)]) == [None, None]
    assert await minute(own) == {"address:a": 2}
    assert await days(own) == {}


async def test_a_live_key_tells_whose_it_is(own: Connection) -> None:
    number = await put_account(own, WALLETS[0], "k")
    await own.execute("UPDATE accounts.account SET is_agent = true, agent_name = 'Bot 7'")
    (live_key,) = await write(own, [call("k")])
    assert live_key is not None
    assert live_key.has_room
    assert (live_key.account.id, live_key.account.wallet) == (number, WALLETS[0])
    assert (live_key.account.is_agent, live_key.account.agent_name) == (True, "Bot 7")
    assert await days(own) == {(number, DAY): 1}
    assert await minute(own) == {"of k": 1}


async def test_a_key_that_is_revoked_or_was_never_made_counts_nothing(own: Connection) -> None:
    await put_account(own, WALLETS[0], "k", "dead")
    await own.execute("UPDATE accounts.key SET revoked_at = now() WHERE hash = $1", hashed("dead"))
    assert room(await write(own, [call("dead"), call("none"), call("k")])) == [None, None, True]
    assert await minute(own) == {"of k": 1}
    assert list((await days(own)).values()) == [1]


async def test_asking_whose_a_key_is_counts_nothing(own: Connection) -> None:
    await put_account(own, WALLETS[0], "k")
    assert room(await write(own, [CountedCall(None, NOW_MS, hashed("k"))])) == [True]
    assert (await minute(own), await days(own)) == ({}, {})


async def test_of_calls_at_once_as_many_get_in_as_the_day_has_left(own: Connection) -> None:
    """The first calls, over all keys of an account; another account has a day of its own."""
    first = await put_account(own, WALLETS[0], "k", "l", "dead")
    second = await put_account(own, WALLETS[1], "m")
    await own.execute("UPDATE accounts.key SET revoked_at = now() WHERE hash = $1", hashed("dead"))
    asked = [call(key, per_day=3) for key in ("k", "dead", "l", "m", "dead", "k", "l", "m")]
    assert room(await write(own, asked)) == [True, None, True, True, None, True, False, True]
    assert await days(own) == {(first, DAY): 3, (second, DAY): 2}
    assert await minute(own) == {"of k": 2, "of l": 1, "of m": 2}
    assert room(await write(own, [call("k", per_day=3), call("m", per_day=3), call("m", per_day=3)])) == [
        False,
        True,
        False,
    ]
    assert await days(own) == {(first, DAY): 3, (second, DAY): 3}


async def test_what_counts_by_the_minute_only_leaves_the_day_alone(own: Connection) -> None:
    number = await put_account(own, WALLETS[0], "k")
    asked = [call("k", per_day=1), call("k", day=None), call("k", per_day=1), call("k", day=None)]
    assert room(await write(own, asked)) == [True, True, False, True]
    assert await days(own) == {(number, DAY): 1}
    assert await minute(own) == {"of k": 3}


async def test_a_day_begins_anew_and_leaves_the_last_one_as_it_was(own: Connection) -> None:
    number = await put_account(own, WALLETS[0], "k")
    asked = [call("k", day=day, per_day=1) for day in (DAY, NEXT, DAY, NEXT)]
    assert room(await write(own, asked)) == [True, True, False, False]
    assert await days(own) == {(number, DAY): 1, (number, NEXT): 1}


async def test_a_limit_that_was_lowered_takes_nothing_back(own: Connection) -> None:
    number = await put_account(own, WALLETS[0], "k")
    await write(own, [call("k")] * 5)
    assert room(await write(own, [call("k", per_day=2)])) == [False]
    assert await days(own) == {(number, DAY): 5}
    assert room(await write(own, [call("k", per_day=6)] * 2)) == [True, False]


async def test_a_call_handed_back_makes_room_in_the_same_statement(own: Connection) -> None:
    number = await put_account(own, WALLETS[0], "k")
    await write(own, [call("k", per_day=2)] * 2)
    back = RefundedCall("of k", NOW_MS, number, DAY)
    assert room(await write(own, [call("k", per_day=2)] * 2, [back])) == [True, False]
    assert await days(own) == {(number, DAY): 2}
    assert await minute(own) == {"of k": 2}


async def test_a_day_is_handed_back_when_its_minute_is_over(own: Connection) -> None:
    number = await put_account(own, WALLETS[0], "k")
    await write(own, [call("k")] * 2)
    await write(own, [], [RefundedCall(None, NOW_MS, number, DAY)])
    assert await days(own) == {(number, DAY): 1}
    assert await minute(own) == {"of k": 2}
    await write(own, [], [RefundedCall(None, NOW_MS, number, DAY)] * 3)
    assert await days(own) == {(number, DAY): 0}


async def test_recent_calls_are_the_last_minutes_the_oldest_first(own: Connection) -> None:
    times = [NOW_MS, NOW_MS - 59_999, NOW_MS - 60_000, NOW_MS - 1, NOW_MS - 1, NOW_MS + 70_000]
    await write(own, [call(None, ms) for ms in times])
    await write(own, [], [RefundedCall("address:a", NOW_MS, None, None)])
    counts = await recent(own, NOW_MS - 60_000, NOW_MS + 60_000, 10)
    assert counts == [("address:a", NOW_MS - 59_999, 1), ("address:a", NOW_MS - 1, 2)]
    assert await recent(own, NOW_MS - 60_000, NOW_MS + 60_000, 1) == counts[1:]


async def test_old_calls_are_forgotten(own: Connection) -> None:
    await write(own, [call(None, NOW_MS - ms) for ms in (120_001, 120_000, 0)])
    await forget(own, NOW_MS - 120_000)
    left = await own.fetch("SELECT taken_ms FROM accounts.call ORDER BY taken_ms")
    assert [row["taken_ms"] for row in left] == [NOW_MS - 120_000, NOW_MS]


async def test_calls_count_where_old_ones_cannot_be_forgotten(
    own: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(connection: Connection, before_ms: int) -> None:
        raise asyncpg.QueryCanceledError("it took too long")

    monkeypatch.setattr(call_counts, "forget", fails)
    number = await put_account(own, WALLETS[0], "k")
    async with connections.create_pool(database_url, min_size=0, max_size=1) as pool:
        ledger = DatabaseCalls(pool)
        for _ in range(2):
            assert room(await ledger.write([call("k")], [], NOW_MS)) == [True]
        await ledger.close()
    assert await days(own) == {(number, DAY): 2}


# --- many processes --------------------------------------------------------------------------------


async def test_fifty_gates_on_one_database_let_in_as_many_as_the_day_has(
    own: Connection, database_url: str
) -> None:
    """Two accounts, each with two keys; forty calls were made before."""
    per_day = 300
    numbers = [await put_account(own, WALLETS[n], f"k{n}", f"l{n}") for n in range(2)]
    await write(own, [call("k0", per_day=per_day)] * 40)
    allowance = CallAllowance(1_000_000, per_day)
    allowances = Allowances(CallAllowance(1), allowance, allowance)
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(connections.create_pool(database_url, min_size=0, max_size=20))
        wall = Wall(NOW_MS)
        gates = [Gate(MinuteLimits(wall), allowances, CallCounter(InTurns(pool), wall)) for _ in range(50)]

        async def ask(gate: Gate, key: str) -> str:
            try:
                admitted = await gate.admit(CallerRequest("address:x", key_of(key)), "day", needs_key=True)
            except CallRefused as refused:
                return refused.error.code
            assert isinstance(admitted, Admitted)
            return f"in {admitted.account.id if admitted.account else None}"

        outcomes = await asyncio.gather(
            *(ask(gate, key) for _ in range(4) for gate in gates for key in ("k0", "k1", "l0", "l1"))
        )
        assert outcomes.count("daily_limit") >= len(outcomes) - 2 * per_day + 40
        for gate in gates:
            await gate.counter.close()
        # The calls that closed gates had leased are there for the next gate.
        outcomes += [await ask(gates[0], key) for key in ("k0", "k1") for _ in range(80)]
    assert outcomes.count(f"in {numbers[0]}") == per_day - 40
    assert outcomes.count(f"in {numbers[1]}") == per_day
    assert outcomes.count("daily_limit") == len(outcomes) - 2 * per_day + 40
    assert await days(own) == {(number, DAY): per_day for number in numbers}
