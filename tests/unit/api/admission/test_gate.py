"""Who is let in, and what it costs them, under clocks that stand still until they are moved."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

import asyncpg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roundtrip.api.admission.call_counter import CallCounter
from roundtrip.api.admission.gate import Admitted, CallRefused, Counts, Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.request.callers import CallerRequest, Callers
from roundtrip.domain.accounts.account import AddressAllowance, Allowances, CallAllowance
from roundtrip.domain.base.types import Address
from support.counting import Counts as Ledger
from support.counting import Wall, account, hashed, key_of

HOME = "address:203.0.113.7"
ALLOWANCES = Allowances(CallAllowance(3), CallAllowance(5, 8), CallAllowance(7, 200))
MIDNIGHT_MS = 1_760_054_400_000
KEYLESS = CallerRequest(HOME)
KEYED = CallerRequest(HOME, key_of("k"))


@dataclass
class Seconds:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class GateHouse:
    """A gate over counts that outlive it."""

    ledger: Ledger = field(
        default_factory=lambda: Ledger(live={hashed("k"): account(1), hashed("l"): account(1)})
    )
    wall: Wall = field(default_factory=Wall)
    clock: Seconds = field(default_factory=Seconds)
    holders: set[Address] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.gate = self.made()

    def made(self) -> Gate:
        async def is_holder(wallet: Address) -> bool:
            return wallet in self.holders

        counter = CallCounter(self.ledger, self.wall, clock=self.clock)
        return Gate(MinuteLimits(self.wall), ALLOWANCES, counter, is_holder)

    async def began_anew(self) -> None:
        """As after a kill: nothing is said to the gate that was."""
        self.gate = self.made()
        self.gate.limits.load(await self.gate.counter.recent())

    async def ask(
        self, asking: CallerRequest = KEYED, counts: Counts = "day", needs_key: bool = False
    ) -> Admitted:
        return await self.gate.admit(asking, counts, needs_key)

    async def refused(
        self, asking: CallerRequest = KEYED, counts: Counts = "day", needs_key: bool = False
    ) -> tuple[str, int | None, int | None]:
        """Code, retry-after, and what is left of the minute."""
        with pytest.raises(CallRefused) as caught:
            await self.ask(asking, counts, needs_key)
        left = None if caught.value.ticket is None else caught.value.ticket.remaining
        return caught.value.error.code, caught.value.error.retry_after_s, left

    async def left(self, asking: CallerRequest = KEYED, counts: Counts = "day") -> int:
        ticket = (await self.ask(asking, counts)).ticket
        assert ticket is not None
        return ticket.remaining

    def day(self) -> int:
        return sum(self.ledger.days.values())


@pytest.fixture
def house() -> GateHouse:
    return GateHouse()


async def flushed() -> None:
    """Lets what is under way be written."""
    for _ in range(10):
        await asyncio.sleep(0)


# --- keys ------------------------------------------------------------------------------------------


async def test_a_key_counts_for_its_account_and_not_for_its_address(house: GateHouse) -> None:
    found = await house.ask()
    assert (found.account, found.allowance) == (account(1), ALLOWANCES.key)
    assert [await house.left() for _ in range(4)] == [3, 2, 1, 0]
    assert await house.left(KEYLESS) == 2


async def test_all_keys_of_an_account_count_together(house: GateHouse) -> None:
    assert [await house.left(CallerRequest(HOME, key_of(key))) for key in "klklk"] == [4, 3, 2, 1, 0]
    assert await house.refused(CallerRequest("address:elsewhere", key_of("l"))) == ("rate_limited", 60, 0)


async def test_a_dead_key_is_told_so_whether_one_is_needed_or_not(house: GateHouse) -> None:
    """It counts under its address as long as there is room there, and is never told anything else."""
    dead = CallerRequest(HOME, key_of("dead"))
    came = [await house.refused(dead, needs_key=n % 2 == 0) for n in range(5)]
    assert came == [("bad_key", None, left) for left in (2, 1, 0, 0, 0)]
    assert await house.refused(KEYLESS) == ("rate_limited", 60, 0)
    assert await house.left() == 4


async def test_without_the_key_that_is_needed(house: GateHouse) -> None:
    assert await house.refused(KEYLESS, needs_key=True) == ("key_needed", None, 2)


async def test_a_revoked_key_is_dead_at_the_very_next_call(house: GateHouse) -> None:
    await house.ask()
    del house.ledger.live[hashed("k")]
    assert await house.refused() == ("bad_key", None, 2)
    assert await house.left(CallerRequest(HOME, key_of("l"))) == 3
    assert house.day() == 2


async def test_a_revoked_key_is_told_so_when_its_minute_and_its_day_are_over(house: GateHouse) -> None:
    for _ in range(5):
        await house.ask()
    del house.ledger.live[hashed("k")]
    assert (await house.refused())[0] == "bad_key"


async def test_a_key_that_was_made_just_now_is_live(house: GateHouse) -> None:
    assert (await house.refused(CallerRequest(HOME, key_of("new"))))[0] == "bad_key"
    house.ledger.live[hashed("new")] = account(2)
    assert (await house.ask(CallerRequest(HOME, key_of("new")))).account == account(2)


async def test_what_is_never_counted_is_not_and_looks_at_no_key(house: GateHouse) -> None:
    for asking in (KEYLESS, CallerRequest(HOME, key_of("dead"))):
        assert (await house.ask(asking, "never")).ticket is None
    assert house.ledger.writes == 0
    found = await house.ask(KEYED, "never", needs_key=True)
    assert (found.account, found.ticket) == (account(1), None)
    assert (house.day(), sum(house.ledger.minute.values())) == (0, 0)


async def test_a_holder_has_its_own_limits(house: GateHouse) -> None:
    house.holders.add(account(1).wallet)
    assert (await house.ask()).allowance == ALLOWANCES.holder
    assert await house.left() == 5


# --- days ------------------------------------------------------------------------------------------


async def test_past_the_day_it_says_how_long_to_midnight(house: GateHouse) -> None:
    """And the minute is as if nobody had asked."""
    house.wall.ms = MIDNIGHT_MS - 120_500
    for n in range(8):
        await house.ask()
        house.wall.ms += 60_000 if n == 4 else 0
    assert await house.refused() == ("daily_limit", 61, 2)
    assert await house.left(counts="minute") == 1
    house.wall.ms = MIDNIGHT_MS - 1
    assert await house.refused() == ("daily_limit", 1, 5)
    house.wall.ms = MIDNIGHT_MS
    assert await house.left() == 4


async def test_what_counts_by_the_minute_only_leaves_the_day_alone(house: GateHouse) -> None:
    await house.ask(counts="minute")
    assert (house.day(), await house.left(counts="minute")) == (0, 3)


async def test_of_calls_at_once_as_many_get_in_as_the_day_has_left(house: GateHouse) -> None:
    house.holders.add(account(1).wallet)
    house.ledger.days[account(1).id, datetime.fromtimestamp(house.wall.ms / 1000, UTC).date()] = 196
    asked = [house.ask(CallerRequest(HOME, key_of(key))) for key in "klklkl"]
    came = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(one, Admitted) for one in came) == 4
    assert await house.left(counts="minute") == 2


async def test_a_call_handed_back_is_as_if_it_had_not_been(house: GateHouse) -> None:
    left = house.gate.refund(await house.ask())
    assert left.ticket is not None
    assert left.ticket.remaining == 5
    await flushed()
    assert (house.day(), sum(house.ledger.minute.values())) == (0, 0)


async def test_a_call_handed_back_after_midnight_goes_back_to_its_own_day(house: GateHouse) -> None:
    house.wall.ms = MIDNIGHT_MS - 1
    spoiled = await house.ask()
    house.wall.ms = MIDNIGHT_MS + 90_000
    await house.ask()
    house.gate.refund(spoiled)
    await flushed()
    assert sorted(house.ledger.days.values()) == [0, 1]
    assert max(house.ledger.days.items(), key=lambda row: row[1])[0][1] == date(2025, 10, 10)


# --- group commit ----------------------------------------------------------------------------------


async def test_everybody_who_comes_meanwhile_is_counted_by_one_statement(house: GateHouse) -> None:
    """And by one that asks for a lease."""
    await house.ask()
    before = house.ledger.writes
    await asyncio.gather(*(house.ask() for _ in range(3)))
    assert house.ledger.writes == before + 2


async def test_a_caller_that_goes_away_is_counted_and_holds_up_nobody(house: GateHouse) -> None:
    await house.ask()
    asking = [asyncio.create_task(house.ask()) for _ in range(3)]
    await asyncio.sleep(0)
    asking[1].cancel()
    came = await asyncio.gather(*asking, return_exceptions=True)
    assert [isinstance(one, Admitted) for one in came] == [True, False, True]
    assert house.ledger.minute.total() == 4


async def test_past_as_many_as_may_wait_it_is_busy(house: GateHouse) -> None:
    """And the minute is as if nobody had asked."""
    house.gate.counter.max_waiting = 4
    house.holders.add(account(1).wallet)
    await house.ask()
    came = await asyncio.gather(*(house.ask() for _ in range(6)), return_exceptions=True)
    codes = [one.error.code if isinstance(one, CallRefused) else "in" for one in came]
    assert codes == ["in"] * 4 + ["busy"] * 2
    assert await house.left() == 1


async def test_callers_without_a_key_ask_no_database(house: GateHouse) -> None:
    house.gate.refund(await house.ask(KEYLESS))
    await house.refused(KEYLESS, needs_key=True)
    await flushed()
    assert house.ledger.writes == 0


GONE = [OSError("refused"), TimeoutError(), asyncpg.PostgresError("starting up"), ValueError("of ours")]


@pytest.mark.parametrize("fault", GONE, ids=lambda fault: type(fault).__name__)
async def test_without_a_database_keys_cannot_be_known_and_others_are_counted(
    house: GateHouse, fault: Exception
) -> None:
    await house.ask()
    house.ledger.fault = fault
    assert await house.refused() == ("busy", 1, 4)
    assert await house.refused(CallerRequest(HOME, key_of("dead"))) == ("busy", 1, None)
    assert [await house.left(KEYLESS) for _ in range(3)] == [2, 1, 0]
    assert (await house.refused(KEYLESS))[0] == "rate_limited"


async def test_a_database_that_is_gone_is_not_asked_by_everybody(house: GateHouse) -> None:
    house.ledger.fault = OSError()
    await house.refused(CallerRequest(HOME, key_of("new")))
    for _ in range(20):
        assert (await house.refused(CallerRequest(HOME, key_of("new"))))[0] == "busy"
    assert house.ledger.writes == 1
    house.clock.now = 1.0
    assert (await house.refused())[0] == "busy"
    assert house.ledger.writes == 2


async def test_what_could_not_be_written_is_when_the_database_is_back(house: GateHouse) -> None:
    await house.ask()
    spoiled = await house.ask()
    house.ledger.fault = OSError()
    assert (await house.refused())[0] == "busy"
    house.gate.refund(spoiled)
    house.ledger.fault = None
    house.clock.now = 1.0
    assert await house.left() == 3
    await house.began_anew()
    assert (await house.left(), house.day()) == (2, 3)


async def test_what_the_database_always_refuses_keeps_nobody_from_being_counted(house: GateHouse) -> None:
    spoiled = await house.ask()
    house.ledger.fault = asyncpg.ForeignKeyViolationError("no such mite")
    house.gate.refund(spoiled)
    await flushed()
    assert house.gate.counter.waiting() == 0


@pytest.mark.parametrize(
    ("fault", "was_done", "day"),
    [
        (TimeoutError(), True, 1),
        (TimeoutError(), False, 2),
        (ConnectionResetError(), True, 1),
        (asyncpg.ConnectionDoesNotExistError(), True, 1),
        (ConnectionRefusedError(), False, 1),
        (asyncpg.PostgresError("starting up"), False, 1),
    ],
)
async def test_nothing_of_a_day_is_handed_back_twice(
    house: GateHouse, fault: Exception, was_done: bool, day: int
) -> None:
    """A statement that broke off may have been done: in doubt the caller is short of a call."""
    spoiled, _ = [await house.ask() for _ in range(2)]
    house.ledger.fault, house.ledger.is_done = fault, was_done
    house.gate.refund(spoiled)
    await flushed()
    house.ledger.fault, house.clock.now = None, 1.0
    await house.gate.look_at(KEYED)
    await flushed()
    assert house.day() == day


async def test_made_up_keys_cost_an_address_so_many_questions_and_no_more(house: GateHouse) -> None:
    """What cannot be told from a live key that this process does not know yet is not called dead."""
    for n in range(60):
        assert (await house.refused(CallerRequest(HOME, key_of(f"made up {n}"))))[0] == "bad_key"
    before = house.ledger.writes
    assert await house.refused(CallerRequest(HOME, key_of("made up"))) == ("rate_limited", 60, 0)
    assert await house.refused() == ("rate_limited", 60, 0)
    assert house.ledger.writes == before
    assert (await house.ask(CallerRequest("address:elsewhere", key_of("k")))).account == account(1)
    assert (await house.ask()).account == account(1)
    house.wall.ms += 60_000
    assert (await house.refused(CallerRequest(HOME, key_of("made up"))))[0] == "bad_key"


async def test_live_keys_use_up_no_look_ups(house: GateHouse) -> None:
    for n in range(100):
        house.ledger.live[hashed(f"live {n}")] = account(100 + n)
        assert (await house.ask(CallerRequest(HOME, key_of(f"live {n}")))).account == account(100 + n)


async def test_made_up_keys_wait_among_the_callers_without_one(house: GateHouse) -> None:
    house.gate.counter.max_waiting = 4
    await house.ask()
    asked = [house.ask(CallerRequest(HOME, key_of(f"made up {n}"))) for n in range(6)]
    came = await asyncio.gather(*asked, house.ask(), return_exceptions=True)
    codes = [one.error.code if isinstance(one, CallRefused) else "in" for one in came]
    assert codes == ["bad_key"] * 3 + ["busy"] * 3 + ["in"]


async def test_the_same_look_up_is_asked_once_a_statement(house: GateHouse) -> None:
    """However often a key asks past its minute."""
    house.gate.counter.max_waiting = 4
    for _ in range(5):
        await house.ask()
    before = house.ledger.asked
    came = await asyncio.gather(*(house.refused() for _ in range(50)))
    assert came == [("rate_limited", 60, 0)] * 50
    assert house.ledger.asked == before + 1
    del house.ledger.live[hashed("k")]
    assert (await house.refused())[0] == "bad_key"


async def test_two_different_keys_are_refused_and_counted(house: GateHouse) -> None:
    two = CallerRequest(HOME, two_keys=True)
    assert [await house.refused(two) for _ in range(4)] == [("bad_key", None, left) for left in (2, 1, 0, 0)]
    assert (await house.ask(two, "never")).ticket is None


async def test_what_was_called_before_is_known_once_the_database_answers(house: GateHouse) -> None:
    """If it did not at the start."""
    for _ in range(3):
        await house.ask()
    house.ledger.is_silent = True
    house.gate = house.made()
    async with house.gate.open():
        house.ledger.is_silent = False
        house.wall.ms += 1
        assert [await house.left() for _ in range(2)] == [1, 0]
        assert (await house.refused())[0] == "rate_limited"


async def test_what_is_left_at_the_end_is_written(house: GateHouse) -> None:
    async with house.gate.open():
        house.gate.refund(await house.ask())
    assert (house.day(), house.ledger.minute.total()) == (0, 0)


async def test_a_service_begins_without_its_database(house: GateHouse) -> None:
    class Never(Ledger):
        async def recent(self, now_ms: int) -> list[tuple[str, int, int]]:
            raise OSError

    gate = Gate(MinuteLimits(house.wall), ALLOWANCES, CallCounter(Never(), house.wall, clock=house.clock))
    async with gate.open():
        assert (await gate.admit(KEYLESS, "day", False)).ticket is not None


# --- against a simple model ------------------------------------------------------------------------


class GateAgainstModel(RuleBasedStateMachine):
    """Every call, whenever it comes and whatever happened before, is answered as lists of times say."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        live = {hashed(key): account(owner) for key, owner in (("k", 1), ("l", 1), ("m", 2))}
        self.house = GateHouse(Ledger(live=live), Wall(MIDNIGHT_MS - 200_000))
        self.minute: dict[str, list[int]] = defaultdict(list)
        self.days: dict[tuple[int, int], int] = defaultdict(int)
        self.owner: dict[str, int | None] = {"k": 1, "l": 1, "m": 2, "never": None}
        self.admitted: list[tuple[Admitted, str, int, tuple[int, int] | None]] = []

    def teardown(self) -> None:
        self.loop.close()

    async def came(self, asking: CallerRequest, counts: Counts) -> Admitted | CallRefused:
        try:
            return await self.house.ask(asking, counts)
        except CallRefused as refused:
            return refused
        finally:
            await flushed()

    async def handed_back(self, admitted: Admitted) -> None:
        self.house.gate.refund(admitted)
        await flushed()

    def model(self, caller: str, limit: int, now: int) -> tuple[str, int | None]:
        """Code and retry-after."""
        taken = sorted(at for at in self.minute[caller] if at > now - 60_000)
        if len(taken) < limit:
            return "in", None
        return "rate_limited", -(-(taken[-limit] + 60_000 - now) // 1000)

    @rule(
        key=st.sampled_from(["k", "l", "m", "never", None]), counts=st.sampled_from(["day", "day", "minute"])
    )
    def call(self, key: str | None, counts: Counts) -> None:
        now = self.house.wall.ms
        owner = None if key is None else self.owner[key]
        caller = HOME if owner is None else f"account:{owner}"
        allowance = ALLOWANCES.anonymous if owner is None else ALLOWANCES.key
        day = (owner, now // 86_400_000) if owner is not None and counts == "day" else None
        code, wait_s = self.model(caller, allowance.per_minute, now)
        if key is not None and owner is None:
            if code == "in":
                self.minute[caller].append(now)
            code, wait_s = "bad_key", None
        elif code == "in" and day is not None and self.days[day] >= allowance.per_day:
            code, wait_s = "daily_limit", -(-(86_400_000 - now % 86_400_000) // 1000)
        asking = CallerRequest(HOME, None if key is None else key_of(key))
        found = self.loop.run_until_complete(self.came(asking, counts))
        if isinstance(found, CallRefused):
            assert (found.error.code, found.error.retry_after_s) == (code, wait_s)
            return
        assert code == "in"
        self.minute[caller].append(now)
        if day is not None:
            self.days[day] += 1
        assert found.ticket is not None
        taken = [at for at in self.minute[caller] if at > now - 60_000]
        assert found.ticket.remaining == allowance.per_minute - len(taken)
        self.admitted.append((found, caller, now, day))

    @precondition(lambda self: self.admitted)
    @rule(data=st.data())
    def refund(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.admitted) - 1))
        found, caller, at, day = self.admitted.pop(place)
        self.loop.run_until_complete(self.handed_back(found))
        self.minute[caller].remove(at)
        if day is not None:
            self.days[day] -= 1

    @rule(ms=st.sampled_from([1, 999, 1_000, 20_000, 59_999, 60_000, 86_400_000]))
    def time_passes(self, ms: int) -> None:
        self.house.wall.ms += ms

    @rule(before_ms=st.sampled_from([-1, 0]))
    def midnight(self, before_ms: int) -> None:
        self.house.wall.ms += 86_400_000 - self.house.wall.ms % 86_400_000 + before_ms

    @rule()
    def process_is_killed_and_begins_anew(self) -> None:
        """It forgets callers without a key."""
        self.loop.run_until_complete(self.house.began_anew())
        self.minute[HOME].clear()
        self.admitted = [entry for entry in self.admitted if entry[1] != HOME]

    @rule(key=st.sampled_from(["k", "m"]))
    def revoke(self, key: str) -> None:
        self.owner[key] = None
        self.house.ledger.live.pop(hashed(key), None)

    @invariant()
    def days_are_as_counted(self) -> None:
        found = dict.fromkeys((1, 2), 0)
        for (owner, _), calls in self.house.ledger.days.items():
            found[owner] += calls
        for owner, calls in found.items():
            assert calls == sum(count for (whose, _), count in self.days.items() if whose == owner)


GateAgainstModel.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestGateAgainstModel = GateAgainstModel.TestCase


# --- addresses and the networks around them ----------------------------------------------------------


def asking_from(host: str, key: str | None = None) -> CallerRequest:
    headers = [] if key is None else [(b"x-api-key", key_of(key).encode())]
    return Callers().identify(headers, (host, 1))


@pytest.mark.parametrize(
    ("hosts", "most"),
    [
        ([f"203.0.113.{n}" for n in range(1, 30)], 8),
        ([f"2001:db8:0:{n:x}::1" for n in range(30)], 4),
        ([f"2001:db8:0:{n * 256:x}::1" for n in range(30)], 16),
    ],
)
async def test_a_network_makes_as_many_calls_as_some_of_its_addresses(
    house: GateHouse, hosts: list[str], most: int
) -> None:
    """Of IPv4 its /24, of IPv6 its /56 and its /48."""
    allowed = most * ALLOWANCES.anonymous.per_minute
    came, codes = 0, set()
    for host in hosts:
        for _ in range(ALLOWANCES.anonymous.per_minute):
            try:
                await house.ask(asking_from(host))
            except CallRefused as refused:
                codes.add((refused.error.code, refused.error.status, refused.error.retry_after_s))
            else:
                came += 1
    assert (came, codes) == (allowed, {("rate_limited", 429, 60)})
    assert (await house.ask(asking_from("198.51.100.7"))).ticket is not None


async def test_a_call_that_the_network_refuses_costs_its_address_nothing(house: GateHouse) -> None:
    per_minute = ALLOWANCES.anonymous.per_minute
    for n in range(8 * per_minute):
        await house.ask(asking_from(f"203.0.113.{n // per_minute + 1}"))
    left = [(await house.refused(asking_from("203.0.113.99")))[2] for _ in range(2)]
    assert left == [per_minute, per_minute]


async def test_a_call_that_is_handed_back_is_handed_back_to_the_network(house: GateHouse) -> None:
    for _ in range(100):
        house.gate.refund(await house.ask(asking_from("203.0.113.5")))


async def test_calls_with_keys_are_bounded_by_address_too(house: GateHouse) -> None:
    bound = replace(ALLOWANCES, address=AddressAllowance(keyed=4))
    house.gate.allowances = bound
    house.ledger.live |= {hashed(f"k{n}"): account(n) for n in range(10, 16)}
    for n in range(10, 14):
        await house.ask(asking_from("203.0.113.5", f"k{n}"))
    code, wait_s, _ = await house.refused(asking_from("203.0.113.5", "k14"))
    assert (code, wait_s) == ("rate_limited", 60)
    assert (await house.ask(asking_from("203.0.113.6", "k14"))).account == account(14)


async def test_the_services_own_machine_is_bounded_only_where_that_is_set(house: GateHouse) -> None:
    house.gate.allowances = replace(ALLOWANCES, address=AddressAllowance(keyed=1))
    for host in ("127.0.0.1", "::1"):
        for n in range(2):
            house.ledger.live[hashed(f"{host}{n}")] = account(100 + n)
            await house.ask(asking_from(host, f"{host}{n}"))
    house.gate.allowances = replace(ALLOWANCES, address=AddressAllowance(keyed=1, loopback=True))
    await house.ask(asking_from("127.0.0.2", "k"))
    assert (await house.refused(asking_from("127.0.0.2", "l")))[0] == "rate_limited"
