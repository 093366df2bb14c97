"""Who is tried as a sender, and when an account has a right that others do not have."""

from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.owner import rights_plans
from roundtrip.chain.owner.named_accounts import GroupedAccounts
from roundtrip.chain.owner.owner_plans import Actor
from roundtrip.chain.owner.owner_setters import Setter
from roundtrip.chain.owner.rights_plans import MAX_ACCOUNTS, choose, order_functions, probe_plan, read_rights
from roundtrip.chain.simulate.request import Results, StepResult
from roundtrip.domain.base.types import Address
from unit.chain.owner.test_owner_plans import sell, setter
from unit.chain.samples import did, refused

PAUSE, FEE, UPGRADE = setter("pause()"), setter("setFee(uint256)"), setter("upgradeTo(address)")


def many(start: int, count: int) -> tuple[Address, ...]:
    return tuple(Address(f"0x{number:040x}") for number in range(start, start + count))


def test_no_group_displaces_another() -> None:
    groups: GroupedAccounts = {"deployer": many(1, 1), "storage": many(100, 90), "supply": many(1, 3)}
    found = choose(groups, frozenset(many(100, 1)))
    assert [(actor.by, int(actor.address, 16)) for actor in found.actors] == [
        ("deployer", 1), ("storage", 101), ("supply", 2), ("storage", 102), ("supply", 3), ("storage", 103),
    ]  # fmt: skip
    assert found.left_out == 92 - MAX_ACCOUNTS


@given(st.lists(st.integers(0, 9), max_size=9), st.lists(st.integers(0, 9), max_size=9))
def test_nobody_is_tried_twice(code: list[int], event: list[int]) -> None:
    groups: GroupedAccounts = {
        "code": tuple(many(n, 1)[0] for n in code),
        "event": tuple(many(n, 1)[0] for n in event),
    }
    found = choose(groups, frozenset())
    addresses = {actor.address for actor in found.actors}
    assert len(addresses) == len(found.actors) == len({*code, *event}) - found.left_out <= MAX_ACCOUNTS


def test_each_function_is_called_once_in_each_manner_and_upgrades_come_last() -> None:
    actor = Actor("storage", many(7, 1)[0])
    functions = order_functions((UPGRADE, PAUSE, FEE))
    assert functions == (PAUSE, FEE, UPGRADE)
    (block,) = probe_plan(sell(), actor, functions).blocks
    assert {step.sender for step in block.steps} == {actor.address}
    assert [step.call.data[:10] for step in block.steps] == [
        PAUSE.selector, *[FEE.selector] * 3, UPGRADE.selector,
    ]  # fmt: skip


def test_many_calls_do_not_share_a_block() -> None:
    functions = order_functions(tuple(setter(f"f{n}(uint256)") for n in range(90)))
    assert len(functions) == rights_plans.MAX_FUNCTIONS
    blocks = probe_plan(sell(), rights_plans.stranger(sell()), functions).blocks
    assert max(len(block.steps) for block in blocks) <= 24
    assert sum(len(block.steps) for block in blocks) == 3 * len(functions)
    assert [block.delay_s for block in blocks] == [1] * len(blocks)


def results(**calls: StepResult) -> Results:
    labels = {"pause": f"{PAUSE.selector}-0", **{f"fee{n}": f"{FEE.selector}-{n}" for n in range(3)}}
    return {label: calls.get(name, refused()) for name, label in labels.items()}


def rights(unknown: Results, *others: Results) -> dict[Setter, Actor | None]:
    return read_rights((PAUSE, FEE), dict(zip(ACTORS, others, strict=False)), unknown)


ACTORS = (Actor("storage", many(1, 1)[0]), Actor("event", many(2, 1)[0]))


def test_a_right_is_what_a_new_wallet_does_not_have() -> None:
    nobody, pauses = results(), results(pause=did())
    assert rights(nobody, nobody, nobody) == {}
    assert rights(nobody, nobody, pauses) == {PAUSE: ACTORS[1]}
    assert rights(nobody, pauses, pauses) == {PAUSE: ACTORS[0]}
    assert rights(nobody, results(fee2=did()), pauses) == {PAUSE: ACTORS[1], FEE: ACTORS[0]}


def test_what_a_new_wallet_can_do_as_well_is_anybodys() -> None:
    assert rights(results(pause=did()), results(pause=did(gas=30_100))) == {PAUSE: None}
    assert rights(results(pause=did()), results()) == {PAUSE: None}


def test_a_call_that_does_nothing_for_others_rather_than_revert_is_a_right() -> None:
    assert rights(results(pause=did(gas=30_000)), results(pause=did(gas=52_000))) == {PAUSE: ACTORS[0]}
