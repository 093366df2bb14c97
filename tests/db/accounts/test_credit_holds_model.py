"""Credits against a model of them: payments on a chain that is reorganised, calls through several processes
that are killed and lose their database, midnights, and time. No order of it makes or loses a credit."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from roundtrip.api.admission.gate import Admitted
from roundtrip.store.accounts import credits
from roundtrip.store.accounts.credits import HOLD_MS
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from support.counting import DrawnIds, conserved, hashed, put_account
from support.paying_chain import PAY_TO
from support.paying_machine import WALLETS, Payings
from support.processes import FREE, ModelProcess
from support.tables import own_database

DAY_MS = 86_400_000
KEYS = {"a": 0, "b": 0, "c": 1}
"""The owner (0 or 1) of each key."""
WHAT = [
    "held", "spent", "credits", "over", "too late, or again", "daily_limit", "counts", "fails",
    "is cancelled", "before a hold was made", "after a hold was made", "killed before a hold was made",
    "killed after a hold was made", "killed before it was spent", "killed after it was spent",
]  # fmt: skip
"""What the runs together must have met."""
FAULTS = st.sampled_from([None, None, None, "before", "after"])


@dataclass
class OpenCall:
    """A call that a process let in, and its owner."""

    process: ModelProcess
    admitted: Admitted
    owner: int


class Spendings(Payings):
    """``holds``: owner and end, in ms, of each hold, by its id; ``days``: calls by
    owner and day; ``revoked``: keys."""

    connection: Connection
    seen: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.drawn = DrawnIds()
        self._run(self._begin())
        self.processes = [self._start_process() for _ in range(3)]
        self.revoked: set[str] = set()
        self.days: Counter[tuple[int, int]] = Counter()
        self.spent = [0, 0]
        self.holds: dict[UUID, tuple[int, int]] = {}
        self.calls: list[OpenCall] = []

    async def _begin(self) -> None:
        await self.connection.execute("TRUNCATE accounts.account, accounts.call, accounts.pay_to CASCADE")
        for owner, wallet in enumerate(WALLETS):
            keys = [key for key, key_owner in KEYS.items() if key_owner == owner]
            self.accounts.append(await put_account(self.connection, wallet, *keys))
        async with self.connection.transaction():
            await credits.open_pay_to(self.connection, PAY_TO, 0)

    def _start_process(self) -> ModelProcess:
        return self._run(ModelProcess(self.pool, self.wall, self.drawn).connect())

    def teardown(self) -> None:
        for process in self.processes:
            self._run(process.dies())

    @initialize(raws=st.lists(st.integers(4, 9), min_size=2, max_size=2))
    def begin_with_some(self, raws: list[int]) -> None:
        """Both owners have credits and no free call left today; calls of one have ended in every way."""
        for owner, raw in enumerate(raws):
            self.chain.pay(WALLETS[owner], raw)
            self.chain.mine(9)
            self.chain.finalize(9)
            self.redeem(owner, [owner, 0, 1, owner], 0)
            self.calls_begin([owner], "ac"[owner])
        self.calls_begin([0, 1, 2], "c")
        for how in ("counts", "fails", "is cancelled"):
            self.newest_call_ends(how, None)
        for place, fault in enumerate(("before", "after")):
            self.calls_begin([place], "c")
            self.newest_call_ends("counts", fault)
            self.database_answers_again(place, shuts_down=False)
            self.call_meets_a_fault(place, "c", fault)
            self.database_answers_again(place, shuts_down=False)
        # Two more calls are under way when their processes die.
        self.calls_begin([0, 1], "c")
        for when in ("before", "after"):
            self.process_is_killed_while_it_answers(0, when)

    # --- calls ---------------------------------------------------------------------------------

    def _day(self, owner: int) -> tuple[int, int]:
        return owner, self.wall.ms // DAY_MS

    def _return_expired(self, owner: int) -> None:
        """Returns expired holds to the balance, as the statement that places a hold does before it."""
        for hold_id, (hold_owner, until_ms) in list(self.holds.items()):
            if hold_owner == owner and until_ms <= self.wall.ms:
                del self.holds[hold_id]
                self.credits[owner] += 1
                self.seen["over"] += 1

    def _is_paying(self, owner: int) -> bool:
        return self.paid[owner] > 0

    @rule(where=st.lists(st.integers(0, 2), min_size=1, max_size=7), key=st.sampled_from("abc"))
    def more_calls_begin(self, where: list[int], key: str) -> None:
        """The same rule once more, so that hypothesis picks it twice as often."""
        self.calls_begin(where, key)

    @rule(where=st.lists(st.integers(0, 2), min_size=1, max_size=7), key=st.sampled_from("abc"))
    def calls_begin(self, where: list[int], key: str) -> None:
        """Calls with one key begin at once, through processes whose database answers."""
        through = [self.processes[n] for n in where if not self.processes[n].is_gone]
        outcomes = self._run(self._ask(through, key))
        owner = KEYS[key]
        if key in self.revoked:
            assert set(outcomes) <= {"bad_key"}
            return
        free = min(len(through), FREE - self.days[self._day(owner)])
        self.days[self._day(owner)] += free
        unpaid = len(through) - free
        if unpaid and self._is_paying(owner):
            self._return_expired(owner)
        bought = min(unpaid, self.credits[owner])
        self.credits[owner] -= bought
        let_in = [outcome for outcome in outcomes if isinstance(outcome, Admitted)]
        held = [admitted.hold for admitted in let_in if admitted.hold is not None]
        assert (len(let_in), len(held)) == (free + bought, bought), outcomes
        assert outcomes.count("daily_limit") == unpaid - bought
        self.seen["held"] += bought
        self.seen["daily_limit"] += unpaid - bought
        for hold in held:
            self.holds[hold.id] = owner, self.wall.ms + HOLD_MS
        for process, outcome in zip(through, outcomes, strict=True):
            if isinstance(outcome, Admitted):
                self.calls.append(OpenCall(process, outcome, owner))

    async def _ask(self, through: Sequence[ModelProcess], key: str) -> list[Admitted | str]:
        outcomes = await asyncio.gather(*(process.ask(key) for process in through))
        for process in through:
            await process.quiet()
        return outcomes

    @rule(place=st.integers(0, 2), key=st.sampled_from("abc"), fault=st.sampled_from(["before", "after"]))
    def call_meets_a_fault(self, place: int, key: str, fault: str) -> None:
        """One call that needs a credit fails with the database, or finds that it is gone already."""
        owner, process = KEYS[key], self.processes[place]
        if not self._needs_credit(key):
            return
        if not process.is_gone:
            process.ledger.fault = fault
            if fault == "after":
                self._place_unheard_hold(owner)
            process.ends.append(("credits", UUID(int=self.drawn.last + 1)))
            process.is_gone = True
        assert self._run(self._ask([process], key)) == ["busy"]
        self.seen[f"{fault} a hold was made"] += 1

    def _needs_credit(self, key: str) -> bool:
        """Whether a call with this key needs a credit, and its owner has ever paid for some."""
        owner = KEYS[key]
        return key not in self.revoked and self.days[self._day(owner)] >= FREE and self._is_paying(owner)

    def _place_unheard_hold(self, owner: int) -> None:
        """Places a hold for a call that never hears of it."""
        self._return_expired(owner)
        if self.credits[owner]:
            self.credits[owner] -= 1
            self.holds[UUID(int=self.drawn.last + 1)] = owner, self.wall.ms + HOLD_MS

    def _settle(self, into: str, hold_id: UUID) -> None:
        """``into``: "spent" or "credits"."""
        if hold_id in self.holds and self.holds[hold_id][1] > self.wall.ms:
            owner, _ = self.holds.pop(hold_id)
            getattr(self, into)[owner] += 1
            self.seen[into] += 1
        else:
            self.seen["too late, or again"] += 1

    @rule(
        ends=st.lists(
            st.tuples(
                st.integers(0, 1000), st.sampled_from(["counts", "counts", "fails", "is cancelled"]), FAULTS
            ),
            min_size=1,
            max_size=6,
        )
    )
    def calls_end(self, ends: list[tuple[int, str, str | None]]) -> None:
        for index, how, fault in ends:
            if self.calls:
                self._call_ends(self.calls.pop(index % len(self.calls)), how, fault)

    @rule(how=st.sampled_from(["counts", "fails"]), fault=FAULTS)
    def newest_call_ends(self, how: str, fault: str | None) -> None:
        if self.calls:
            self._call_ends(self.calls.pop(), how, fault)

    def _call_ends(self, call: OpenCall, how: str, fault: str | None) -> None:
        process, hold = call.process, call.admitted.hold
        if hold is None:
            if how == "fails":
                assert call.admitted.ticket is not None
                self.days[call.owner, call.admitted.ticket.taken_ms // DAY_MS] -= 1
        else:
            end = "spent" if how == "counts" else "credits", hold.id
            is_over = hold.until_ms <= self.wall.ms
            self.seen[how] += 1
            process.ledger.fault = None if process.is_gone or is_over else fault
            if not process.is_gone and process.ledger.fault != "before":
                self._settle(*end)
            if process.is_gone or process.ledger.fault is not None:
                process.ends.append(end)
                process.is_gone = True
        self._run(self._end(process, call.admitted, how))
        assert process.ledger.fault is None

    async def _end(self, process: ModelProcess, admitted: Admitted, how: str) -> None:
        if how == "counts":
            await process.gate.charge(admitted)
        elif how == "fails":
            process.gate.refund(admitted)
        else:
            process.gate.release(admitted)
        await process.quiet()

    @rule(place=st.integers(0, 2), shuts_down=st.booleans())
    def database_answers_again(self, place: int, shuts_down: bool) -> None:
        """The process settles what is left: with its next flush, or as it shuts down."""
        process = self.processes[place]
        process.now_s += 1e7
        for end in process.ends:
            self._settle(*end)
        process.ends, process.is_gone = [], False
        self._run(process.spender.close() if shuts_down else self._flushed(process))

    async def _flushed(self, process: ModelProcess) -> None:
        process.spender._start_flush()
        await process.quiet()

    @rule(place=st.integers(0, 2))
    def process_is_killed(self, place: int) -> None:
        """A process dies with its calls under way."""
        self._replace(place)

    def _replace(self, place: int) -> None:
        process = self.processes[place]
        self._run(process.dies())
        self.calls = [call for call in self.calls if call.process is not process]
        self.processes[place] = self._start_process()

    @rule(place=st.integers(0, 2), key=st.sampled_from("abc"), when=st.sampled_from(["before", "after"]))
    def process_is_killed_while_it_asks(self, place: int, key: str, when: str) -> None:
        """It dies before the credit is held, or before it hears of that."""
        process = self.processes[place]
        if not self._needs_credit(key) or process.is_gone:
            return
        process.ledger.fault = f"dies {when}"
        if when == "after":
            self._place_unheard_hold(KEYS[key])
        self._run(process.dies_in(process.ask(key)))
        self.seen[f"killed {when} a hold was made"] += 1
        self._replace(place)

    @rule(index=st.integers(0, 1000), when=st.sampled_from(["before", "after"]))
    def process_is_killed_while_it_answers(self, index: int, when: str) -> None:
        """It dies before the credit is spent, or before it hears of that."""
        calls = [call for call in self.calls if self._is_held_by_the_living(call)]
        if not calls:
            return
        call = calls[index % len(calls)]
        assert call.admitted.hold is not None
        call.process.ledger.fault = f"dies {when}"
        if when == "after":
            self._settle("spent", call.admitted.hold.id)
        self._run(call.process.dies_in(call.process.gate.charge(call.admitted)))
        self.seen[f"killed {when} it was spent"] += 1
        self._replace(self.processes.index(call.process))

    def _is_held_by_the_living(self, call: OpenCall) -> bool:
        hold = call.admitted.hold
        return hold is not None and hold.until_ms > self.wall.ms and not call.process.is_gone

    # --- time ----------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 1, 30_000, HOLD_MS - 1, HOLD_MS]))
    def time_passes(self, ms: int) -> None:
        self.wall.ms += ms

    @rule(before_ms=st.sampled_from([1, 0]))
    def midnight(self, before_ms: int) -> None:
        self.wall.ms += DAY_MS - self.wall.ms % DAY_MS - before_ms

    @precondition(lambda self: not self.revoked)
    @rule(key=st.sampled_from("ab"))
    def revoke(self, key: str) -> None:
        self.revoked.add(key)
        self._run(
            self.connection.execute("UPDATE accounts.key SET revoked_at = now() WHERE hash = $1", hashed(key))
        )

    # --- what always holds ---------------------------------------------------------------------

    @invariant()
    def every_balance_is_as_the_model_says(self) -> None:
        balances = self._run(conserved(self.connection, self.wall.ms))
        held = Counter(owner for owner, _ in self.holds.values())
        assert balances == {
            self.accounts[owner]: (self.credits[owner], held[owner], self.spent[owner])
            for owner in range(2)
            if self.paid[owner]
        }
        for owner in range(2):
            assert self.paid[owner] == self.credits[owner] + held[owner] + self.spent[owner]

    @invariant()
    def days_are_as_the_model_says(self) -> None:
        rows = self._run(
            self.connection.fetch(
                "SELECT account_id, day - DATE '1970-01-01' AS day, calls FROM accounts.day"
            )
        )
        stored: dict[tuple[int, int], int] = defaultdict(int)
        for row in rows:
            stored[self.accounts.index(row["account_id"]), row["day"]] += row["calls"]
        assert {day: calls for day, calls in stored.items() if calls} == {
            day: calls for day, calls in self.days.items() if calls
        }


@pytest.mark.timeout(120)
async def test_no_order_of_anything_makes_or_loses_a_credit(database_url: str) -> None:
    """The machine is not asynchronous: it runs in a thread and asks this loop."""
    async with own_database(database_url, "spending_model") as url:
        connection, seen = await asyncpg.connect(url), Counter[str]()
        async with connections.create_pool(url, min_size=0, max_size=12) as pool:
            here: dict[str, Any] = {
                "connection": connection,
                "pool": pool,
                "loop": asyncio.get_running_loop(),
                "seen": seen,
            }
            machine = type("Machine", (Spendings,), here)
            limits = settings(
                max_examples=100,
                stateful_step_count=40,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            )
            try:
                await asyncio.to_thread(run_state_machine_as_test, machine, settings=limits)
            finally:
                await connection.close()
    for what in WHAT:
        assert seen[what], f"no run met: {what}"
