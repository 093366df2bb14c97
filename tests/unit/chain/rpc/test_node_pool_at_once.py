"""Several nodes against a model, with everything at once."""

import math
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from roundtrip.chain.rpc.client import Meter, NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.chain.rpc.endpoints import BURST_S, SIMULATES, Moment, NodeEndpoint, choose
from roundtrip.chain.rpc.request_race import RequestRace, Runner, guards
from roundtrip.domain.base.errors import NodeFault
from unit.chain.samples import raw
from unit.chain.standing_nodes import DAY_S, READS, SIMULATIONS, at, endpoints


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


def asking(calls: int = 2) -> RequestRace:
    return RequestRace([RpcCall("eth_call", [])] * calls, 5.0, True)


def test_what_nobody_settled_is_the_first_ones_error() -> None:
    one = asking()
    one.settled[0] = raw("a")
    one.node_errors[1] = RpcError(-32000, "header not found")
    one.note_fault(NodeFault("dead"))
    assert one.answers() == [raw("a"), RpcError(-32000, "header not found")]


def test_where_nobody_said_anything_the_first_fault_is_told_but_for_a_size() -> None:
    one = asking()
    one.note_fault(NodeFault("first"))
    one.note_fault(NodeFault("second"))
    with pytest.raises(NodeFault, match="first"):
        one.answers()
    one.note_fault(NodeAnswerTooLarge("large"))
    with pytest.raises(NodeAnswerTooLarge):
        one.answers()


def test_only_trips_one_after_another_count() -> None:
    one = asking()
    for beside in (False, True, False):
        runner = Runner(0, [0], 0.0, 1.0, beside, [], [], False)
        runner.meter.trips, runner.meter.calls = 1, 5
        one.finished.append(runner)
    meter = Meter()
    one.count(meter)
    assert (meter.trips, meter.calls) == (2, 15)


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

    def comes(self, one: NodeEndpoint, outcome: str, calls: int, now: Moment) -> None:
        if outcome == "answers":
            one.note_answer(0.1, False)
            one.note_chain(now)
        elif outcome == "fails":
            one.note_failure("why", now, 0.5)
        elif outcome == "limits":
            one.note_rate_limit("why", now)
        elif outcome == "retry":
            one.note_rate_limit("why", now, 20)
        elif outcome == "lacks":
            one.note_unserved(SIMULATES, now)
        elif outcome == "behind":
            one.note_behind(now)
        elif outcome == "large":
            one.note_batch_refusal(calls, now)
        elif outcome == "chain":
            one.note_other_chain("why", now)
        else:
            one.note_late("why", now, 0.0)

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
