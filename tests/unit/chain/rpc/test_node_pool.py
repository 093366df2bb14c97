"""How a node stands and whom to ask: pure, with the time handed in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.rpc.endpoints import SIMULATES, Hedging, NodeEndpoint, NodeUrl
from unit.chain.standing_nodes import DAY_S, READS, SECRET, SIMULATIONS, at, chosen, endpoints

# --- whom to ask -----------------------------------------------------------------------------------


def test_the_first_that_is_well_is_asked() -> None:
    assert chosen(endpoints({}, {}, {}), at(0)) == (0, 0)


def test_who_was_asked_is_not_asked_again() -> None:
    them = endpoints({}, {})
    assert chosen(them, at(0), asked=frozenset({0})) == (1, 0)
    assert chosen(them, at(0), asked=frozenset({0, 1})) is None


def test_a_resting_node_is_asked_last_and_the_one_whose_rest_ends_first_before_the_other() -> None:
    them = endpoints({}, {}, {})
    them[0].note_failure("why", at(0), 0)
    assert chosen(them, at(0.5)) == (1, 0)
    them[1].note_failure("why", at(0.1), 0)
    them[2].note_failure("why", at(0.2), 0)
    assert chosen(them, at(0.5)) == (0, 0)


def test_rests_double_up_to_a_minute_and_chance_shortens_them_by_half_at_most() -> None:
    one, now_s = endpoints({})[0], 0.0
    rests: list[float] = []
    for _ in range(9):
        one.note_failure("why", at(now_s), 0)
        rests.append(one.rests_until_s - now_s)
        now_s = one.rests_until_s
    assert rests == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    one.note_failure("why", at(now_s), 1.0)
    assert one.rests_until_s - now_s == 30


def test_after_its_rest_one_request_finds_out_whether_it_is_well() -> None:
    them = endpoints({}, {})
    them[0].note_failure("why", at(0), 0)
    assert chosen(them, at(1.0)) == (0, 0)
    them[0].under_way = 1
    assert chosen(them, at(1.0)) == (1, 0)
    them[0].note_answer(0.1, False)
    assert chosen(them, at(1.0)) == (0, 0)


def test_a_node_that_is_told_to_wait_is_not_asked_at_all() -> None:
    (one,) = endpoints({})
    one.note_rate_limit("why", at(0), 30)
    assert chosen([one], at(1)) is None
    assert chosen([one], at(29), within_s=5.0) == (0, 1.0)


@pytest.mark.parametrize(("told_s", "waits_s"), [(None, 1), (0, 1), (7, 7), (120, 120), (10**9, 120)])
def test_retry_after_is_honoured_within_a_bound(told_s: int | None, waits_s: float) -> None:
    (one,) = endpoints({})
    one.note_rate_limit("why", at(5), told_s)
    assert one.waits_until_s == 5 + waits_s


def test_being_told_to_wait_again_and_again_waits_longer() -> None:
    (one,) = endpoints({})
    waits: list[float] = []
    for _ in range(8):
        one.note_rate_limit("why", at(one.waits_until_s if waits else 0), None)
        waits.append(one.waits_until_s)
    assert waits == [1, 3, 7, 15, 31, 63, 123, 183]


def test_who_lacks_a_method_is_asked_for_others_and_for_it_only_where_nobody_else_is_left() -> None:
    them = endpoints({}, {})
    them[0].note_unserved(SIMULATES, at(0))
    assert chosen(them, at(1)) == (0, 0)
    assert chosen(them, at(1), SIMULATIONS) == (1, 0)
    them[1].note_failure("why", at(1), 0)
    assert chosen(them, at(1), SIMULATIONS) == (1, 0)
    assert chosen(them, at(1), SIMULATIONS, asked=frozenset({1})) == (0, 0)
    assert chosen(them, at(600), SIMULATIONS) == (0, 0)


def test_who_speaks_another_dialect_is_never_asked_to_simulate() -> None:
    them = endpoints({}, {})
    them[0].note_dialect(False, at(0))
    assert chosen(them, at(0), SIMULATIONS) == (1, 0)
    assert chosen(them, at(0), SIMULATIONS, asked=frozenset({1})) is None
    assert chosen(them, at(0), READS) == (0, 0)
    assert them[0].state(at(0)).condition == "simulates otherwise"


def test_who_spoke_otherwise_once_is_heard_again() -> None:
    them = endpoints({}, {})
    them[0].note_dialect(False, at(0))
    assert chosen(them, at(59), SIMULATIONS) == (1, 0)
    assert chosen(them, at(61), SIMULATIONS) == (0, 0)
    assert them[0].state(at(61)).condition == "ok"


def test_a_node_of_another_chain_waits_and_comes_behind_all_others_then() -> None:
    them = endpoints({}, {})
    them[0].note_other_chain("chain 1", at(0))
    assert chosen(them, at(59), within_s=0.5) == (1, 0)
    assert chosen(them, at(61)) == (1, 0)
    assert chosen(them, at(61), asked=frozenset({1})) == (0, 0)
    assert them[0].chain_is_due(at(61))
    them[0].note_chain(at(62))
    assert chosen(them, at(63)) == (0, 0)


def test_the_chain_is_asked_at_first_and_every_half_minute_and_after_a_fault() -> None:
    (one,) = endpoints({})
    assert one.chain_is_due(at(0))
    one.note_chain(at(0))
    assert not one.chain_is_due(at(29.9))
    assert one.chain_is_due(at(30))
    one.note_chain(at(30))
    one.note_failure("why", at(31), 0)
    assert one.chain_is_due(at(31))


def test_a_node_that_is_well_and_has_no_room_is_waited_for_before_a_resting_one_is_asked() -> None:
    them = endpoints({"calls_per_second": 10}, {})
    them[0].take(20, at(0))
    assert chosen(them, at(0)) == (1, 0)
    them[1].note_failure("why", at(0), 0)
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
        one.note_batch_refusal(48, at(0))
    assert one.calls_a_request(at(1)) == 24
    one.note_batch_refusal(24, at(1))
    assert one.calls_a_request(at(2)) == 12
    one.note_batch_refusal(1, at(2))
    assert one.calls_a_request(at(2)) == 1


def test_it_grows_again_by_doubling_and_no_further_than_it_was_set() -> None:
    (one,) = endpoints({"calls_a_request": 40})
    assert one.calls_a_request(at(0)) == 40
    one.note_batch_refusal(40, at(0))
    assert [one.calls_a_request(at(s)) for s in (599, 600, 700, 1200)] == [20, 40, 40, 40]


# --- lateness --------------------------------------------------------------------------------------


def test_nothing_is_late_before_enough_is_known() -> None:
    (one,) = endpoints({})
    for _ in range(7):
        one.note_answer(0.1, False)
    assert one.hedge_after_s(False) is None
    one.note_answer(0.1, False)
    assert one.hedge_after_s(False) == 0.2
    assert one.hedge_after_s(True) is None


def test_one_slow_answer_in_twenty_moves_nothing() -> None:
    (one,) = endpoints({})
    for number in range(100):
        one.note_answer(5.0 if number % 20 == 0 else 0.05, False)
    assert one.hedge_after_s(False) == 0.1


def test_what_is_fast_is_never_hedged_at_once() -> None:
    (one,) = endpoints({})
    for _ in range(10):
        one.note_answer(0.0001, False)
    assert one.hedge_after_s(False) == 0.01


def test_late_once_is_chance_and_three_times_a_fault() -> None:
    (one,) = endpoints({})
    one.note_late("late", at(0), 0)
    one.note_late("late", at(0), 0)
    one.note_answer(0.1, False)
    one.note_late("late", at(0), 0)
    one.note_late("late", at(0), 0)
    assert not one.rests(at(0))
    one.note_late("late", at(0), 0)
    assert one.rests(at(0))


def test_plain_answers_do_not_clear_a_node_that_hangs_on_simulations() -> None:
    (one,) = endpoints({})
    one.note_failure("why", at(0), 0, heavy=True)
    one.note_answer(0.1, False)
    assert (one.faults, one.rests(at(0.5))) == (1, True)
    one.note_answer(0.1, True)
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
    state = NodeEndpoint.of(one).state(at(0))
    assert state.host == "node.test:8443"
    assert SECRET not in repr((one, NodeEndpoint.of(one), state))


def test_every_condition_is_told() -> None:
    well, rests, waits, other, spent = endpoints({}, {}, {}, {}, {"calls_per_day": 1})
    rests.note_failure("it took too long", at(0), 0)
    waits.note_rate_limit("the node limits our calls", at(0))
    other.note_other_chain("it is of chain 1, not 4663", at(0))
    spent.take(1, at(0))
    well.note_unserved(SIMULATES, at(0))
    assert [(s.condition, s.why) for s in (e.state(at(0)) for e in (well, rests, waits, other, spent))] == [
        ("ok", ""),
        ("resting", "it took too long"),
        ("told to wait", "the node limits our calls"),
        ("another chain", "it is of chain 1, not 4663"),
        ("budget spent", ""),
    ]
    assert well.state(at(0)).lacks == (SIMULATES,)
    assert well.state(at(600)).lacks == ()
