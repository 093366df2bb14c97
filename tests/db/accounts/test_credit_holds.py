"""Credits held, spent and given back, against a real database. Clocks and ids are passed in."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import date
from uuid import UUID

import asyncpg
import pytest

from roundtrip.api.admission.call_counter import CallCounter
from roundtrip.api.admission.credit_spender import CreditSpender, DatabaseCredits
from roundtrip.api.admission.gate import Admitted, CallRefused, Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.request.callers import CallerRequest
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.base.types import Address
from roundtrip.store.accounts import call_counts, credits
from roundtrip.store.accounts.call_counts import CountedCall
from roundtrip.store.accounts.credits import HOLD_MS, CreditHold
from roundtrip.store.server.rows import Connection
from support.counting import Drawn, Wall, conserved, hashed, key_of, put_account, put_credits
from support.processes import InTurns

DAY = date(2025, 10, 9)
NEXT = date(2025, 10, 10)
NOW_MS = 1_760_000_000_000
WAIT_S = 60
WALLETS = [Address(f"0x{number:040x}") for number in range(0xFACADE, 0xFACADE + 8)]


@dataclass
class Asked:
    """Holds with ids one after another."""

    drawn: Drawn

    def __call__(self, *accounts: int, at_ms: int = NOW_MS, caller: str | None = None) -> list[CreditHold]:
        return [CreditHold(self.drawn(), account, at_ms + HOLD_MS, caller, at_ms) for account in accounts]


@pytest.fixture
def asked() -> Asked:
    return Asked(Drawn())


async def paid(own: Connection, *credited: int) -> list[int]:
    """Accounts that have paid for so many calls each."""
    numbers = [await put_account(own, WALLETS[n], f"k{n}") for n in range(len(credited))]
    for number, amount in zip(numbers, credited, strict=True):
        await put_credits(own, number, amount)
    return numbers


def ids(found: Sequence[CreditHold]) -> set[UUID]:
    return {one.id for one in found}


async def test_of_calls_at_once_as_many_get_a_credit_as_there_are(own: Connection, asked: Asked) -> None:
    """The first ones; another account has its own, and one that never paid has none."""
    one, other = await paid(own, 3, 5)
    never = await put_account(own, WALLETS[7], "n")
    wanted = asked(one, other, never, one, one, other, one)
    assert await credits.hold(own, wanted, NOW_MS) == ids(wanted) - ids([wanted[2], wanted[6]])
    assert await conserved(own, NOW_MS) == {one: (0, 3, 0), other: (3, 2, 0)}
    wanted = asked(one, other)
    assert await credits.hold(own, wanted, NOW_MS) == ids(wanted[1:])
    assert await own.fetchval("SELECT count(*) FROM accounts.call") == 0


async def test_a_hold_is_spent_or_given_back_and_only_once(own: Connection, asked: Asked) -> None:
    (one,) = await paid(own, 5)
    wanted = asked(*[one] * 4)
    spent, back, both, left = [hold.id for hold in wanted]
    await credits.hold(own, wanted, NOW_MS)
    for _ in range(3):
        await credits.charge(own, [spent, spent, both])
        await credits.release(own, [back, back, both, spent])
        await credits.charge(own, [back])
        assert await conserved(own, NOW_MS) == {one: (2, 1, 2)}
    await credits.charge(own, [UUID(int=2**100)])
    assert await own.fetchval("SELECT id FROM accounts.hold") == left


async def test_a_hold_that_nobody_ended_goes_back_when_its_account_spends_next(
    own: Connection, asked: Asked
) -> None:
    one, other = await paid(own, 2, 1)
    lost = asked(one, one, other)
    await credits.hold(own, lost, NOW_MS)
    over_ms = NOW_MS + HOLD_MS
    assert await credits.hold(own, asked(one), over_ms - 1) == set()
    wanted = asked(one, one, one, at_ms=over_ms)
    assert await credits.hold(own, wanted, over_ms) == ids(wanted[:2])
    assert await conserved(own, over_ms) == {one: (0, 2, 0), other: (0, 1, 0)}
    # Who had them before comes late.
    await credits.charge(own, [lost[0].id])
    await credits.release(own, [lost[1].id])
    assert await conserved(own, over_ms) == {one: (0, 2, 0), other: (0, 1, 0)}


async def test_a_call_that_is_paid_for_is_written_under_its_minute(own: Connection, asked: Asked) -> None:
    (one,) = await paid(own, 1)
    await credits.hold(own, asked(one, one, caller="account:1"), NOW_MS)
    assert await call_counts.recent(own, NOW_MS - 1, NOW_MS, 9) == [("account:1", NOW_MS, 1)]


async def test_who_never_paid_is_told_so_by_the_statement_that_counts(own: Connection) -> None:
    await paid(own, 1)
    await put_account(own, WALLETS[7], "n")
    calls = [CountedCall("c", NOW_MS, hashed(key), DAY, 1) for key in ("k0", "n", "k0", "n")]
    came = [one for one in await call_counts.write(own, calls) if one is not None]
    assert [(one.has_room, one.may_pay) for one in came] == [
        (True, False),
        (True, False),
        (False, True),
        (False, False),
    ]


async def test_what_is_spent_waits_for_the_disk_and_nothing_else_does(own: Connection, asked: Asked) -> None:
    (one,) = await paid(own, 5)
    await call_counts.without_waiting_for_the_disk(own)
    wanted = asked(one, one)
    async with own.transaction():
        await credits.hold(own, wanted, NOW_MS)
        await credits.release(own, [wanted[0].id])
        await credits.charge(own, [wanted[0].id])
        assert await own.fetchval("SHOW synchronous_commit") == "off"
        await credits.charge(own, [wanted[1].id])
        assert await own.fetchval("SHOW synchronous_commit") == "on"
    assert await own.fetchval("SHOW synchronous_commit") == "off"


# --- many processes --------------------------------------------------------------------------------


@dataclass
class CreditsInTurns(DatabaseCredits):
    """As ``InTurns``."""

    async def move(
        self, settled: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[CreditHold], now_ms: int
    ) -> set[UUID]:
        async with self.pool.acquire() as connection:
            await credits.charge(connection, settled)
            await credits.release(connection, released)
            return await credits.hold(connection, wanted, now_ms)


async def asked_of(gate: Gate, key: str) -> Admitted | str:
    """Who was let in, or the code."""
    try:
        return await gate.admit(CallerRequest("address:x", key_of(key)), "day", needs_key=True)
    except CallRefused as refused:
        return refused.error.code


@pytest.fixture
async def gates(own: Connection, database_url: str) -> AsyncIterator[list[Gate]]:
    """Fifty processes; ten calls a day."""
    allowance = CallAllowance(1_000_000, 10)
    allowances = Allowances(CallAllowance(1), allowance, allowance)
    wall, drawn = Wall(NOW_MS), Drawn()
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(asyncpg.create_pool(database_url, min_size=0, max_size=20))
        found = []
        for _ in range(50):
            spender = CreditSpender(CreditsInTurns(pool), wall, drawn)
            counter = CallCounter(InTurns(pool), wall)
            found.append(Gate(MinuteLimits(wall), allowances, counter, spender=spender))
        yield found


async def test_fifty_gates_let_in_as_many_as_the_day_has_and_were_paid_for(
    own: Connection, gates: list[Gate]
) -> None:
    """And however their calls end meanwhile, each that counts costs one."""
    one, other = await paid(own, 17, 3)
    keys = ["k0"] * 60 + ["k1"] * 20
    came = await asyncio.gather(*(asked_of(gates[n % 50], key) for n, key in enumerate(keys)))
    admitted = [(n % 50, found) for n, found in enumerate(came) if isinstance(found, Admitted)]
    let_in = Counter(found.account.id for _, found in admitted if found.account is not None)
    assert let_in == {one: 27, other: 13}
    assert came.count("daily_limit") == 80 - 40
    assert await conserved(own, NOW_MS) == {one: (0, 17, 0), other: (0, 3, 0)}
    days = await own.fetch("SELECT account_id, calls FROM accounts.day")
    assert {row["account_id"]: row["calls"] for row in days} == {one: 10, other: 10}
    rows = await own.fetch("SELECT caller, sum(calls) AS calls FROM accounts.call GROUP BY caller")
    assert {row["caller"]: row["calls"] for row in rows} == {f"account:{one}": 27, f"account:{other}": 13}

    of_one = [(gates[n], found) for n, found in admitted if found.hold and found.hold.account_id == one]
    assert len(of_one) == 17
    for gate, found in of_one[:5]:
        gate.refund(found)
    again = asyncio.gather(*(asked_of(gate, "k0") for gate in gates[:5]))
    await asyncio.gather(again, *(gate.charge(found) for gate, found in of_one[5:]))
    for gate in gates:
        await gate.spender.close()  # type: ignore[union-attr]
    got_in = sum(isinstance(found, Admitted) for found in again.result())
    assert await conserved(own, NOW_MS) == {one: (5 - got_in, got_in, 12), other: (0, 3, 0)}


async def test_writers_in_any_order_do_not_wait_for_each_other_in_a_circle(
    own: Connection, database_url: str, asked: Asked
) -> None:
    """Days, holds, ends and payments of eight accounts, each writer in an order of its own."""
    accounts = await paid(own, *[40] * 8)
    chance = random.Random(1)
    spent: Counter[int] = Counter()

    async def wrote(connection: Connection, turn: int) -> None:
        order = chance.sample(accounts, len(accounts))
        keys = [hashed(f"k{accounts.index(account)}") for account in order]
        await call_counts.write(
            connection, [CountedCall("c", NOW_MS, key, chance.choice((DAY, NEXT)), 9) for key in keys]
        )
        wanted = asked(*order)
        given = await credits.hold(connection, wanted, NOW_MS)
        ends = [one.id for one in wanted if one.id in given]
        if turn % 3 == 0:
            await credits.charge(connection, ends)
            spent.update(one.account_id for one in wanted if one.id in given)
        elif turn % 3 == 1:
            await credits.release(connection, ends)
        else:
            await put_credits(connection, order[0], 1)

    async with asyncpg.create_pool(database_url, min_size=12, max_size=12) as pool:

        async def writer(number: int) -> None:
            async with pool.acquire() as connection:
                for turn in range(12):
                    await wrote(connection, number + turn)

        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*(writer(number) for number in range(12)))
    found = await conserved(own, NOW_MS)
    assert {account: spent[account] for account in accounts} == {
        account: row[2] for account, row in found.items()
    }
    assert sum(spent.values()) > 0
