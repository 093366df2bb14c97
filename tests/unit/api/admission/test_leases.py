"""Calls that a process took ahead: what they save, what a fault costs, and that the day never gives more."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import asyncpg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roundtrip.api.admission.call_counter import AWAY_PROOF_S, PROOF_S, WRITE_S, CallCounter
from roundtrip.api.admission.gate import Admitted, CallRefused, Gate
from roundtrip.api.admission.leases import IDLE_S, MAX_LEASED
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.request.callers import CallerRequest
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.base.types import Address
from support.counting import Counts as Ledger
from support.counting import Wall, account, hashed, key_of

PER_DAY = 20_000
MIDNIGHT_MS = 1_760_054_400_000
KEYED = CallerRequest("address:x", key_of("k"), is_local=True)


@dataclass(eq=False)
class Leasing:
    """A process over counts that outlive it. Its clock stands still until it is moved."""

    ledger: Ledger
    wall: Wall = field(default_factory=Wall)
    per_day: int = PER_DAY
    now_s: float = 0.0
    holders: set[Address] = field(default_factory=set)

    def __post_init__(self) -> None:
        async def is_holder(wallet: Address) -> bool:
            return wallet in self.holders

        self.counter = CallCounter(self.ledger, self.wall, clock=lambda: self.now_s)
        free = CallAllowance(10**6, self.per_day)
        allowances = Allowances(CallAllowance(1), free, CallAllowance(10**6, 10 * self.per_day))
        self.gate = Gate(MinuteLimits(self.wall), allowances, self.counter, is_holder)

    async def ask(self, key: str = "k") -> Admitted | str:
        try:
            return await self.gate.admit(
                CallerRequest("address:x", key_of(key), is_local=True), "day", needs_key=True
            )
        except CallRefused as refused:
            return refused.error.code

    async def take_lease(self) -> "Leasing":
        """Calls until it has a lease."""
        for _ in range(3):
            assert isinstance(await self.ask(), Admitted)
        await self.counter.write_behind()
        return self

    def dies(self) -> None:
        if self.counter._timer is not None:
            self.counter._timer.cancel()

    async def quiet(self) -> None:
        while self.counter._flushing is not None:
            await asyncio.wait([self.counter._flushing])

    def left(self) -> int:
        return sum(lease.left for lease in self.counter.leases._by_account.values())


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(live={hashed("k"): account(1), hashed("l"): account(1), hashed("m"): account(2)})


async def test_calls_of_a_lease_ask_nobody_and_are_written_later(ledger: Ledger) -> None:
    process = await Leasing(ledger).take_lease()
    made, writes = ledger.days.total(), ledger.writes
    for _ in range(3):
        assert isinstance(await process.ask(), Admitted)
    assert (ledger.writes, ledger.days.total()) == (writes, made)
    await process.counter.write_behind()
    assert (ledger.days.total(), ledger.minute.total()) == (made + 3, made + 3)
    assert ledger.leased.total() == process.left()


async def test_a_lease_is_filled_up_before_it_runs_out(ledger: Ledger) -> None:
    """Beside the calls, and never with more than so many calls."""
    process = await Leasing(ledger).take_lease()
    asked = ledger.asked
    for _ in range(500):
        assert isinstance(await process.ask(), Admitted)
        await process.quiet()
        assert 0 < process.left() <= MAX_LEASED
    assert (ledger.asked, ledger.writes < 50) == (asked, True)


async def test_who_finds_it_spent_waits_for_it_to_be_filled_up(ledger: Ledger) -> None:
    process = await Leasing(ledger).take_lease()
    asked = ledger.asked
    found = await asyncio.gather(*(process.ask() for _ in range(process.left() + 5)))
    assert (ledger.asked, len(found)) == (asked, sum(isinstance(one, Admitted) for one in found))


async def test_an_idle_lease_is_returned(ledger: Ledger) -> None:
    """Not another process's with it."""
    process, other = await Leasing(ledger).take_lease(), await Leasing(ledger).take_lease()
    assert ledger.leased.total() == process.left() + other.left()
    process.now_s += IDLE_S
    await process.counter.write_behind()
    assert (ledger.leased.total(), ledger.days.total()) == (other.left(), 6)


