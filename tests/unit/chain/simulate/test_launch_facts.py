"""What the launchpad says of a token, from hand-made answers of its factory, hook and curve."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from roundtrip.chain.rpc.client import RpcError
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.request import Results, StepResult
from roundtrip.chain.simulate.token_facts import facts_plan, read_launch, read_pool_facts, snipe_call
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import Curve, LaunchRecord, Missing
from roundtrip.venues import amm_v3, launchpad_curve
from unit.chain.launch_records import CURVE, DEPLOYER, TOKEN, record
from unit.chain.samples import ENVIRONMENT, PINNED, did, raw, refused, word
from unit.venues.network import ABOVE, CONTRACTS, address

V3 = VenuePlace(amm_v3.candidates(TOKEN, CONTRACTS)[0], amm_v3)
ON_CURVE = VenuePlace(launchpad_curve.curve(ZERO_ADDRESS, CURVE, CONTRACTS), launchpad_curve)
PLACES = (V3, ON_CURVE)
GAP = Missing("node", "the simulation was not run")


VIEWS = (word(3 * 10**18) + word(10**26), *map(word, (10**18, 10**25, 100, 250, 0, 0, 1_760_000_000, 30)))
"""What an open curve answers."""


def launch_results(
    launch: StepResult | None = None, hook_fee: StepResult | None = None, curve_at: int = 1
) -> Results:
    found = {"launch-0-0": launch or did(record()), "launch-0-1": hook_fee or did(30)}
    return found | {f"venue-{curve_at}-{n}": did(view) for n, view in enumerate(VIEWS)}


def snipe(bps: int) -> msgspec.Raw:
    return raw("0x" + word(bps).hex())


STATE = Curve(3 * 10**18, 10**26, 10**18, 10**25, 100, 250, False, 4200, 1_760_000_000, 30)
LAUNCH = LaunchRecord("curve", CURVE, DEPLOYER, ZERO_ADDRESS, 10**18, 0, 200, 100, 5, 30, STATE)


def read(results: Results | Missing, places: tuple[VenuePlace, ...] = PLACES, answer: Any = None) -> Any:
    return read_launch(results, TOKEN, places, snipe(4200) if answer is None else answer, CONTRACTS)


# --- what is asked ---------------------------------------------------------------------------------


def test_the_factory_and_the_hook_are_asked_beside_the_token() -> None:
    steps = {
        s.label: s.call for s in facts_plan(TOKEN, PLACES, CONTRACTS, ENVIRONMENT, POLICY).blocks[0].steps
    }
    asked = keccak(text="getLaunchedToken(address)")[:4] + encode(["address"], [TOKEN])
    assert (steps["launch-0-0"].to, steps["launch-0-0"].data) == (
        CONTRACTS.launchpad_factory,
        "0x" + asked.hex(),
    )
    assert steps["launch-0-1"].to == CONTRACTS.launchpad_hook
    assert [label for label in steps if label.startswith("venue-1-")] == [f"venue-1-{n}" for n in range(9)]
    assert {steps[f"venue-1-{n}"].to for n in range(9)} == {CURVE}


@pytest.mark.parametrize("gone", ["launchpad_factory", "launchpad_hook"])
def test_without_a_launchpad_nobody_is_asked_and_nothing_was_launched(gone: str) -> None:
    bare = replace(CONTRACTS, **{gone: None})  # type: ignore[arg-type]
    labels = [step.label for step in facts_plan(TOKEN, (V3,), bare, ENVIRONMENT, POLICY).blocks[0].steps]
    assert not [label for label in labels if label.startswith("launch")]
    assert read_launch({}, TOKEN, (V3,), None, bare) is None
    assert read_launch(GAP, TOKEN, (V3,), None, bare) is None


def test_the_snipe_tax_is_asked_of_the_curve_for_the_buyer_at_the_pinned_block() -> None:
    call = snipe_call(ON_CURVE, ENVIRONMENT, PINNED)
    data = keccak(text="currentSnipeTaxBps(address)")[:4] + encode(["address"], [ENVIRONMENT.buyer])
    assert call.method == "eth_call"
    assert call.params == [{"to": CURVE, "data": "0x" + data.hex()}, {"blockHash": PINNED.hash}]


# --- the launch ------------------------------------------------------------------------------------


def test_a_launch_on_its_curve_is_read_with_the_curves_state() -> None:
    assert read(launch_results()) == LAUNCH
    assert not LAUNCH.is_between_venues()


@pytest.mark.parametrize(
    "answer",
    [
        did(record(exists=False)), did(record(token=ABOVE)), did(b""), did(bytes(480)), did(record()[:-1]),
        refused(), refused(record()), refused(out_of_gas=True),
    ],
    ids=["not there", "another", "nothing", "zeros", "cut", "reverted", "reverted with it", "no gas"],
)  # fmt: skip
def test_what_has_no_record_was_not_launched(answer: StepResult) -> None:
    assert read(launch_results(answer)) is None


@pytest.mark.parametrize(
    ("number", "phase", "closed"), [(1, "swept", True), (2, "pooled", False), (3, "rescued", True)]
)
def test_after_its_curve_a_launch_has_no_state_of_it(number: int, phase: Any, closed: bool) -> None:
    found = read(launch_results(did(record(number))))
    assert found == replace(LAUNCH, phase=phase, curve_state=None)
    assert found.is_between_venues() is closed


def test_a_simulation_that_was_not_run_tells_of_no_launch_and_of_none_not() -> None:
    assert read(GAP) is GAP


@pytest.mark.parametrize("answer", [refused(), refused(word(30)), did(b""), did(bytes(31))])
def test_a_hook_that_does_not_tell_its_fee_has_none(answer: StepResult) -> None:
    assert read(launch_results(hook_fee=answer)) == replace(LAUNCH, hook_fee_bps=None)


# --- the curve -------------------------------------------------------------------------------------


def test_the_state_is_read_under_the_number_of_the_curve() -> None:
    assert read(launch_results(curve_at=0), (ON_CURVE, V3)) == LAUNCH
    assert read(launch_results(curve_at=1), (V3, ON_CURVE)) == LAUNCH


def test_a_curve_that_is_not_among_the_places_has_no_state() -> None:
    assert read(launch_results(), (V3,)) == replace(LAUNCH, curve_state=None)
    other = VenuePlace(launchpad_curve.curve(ZERO_ADDRESS, address(0xC1), CONTRACTS), launchpad_curve)
    assert read(launch_results(), (V3, other)) == replace(LAUNCH, curve_state=None)


def test_where_the_snipe_tax_was_not_asked_the_state_is_not_known() -> None:
    found = read_launch(launch_results(), TOKEN, PLACES, None, CONTRACTS)
    assert found == replace(LAUNCH, curve_state=None)


@pytest.mark.parametrize("bps", [0, 1, 9900])
def test_the_snipe_tax_is_what_the_curve_says(bps: int) -> None:
    assert read(launch_results(), answer=snipe(bps)) == replace(
        LAUNCH, curve_state=replace(STATE, snipe_bps=bps)
    )


@pytest.mark.parametrize("answer", [RpcError(3, "execution reverted"), raw("0x"), raw("0x12")])
def test_a_curve_that_knows_no_snipe_tax_takes_none(answer: Any) -> None:
    assert read(launch_results(), answer=answer) == replace(LAUNCH, curve_state=replace(STATE, snipe_bps=0))


@pytest.mark.parametrize(
    "answer",
    [
        RpcError(-32000, "header not found"),
        RpcError(),
        RpcError(-32601, "no"),
        raw(5),
        raw("0xzz"),
        raw(None),
    ],
)
def test_a_snipe_tax_that_the_node_does_not_tell_is_missing_by_its_fault(answer: Any) -> None:
    found = read(launch_results(), answer=answer)
    assert isinstance(found.curve_state, Missing)
    assert found.curve_state.fault == "node"
    assert replace(found, curve_state=STATE) == LAUNCH


@pytest.mark.parametrize("number", [0, 3, 4, 6])
@pytest.mark.parametrize("answer", [refused(), did(b"")])
def test_a_curve_that_does_not_answer_like_one_has_no_state(number: int, answer: StepResult) -> None:
    results = launch_results() | {f"venue-1-{number}": answer}
    assert read(results) == replace(LAUNCH, curve_state=None)
    assert read_pool_facts(results, 1, ON_CURVE, TOKEN, CONTRACTS) == PoolFacts(False, 0, 0, 0)


@pytest.mark.parametrize("number", [5, 6])
def test_a_curve_that_is_sold_out_closes_the_launch(number: int) -> None:
    results = launch_results() | {f"venue-1-{number}": did(1)}
    found = read(results)
    assert found.curve_state == replace(STATE, closed=True)
    assert found.is_between_venues()
    assert read_pool_facts(results, 1, ON_CURVE, TOKEN, CONTRACTS) == PoolFacts(False, 0, 0, 0)
    assert read_pool_facts(launch_results(), 1, ON_CURVE, TOKEN, CONTRACTS).exists  # type: ignore[union-attr]
