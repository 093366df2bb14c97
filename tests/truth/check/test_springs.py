"""A few tokens that spring on some wallets only, always the same ones: traps are caught, others are no trap.

``make long NAME=springs`` tries hundreds of others.
"""

from dataclasses import replace

import pytest

from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from truth import springs
from truth.run_springs import faults, may_catch
from truth.spring_trial import tried
from truth.springs import SPRINGS, drawn, parse

SEED = 4663
CAUGHT = (
    "address, 1 in 2",
    "marked at the buy, 1 in 2",
    "sender holds more eth",
    "sender holds less eth",
    "seller holds usdg",
    "seller holds weth",
    "bought twice",
    "after others bought",
    "after others sold",
    "address, 1 in 8",
    "marked at the buy, 1 in 8",
    "only soon after the buy",
)
NO_TRAPS = (
    "plain",
    "sale above",
    "sale below",
    "bought above",
    "tip",
    "unbounded approval",
    "not by Permit2",
    "not by SwapRouter02",
    "hours",
    "day of the week",
    "only a day after the buy",
    *(name for name, row in SPRINGS.items() if row.label == "honest"),
)


@pytest.mark.parametrize("name", CAUGHT)
async def test_a_trap_for_some_wallets_is_caught_by_three_checks(
    rpc: SyncRpc, built: Built, name: str
) -> None:
    (case,) = drawn(1, SEED, (name,))
    trial = await tried(rpc, built, case, checks=3)
    assert not trial.otherwise
    assert any(trial.caught()), trial.results


@pytest.mark.parametrize("name", NO_TRAPS)
async def test_what_a_trader_can_choose_is_no_trap(rpc: SyncRpc, built: Built, name: str) -> None:
    (case,) = drawn(1, SEED, (name,))
    trial = await tried(rpc, built, case, checks=1)
    assert not faults(trial)


async def test_a_label_that_wallets_do_not_meet_is_named(rpc: SyncRpc, built: Built) -> None:
    (case,) = drawn(1, SEED, ("day of the week",))
    trial = await tried(rpc, built, replace(case, x=3), checks=0)
    assert "bps back" in trial.otherwise


@pytest.mark.parametrize(
    ("missed", "of", "may"), [(2, 18, True), (5, 18, False), (0, 6, True), (70, 960, False), (60, 960, True)]
)
def test_a_run_is_below_its_bar_where_chance_does_not_explain_it(missed: int, of: int, may: bool) -> None:
    assert may_catch(0.95, [False] * missed + [True] * (of - missed)) is may


def test_a_case_is_read_as_it_was_written() -> None:
    cases = drawn(4 * len(SPRINGS), SEED)
    assert {case.spring for case in cases} == set(SPRINGS)
    assert all(parse(case.text()) == case for case in cases)


def test_the_kinds_are_those_of_the_contract() -> None:
    lines = (PROJECT / "contracts" / "truth" / "springs.vy").read_text().splitlines()
    kinds = [line.split(":")[0] for line in lines if ": constant(uint256) = " in line]
    assert [getattr(springs, kind) for kind in kinds] == list(range(1, len(kinds) + 1))
