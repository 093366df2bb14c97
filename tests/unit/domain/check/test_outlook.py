"""What could change a verdict: nothing that was not seen is claimed, and nothing found is no promise."""

from dataclasses import replace

import pytest

from evidence.corpus import documents
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import (
    Curve,
    Evidence,
    HolderSell,
    HolderSells,
    LaunchRecord,
    Missing,
    OwnerCalls,
    ProbeCell,
    RefusedCall,
    Sold,
)
from roundtrip.domain.check.outlook import WORST_FIRST, describe_deep_round, prospects
from roundtrip.domain.check.verdict import judge
from unit.domain.owners import call

GAP = Missing("node", "it took too long")
SOMEBODY = Address("0x" + "5b" * 20)


def kept(name: str) -> Evidence:
    return canonical_json.load(Evidence, documents()[name])


def list_prospects(evidence: Evidence, *topics: str) -> list[tuple[str, str]]:
    """Standing and sentence of what is told of these."""
    found = prospects(evidence, judge(evidence, POLICY), POLICY)
    return [(one.standing, one.text) for one in found if not topics or one.topic in topics]


def with_facts(evidence: Evidence, **facts: object) -> Evidence:
    return replace(evidence, facts=replace(evidence.facts, **facts))  # type: ignore[arg-type]


def control(evidence: Evidence) -> Sold:
    """A sell of its that went through."""
    return next(cell.outcome for cell in evidence.venues[0].cells if isinstance(cell.outcome, Sold))


@pytest.mark.parametrize("name", documents())
def test_the_worst_stands_first_and_nothing_found_is_no_promise(name: str) -> None:
    found = list_prospects(kept(name))
    order = [WORST_FIRST.index(standing) for standing, _ in found]
    assert order == sorted(order)
    assert all("no promise" in text for standing, text in found if standing == "not_found")
    assert all(text.endswith(".") and "Missing" not in text for _, text in found)


@pytest.mark.parametrize(
    ("owner", "standing", "words"),
    [
        (None, "not_found", "names no owner"),
        (ZERO_ADDRESS, "not_found", "burn address"),
        (GAP, "not_known", "could not find out whether it has an owner: it took too long"),
        (SOMEBODY, "may", f"has an owner, {SOMEBODY}"),
    ],
)
def test_an_owner_is_told_of_as_far_as_it_is_known(owner: object, standing: str, words: str) -> None:
    found = list_prospects(with_facts(kept("plain"), owner=owner), "owner")
    assert found[0][0] == standing
    assert words in found[0][1]
    # Only of who may act is there something that was not tried.
    assert any(one == "not_tried" for one, _ in found) is (owner == SOMEBODY)


@pytest.mark.parametrize(
    ("admin", "standing"),
    [(None, "not_found"), (ZERO_ADDRESS, "not_found"), (GAP, "not_known"), (SOMEBODY, "may")],
)
def test_code_that_can_be_exchanged_is_told(admin: object, standing: str) -> None:
    assert [one for one, _ in list_prospects(with_facts(kept("plain"), proxy_admin=admin), "code")] == [
        standing
    ]


def test_what_the_owners_calls_came_to() -> None:
    owned = with_facts(kept("plain"), owner=SOMEBODY)
    sold = control(owned)
    harmless, stops = call(sold, "f()"), call(RefusedCall("sell", None, 0), "pause()")
    for calls, standing, words in (
        (OwnerCalls(0, sold, (harmless,)), "not_found", "That is no promise"),
        (OwnerCalls(0, sold, (harmless, stops)), "can", "can stop you from selling (function pause())"),
        (OwnerCalls(0, sold, (harmless, call(GAP, "g()"))), "not_known", "could not find out"),
        (OwnerCalls(0, sold, (harmless,), left_out=2), "not_known", "were not tried"),
        (OwnerCalls(0, GAP, (harmless,)), "not_known", "could not find out"),
        (GAP, "not_known", "could not find out"),
    ):
        (found,) = [
            one
            for one in list_prospects(replace(owned, owner_calls=calls), "owner")
            if "reserves for it" not in one[1]
        ]
        assert found[0] == standing, calls
        assert words in found[1]


