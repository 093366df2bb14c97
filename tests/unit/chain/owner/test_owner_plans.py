"""What hostile values an owner's functions are called with, and what is read of it."""

import pytest
from eth_abi.abi import decode
from eth_abi.abi import encode as reference
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.owner import owner_plans
from roundtrip.chain.owner.known_setters import KNOWN, Manner
from roundtrip.chain.owner.owner_plans import (
    STAND_IN_CODE,
    Actor,
    OwnerProbeSell,
    OwnerTry,
    PlannedTry,
    encode,
    plan,
    tries,
)
from roundtrip.chain.owner.owner_setters import Setter
from roundtrip.chain.simulate.legs import VenuePlace, cast
from roundtrip.chain.simulate.probe_plans import sell_plan
from roundtrip.domain.check.evidence import CompletedBuy, Missing, RefusedCall
from roundtrip.venues.abi import selector
from unit.chain.samples import ENVIRONMENT, did, refused
from unit.chain.trades import BOUGHT, EVERY_PLACE, SETTING, TOKEN, WETH, WHOLE
from unit.venues.network import CONTRACTS, address

OWNER, ADMIN = Actor("owner", address(0x0A)), Actor("proxy admin", address(0xAD))
V3 = WETH


def setter(signature: str, first: Manner = "bare") -> Setter:
    known = KNOWN.get(selector(signature))
    inner = signature[signature.index("(") + 1 : -1]
    types = tuple(inner.split(",")) if inner else ()
    return Setter(selector(signature), types, signature, known.first if known else first)


def sell(place: VenuePlace = V3) -> OwnerProbeSell:
    bought = CompletedBuy(10**17, BOUGHT, 10**17, 100_000)
    return OwnerProbeSell(place, SETTING, ENVIRONMENT, WHOLE, 10**17, bought)


def planned(signature: str, manner: Manner, place: VenuePlace = V3) -> PlannedTry:
    return plan(sell(place), OWNER, OwnerTry(setter(signature), manner, OWNER))


def values(signature: str, manner: Manner) -> list[tuple[object, ...]]:
    """What is passed, call by call, read by another decoder."""
    found = planned(signature, manner)
    types = setter(signature).types
    return [decode(types, bytes.fromhex(one.data[10:])) for one in found.passed]


def buyer(signature: str, manner: Manner) -> str:
    return planned(signature, manner).plan.environment.buyer


# --- which, and in what order -----------------------------------------------------------------------


def test_every_function_is_tried_once_before_any_is_tried_twice() -> None:
    three = (setter("pause()"), setter("setFee(uint256)"), setter("setPaused(bool)"))
    found = [(one.setter.name, one.manner) for one in tries(three, OWNER, OWNER, 24)]
    assert found == [
        ("pause()", "bare"), ("setFee(uint256)", "up"), ("setPaused(bool)", "on"),
        ("setFee(uint256)", "down"), ("setPaused(bool)", "off"), ("setFee(uint256)", "zero"),
    ]  # fmt: skip
    assert [(one.setter.name, one.manner) for one in tries(three, OWNER, OWNER, 4)] == found[:4]


@given(st.integers(0, 60), st.integers(0, 30))
def test_there_are_never_more_than_the_policy_has(count: int, most: int) -> None:
    many = tuple(setter(f"f{n}(uint256)") for n in range(count))
    found = tries(many, OWNER, ADMIN, most)
    assert len(found) == min(most, 3 * count)
    assert len({one.setter for one in found}) == min(most, count)


def test_upgrades_are_the_admins_and_everything_else_is_the_owners() -> None:
    found = tries((setter("pause()"), setter("upgradeTo(address)")), OWNER, ADMIN, 24)
    assert [one.actor for one in found] == [OWNER, ADMIN]


# --- values -----------------------------------------------------------------------------------------


def test_a_switch_is_thrown_both_ways() -> None:
    assert values("setTradingEnabled(bool)", "off") == [(False,)]
    assert values("setTradingEnabled(bool)", "on") == [(True,)]


