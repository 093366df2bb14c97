"""A withdrawal counts only where its last call succeeds in every simulation."""

from roundtrip.chain.simulate.request import PlannedBlock, SimulatedStep, StepResult
from roundtrip.domain.check.evidence import Missing
from roundtrip.services.liquidity.findings import count_withdrawn
from roundtrip.venues.base import Call
from unit.venues.network import BELOW

LABELS = ("withdraw-0-0", "withdraw-0-1", "withdraw-1-0")
BLOCK = PlannedBlock(1, tuple(SimulatedStep(label, BELOW, Call(BELOW, "0x"), 1) for label in LABELS))


def results(*refused: str) -> dict[str, StepResult]:
    return {label: StepResult(label not in refused, 1, b"", False) for label in LABELS}


def test_a_position_is_withdrawn_where_its_last_call_succeeds() -> None:
    assert count_withdrawn(BLOCK, [results(), results()]) == 2
    assert count_withdrawn(BLOCK, [results("withdraw-0-0")]) == 2
    assert count_withdrawn(BLOCK, [results(), results("withdraw-0-1")]) == 1
    assert count_withdrawn(BLOCK, [results("withdraw-0-1", "withdraw-1-0"), Missing("node", "")]) == 0
    assert count_withdrawn(PlannedBlock(1, ()), [results()]) == 0
