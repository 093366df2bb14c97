"""Credits against a model of them: payments on a chain that is reorganised, calls through several processes
that are killed and lose their database, midnights, and time. No order of it makes or loses a credit."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from roundtrip.api.callers import Asking
from roundtrip.api.gate import Admitted, Gate, Refused
from roundtrip.api.group_commit import GroupCommit, Ledger
from roundtrip.api.minutes import MinuteLimits
from roundtrip.api.spending import Credits, Spending
from roundtrip.domain.errors import RoundtripError
from roundtrip.domain.mite import Allowance, Allowances, Mite
from roundtrip.domain.types import Address
from roundtrip.services.context import Context
from roundtrip.services.credits import redeem_payment
from roundtrip.services.credits_answer import PaymentParams
from roundtrip.store import credits
from roundtrip.store.holds import HOLD_MS, Hold
from support.counting import Drawn, Wall, conserved, hashed, key_of, put_mite
from support.paying_chain import PAY_TO, PayingChain, Payment, paying_context
from support.tables import own_database

A = TypeVar("A")
DAY_MS = 86_400_000
MIDNIGHT_MS = 1_760_054_400_000
FREE = 2
ALLOWANCES = Allowances(Allowance(1), Allowance(10**6, FREE), Allowance(10**6, FREE))
KEYS = {"a": 0, "b": 0, "c": 1}
"""Whose each is."""
WALLETS = [Address("0x" + digit * 40) for digit in "12"]
FAULTS = st.sampled_from([None, None, None, "before", "after"])


@dataclass
class Faulty(Credits):
    """``fault``: the next request fails, before it is done or after."""

    fault: str | None = None

    async def move(
        self, settled: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[Hold], now_ms: int
    ) -> set[UUID]:
        fault, self.fault = self.fault, None
        if fault == "before":
            raise ConnectionResetError
        given = await super().move(settled, released, wanted, now_ms)
        if fault == "after":
            raise ConnectionResetError
        return given


@dataclass
class Process:
    """One that serves. ``ends``: what the model knows that it has still to do; ``is_gone``: its database did
    not answer, and it does not ask again before its clock has moved."""

    pool: asyncpg.Pool
    wall: Wall
    drawn: Drawn
    now_s: float = 0.0
    ends: list[tuple[str, UUID]] = field(default_factory=list)
    is_gone: bool = False

    def __post_init__(self) -> None:
        self.ledger, self.counts = Faulty(self.pool), Ledger(self.pool)
        self.spending = Spending(self.ledger, self.wall, self.drawn, lambda: self.now_s, again_s=1e6)
        commit = GroupCommit(self.counts, self.wall, lambda: self.now_s)
        self.gate = Gate(MinuteLimits(self.wall), ALLOWANCES, commit, spending=self.spending)

    async def begun(self) -> "Process":
        """With its connections, so that it never dies while one is made."""
        for own in (self.ledger.own, self.counts.own):
            await own._held()
        return self

    async def quiet(self) -> None:
        """Nothing is under way any more."""
        for part in (self.spending, self.gate.commit):
            while part._flushing is not None:
                await asyncio.wait([part._flushing])

    async def dies(self) -> None:
        """In the middle of whatever it does."""
        for own in (self.ledger.own, self.counts.own):
            await own._let_go()
        for part in (self.spending, self.gate.commit):
            if part._flushing is not None:
                part._flushing.cancel()
                await asyncio.wait([part._flushing])

    async def ask(self, key: str) -> Admitted | str:
        try:
            return await self.gate.admit(Asking("address:x", key_of(key)), "day", needs_key=True)
        except Refused as refused:
            return refused.error.code


@dataclass
class UnderWay:
    """A call that was let in, by which process, and whose."""

    process: Process
    admitted: Admitted
    owner: int


class Spendings(RuleBasedStateMachine):
    """``holds``: by id, whose, and until when. Owners are 0 and 1."""

    connection: asyncpg.Connection
    pool: asyncpg.Pool
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.wall, self.drawn, self.chain = Wall(MIDNIGHT_MS - 1_000_000), Drawn(), PayingChain()
        self.context: Context = paying_context(self.chain, self.pool, lambda: self.wall.ms / 1000)
        self.mites: list[int] = []
        self._run(self._begin())
        self.processes = [self._begun() for _ in range(3)]
        self.dead: set[str] = set()
        self.days: Counter[tuple[int, int]] = Counter()
        self.counted: set[str] = set()
        self.paid = [0, 0]
        self.spent = [0, 0]
        self.credits = [0, 0]
        self.holds: dict[UUID, tuple[int, int]] = {}
        self.calls: list[UnderWay] = []

    async def _begin(self) -> None:
        await self.connection.execute("TRUNCATE accounts.mite, accounts.call, accounts.pay_to CASCADE")
        for owner, wallet in enumerate(WALLETS):
            keys = [key for key, whose in KEYS.items() if whose == owner]
            self.mites.append(await put_mite(self.connection, wallet, *keys))
        async with self.connection.transaction():
            await credits.opened(self.connection, PAY_TO, 0)

    def _run(self, doing: Awaitable[A]) -> A:
        async def done() -> A:
            return await doing

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(30)

    def _begun(self) -> Process:
        return self._run(Process(self.pool, self.wall, self.drawn).begun())

    def teardown(self) -> None:
        for process in self.processes:
            self._run(process.dies())

    # --- the chain -----------------------------------------------------------------------------

    @rule(owner=st.integers(0, 1), raw=st.integers(1, 6))
    def pay(self, owner: int, raw: int) -> None:
        self.chain.pay(WALLETS[owner], raw)
        self.chain.mine(9)

    @rule(count=st.integers(0, 2))
    def mine(self, count: int) -> None:
        self.chain.mine(count)

    @rule(count=st.integers(1, 4))
    def finalize(self, count: int) -> None:
        self.chain.finalize(count)

    @rule(depth=st.integers(1, 4), is_dropped=st.booleans(), is_deep=st.booleans())
    def reorganise(self, depth: int, is_dropped: bool, is_deep: bool) -> None:
        (self.chain.break_finality if is_deep else self.chain.reorganise)(depth)
        if is_dropped:
            self.chain.drop()

    @precondition(lambda self: self.chain.known)
    @rule(
        index=st.integers(0, 1000),
        posts=st.lists(st.integers(0, 1), min_size=1, max_size=4),
        forks=st.sampled_from([0, 0, 0, 1, 3]),
    )
    def redeem(self, index: int, posts: list[int], forks: int) -> None:
        """The same transaction at once, by either mite. ``forks``: how many final blocks are taken back
        before the first one is confirmed."""
        paid = list(self.chain.known.values())[index % len(self.chain.known)]
        was_final = self.chain.is_final(paid)
        taken_back: list[bool] = []

        def fork() -> None:
            self.chain.break_finality(forks)
            self.chain.mine(9)
            taken_back.append(True)

        self.chain.between = fork if forks else None
        came = self._run(self._posted(paid, posts))
        self.chain.between = None
        owner = WALLETS.index(paid.wallet)
        is_due = was_final and paid.tx_hash not in self.counted and owner in posts
        good = [who for who, code in zip(posts, came, strict=True) if code == "counted"]
        if taken_back:
            # Whoever read it after that may find it final, in a block that stayed.
            assert not good or (good == [owner] and is_due and self.chain.is_final(paid)), (came, posts)
        else:
            assert good == ([owner] if is_due else []), (came, posts)
        if good:
            self.counted.add(paid.tx_hash)
            self.paid[owner] += paid.raw
            self.credits[owner] += paid.raw
        elif owner in posts and not taken_back:
            used = paid.tx_hash in self.counted
            assert {came[n] for n, who in enumerate(posts) if who == owner} == {
                "already_used" if used else "no_such_tx"
            }

    async def _posted(self, paid: Payment, posts: list[int]) -> list[str]:
        async def posted(owner: int) -> str:
            mite = Mite(self.mites[owner], f"mite-{owner}", WALLETS[owner])
            try:
                await redeem_payment(self.context, PaymentParams(paid.tx_hash), mite)
            except RoundtripError as error:
                return error.code
            return "counted"

        return await asyncio.gather(*(posted(owner) for owner in posts))

    # --- calls ---------------------------------------------------------------------------------

    def _day(self, owner: int) -> tuple[int, int]:
        return owner, self.wall.ms // DAY_MS

    def _gives_back(self, owner: int) -> None:
        """What a statement that holds does first."""
        for one, (whose, until_ms) in list(self.holds.items()):
            if whose == owner and until_ms <= self.wall.ms:
                del self.holds[one]
                self.credits[owner] += 1

    def _is_paying(self, owner: int) -> bool:
        return self.paid[owner] > 0

    @rule(where=st.lists(st.integers(0, 2), min_size=1, max_size=7), key=st.sampled_from("abc"))
    def calls_begin(self, where: list[int], key: str) -> None:
        """At once, through processes whose database answers."""
        through = [self.processes[n] for n in where if not self.processes[n].is_gone]
        came = self._run(self._asked(through, key))
        owner = KEYS[key]
        if key in self.dead:
            assert set(came) <= {"bad_key"}
            return
        free = min(len(through), FREE - self.days[self._day(owner)])
        self.days[self._day(owner)] += free
        wants = len(through) - free
        if wants and self._is_paying(owner):
            self._gives_back(owner)
        bought = min(wants, self.credits[owner])
        self.credits[owner] -= bought
        let_in = [one for one in came if isinstance(one, Admitted)]
        held = [one.hold for one in let_in if one.hold is not None]
        assert (len(let_in), len(held)) == (free + bought, bought), came
        assert came.count("daily_limit") == wants - bought
        for hold in held:
            self.holds[hold.id] = owner, self.wall.ms + HOLD_MS
        for process, one in zip(through, came, strict=True):
            if isinstance(one, Admitted):
                self.calls.append(UnderWay(process, one, owner))

    async def _asked(self, through: Sequence[Process], key: str) -> list[Admitted | str]:
        came = await asyncio.gather(*(process.ask(key) for process in through))
        for process in through:
            await process.quiet()
        return came

    @rule(place=st.integers(0, 2), key=st.sampled_from("abc"), fault=st.sampled_from(["before", "after"]))
    def call_meets_a_fault(self, place: int, key: str, fault: str) -> None:
        """Or a process that knows that its database is gone."""
        owner, process = KEYS[key], self.processes[place]
        if key in self.dead or self.days[self._day(owner)] < FREE or not self._is_paying(owner):
            return
        if not process.is_gone:
            process.ledger.fault = fault
            if fault == "after":
                self._gives_back(owner)
            if fault == "after" and self.credits[owner]:
                self.credits[owner] -= 1
                self.holds[UUID(int=self.drawn.last + 1)] = owner, self.wall.ms + HOLD_MS
            process.ends.append(("credits", UUID(int=self.drawn.last + 1)))
            process.is_gone = True
        assert self._run(self._asked([process], key)) == ["busy"]

    def _ended(self, kind: str, one: UUID) -> None:
        if one in self.holds and self.holds[one][1] > self.wall.ms:
            owner, _ = self.holds.pop(one)
            getattr(self, kind)[owner] += 1

    @precondition(lambda self: self.calls)
    @rule(index=st.integers(0, 1000), how=st.sampled_from(["counts", "fails", "is cancelled"]), fault=FAULTS)
    def call_ends(self, index: int, how: str, fault: str | None) -> None:
        call = self.calls.pop(index % len(self.calls))
        process, hold = call.process, call.admitted.hold
        if hold is None:
            if how == "fails":
                assert call.admitted.ticket is not None
                self.days[call.owner, call.admitted.ticket.taken_ms // DAY_MS] -= 1
        else:
            end = "spent" if how == "counts" else "credits", hold.id
            is_over = hold.until_ms <= self.wall.ms
            process.ledger.fault = None if process.is_gone or is_over else fault
            if not process.is_gone and process.ledger.fault != "before":
                self._ended(*end)
            if process.is_gone or process.ledger.fault is not None:
                process.ends.append(end)
                process.is_gone = True
        self._run(self._end(process, call.admitted, how))
        assert process.ledger.fault is None

    async def _end(self, process: Process, admitted: Admitted, how: str) -> None:
        if how == "counts":
            await process.gate.settle(admitted)
        elif how == "fails":
            process.gate.hand_back(admitted)
        else:
            process.gate.release(admitted)
        await process.quiet()

    @rule(place=st.integers(0, 2), is_closed=st.booleans())
    def database_answers_again(self, place: int, is_closed: bool) -> None:
        """What is left is done: as soon as it is asked, or because the process ends as it should."""
        process = self.processes[place]
        process.now_s += 1e7
        for end in process.ends:
            self._ended(*end)
        process.ends, process.is_gone = [], False
        self._run(process.spending.close() if is_closed else self._flushed(process))

    async def _flushed(self, process: Process) -> None:
        process.spending._begin()
        await process.quiet()

    @rule(place=st.integers(0, 2))
    def process_is_killed(self, place: int) -> None:
        """With its calls under way."""
        self._replaced(place)

    def _replaced(self, place: int) -> None:
        process = self.processes[place]
        self._run(process.dies())
        self.calls = [call for call in self.calls if call.process is not process]
        self.processes[place] = self._begun()

    @rule(place=st.integers(0, 2), key=st.sampled_from("abc"), turns=st.integers(0, 25))
    def process_is_killed_while_it_asks(self, place: int, key: str, turns: int) -> None:
        """What it asked was done, or was not."""
        owner, process = KEYS[key], self.processes[place]
        if key in self.dead or process.is_gone:
            return
        day = self._day(owner)
        had = self.days[day]
        self.days[day] = self._run(self._killed(process, key, turns, owner))
        assert had <= self.days[day] <= min(FREE, had + 1)
        held = UUID(int=self.drawn.last)
        is_held = self._run(
            self.connection.fetchval("SELECT until_ms FROM accounts.hold WHERE id = $1", held)
        )
        if is_held is not None and held not in self.holds:
            assert had == FREE
            self._gives_back(owner)
            self.credits[owner] -= 1
            self.holds[held] = owner, is_held
        elif self._is_paying(owner) and had == FREE and self._run(self._over(owner)) == 0:
            # It was asked for a credit and found none; what was over went back all the same.
            self._gives_back(owner)
        self._replaced(place)

    async def _over(self, owner: int) -> int:
        found: int = await self.connection.fetchval(
            "SELECT count(*) FROM accounts.hold WHERE mite_id = $1 AND until_ms <= $2",
            self.mites[owner],
            self.wall.ms,
        )
        return found

    async def _killed(self, process: Process, key: str, turns: int, owner: int) -> int:
        """How many calls of the day are counted then."""
        own = [one.own._connection for one in (process.ledger, process.counts)]
        asking = asyncio.create_task(process.ask(key))
        for _ in range(turns):
            await asyncio.sleep(0)
        own += [one.own._connection for one in (process.ledger, process.counts)]
        pids = {one.get_server_pid() for one in own if one is not None}
        await process.dies()
        asking.cancel()
        await asyncio.wait([asking])
        await self._ended_backends(pids)
        day = divmod(self.wall.ms, DAY_MS)[0]
        found: int | None = await self.connection.fetchval(
            "SELECT calls FROM accounts.day WHERE mite_id = $1 AND day = DATE '1970-01-01' + $2::int",
            self.mites[owner],
            day,
        )
        return found or 0

    async def _ended_backends(self, pids: set[int]) -> None:
        """What was asked of the database is done or is not by then."""
        asked = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY ($1::int[])"
        async with asyncio.timeout(20):
            while await self.connection.fetchval(asked, list(pids)):  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    # --- time ----------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 30_000, HOLD_MS - 1, HOLD_MS]))
    def time_passes(self, ms: int) -> None:
        self.wall.ms += ms

    @rule(before_ms=st.sampled_from([1, 0]))
    def midnight(self, before_ms: int) -> None:
        self.wall.ms += DAY_MS - self.wall.ms % DAY_MS - before_ms

    @precondition(lambda self: not self.dead)
    @rule(key=st.sampled_from("ab"))
    def revoke(self, key: str) -> None:
        self.dead.add(key)
        self._run(
            self.connection.execute("UPDATE accounts.key SET revoked_at = now() WHERE hash = $1", hashed(key))
        )

    # --- what always holds ---------------------------------------------------------------------

    @invariant()
    def every_balance_is_as_the_model_says(self) -> None:
        found = self._run(conserved(self.connection, self.wall.ms))
        held = Counter(owner for owner, _ in self.holds.values())
        assert found == {
            self.mites[owner]: (self.credits[owner], held[owner], self.spent[owner])
            for owner in range(2)
            if self.paid[owner]
        }
        for owner in range(2):
            assert self.paid[owner] == self.credits[owner] + held[owner] + self.spent[owner]

    @invariant()
    def days_are_as_the_model_says(self) -> None:
        rows = self._run(
            self.connection.fetch("SELECT mite_id, day - DATE '1970-01-01' AS day, calls FROM accounts.day")
        )
        found: dict[tuple[int, int], int] = defaultdict(int)
        for row in rows:
            found[self.mites.index(row["mite_id"]), row["day"]] += row["calls"]
        assert {day: calls for day, calls in found.items() if calls} == {
            day: calls for day, calls in self.days.items() if calls
        }


@pytest.mark.timeout(300)
async def test_no_order_of_anything_makes_or_loses_a_credit(database_url: str) -> None:
    """The machine is not asynchronous: it runs in a thread and asks this loop."""
    async with own_database(database_url, "spending_model") as url:
        connection = await asyncpg.connect(url)
        async with asyncpg.create_pool(url, min_size=0, max_size=12) as pool:
            here: dict[str, Any] = {
                "connection": connection,
                "pool": pool,
                "loop": asyncio.get_running_loop(),
            }
            machine = type("Machine", (Spendings,), here)
            limits = settings(
                max_examples=60,
                stateful_step_count=40,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            )
            try:
                await asyncio.to_thread(run_state_machine_as_test, machine, settings=limits)
            finally:
                await connection.close()
