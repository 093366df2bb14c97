"""A wallet's own calls: what is asked, and what balances and allowances tell of it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from roundtrip.chain.simulate.legs import Setting
from roundtrip.chain.simulate.request import Plan, Results, StepResult
from roundtrip.chain.wallet.calls import (
    Pair,
    WalletCalls,
    WatchedAssets,
    before_plan,
    first_failure,
    own_gas,
    read_run,
    run_plan,
    together,
)
from roundtrip.chain.wallet.event_hints import (
    APPROVAL,
    APPROVAL_FOR_ALL,
    PERMIT2_APPROVAL,
    PERMIT2_PERMIT,
    Hints,
    read_hints,
)
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.trade.judge import Allowance, BalanceChange, RunResult
from roundtrip.venues import abi, erc20, permit2
from roundtrip.venues.base import Call
from unit.chain.samples import ENVIRONMENT, GAS_PRICE_WEI, PINNED, did, error_string, refused, word
from unit.domain.builders import MARKET
from unit.venues.network import CONTRACTS

WALLET, TOKEN, OTHER, SPENDER = (Address("0x" + f"{n:02x}" * 20) for n in (0xAA, 0x71, 0x72, 0x5E))
CALLS = (Call(TOKEN, "0x1234", 5), Call(OTHER, "0x"))
OWN = WalletCalls(WALLET, CALLS, (900_000, 800_000), 10**18)
PAIRS = (Pair(TOKEN, SPENDER), Pair(OTHER, SPENDER, "permit2"), Pair(OTHER, SPENDER, "all"))
WATCHED = WatchedAssets((TOKEN, OTHER), PAIRS)
SETTING = Setting(TOKEN, CONTRACTS, MARKET, POLICY)
PLAN = run_plan(OWN, WATCHED, SETTING, ENVIRONMENT)
BEFORE = before_plan(OWN, WATCHED, SETTING, ENVIRONMENT)
DELAYS = (POLICY.later_s, POLICY.hour_s, POLICY.day_s)


def labels(plan: Plan) -> list[str]:
    return [step.label for block in plan.blocks for step in block.steps]


def results(**changed: StepResult) -> Results:
    """Nothing moves and nothing is allowed: both calls took 30,000 gas."""
    eth = {f"eth-{n}": did(10**18 - n * 30_000 * GAS_PRICE_WEI) for n in range(3)}
    found = {label: eth.get(label, did(0)) for label in (*labels(BEFORE), *labels(PLAN))}
    names = {name.replace("_", "-"): result for name, result in changed.items()}
    assert names.keys() <= found.keys()
    return found | names


def ran(**changed: StepResult) -> RunResult:
    found = read_run(results(**changed), OWN, WATCHED, SETTING, ENVIRONMENT, PINNED)
    assert isinstance(found, RunResult)
    return found


# --- what is asked ----------------------------------------------------------------------------------


def test_the_calls_stand_in_order_between_the_reads() -> None:
    first = [step.label for step in PLAN.blocks[0].steps]
    assert len(set(labels(PLAN))) == len(labels(PLAN))
    assert first.index("eth-0") < first.index("call-0") < first.index("eth-1") < first.index("call-1")
    after = [n for n, label in enumerate(first) if label.startswith("after-")]
    assert first.index("eth-0") == 0
    assert first.index("eth-2") < min(after)
    assert [block.delay_s for block in PLAN.blocks] == [
        1,
        DELAYS[0],
        DELAYS[1] - DELAYS[0],
        DELAYS[2] - DELAYS[1],
    ]


def test_what_is_there_before_is_asked_apart_and_nobody_is_told() -> None:
    """A read is told to a transaction: what is called must not know that it was asked."""
    assert all(label.startswith("before-") for label in labels(BEFORE))
    assert not any(label.startswith("before-") for label in labels(PLAN))
    assert {step.sender for step in BEFORE.blocks[0].steps} == {ENVIRONMENT.reader}


def test_results_are_together_only_where_both_are_there() -> None:
    gap = Missing("node", "no answer")
    assert together({"a": did(1)}, {"b": did(2)}) == {"a": did(1), "b": did(2)}
    assert together(gap, {}) == together({}, gap) == gap


def test_only_the_calls_are_the_wallets_and_carry_what_was_asked() -> None:
    own = [step for block in PLAN.blocks for step in block.steps if step.sender == WALLET]
    assert [(step.call, step.gas_limit) for step in own] == [(CALLS[0], 900_000), (CALLS[1], 800_000)]
    readers = {step.sender for block in PLAN.blocks for step in block.steps} - {WALLET}
    assert readers == {ENVIRONMENT.reader}
    assert dict(PLAN.blocks[0].balances)[WALLET] == 10**18
    assert PLAN.blocks[0].nonces == ()
    assert PLAN.blocks[0].storage == ()


def test_each_allowance_is_asked_of_who_knows_it() -> None:
    asked = {step.label: step.call for plan in (BEFORE, PLAN) for step in plan.blocks[0].steps}
    assert asked["before-pair-0"] == Call(TOKEN, abi.call(erc20.ALLOWANCE, WALLET, SPENDER))
    two = abi.call(permit2.ALLOWANCE, WALLET, OTHER, SPENDER)
    assert asked["after-pair-1"] == Call(CONTRACTS.permit2, two)
    assert asked["after-pair-2"] == Call(OTHER, abi.call(erc20.IS_APPROVED_FOR_ALL, WALLET, SPENDER))


# --- what moved -------------------------------------------------------------------------------------


def test_nothing_moves_where_only_gas_is_paid() -> None:
    found = ran()
    assert found.moved == ()
    assert found.eth_changes_wei == (0, 0)
    assert found.gas_price_wei == GAS_PRICE_WEI
    assert [call.gas_used for call in found.calls] == [30_000, 30_000]


def test_eth_is_told_without_gas_and_by_call() -> None:
    gas = 30_000 * GAS_PRICE_WEI
    found = ran(eth_1=did(10**18 - gas - 700), eth_2=did(10**18 - 2 * gas - 200))
    assert found.moved == (BalanceChange(ZERO_ADDRESS, -200, 10**18, ()),)
    assert found.eth_changes_wei == (-700, 500)


def test_the_price_of_gas_never_passes_the_most_that_is_offered() -> None:
    env = replace(ENVIRONMENT, max_fee_wei=103)
    eth = {f"eth-{n}": did(10**18 - n * 30_000 * 103) for n in range(3)}
    found = read_run(results() | eth, OWN, WATCHED, SETTING, env, PINNED)
    assert isinstance(found, RunResult)
    assert (found.moved, found.gas_price_wei) == ((), 103)


def test_tokens_move_by_their_balances() -> None:
    later = {f"held_{delay}_0": did(n) for n, delay in enumerate(DELAYS)}
    found = ran(before_token_0=did(5), after_token_0=did(9), before_token_1=did(7), **later)
    assert found.moved == (BalanceChange(TOKEN, 4, 5, (0, 1, 2)), BalanceChange(OTHER, -7, 7, (0, 0, 0)))


def test_a_token_that_tells_nothing_later_is_taken_to_hold_what_it_held() -> None:
    found = ran(after_token_0=did(9), held_3600_0=refused(), held_13_0=did(b""), held_86400_0=did(8))
    assert found.moved == (BalanceChange(TOKEN, 9, 0, (9, 9, 8)),)


@pytest.mark.parametrize("answer", [refused(), did(b""), did(b"\x01" * 31)])
def test_what_tells_no_balance_did_not_move(answer: StepResult) -> None:
    assert ran(before_token_0=answer, after_token_0=did(10**18)).moved == ()


def test_what_cannot_be_read_of_the_wallets_eth_is_missing() -> None:
    assert isinstance(read_run(results(eth_1=refused()), OWN, WATCHED, SETTING, ENVIRONMENT, PINNED), Missing)
    gap = Missing("node", "no answer")
    assert read_run(gap, OWN, WATCHED, SETTING, ENVIRONMENT, PINNED) == gap


def test_calls_that_fail_are_told_with_their_reason() -> None:
    found = ran(call_0=refused(error_string("no")), call_1=refused(b"", out_of_gas=True))
    assert [(call.ok, call.reason) for call in found.calls] == [(False, "no"), (False, "out of gas")]
    assert found.has_reverted()
    assert [call.reason for call in ran().calls] == [None, None]
    assert ran(call_1=refused()).calls[1].reason == ""


def called(*calls: Call) -> WalletCalls:
    return WalletCalls(WALLET, calls, (900_000,) * len(calls), 10**18)


def sizes(calls: WalletCalls, **changed: StepResult) -> RunResult:
    """Every read answers 1, so every target has code, but for the named ones."""
    plans = (
        before_plan(calls, WATCHED, SETTING, ENVIRONMENT),
        run_plan(calls, WATCHED, SETTING, ENVIRONMENT),
    )
    answers: Results = {label: did(1) for plan in plans for label in labels(plan)}
    answers |= {name.replace("_", "-"): result for name, result in changed.items()}
    found = read_run(answers, calls, WATCHED, SETTING, ENVIRONMENT, PINNED)
    assert isinstance(found, RunResult)
    return found


def test_where_a_call_with_data_goes_is_asked_for_code_once_it_ran() -> None:
    """What an earlier call deploys is there when it is called."""
    calls = called(Call(OTHER, "0x12"), Call(SPENDER, "0x00"))
    plan = run_plan(calls, WATCHED, SETTING, ENVIRONMENT)
    first = [step.label for step in plan.blocks[0].steps]
    assert first.index("call-0") < first.index("code-0") < first.index("call-1") < first.index("code-1")
    ((reader_at, _),) = plan.blocks[0].codes
    asked = {step.label: step for step in plan.blocks[0].steps}["code-1"]
    assert (asked.sender, asked.call) == (ENVIRONMENT.reader, Call(reader_at, "0x" + "0" * 24 + SPENDER[2:]))
    assert reader_at not in {WALLET, ENVIRONMENT.reader, OTHER, SPENDER, *CONTRACTS.all_addresses()}
    assert sizes(calls, code_1=did(0)).without_code == (SPENDER,)
    assert sizes(calls).without_code == sizes(calls).code_unread == ()


def test_an_address_without_code_is_named_once() -> None:
    calls = called(*(Call(OTHER, "0x12"),) * 3)
    found = sizes(calls, code_0=did(0), code_1=did(0), code_2=did(1))
    assert (found.without_code, found.code_unread) == ((OTHER,), ())


@pytest.mark.parametrize("answer", [refused(), did(b""), did(b"\x01" * 31)])
def test_code_that_could_not_be_read_is_not_taken_for_there(answer: StepResult) -> None:
    found = sizes(called(Call(OTHER, "0x12")), code_0=answer)
    assert (found.without_code, found.code_unread) == ((), (OTHER,))


def precompile(number: int) -> Address:
    return Address(f"0x{number:040x}")


@pytest.mark.parametrize(
    ("target", "data", "is_asked"),
    [
        (OTHER, "0x", False),  # a plain payment
        (OTHER, "0x00", True),
        (WALLET, "0x12", True),
        (CONTRACTS.permit2, "0x12", False),
        (CONTRACTS.usdg, "0x12", False),
        (precompile(1), "0x12", False),
        (precompile(0x100), "0x12", False),
        (precompile(0x64), "0x12", False),  # ArbSys
        (ZERO_ADDRESS, "0x12", True),
        (precompile(0x10000), "0x12", True),
    ],
)
def test_what_is_known_to_do_something_is_not_asked(target: Address, data: str, is_asked: bool) -> None:
    plan = run_plan(called(Call(target, data)), WATCHED, SETTING, ENVIRONMENT)
    assert ("code-0" in labels(plan)) == bool(plan.blocks[0].codes) == is_asked


def test_names_are_told_as_the_token_tells_them() -> None:
    found = ran(decimals_0=did(6), symbol_0=did(b"abc"), decimals_1=did(256), symbol_1=refused())
    assert found.metadata == {TOKEN: (6, b"abc"), OTHER: (None, None)}


# --- what is allowed --------------------------------------------------------------------------------


def test_only_what_grew_is_newly_allowed() -> None:
    assert ran(before_pair_0=did(5), after_pair_0=did(5)).allowances == ()
    assert ran(before_pair_0=did(6), after_pair_0=did(5)).allowances == ()
    found = ran(before_pair_0=did(5), after_pair_0=did(6))
    assert found.allowances == (Allowance(TOKEN, SPENDER, 6, "erc20"),)


@pytest.mark.parametrize(("held", "covers"), [(5, True), (6, True), (7, False), (0, False)])
def test_an_allowance_is_compared_with_what_is_held_at_the_end(held: int, covers: bool) -> None:
    (allowance,) = ran(after_pair_0=did(6), before_token_0=did(1), after_token_0=did(held)).allowances
    assert allowance.covers_held is covers


def test_an_approval_for_all_has_no_bound() -> None:
    found = ran(after_pair_2=did(1))
    assert found.allowances == (Allowance(OTHER, SPENDER, None, "all"),)
    assert found.allowances[0].is_unlimited()
    assert ran(before_pair_2=did(1), after_pair_2=did(1)).allowances == ()


def permitted(raw: int, until_s: int) -> StepResult:
    return did(word(raw) + word(until_s) + word(0))


def test_one_by_permit2_counts_as_long_as_it_holds() -> None:
    now_s = PINNED.timestamp_s + 1
    for until_s, counts in ((0, False), (now_s - 1, False), (now_s + 1, True), (2**48 - 1, True)):
        found = ran(before_pair_1=permitted(0, 0), after_pair_1=permitted(9, until_s))
        expected = (Allowance(OTHER, SPENDER, 9, "permit2"),) if counts else ()
        assert found.allowances == expected, until_s


def test_one_by_permit2_that_was_over_and_holds_again_is_new() -> None:
    now_s = PINNED.timestamp_s + 1
    found = ran(before_pair_1=permitted(9, now_s - 1), after_pair_1=permitted(9, now_s + 3600))
    assert found.allowances == (Allowance(OTHER, SPENDER, 9, "permit2"),)
    # Less than there was once, and that was over.
    found = ran(before_pair_1=permitted(9, now_s - 1), after_pair_1=permitted(5, now_s + 3600))
    assert found.allowances == (Allowance(OTHER, SPENDER, 5, "permit2"),)


@pytest.mark.parametrize(
    ("raw", "unlimited"),
    [
        (2**96 - 2, False), (2**96 - 1, True), (2**96, False), (2**128 - 1, False), (2**128, True),
        (2**160 - 1, True), (2**256 - 1, True), (0, False), (1, False),
    ],
)  # fmt: skip
def test_what_stands_for_no_bound(raw: int, unlimited: bool) -> None:
    assert Allowance(TOKEN, SPENDER, raw, "erc20").is_unlimited() is unlimited


# --- hints ------------------------------------------------------------------------------------------


def topic(address: str) -> str:
    return "0x" + "0" * 24 + address[2:]


def log(address: str, *topics: str, **more: Any) -> dict[str, Any]:
    return {"address": address, "topics": list(topics), "data": "0x", **more}


def hints_of(*logs: Any) -> Hints:
    answer = structs.replace(did(), logs=json.dumps(list(logs)).encode())
    return read_hints(results(call_0=answer), OWN, CONTRACTS.permit2)


def test_emitters_are_told_once_and_in_order() -> None:
    found = hints_of(log(TOKEN, erc20.TRANSFER_TOPIC), log(OTHER.upper().replace("0X", "0x")), log(TOKEN))
    assert found.emitters == (TOKEN, OTHER)
    assert (found.incoming, found.pairs) == ((), ())


def test_a_transfer_with_the_number_of_an_item_is_of_a_collection() -> None:
    went = log(OTHER, erc20.TRANSFER_TOPIC, topic(WALLET), topic(SPENDER), "0x" + "0" * 63 + "7")
    assert (hints_of(went).outgoing, hints_of(went).collections) == ((OTHER,), (OTHER,))
    assert hints_of(log(OTHER, erc20.TRANSFER_TOPIC, topic(WALLET), topic(SPENDER))).collections == ()


def test_who_tells_of_a_transfer_to_the_wallet() -> None:
    came = log(TOKEN, erc20.TRANSFER_TOPIC, topic(SPENDER), topic(WALLET))
    went = log(OTHER, erc20.TRANSFER_TOPIC, topic(WALLET), topic(SPENDER))
    assert hints_of(came, went).incoming == (TOKEN,)
    assert hints_of(log(TOKEN, APPROVAL, topic(SPENDER), topic(WALLET))).incoming == ()


def test_allowances_that_events_speak_of() -> None:
    found = hints_of(
        log(TOKEN, APPROVAL, topic(WALLET), topic(SPENDER)),
        log(OTHER, APPROVAL_FOR_ALL, topic(WALLET), topic(SPENDER)),
        log(CONTRACTS.permit2, PERMIT2_APPROVAL, topic(WALLET), topic(TOKEN), topic(SPENDER)),
        log(CONTRACTS.permit2, PERMIT2_PERMIT, topic(WALLET), topic(OTHER), topic(SPENDER)),
        log(TOKEN, APPROVAL, topic(OTHER), topic(SPENDER)),
        log(TOKEN, PERMIT2_APPROVAL, topic(WALLET), topic(TOKEN), topic(SPENDER)),
    )
    assert found.pairs == (
        Pair(TOKEN, SPENDER),
        Pair(OTHER, SPENDER, "all"),
        Pair(TOKEN, SPENDER, "permit2"),
        Pair(OTHER, SPENDER, "permit2"),
    )


@pytest.mark.parametrize(
    "odd",
    [
        log("0x12", erc20.TRANSFER_TOPIC, topic(SPENDER), topic(WALLET)),
        log(TOKEN, erc20.TRANSFER_TOPIC, "0xzz", "0xzz"),
        log(TOKEN, erc20.TRANSFER_TOPIC, "", ""),
        log(TOKEN, erc20.TRANSFER_TOPIC),
        log(TOKEN, APPROVAL, topic(WALLET)),
        log(TOKEN, APPROVAL, topic(WALLET), "0x"),
        log(CONTRACTS.permit2, PERMIT2_APPROVAL, topic(WALLET), topic(TOKEN)),
    ],
)
def test_an_odd_event_does_not_hide_the_others(odd: dict[str, Any]) -> None:
    found = hints_of(odd, log(OTHER, erc20.TRANSFER_TOPIC, topic(SPENDER), topic(WALLET)))
    # Or it is said that not all was read: then nothing is proven.
    assert (OTHER in found.emitters and found.incoming == (OTHER,)) or found.unread


@pytest.mark.parametrize("logs", [b"", b"null", b"7", b"{}", b"[7]", b'[{"address":5}]', b"[" * 50_000])
def test_events_that_cannot_be_read_are_passed_over(logs: bytes) -> None:
    found = read_hints(results(call_0=structs.replace(did(), logs=logs)), OWN, CONTRACTS.permit2)
    assert (found.emitters, found.incoming, found.pairs) == ((), (), ())


def test_events_of_every_call_are_read() -> None:
    rows = [structs.replace(did(), logs=json.dumps([log(one)]).encode()) for one in (TOKEN, OTHER)]
    found = read_hints(results(call_0=rows[0], call_1=rows[1]), OWN, CONTRACTS.permit2)
    assert found.emitters == (TOKEN, OTHER)


def test_noise_hides_no_emitter() -> None:
    noise = [log(SPENDER)] * 5000
    assert TOKEN in hints_of(*noise, log(TOKEN, erc20.TRANSFER_TOPIC, topic(WALLET), topic(SPENDER))).emitters


# --- what comes after -------------------------------------------------------------------------------


def test_the_first_failure_and_the_gas_of_all() -> None:
    assert first_failure(results()) is None
    assert first_failure(results(call_1=refused(error_string("no"), gas=7))) == ("no", 7)
    assert first_failure(results(after_token_0=refused())) is None
    assert own_gas(results(call_1=refused(gas=7))) == 30_007
