"""How long one answer is shared by everybody who asks."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import Curve, LaunchRecord, Missing, OwnerCalls
from roundtrip.services.check.handler import _ends_at, _ttl_ms
from unit.domain.builders import ITS_OWN, NODE, sold
from unit.domain.launches import NOW_S, gone, launch, launched, state
from unit.domain.owners import call

MAX_MS, FAULT_MS, DEEP_MS = 15_000, 2_000, 60_000


def taxed(left_s: int | None) -> Curve:
    """A curve whose tax of the first seconds lasts so much longer."""
    if left_s is None:
        return state(snipe_bps=618, snipe_seconds=None)
    return state(snipe_bps=618, launched_at_s=NOW_S - 60, snipe_seconds=60 + left_s)


def shared_ms(curve_state: Curve | Missing | None, node_fault: bool = False) -> int:
    return _ttl_ms(launched(launch(curve_state)), node_fault, POLICY)


def test_the_policy_has_what_is_promised() -> None:
    assert (POLICY.answer_ttl_ms, POLICY.node_fault_ttl_ms) == (MAX_MS, FAULT_MS)


@pytest.mark.parametrize(
    ("left_s", "ms"),
    [(-9, 1000), (0, 1000), (1, 1000), (2, 2000), (3, 3000), (14, 14_000), (15, MAX_MS), (16, MAX_MS),
     (10**9, MAX_MS), (None, 1000)],
)  # fmt: skip
def test_an_answer_ends_with_the_tax_it_speaks_of(left_s: int | None, ms: int) -> None:
    assert shared_ms(taxed(left_s)) == ms


@pytest.mark.parametrize(
    ("curve", "code", "ends_s"),
    [(taxed(9), "heavy_fees", 9), (taxed(9), "ok", 9), (taxed(None), "high_fees", 60),
     (taxed(9), "cannot_sell", None), (state(), "ok", None), (None, "ok", None)],
)  # fmt: skip
def test_a_stored_verdict_ends_with_the_tax_it_speaks_of(
    curve: Curve | None, code: str, ends_s: int | None
) -> None:
    ends_at = _ends_at(launched(launch(curve)), code, 1_000.0)
    assert (None if ends_at is None else ends_at.timestamp() - 1_000) == ends_s


@pytest.mark.parametrize(("left_s", "ms"), [(0, 1000), (1, 1000), (2, 2000), (3, 2000), (None, 1000)])
def test_the_nodes_fault_is_shared_two_seconds_at_most(left_s: int | None, ms: int) -> None:
    assert shared_ms(taxed(left_s), node_fault=True) == ms


@pytest.mark.parametrize("known", [None, NODE, launch(), launch(NODE), launch(None), gone("swept"),
                                   gone("pooled"), launch(state(snipe_seconds=None))])  # fmt: skip
def test_without_a_tax_an_answer_is_shared_as_long_as_any(known: LaunchRecord | Missing | None) -> None:
    assert _ttl_ms(launched(known), False, POLICY) == MAX_MS
    assert _ttl_ms(launched(known), True, POLICY) == FAULT_MS


def test_a_deep_answer_is_shared_for_a_minute_and_no_longer_than_the_tax_it_speaks_of() -> None:
    assert POLICY.deep_ttl_ms == DEEP_MS
    assert _ttl_ms(launched(launch()), False, POLICY, deep=True) == DEEP_MS
    assert _ttl_ms(launched(launch(taxed(20))), False, POLICY, deep=True) == 20_000
    assert _ttl_ms(launched(launch()), True, POLICY, deep=True) == FAULT_MS


@pytest.mark.parametrize(
    ("known", "ms"),
    [
        (NODE, FAULT_MS),
        (ITS_OWN, DEEP_MS),
        (OwnerCalls(0, NODE, ()), FAULT_MS),
        (OwnerCalls(0, sold(), ()), DEEP_MS),
        (OwnerCalls(0, sold(), (call(NODE),)), FAULT_MS),
        (OwnerCalls(0, sold(), (call(ITS_OWN), call(None), call(sold()))), DEEP_MS),
    ],
)
def test_what_the_node_kept_back_of_an_owners_calls_is_asked_again_soon(
    known: OwnerCalls | Missing, ms: int
) -> None:
    answer = replace(launched(launch()), owner_calls=known)
    assert _ttl_ms(answer, False, POLICY, deep=True) == ms


def test_the_tax_ends_by_the_time_of_the_block_that_was_looked_at() -> None:
    two_left = state(snipe_bps=19, launched_at_s=NOW_S - 1, snipe_seconds=3)
    assert shared_ms(two_left) == 2000