async def test_at_the_end_everything_is_returned(ledger: Ledger) -> None:
    process = Leasing(ledger)
    async with process.gate.open():
        await process.take_lease()
        await process.ask()
    assert (ledger.leased.total(), ledger.days.total(), ledger.minute.total()) == (0, 4, 4)


async def test_a_key_that_calls_seldom_has_no_lease(ledger: Ledger) -> None:
    process = Leasing(ledger)
    for _ in range(5):
        await process.ask()
        process.now_s += 0.5
    assert (ledger.leased.total(), ledger.days.total()) == (0, 5)


async def test_a_lease_is_of_one_day_and_of_one_limit(ledger: Ledger) -> None:
    """What is left of it goes back to its own day."""
    process = Leasing(ledger, Wall(MIDNIGHT_MS - 1))
    await process.take_lease()
    process.wall.ms += 1
    await process.ask()
    process.holders.add(account(1).wallet)
    await process.ask()
    process.now_s += IDLE_S
    await process.counter.write_behind()
    assert sorted(ledger.days.values()) == [2, 3]
    assert ledger.leased.total() == 0


@pytest.mark.parametrize("by_process", [True, False])
async def test_a_revoked_key_is_dead_a_moment_later_or_at_once_in_its_own_process(
    ledger: Ledger, by_process: bool
) -> None:
    process = await Leasing(ledger).take_lease()
    admitted = await process.ask()
    assert isinstance(admitted, Admitted)
    del ledger.live[hashed("k")]
    if by_process:
        process.gate.doubt_keys(admitted)
    else:
        process.now_s += PROOF_S + 0.01
    assert await process.ask() == "bad_key"
    assert isinstance(await process.ask("l"), Admitted)


async def test_a_key_whose_lease_is_in_use_is_asked_about_beside_its_calls(ledger: Ledger) -> None:
    process = await Leasing(ledger).take_lease()
    del ledger.live[hashed("k")]
    process.now_s += WRITE_S
    assert isinstance(await process.ask(), Admitted)
    await process.counter.write_behind()
    assert await process.ask() == "bad_key"


async def test_without_the_database_what_is_leased_may_be_spent(ledger: Ledger) -> None:
    """And not for long, since a key may have been revoked."""
    process = await Leasing(ledger).take_lease()
    left, ledger.fault = process.left(), ConnectionRefusedError()
    process.now_s += PROOF_S + 0.01
    assert left > 2
    for _ in range(left - 1):
        assert isinstance(await process.ask(), Admitted)
    process.now_s += AWAY_PROOF_S
    assert await process.ask() == "busy"
    ledger.fault = None
    process.now_s += IDLE_S
    assert isinstance(await process.ask(), Admitted)
    process.now_s += IDLE_S
    await process.counter.write_behind()
    assert (ledger.days.total(), ledger.leased.total()) == (3 + left, 0)


@pytest.mark.parametrize("fault", [TimeoutError(), asyncpg.ConnectionDoesNotExistError()])
@pytest.mark.parametrize("is_done", [True, False])
async def test_a_statement_that_broke_off_gives_nothing_twice(
    ledger: Ledger, fault: Exception, is_done: bool
) -> None:
    process = await Leasing(ledger).take_lease()
    ledger.fault, ledger.is_done = fault, is_done
    process.now_s += IDLE_S
    await process.counter.write_behind()
    lost = ledger.leased.total()
    ledger.fault = None
    process.now_s += IDLE_S
    await process.counter.write_behind()
    assert (ledger.leased.total(), lost <= MAX_LEASED) == (lost, True)
    assert ledger.days.total() == 3


async def test_a_refunded_call_of_a_lease_is_as_if_it_had_not_been(ledger: Ledger) -> None:
    process = await Leasing(ledger).take_lease()
    admitted = await process.ask()
    assert isinstance(admitted, Admitted)
    await process.counter.write_behind()
    process.gate.refund(admitted)
    await process.quiet()
    assert (ledger.days.total(), ledger.minute.total()) == (3, 3)


async def test_what_counts_by_the_minute_only_knows_every_call_before_it(ledger: Ledger) -> None:
    """As ``my_mite``, which says how many are left of the day."""
    process = await Leasing(ledger).take_lease()
    for _ in range(3):
        await process.ask()
    await process.gate.admit(KEYED, "minute", needs_key=True)
    assert ledger.days.total() == 6