def test_numbers_rise_so_that_the_largest_that_is_taken_stands() -> None:
    numbers = [value for (value,) in values("setFee(uint256)", "up")]
    assert numbers == sorted(numbers)  # type: ignore[type-var]
    assert {25, 99, 100, 999, 9999, 10_000, 2**128} <= set(numbers)
    assert [value for (value,) in values("setCooldownTimerInterval(uint8)", "up")][-1] == 255


def test_numbers_fall_so_that_the_smallest_that_is_taken_stands() -> None:
    numbers = [value for (value,) in values("setMaxTx(uint256)", "down")]
    assert numbers == sorted(numbers, reverse=True)  # type: ignore[type-var]
    assert BOUGHT // 2 in numbers
    assert numbers[-1] == 1
    assert values("setMaxTx(uint256)", "zero") == [(0,)]


def test_of_several_fees_the_last_alone_is_raised_too() -> None:
    assert all(first == second for first, second in values("setFees(uint256,uint256)", "up"))
    assert {first for first, _ in values("setFees(uint256,uint256)", "last")} == {0}


def test_an_address_is_the_buyer_and_then_where_it_trades() -> None:
    one = buyer("setBlacklist(address,bool)", "on")
    found = values("setBlacklist(address,bool)", "on")
    assert found == [(one, True), (V3.venue.pool, True), (CONTRACTS.swap_router02, True)]
    bot, many = buyer("setBots(address[],bool)", "on"), values("setBots(address[],bool)", "on")
    assert [people for people, _ in many] == [(bot,), (V3.venue.pool,), (CONTRACTS.swap_router02,)]


def test_a_wallets_tokens_are_taken_before_less_of_them_is() -> None:
    first, *_ = values("seize(address,uint256)", "each")
    assert first == (buyer("seize(address,uint256)", "each"), BOUGHT)


def test_of_two_addresses_the_second_is_the_owners() -> None:
    (source, to, amount), *_ = values("forceTransfer(address,address,uint256)", "each")
    assert (source, to, amount) == (
        buyer("forceTransfer(address,address,uint256)", "each"),
        OWNER.address,
        BOUGHT,
    )


def test_an_upgrade_is_to_a_contract_that_knows_nothing() -> None:
    found = planned("upgradeToAndCall(address,bytes)", "code")
    assert values("upgradeToAndCall(address,bytes)", "code") == [(found.stand_in, b"")]
    (block,) = [block for block in found.plan.blocks if block.codes]
    assert block.codes == ((found.stand_in, STAND_IN_CODE),)
    assert found.stand_in not in (found.plan.environment.buyer, found.plan.environment.reader)


@pytest.mark.parametrize("known", KNOWN.values(), ids=lambda known: known.signature)
def test_every_known_function_is_called_with_what_its_types_take(known: object) -> None:
    signature = known.signature  # type: ignore[attr-defined]
    for manner in setter(signature).manners():
        calls = planned(signature, manner).passed
        assert 1 <= len(calls) <= 16
        for one in calls:
            read = decode(setter(signature).types, bytes.fromhex(one.data[10:]))
            assert "0x" + reference(setter(signature).types, read).hex() == "0x" + one.data[10:]


PLAIN = (
    "address", "bool", "uint256", "uint8", "int24", "bytes32", "bytes4", "bytes", "string", "address[]",
    "uint256[]", "bool[]", "bytes[]",
)  # fmt: skip


@given(st.lists(st.sampled_from(PLAIN), max_size=6))
def test_any_plain_types_are_encoded_as_another_encoder_reads_them(types: list[str]) -> None:
    made = Setter("0x12345678", tuple(types), "x", "bare")
    for manner in made.manners():
        for one in plan(sell(), OWNER, OwnerTry(made, manner, OWNER)).passed:
            data = bytes.fromhex(one.data[10:])
            assert reference(types, decode(types, data)) == data


def test_an_empty_call_has_no_arguments() -> None:
    assert encode((), []) == ""


# --- the simulation ---------------------------------------------------------------------------------