def test_real_holders_are_told_of_as_far_as_they_were_tried() -> None:
    plain = kept("plain")
    sold = control(plain)
    fair, caught = HolderSell(SOMEBODY, 1, sold), HolderSell(SOMEBODY, 1, RefusedCall("sell", None, 0))
    for held, standing in (
        (None, "not_tried"),
        (GAP, "not_known"),
        (HolderSells(0, sold, 3, ()), "not_known"),
        (HolderSells(0, sold, 3, (fair, HolderSell(SOMEBODY, 1, GAP))), "not_known"),
        (HolderSells(0, sold, 3, (fair, fair)), "not_found"),
        (HolderSells(0, sold, 3, (fair, caught)), "can"),
    ):
        found = list_prospects(replace(plain, holder_sells=held), "holders")
        assert [one for one, _ in found] == [standing], held


def test_no_longer_time_is_told_than_was_tried() -> None:
    plain = kept("plain")
    (venue,) = plain.venues
    assert "at most 1 day before" in list_prospects(plain, "time")[0][1]
    cells = tuple(
        ProbeCell(cell.probe, GAP) if cell.probe.delay_s >= POLICY.day_s else cell for cell in venue.cells
    )
    assert (
        "at most 1 hour before"
        in list_prospects(replace(plain, venues=(replace(venue, cells=cells),)), "time")[0][1]
    )
    cells = tuple(ProbeCell(cell.probe, GAP) for cell in venue.cells)
    assert list_prospects(replace(plain, venues=(replace(venue, cells=cells),)), "time") == []


def test_pools_that_were_not_looked_at_are_told() -> None:
    plain = replace(kept("plain"), left_out=3, candidates_complete=False)
    found = list_prospects(plain, "pool")
    assert [standing for standing, _ in found] == ["not_tried", "not_tried"]
    assert "3 more pools that the check left out" in found[0][1]
    assert list_prospects(replace(plain, left_out=0, candidates_complete=True), "pool") == []


def test_a_check_that_ran_out_of_its_time_does_not_say_that_there_is_no_pool() -> None:
    unproven = kept("plain_without_its_pool")
    assert unproven.candidates_complete
    assert list_prospects(unproven, "pool") == [
        ("not_known", "We could not find out whether a pool trades it: it took too long.")
    ]
    assert list_prospects(kept("no_pool"), "pool")[0][1].startswith("A pool can open at any time")


def test_a_launch_in_its_first_seconds_says_when_they_end() -> None:
    evidence = kept("curve")
    assert isinstance(evidence.launch, LaunchRecord)
    state = evidence.launch.curve_state
    assert isinstance(state, Curve)
    first = replace(state, snipe_bps=4000, launched_at_s=evidence.block.timestamp_s - 1, snipe_seconds=3)
    for young, words in (
        (first, "2 s after this block"),
        (replace(first, snipe_seconds=None), "at an unknown time"),
    ):
        found = list_prospects(
            replace(evidence, launch=replace(evidence.launch, curve_state=young)), "launch"
        )
        assert any("40.00 %" in text and words in text for _, text in found)
    assert not any("first buyers" in text for _, text in list_prospects(evidence, "launch"))


@pytest.mark.parametrize(
    ("name", "deep", "text"),
    [
        ("plain", False, ""),
        ("plain", True, "found no owner whose functions it could call and knows no real holder to sell as."),
        ("owner_only_sell", False, "It cannot be sold, so neither"),
        ("owner_only_sell", True, "It cannot be sold, so neither"),
        ("paused", True, "It cannot be bought, so neither"),
        ("no_pool", True, "There is no pool, so neither"),
        ("plain_without_first_sell", False, ""),
        ("plain_without_first_sell", True, "ended before its last round"),
    ],
)
def test_what_the_deep_round_tried_is_what_it_could(name: str, deep: bool, text: str) -> None:
    evidence = kept(name)
    found = describe_deep_round(evidence, judge(evidence, POLICY), deep, POLICY)
    assert text in found
    assert bool(found) == bool(text)


def test_the_deep_round_counts_what_it_tried() -> None:
    evidence = kept("plain")
    sold = control(evidence)
    evidence = replace(
        evidence, owner_calls=OwnerCalls(0, sold, ()), holder_sells=HolderSells(0, sold, 5, ())
    )
    found = describe_deep_round(evidence, judge(kept("plain"), POLICY), True, POLICY)
    assert found == "This deep check called 0 functions of its owner and sold as 0 real holders."
