"""Several plans in one simulation, and blocks with the calls of several."""

from dataclasses import replace

from msgspec import structs

from roundtrip.chain.simulate.request import PlannedBlock, join_plans, merge_blocks, results_of
from unit.chain.crowds import alone, wallet
from unit.chain.samples import did
from unit.chain.trades import WETH, WHOLE, sold_by, steps_of
from unit.venues.network import address

FIRST, SECOND = sold_by(WETH, WHOLE), alone(wallet())


def test_joined_plans_run_one_after_the_other_in_the_first_ones_environment() -> None:
    other = replace(SECOND, environment=replace(SECOND.environment, nonce=9))
    joined = join_plans({"a": FIRST, "b": other})
    assert joined.environment == FIRST.environment
    assert [block.delay_s for block in joined.blocks] == [
        block.delay_s for block in (*FIRST.blocks, *SECOND.blocks)
    ]
    assert [block.balances for block in joined.blocks] == [
        block.balances for block in (*FIRST.blocks, *SECOND.blocks)
    ]
    labels = [f"a/{step.label}" for step in steps_of(FIRST)] + [f"b/{s.label}" for s in steps_of(SECOND)]
    assert [step.label for step in steps_of(joined)] == labels
    assert len(set(labels)) == len(labels)


def test_only_the_labels_change() -> None:
    joined = join_plans({"a": FIRST})
    assert [structs.replace(step, label="") for step in steps_of(joined)] == [
        structs.replace(step, label="") for step in steps_of(FIRST)
    ]


def test_results_are_found_again_by_the_name_of_their_plan() -> None:
    joined = join_plans({"1": FIRST, "10": SECOND, "1/a": FIRST})
    results = {step.label: did(n) for n, step in enumerate(steps_of(joined))}
    actual = results_of(results, "10")
    assert list(actual) == [step.label for step in steps_of(SECOND)]
    assert actual["alone-buy"] == results["10/alone-buy"]
    assert results_of(results, "2") == {}
    assert "buy" in results_of(results, "1")
    assert "alone-buy" not in results_of(results, "1")


def test_a_merged_block_has_all_that_its_parts_have_in_their_order() -> None:
    first, second = FIRST.blocks[0], SECOND.blocks[0]
    first = structs.replace(first, storage=((address(1), "0x01", 2),), codes=((address(2), "0xfe"),))
    three = PlannedBlock(9, ())
    merged = merge_blocks([first, structs.replace(second, delay_s=7), three])
    assert merged == PlannedBlock(
        first.delay_s,
        first.steps + second.steps,
        first.balances + second.balances,
        first.nonces + second.nonces,
        first.storage + second.storage,
        first.codes + second.codes,
    )
    assert merge_blocks([first]) == first