@EVERY_PLACE
def test_the_calls_stand_in_a_block_of_their_own_and_the_sell_comes_when_it_came(place: VenuePlace) -> None:
    found = planned("setFee(uint256)", "up", place)
    env = cast(ENVIRONMENT, "x")
    plain = sell_plan(place, SETTING, env, WHOLE, 10**17, sell(place).bought)
    assert len(found.plan.blocks) == len(plain.blocks) + 1
    delays, usual = ([block.delay_s for block in one.blocks] for one in (found.plan, plain))
    assert sum(delays) == sum(usual)
    assert delays[2:] == [usual[1] - delays[1], *usual[2:]]
    between = found.plan.blocks[1]
    assert {step.sender for step in between.steps} == {OWNER.address}
    assert {step.call.to for step in between.steps} == {TOKEN}
    assert [who for who, _ in between.balances] == [OWNER.address]
    labels = [step.label for block in found.plan.blocks for step in block.steps]
    assert len(labels) == len(set(labels))


def test_the_control_is_the_same_trade_with_a_question_in_the_owners_place() -> None:
    control, other = plan(sell(), OWNER, None), planned("pause()", "bare")
    assert [len(block.steps) for block in control.plan.blocks] == [len(b.steps) for b in other.plan.blocks]
    (step,) = control.plan.blocks[1].steps
    assert (step.sender, step.call.data) == (OWNER.address, selector("totalSupply()"))
    assert control.plan.blocks[1].balances == other.plan.blocks[1].balances


def test_no_two_simulations_have_a_wallet_in_common() -> None:
    found = [planned("setFee(uint256)", manner) for manner in ("up", "down", "zero")]
    found += [planned("setTax(uint256)", "up"), plan(sell(), OWNER, None)]
    wallets = [w for one in found for w in (one.plan.environment.buyer, one.plan.environment.receiver)]
    assert len(set(wallets)) == len(wallets)


def test_gas_of_the_owners_block_stays_below_an_ordinary_blocks_limit() -> None:
    for known in KNOWN.values():
        for manner in setter(known.signature).manners():
            block = planned(known.signature, manner).plan.blocks[1]
            assert sum(step.gas_limit for step in block.steps) <= 20_000_000


# --- what is read -----------------------------------------------------------------------------------


def results_of(found: PlannedTry, taken: set[int], sold: bool = True) -> dict[str, object]:
    answers: dict[str, object] = {}
    for step in (step for block in found.plan.blocks for step in block.steps):
        answers[step.label] = did(0)
    answers |= {"start-quote": did(10**18), "bought-quote": did(9 * 10**17), "held-quote": did(10**17)}
    answers |= {label: did(2 * 10**17) for label in answers if label.startswith("after-")}
    answers["after-token"] = did(0)
    for n in range(len(found.passed)):
        answers[f"owner-{n}"] = did() if n in taken else refused()
    if not sold:
        answers |= {label: refused() for label in answers if label.startswith("sell-")}
    return answers


def test_what_was_taken_is_kept_in_order_and_named_by_the_last() -> None:
    found = planned("setFee(uint256)", "up")
    result = owner_plans.read(found, sell(), results_of(found, {0, 1, 4}, sold=False))  # type: ignore[arg-type]
    assert result.calls == tuple(found.passed[n].data for n in (0, 1, 4))
    assert result.passed == found.passed[4].words == "100"
    assert (result.function, result.by, result.sender) == ("setFee(uint256)", "owner", OWNER.address)
    assert isinstance(result.outcome, RefusedCall)
    assert result.outcome.step == "sell"


def test_where_no_call_was_taken_the_sell_tells_nothing() -> None:
    """Even where it is refused: that is not the doing of a call that was not taken."""
    found = planned("setFee(uint256)", "up")
    result = owner_plans.read(found, sell(), results_of(found, set(), sold=False))  # type: ignore[arg-type]
    assert (result.outcome, result.calls, result.passed) == (None, (), "")


def test_a_balance_that_cannot_be_read_is_missing() -> None:
    found = planned("pause()", "bare")
    answers = results_of(found, {0}) | {"after-token": refused()}
    result = owner_plans.read(found, sell(), answers)  # type: ignore[arg-type]
    assert isinstance(result.outcome, Missing)
