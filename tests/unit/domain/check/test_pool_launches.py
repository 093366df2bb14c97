"""Launches straight into a pool: how full they are, and that they change nothing of a verdict."""

from dataclasses import replace
from random import Random

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import AnyLaunch, Evidence, Missing, PoolLaunch
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.verdict import judge
from unit.domain.builders import ABSENT, DRY, LIQUID, NODE, evidence, no_trade, refused_buys, venue
from unit.domain.completions import World, some_evidence
from unit.domain.launches import POOL_LAUNCH, THRESHOLD_RAW

FULL = replace(POOL_LAUNCH, principal_raw=THRESHOLD_RAW, graduated=True)
SILENT = replace(POOL_LAUNCH, principal_raw=None, threshold_raw=None)
EVERY = pytest.mark.parametrize("known", [POOL_LAUNCH, FULL, SILENT], ids=["under way", "full", "silent"])


@pytest.mark.parametrize(
    ("principal", "threshold", "graduated", "fill"),
    [
        (0, 100, False, 0), (1, 100, False, 100), (99_999, 100_000, False, 9_999), (100, 100, False, BPS),
        (2**255, 1, False, BPS), (0, 0, False, BPS), (3, 100, True, BPS), (None, None, True, BPS),
        (None, 100, False, None), (5, None, False, None),
    ],
)  # fmt: skip
def test_how_full_it_is(principal: int | None, threshold: int | None, graduated: bool, fill: int) -> None:
    known = replace(POOL_LAUNCH, principal_raw=principal, threshold_raw=threshold, graduated=graduated)
    assert known.fill_bps() == fill


def judged(found: Evidence, known: AnyLaunch | Missing | None) -> tuple[object, ...]:
    whole = replace(found, launch=known)
    judgement = judge(whole, POLICY)
    return judgement.verdict, judgement.best, raised_flags(JudgedCheck(whole, judgement, POLICY))


@EVERY
@pytest.mark.parametrize(
    "found",
    [
        evidence(), evidence(venue()), evidence(no_trade(ABSENT)), evidence(no_trade(DRY)),
        evidence(no_trade(LIQUID, refused_buys())), evidence(no_trade(NODE)),
    ],
    ids=["nowhere", "sound", "absent", "dry", "refused", "a gap"],
)  # fmt: skip
def test_it_changes_nothing_of_verdict_words_and_flags(found: Evidence, known: PoolLaunch) -> None:
    assert judged(found, known) == judged(found, None)


@EVERY
def test_it_changes_nothing_while_pieces_are_missing(known: PoolLaunch) -> None:
    for seed in range(200):
        found = some_evidence(Random(seed), 3, 2, World())
        assert judged(found, known) == judged(found, None)