class LeasesAgainstTheDay(RuleBasedStateMachine):
    """Whatever happens in any order to three processes: a day gives no more calls than it has, and costs its
    caller at most one lease for each fault."""

    PER_DAY = 3_000

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        live = {hashed("k"): account(1), hashed("l"): account(1), hashed("m"): account(2)}
        self.ledger, self.wall = Ledger(live=live), Wall(MIDNIGHT_MS - 200_000)
        self.processes = [self.made() for _ in range(3)]
        self.admitted: Counter[tuple[int, int]] = Counter()
        self.tickets: list[tuple[Leasing, Admitted, tuple[int, int]]] = []
        self.losses = 0

    def made(self) -> Leasing:
        return Leasing(self.ledger, self.wall, self.PER_DAY)

    def teardown(self) -> None:
        self.ledger.fault = None
        for process in self.processes:
            self.loop.run_until_complete(process.counter.close())
        for (owner, day), leased in self.ledger.leased.items():
            assert leased <= MAX_LEASED * self.losses, (owner, day)
        self.loop.close()

    @rule(place=st.integers(0, 2), key=st.sampled_from("kklm"), calls=st.sampled_from([1, 3, 70, 400, 1500]))
    def burst(self, place: int, key: str, calls: int) -> None:
        process = self.processes[place]

        async def ask_all() -> list[Admitted | str]:
            found = []
            for _ in range(0, calls, 7):
                found += await asyncio.gather(*(process.ask(key) for _ in range(min(7, calls))))
            await process.quiet()
            return found

        for found in self.loop.run_until_complete(ask_all()):
            if isinstance(found, Admitted):
                assert found.account is not None
                assert found.ticket is not None
                key_of_day = found.account.id, found.ticket.taken_ms // 86_400_000
                self.admitted[key_of_day] += 1
                self.tickets.append((process, found, key_of_day))

    @rule(place=st.integers(0, 2))
    def writes_behind(self, place: int) -> None:
        self.loop.run_until_complete(self.processes[place].counter.write_behind())

    @rule(place=st.integers(0, 2), passed_s=st.sampled_from([0.05, 0.2, 0.3, 1.0, 11.0]))
    def time_passes(self, place: int, passed_s: float) -> None:
        self.processes[place].now_s += passed_s

    @rule(ms=st.sampled_from([1_000, 61_000, 86_400_000, -61_000, -400_000, -86_400_000]))
    def clock_jumps(self, ms: int) -> None:
        self.wall.ms += ms

    @rule(place=st.integers(0, 2))
    def is_killed(self, place: int) -> None:
        self.losses += 1
        self.processes[place].dies()
        self.processes[place] = self.made()

    @rule(place=st.integers(0, 2))
    def ends(self, place: int) -> None:
        self.losses += self.ledger.fault is not None
        self.loop.run_until_complete(self.processes[place].counter.close())
        self.processes[place] = self.made()

    @rule(
        fault=st.sampled_from([None, None, ConnectionRefusedError(), TimeoutError()]), is_done=st.booleans()
    )
    def database_faults(self, fault: Exception | None, is_done: bool) -> None:
        # Each process may be in the middle of one statement, once before it notices.
        self.losses += 3 * (fault is not None)
        self.ledger.fault = fault
        self.ledger.is_done = is_done and not isinstance(fault, ConnectionRefusedError)

    @precondition(lambda self: self.tickets)
    @rule()
    def refund(self) -> None:
        process, admitted, key_of_day = self.tickets.pop()

        async def refund() -> None:
            process.gate.refund(admitted)
            await process.quiet()

        if process in self.processes:
            self.loop.run_until_complete(refund())
            self.admitted[key_of_day] -= 1

    @invariant()
    def no_day_gives_more_than_it_has(self) -> None:
        for key_of_day, calls in self.admitted.items():
            assert calls <= self.PER_DAY, key_of_day
        for key, calls in self.ledger.days.items():
            assert calls + self.ledger.leased[key] <= self.PER_DAY, key


LeasesAgainstTheDay.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestLeasesAgainstTheDay = LeasesAgainstTheDay.TestCase
