"""Two hundred composed tokens, always the same ones: the verdict is what real wallets meet.

``make truth`` tries thousands of others.
"""

from collections import Counter
from functools import cache

import pytest

from conftest import PROJECT
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from truth.cases import FIELDS, Case, drawn, parse
from truth.run import table
from truth.trial import Trial, tried

CASES, PARTS, SEED = 200, 10, 4663


@cache
def _cases() -> list[Case]:
    return drawn(CASES, SEED)


_SEEN: list[Trial] = []


@pytest.mark.parametrize("part", range(PARTS))
async def test_the_verdict_is_what_wallets_meet(rpc: SyncRpc, built: Built, part: int) -> None:
    trials = [await tried(rpc, built, case) for case in _cases()[part::PARTS]]
    _SEEN.extend(trials)
    wrong = [trial for trial in trials if not trial.agrees() or trial.false_ok() or trial.false_trap()]
    assert not wrong, "\n\n".join(trial.story() for trial in wrong)
    otherwise = [trial for trial in trials if trial.cells]
    assert not otherwise, "\n\n".join(trial.story() for trial in otherwise)


def test_the_cases_are_of_every_kind() -> None:
    """Otherwise two hundred verdicts that agree would prove little."""
    cases = _cases()
    assert len(cases) == CASES
    behaviours = Counter(name for case in cases for name, _ in case.on)
    assert set(behaviours) == set(FIELDS)
    assert {(p.version, p.quote) for case in cases for p in case.pools} == {
        (3, "weth"), (3, "usdg"), (4, "eth"), (4, "weth"), (4, "usdg"),
    }  # fmt: skip
    assert all(parse(case.text()) == case for case in cases)


def test_the_cases_come_to_every_verdict() -> None:
    if len(_SEEN) < CASES:
        pytest.skip("only where all of them were tried")
    codes = {trial.said[0] for trial in _SEEN}
    assert codes == {
        "ok", "toll_pool", "thin_pool", "high_fees", "heavy_fees", "cannot_sell", "cannot_buy", "empty_pool",
    }, table(_SEEN)  # fmt: skip
    assert {trial.said[1] for trial in _SEEN if trial.said[0] == "ok"} == {"ok", "warn"}


def test_the_fields_are_those_of_the_contract() -> None:
    source = (PROJECT / "contracts" / "truth" / "composed.vy").read_text()
    struct = source[source.index("struct Behaviours:") : source.index("# 10**27 is one.")]
    names = [line.split(":")[0].strip() for line in struct.splitlines()[1:] if ": uint256" in line]
    assert tuple(names) == FIELDS
