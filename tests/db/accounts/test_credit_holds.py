"""Credits held, spent and given back, against a real database. Clocks and ids are passed in."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import date
from uuid import UUID

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
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from support.counting import DrawnIds, Wall, conserved, hashed, key_of, put_account, put_credits
from support.processes import InTurns

DAY = date(2025, 10, 9)
NEXT = date(2025, 10, 10)
NOW_MS = 1_760_000_000_000
WAIT_S = 60
WALLETS = [Address(f"0x{number:040x}") for number in range(0xFACADE, 0xFACADE + 8)]


@dataclass
class HoldNumbers:
    """Makes holds whose ids follow each other."""

    drawn: DrawnIds

    def __call__(self, *accounts: int, at_ms: int = NOW_MS, caller: str | None = None) -> list[CreditHold]:
        return [CreditHold(self.drawn(), account, at_ms + HOLD_MS, caller, at_ms) for account in accounts]


@pytest.fixture
def asked() -> HoldNumbers:
    return HoldNumbers(DrawnIds())


async def paid(own: Connection, *credited: int) -> list[int]:
    """Accounts that have paid for so many calls each."""
    numbers = [await put_account(own, WALLETS[n], f"k{n}") for n in range(len(credited))]
    for number, amount in zip(numbers, credited, strict=True):
        await put_credits(own, number, amount)
    return numbers


def ids(holds: Sequence[CreditHold]) -> set[UUID]:
    return {hold.id for hold in holds}


async def test_of_calls_at_once_as_many_get_a_credit_as_there_are(
    own: Connection, asked: HoldNumbers
) -> None:
    """The first calls get one; another account has its own, and one that never paid has none."""
    first, second = await paid(own, 3, 5)
    never = await put_account(own, WALLETS[7], "n")
    wanted = asked(first, second, never, first, first, second, first)
    assert await credits.hold(own, wanted, NOW_MS) == ids(wanted) - ids([wanted[2], wanted[6]])
    assert await conserved(own, NOW_MS) == {first: (0, 3, 0), second: (3, 2, 0)}
    wanted = asked(first, second)
    assert await credits.hold(own, wanted, NOW_MS) == ids(wanted[1:])
    assert await own.fetchval("SELECT count(*) FROM accounts.call") == 0


async def test_a_hold_is_spent_or_given_back_and_only_once(own: Connection, asked: HoldNumbers) -> None:
    (account,) = await paid(own, 5)
    wanted = asked(*[account] * 4)
    spent, back, both, left = [hold.id for hold in wanted]
    await credits.hold(own, wanted, NOW_MS)
    for _ in range(3):
        await credits.charge(own, [spent, spent, both])
        await credits.release(own, [back, back, both, spent])
        await credits.charge(own, [back])
        assert await conserved(own, NOW_MS) == {account: (2, 1, 2)}
    await credits.charge(own, [UUID(int=2**100)])
    assert await own.fetchval("SELECT id FROM accounts.hold") == left


async def test_a_hold_that_nobody_ended_goes_back_when_its_account_spends_next(
    own: Connection, asked: HoldNumbers
) -> None:
    first, second = await paid(own, 2, 1)
    lost = asked(first, first, second)
    await credits.hold(own, lost, NOW_MS)
    over_ms = NOW_MS + HOLD_MS
    assert await credits.hold(own, asked(first), over_ms - 1) == set()
    wanted = asked(first, first, first, at_ms=over_ms)
    assert await credits.hold(own, wanted, over_ms) == ids(wanted[:2])
    assert await conserved(own, over_ms) == {first: (0, 2, 0), second: (0, 1, 0)}
    # The calls that had the expired holds end too late to count.
    await credits.charge(own, [lost[0].id])
    await credits.release(own, [lost[1].id])
    assert await conserved(own, over_ms) == {first: (0, 2, 0), second: (0, 1, 0)}


async def test_a_call_that_is_paid_for_is_written_under_its_minute(
    own: Connection, asked: HoldNumbers
) -> None:
    (account,) = await paid(own, 1)
    await credits.hold(own, asked(account, account, caller="account:1"), NOW_MS)
    assert await call_counts.recent(own, NOW_MS - 1, NOW_MS, 9) == [("account:1", NOW_MS, 1)]


async def test_who_never_paid_is_told_so_by_the_statement_that_counts(own: Connection) -> None:
    await paid(own, 1)
    await put_account(own, WALLETS[7], "n")
    calls = [CountedCall("c", NOW_MS, hashed(key), DAY, 1) for key in ("k0", "n", "k0", "n")]
    live_keys = [live_key for live_key in await call_counts.write(own, calls) if live_key is not None]
    assert [(live_key.has_room, live_key.may_pay) for live_key in live_keys] == [
        (True, False),
        (True, False),
        (False, True),
        (False, False),
    ]


async def test_what_is_spent_waits_for_the_disk_and_nothing_else_does(
    own: Connection, asked: HoldNumbers
) -> None:
    (account,) = await paid(own, 5)
    await call_counts.without_waiting_for_the_disk(own)
    wanted = asked(account, account)
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
    """Credits over connections of a shared pool, as ``InTurns``."""

    async def move(
        self, settled: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[CreditHold], now_ms: int
    ) -> set[UUID]:
        async with self.pool.acquire() as connection:
            await credits.charge(connection, settled)
            await credits.release(connection, released)
            return await credits.hold(connection, wanted, now_ms)


async def asked_of(gate: Gate, key: str) -> Admitted | str:
    """The call that was let in, or the code of the refusal."""
    try:
        return await gate.admit(CallerRequest("address:x", key_of(key)), "day", needs_key=True)
    except CallRefused as refused:
        return refused.error.code


@pytest.fixture
async def gates(own: Connection, database_url: str) -> AsyncIterator[list[Gate]]:
    """Fifty processes; ten calls a day."""
    allowance = CallAllowance(1_000_000, 10)
    allowances = Allowances(CallAllowance(1), allowance, allowance)
    wall, drawn = Wall(NOW_MS), DrawnIds()
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(connections.create_pool(database_url, min_size=0, max_size=20))
        made = []
        for _ in range(50):
            spender = CreditSpender(CreditsInTurns(pool), wall, drawn)
            counter = CallCounter(InTurns(pool), wall)
            made.append(Gate(MinuteLimits(wall), allowances, counter, spender=spender))
        yield made


async def test_fifty_gates_let_in_as_many_as_the_day_has_and_were_paid_for(
    own: Connection, gates: list[Gate]
) -> None:
    """However calls end meanwhile, each that counts costs one credit."""
    first, second = await paid(own, 17, 3)
    keys = ["k0"] * 60 + ["k1"] * 20
    outcomes = await asyncio.gather(*(asked_of(gates[n % 50], key) for n, key in enumerate(keys)))
    admitted = [(n % 50, outcome) for n, outcome in enumerate(outcomes) if isinstance(outcome, Admitted)]
    let_in = Counter(outcome.account.id for _, outcome in admitted if outcome.account is not None)
    assert let_in == {first: 27, second: 13}
    assert outcomes.count("daily_limit") == 80 - 40
    assert await conserved(own, NOW_MS) == {first: (0, 17, 0), second: (0, 3, 0)}
    days = await own.fetch("SELECT account_id, calls FROM accounts.day")
    assert {row["account_id"]: row["calls"] for row in days} == {first: 10, second: 10}
    rows = await own.fetch("SELECT caller, sum(calls) AS calls FROM accounts.call GROUP BY caller")
    assert {row["caller"]: row["calls"] for row in rows} == {f"account:{first}": 27, f"account:{second}": 13}

    of_first = [(gates[n], call) for n, call in admitted if call.hold and call.hold.account_id == first]
    assert len(of_first) == 17
    for gate, outcome in of_first[:5]:
        gate.refund(outcome)
    again = asyncio.gather(*(asked_of(gate, "k0") for gate in gates[:5]))
    await asyncio.gather(again, *(gate.charge(outcome) for gate, outcome in of_first[5:]))
    for gate in gates:
        await gate.spender.close()  # type: ignore[union-attr]
    got_in = sum(isinstance(outcome, Admitted) for outcome in again.result())
    assert await conserved(own, NOW_MS) == {first: (5 - got_in, got_in, 12), second: (0, 3, 0)}


async def test_writers_in_any_order_do_not_wait_for_each_other_in_a_circle(
    own: Connection, database_url: str, asked: HoldNumbers
) -> None:
    """Writers of days, holds, ends and payments of eight accounts, each in an order of its own."""
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
        ends = [hold.id for hold in wanted if hold.id in given]
        if turn % 3 == 0:
            await credits.charge(connection, ends)
            spent.update(hold.account_id for hold in wanted if hold.id in given)
        elif turn % 3 == 1:
            await credits.release(connection, ends)
        else:
            await put_credits(connection, order[0], 1)

    async with connections.create_pool(database_url, min_size=12, max_size=12) as pool:

        async def writer(number: int) -> None:
            async with pool.acquire() as connection:
                for turn in range(12):
                    await wrote(connection, number + turn)

        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*(writer(number) for number in range(12)))
    balances = await conserved(own, NOW_MS)
    assert {account: spent[account] for account in accounts} == {
        account: row[2] for account, row in balances.items()
    }
    assert sum(spent.values()) > 0
