"""How a node stands and whom to ask: pure, with the time handed in."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from roundtrip.chain.asking import Asking, Runner, guards
from roundtrip.chain.endpoints import (
    BURST_S,
    SIMULATES,
    Endpoint,
    Hedging,
    Moment,
    NodeUrl,
    choose,
)
from roundtrip.chain.rpc import Meter, NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.domain.errors import NodeFault
from unit.chain.samples import raw

DAY_S = 86_400.0
READS = frozenset({"eth_call"})
SIMULATIONS = frozenset({SIMULATES, "eth_call"})
SECRET = "s3cr3t"


def at(steady_s: float) -> Moment:
    return Moment(steady_s, 1_000 * DAY_S + steady_s)


def endpoints(*limits: dict[str, Any]) -> list[Endpoint]:
    return [
        Endpoint.of(NodeUrl(f"http://node{number}.test/{SECRET}", **one)) for number, one in enumerate(limits)
    ]


def chosen(
    them: list[Endpoint], now: Moment, methods: frozenset[str] = READS, calls: int = 10, **options: Any
) -> tuple[int, float] | None:
    choice = choose(them, methods, calls, now, options.pop("within_s", 5.0), **options)
    return None if choice is None else (choice.number, choice.wait_s)


# --- whom to ask -----------------------------------------------------------------------------------


def test_the_first_that_is_well_is_asked() -> None:
    assert chosen(endpoints({}, {}, {}), at(0)) == (0, 0)


def test_who_was_asked_is_not_asked_again() -> None:
    them = endpoints({}, {})
    assert chosen(them, at(0), asked=frozenset({0})) == (1, 0)
    assert chosen(them, at(0), asked=frozenset({0, 1})) is None


def test_a_resting_node_is_asked_last_and_the_one_whose_rest_ends_first_before_the_other() -> None:
    them = endpoints({}, {}, {})
    them[0].failed("why", at(0), 0)
    assert chosen(them, at(0.5)) == (1, 0)
    them[1].failed("why", at(0.1), 0)
    them[2].failed("why", at(0.2), 0)
    assert chosen(them, at(0.5)) == (0, 0)


def test_rests_double_up_to_a_minute_and_chance_shortens_them_by_half_at_most() -> None:
    one, now_s = endpoints({})[0], 0.0
    rests: list[float] = []
    for _ in range(9):
        one.failed("why", at(now_s), 0)
        rests.append(one.rests_until_s - now_s)
        now_s = one.rests_until_s
    assert rests == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    one.failed("why", at(now_s), 1.0)
    assert one.rests_until_s - now_s == 30


def test_after_its_rest_one_request_finds_out_whether_it_is_well() -> None:
    them = endpoints({}, {})
    them[0].failed("why", at(0), 0)
    assert chosen(them, at(1.0)) == (0, 0)
    them[0].under_way = 1
    assert chosen(them, at(1.0)) == (1, 0)
    them[0].answered(0.1, False)
    assert chosen(them, at(1.0)) == (0, 0)


def test_a_node_that_is_told_to_wait_is_not_asked_at_all() -> None:
    (one,) = endpoints({})
    one.told_to_wait("why", at(0), 30)
    assert chosen([one], at(1)) is None
    assert chosen([one], at(29), within_s=5.0) == (0, 1.0)


@pytest.mark.parametrize(("told_s", "waits_s"), [(None, 1), (0, 1), (7, 7), (120, 120), (10**9, 120)])
def test_retry_after_is_honoured_within_a_bound(told_s: int | None, waits_s: float) -> None:
    (one,) = endpoints({})
    one.told_to_wait("why", at(5), told_s)
    assert one.waits_until_s == 5 + waits_s


def test_being_told_to_wait_again_and_again_waits_longer() -> None:
    (one,) = endpoints({})
    waits: list[float] = []
    for _ in range(8):
        one.told_to_wait("why", at(one.waits_until_s if waits else 0), None)
        waits.append(one.waits_until_s)
    assert waits == [1, 3, 7, 15, 31, 63, 123, 183]


def test_who_lacks_a_method_is_asked_for_others_and_for_it_only_where_nobody_else_is_left() -> None:
    them = endpoints({}, {})
    them[0].does_not_serve(SIMULATES, at(0))
    assert chosen(them, at(1)) == (0, 0)
    assert chosen(them, at(1), SIMULATIONS) == (1, 0)
    them[1].failed("why", at(1), 0)
    assert chosen(them, at(1), SIMULATIONS) == (1, 0)
    assert chosen(them, at(1), SIMULATIONS, asked=frozenset({1})) == (0, 0)
    assert chosen(them, at(600), SIMULATIONS) == (0, 0)


def test_who_speaks_another_dialect_is_never_asked_to_simulate() -> None:
    them = endpoints({}, {})
    them[0].told_speech(False, at(0))
    assert chosen(them, at(0), SIMULATIONS) == (1, 0)
    assert chosen(them, at(0), SIMULATIONS, asked=frozenset({1})) is None
    assert chosen(them, at(0), READS) == (0, 0)
    assert them[0].state(at(0)).condition == "simulates otherwise"


def test_who_spoke_otherwise_once_is_heard_again() -> None:
    them = endpoints({}, {})
    them[0].told_speech(False, at(0))
    assert chosen(them, at(59), SIMULATIONS) == (1, 0)
    assert chosen(them, at(61), SIMULATIONS) == (0, 0)
    assert them[0].state(at(61)).condition == "ok"


def test_a_node_of_another_chain_waits_and_comes_behind_all_others_then() -> None:
    them = endpoints({}, {})
    them[0].told_other_chain("chain 1", at(0))
    assert chosen(them, at(59), within_s=0.5) == (1, 0)
    assert chosen(them, at(61)) == (1, 0)
    assert chosen(them, at(61), asked=frozenset({1})) == (0, 0)
    assert them[0].chain_is_due(at(61))
    them[0].told_chain(at(62))
    assert chosen(them, at(63)) == (0, 0)


def test_the_chain_is_asked_at_first_and_every_half_minute_and_after_a_fault() -> None:
    (one,) = endpoints({})
    assert one.chain_is_due(at(0))
    one.told_chain(at(0))
    assert not one.chain_is_due(at(29.9))
    assert one.chain_is_due(at(30))
    one.told_chain(at(30))
    one.failed("why", at(31), 0)
    assert one.chain_is_due(at(31))


def test_a_node_that_is_well_and_has_no_room_is_waited_for_before_a_resting_one_is_asked() -> None:
    them = endpoints({"calls_per_second": 10}, {})
    them[0].take(20, at(0))
    assert chosen(them, at(0)) == (1, 0)
    them[1].failed("why", at(0), 0)
    number, wait_s = chosen(them, at(0)) or (9, 0)
    assert (number, round(wait_s, 6)) == (0, 1.0)
    assert chosen(them, at(0), within_s=0.9) == (1, 0)


def test_a_spent_day_goes_to_the_next() -> None:
    them = endpoints({"calls_per_day": 10}, {})
    them[0].take(5, at(0))
    assert chosen(them, at(0), calls=6) == (1, 0)
    assert chosen(them, at(0), calls=5) == (0, 0)
    assert chosen(them, at(DAY_S), calls=6) == (0, 0)


# --- batches ---------------------------------------------------------------------------------------


def test_a_refused_batch_is_halved_once_for_all_that_were_under_way() -> None:
    (one,) = endpoints({})
    for _ in range(3):
        one.refused_batch(48, at(0))
    assert one.calls_a_request(at(1)) == 24
    one.refused_batch(24, at(1))
    assert one.calls_a_request(at(2)) == 12
    one.refused_batch(1, at(2))
    assert one.calls_a_request(at(2)) == 1


def test_it_grows_again_by_doubling_and_no_further_than_it_was_set() -> None:
    (one,) = endpoints({"calls_a_request": 40})
    assert one.calls_a_request(at(0)) == 40
    one.refused_batch(40, at(0))
    assert [one.calls_a_request(at(s)) for s in (599, 600, 700, 1200)] == [20, 40, 40, 40]


# --- lateness --------------------------------------------------------------------------------------


def test_nothing_is_late_before_enough_is_known() -> None:
    (one,) = endpoints({})
    for _ in range(7):
        one.answered(0.1, False)
    assert one.hedge_after_s(False) is None
    one.answered(0.1, False)
    assert one.hedge_after_s(False) == 0.2
    assert one.hedge_after_s(True) is None


def test_one_slow_answer_in_twenty_moves_nothing() -> None:
    (one,) = endpoints({})
    for number in range(100):
        one.answered(5.0 if number % 20 == 0 else 0.05, False)
    assert one.hedge_after_s(False) == 0.1


def test_what_is_fast_is_never_hedged_at_once() -> None:
    (one,) = endpoints({})
    for _ in range(10):
        one.answered(0.0001, False)
    assert one.hedge_after_s(False) == 0.01


def test_late_once_is_chance_and_three_times_a_fault() -> None:
    (one,) = endpoints({})
    one.was_late("late", at(0), 0)
    one.was_late("late", at(0), 0)
    one.answered(0.1, False)
    one.was_late("late", at(0), 0)
    one.was_late("late", at(0), 0)
    assert not one.rests(at(0))
    one.was_late("late", at(0), 0)
    assert one.rests(at(0))


def test_plain_answers_do_not_clear_a_node_that_hangs_on_simulations() -> None:
    (one,) = endpoints({})
    one.failed("why", at(0), 0, heavy=True)
    one.answered(0.1, False)
    assert (one.faults, one.rests(at(0.5))) == (1, True)
    one.answered(0.1, True)
    assert (one.faults, one.rests(at(0.5))) == (0, False)


@given(st.lists(st.integers(0, 3), max_size=300))
def test_hedges_are_one_in_ten(wanted: list[int]) -> None:
    hedging, taken = Hedging(), 0
    for made, wants in enumerate(wanted, 1):
        hedging.earn()
        taken += sum(hedging.take() for _ in range(wants))
        assert taken <= 1 + made // 10 + 1


# --- for people ------------------------------------------------------------------------------------


def test_of_a_url_only_the_host_is_shown() -> None:
    one = NodeUrl(f"https://user:{SECRET}@node.test:8443/{SECRET}?k={SECRET}#{SECRET}")
    state = Endpoint.of(one).state(at(0))
    assert state.host == "node.test:8443"
    assert SECRET not in repr((one, Endpoint.of(one), state))


def test_every_condition_is_told() -> None:
    well, rests, waits, other, spent = endpoints({}, {}, {}, {}, {"calls_per_day": 1})
    rests.failed("it took too long", at(0), 0)
    waits.told_to_wait("it limits its calls", at(0))
    other.told_other_chain("it is of chain 1, not 4663", at(0))
    spent.take(1, at(0))
    well.does_not_serve(SIMULATES, at(0))
    assert [(s.condition, s.why) for s in (e.state(at(0)) for e in (well, rests, waits, other, spent))] == [
        ("ok", ""),
        ("resting", "it took too long"),
        ("told to wait", "it limits its calls"),
        ("another chain", "it is of chain 1, not 4663"),
        ("budget spent", ""),
    ]
    assert well.state(at(0)).lacks == (SIMULATES,)
    assert well.state(at(600)).lacks == ()


# --- one request -----------------------------------------------------------------------------------


def test_guards_ask_for_the_chain_where_due_and_for_the_last_block_of_logs() -> None:
    logs = [RpcCall("eth_getLogs", [{"fromBlock": "0x1", "toBlock": end}]) for end in ("0x9", "0x9", "0x8")]
    odd = [RpcCall("eth_getLogs", []), RpcCall("eth_getLogs", [{"toBlock": "latest"}])]
    found = [(call.method, call.params) for call in guards([*logs, *odd], True)]
    assert found == [
        ("eth_chainId", []),
        ("eth_getBlockByNumber", ["0x8", False]),
        ("eth_getBlockByNumber", ["0x9", False]),
    ]
    assert guards([RpcCall("eth_chainId", [])], True) == []
    assert guards([RpcCall("eth_call", [])], False) == []


def asking(calls: int = 2) -> Asking:
    return Asking([RpcCall("eth_call", [])] * calls, 5.0, True)


def test_what_nobody_settled_is_the_first_ones_error() -> None:
    one = asking()
    one.settled[0] = raw("a")
    one.said[1] = RpcError(-32000, "header not found")
    one.failed(NodeFault("dead"))
    assert one.answers() == [raw("a"), RpcError(-32000, "header not found")]


def test_where_nobody_said_anything_the_first_fault_is_told_but_for_a_size() -> None:
    one = asking()
    one.failed(NodeFault("first"))
    one.failed(NodeFault("second"))
    with pytest.raises(NodeFault, match="first"):
        one.answers()
    one.failed(NodeAnswerTooLarge("large"))
    with pytest.raises(NodeAnswerTooLarge):
        one.answers()


def test_only_trips_one_after_another_count() -> None:
    one = asking()
    for beside in (False, True, False):
        runner = Runner(0, [0], 0.0, 1.0, beside, [], [], False)
        runner.meter.trips, runner.meter.calls = 1, 5
        one.over.append(runner)
    meter = Meter()
    one.count(meter)
    assert (meter.trips, meter.calls) == (2, 15)


# --- everything at once ----------------------------------------------------------------------------


class Standing(RuleBasedStateMachine):
    """Requests are made one after another of whoever is chosen, with every kind of answer."""

    @initialize(
        limits=st.lists(
            st.fixed_dictionaries(
                {
                    "calls_per_second": st.sampled_from([0, 1, 7, 50]),
                    "calls_per_day": st.sampled_from([0, 90]),
                }
            ),
            min_size=1,
            max_size=4,
        )
    )
    def begin(self, limits: list[dict[str, Any]]) -> None:
        self.them = endpoints(*limits)
        self.now_s = 0.0
        self.sent: list[list[tuple[float, int]]] = [[] for _ in limits]
        self.days: list[dict[int, int]] = [{} for _ in limits]

    @rule(seconds=st.sampled_from([0.0, 0.01, 0.5, 1.0, 30.0, 61.0, 86_400.0]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    @rule(
        calls=st.integers(1, 30),
        simulates=st.booleans(),
        outcome=st.sampled_from(
            ["answers", "fails", "limits", "retry", "lacks", "behind", "large", "chain", "late"]
        ),
    )
    def ask(self, calls: int, simulates: bool, outcome: str) -> None:
        now = at(self.now_s)
        methods = SIMULATIONS if simulates else READS
        choice = choose(self.them, methods, calls, now, 5.0)
        well = [
            one
            for one in self.them
            if not one.rests(now)
            and now.steady_s >= one.waits_until_s
            and not one.lacks(methods, now)
            and one.affords(calls, now)
            and one.wait_s(calls, now) <= 5.0
        ]
        if choice is None:
            assert not well
            return
        one = self.them[choice.number]
        assert choice.well == (one in well)
        assert not well or one in well, "a resting node is asked only where no other is well"
        if choice.wait_s:
            self.now_s += choice.wait_s
            now = at(self.now_s)
            assert one.wait_s(calls, now) == 0, "what was said to be long enough is"
        assert now.steady_s >= one.waits_until_s, "who asked to be left alone is left alone"
        one.take(calls, now)
        day = int(now.wall_s // DAY_S)
        self.sent[choice.number].append((self.now_s, calls))
        self.days[choice.number][day] = self.days[choice.number].get(day, 0) + calls
        self.comes(one, outcome, calls, now)

    def comes(self, one: Endpoint, outcome: str, calls: int, now: Moment) -> None:
        if outcome == "answers":
            one.answered(0.1, False)
            one.told_chain(now)
        elif outcome == "fails":
            one.failed("why", now, 0.5)
        elif outcome == "limits":
            one.told_to_wait("why", now)
        elif outcome == "retry":
            one.told_to_wait("why", now, 20)
        elif outcome == "lacks":
            one.does_not_serve(SIMULATES, now)
        elif outcome == "behind":
            one.is_behind(now)
        elif outcome == "large":
            one.refused_batch(calls, now)
        elif outcome == "chain":
            one.told_other_chain("why", now)
        else:
            one.was_late("why", now, 0.0)

    @invariant()
    def rates_are_kept(self) -> None:
        for one, sent in zip(getattr(self, "them", ()), getattr(self, "sent", ()), strict=True):
            if not one.calls_per_second or not sent:
                continue
            burst = max(1.0, one.calls_per_second * BURST_S)
            end_s = sent[-1][0]
            total = 0
            for when_s, calls in reversed(sent):
                total += calls
                # A request larger than the burst is sent whole, and paid for by those after it.
                most = burst + one.calls_per_second * (end_s - when_s) + max(0, sent[-1][1] - burst)
                assert total <= most + 1e-3

    @invariant()
    def days_are_kept(self) -> None:
        for one, days in zip(getattr(self, "them", ()), getattr(self, "days", ()), strict=True):
            assert all(spent <= (one.budget.calls_per_day or math.inf) for spent in days.values())

    @invariant()
    def batches_stay_within_bounds(self) -> None:
        for one in getattr(self, "them", ()):
            assert 1 <= one.calls_a_request(at(self.now_s)) <= one.most_calls


TestStanding = Standing.TestCase
TestStanding.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
