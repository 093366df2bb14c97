"""Copies of code in which another instruction stands for NUMBER, and what each block's value is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.rpc.dialect import ANVIL, GETH, NITRO, Dialect
from roundtrip.chain.simulate.block_dependence import reachable_instructions
from roundtrip.chain.simulate.number_copies import (
    INSTRUCTIONS,
    NumberCopies,
    copy_code,
    read_code,
    reads_own_copy,
)
from roundtrip.chain.simulate.number_probe import is_honoured, number_at, probe_plan
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results, SimulatedStep, StepResult, build
from roundtrip.domain.check.evidence import Missing, NumberInstruction
from roundtrip.venues.base import Call
from unit.chain.samples import ENVIRONMENT, PINNED
from unit.venues.network import address

TOKEN = address(0x71)
NUMBER, STOP = "43", "00"


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_only_the_instruction_is_replaced_and_no_jump_moves(name: NumberInstruction) -> None:
    stands_in = f"{INSTRUCTIONS[name]:02x}"
    code = NUMBER + "6043" + "61" + NUMBER * 2 + NUMBER + STOP + NUMBER
    copied = stands_in + "6043" + "61" + NUMBER * 2 + stands_in + STOP + NUMBER
    assert copy_code(bytes.fromhex(code), name) == "0x" + copied


@given(st.binary(max_size=300), st.sampled_from(sorted(INSTRUCTIONS)))
def test_a_copy_has_the_same_length_and_reads_no_number(code: bytes, name: NumberInstruction) -> None:
    copied = bytes.fromhex(copy_code(code, name)[2:])
    assert len(copied) == len(code)
    assert not read_code(copied).reads_number()
    assert [at for at, _, _ in reachable_instructions(copied)] == [
        at for at, _, _ in reachable_instructions(code)
    ]


@pytest.mark.parametrize(
    ("code", "is_read"),
    [
        # The size, the start and the target of CODECOPY; NUMBER is at offset 7.
        ("6001" + "6007" + "6000" + "39" + NUMBER, True),
        ("6002" + "6006" + "6000" + "39" + NUMBER, True),
        ("6001" + "6006" + "6000" + "39" + NUMBER, False),
        ("6020" + "6008" + "6000" + "39" + NUMBER, False),
        ("38" + "6000" + "6000" + "39" + NUMBER, True),
        ("6001" + "5f" + "35" + "6000" + "39" + NUMBER, True),
        # A bucket of a jump table: its number times two, behind the instructions.
        ("6002" + "6003" + "5f35" + "06" + "6001" + "1b" + "6040" + "01" + "601e" + "39" + NUMBER, False),
        ("6002" + "6003" + "5f35" + "06" + "6001" + "1b" + "6004" + "01" + "601e" + "39" + NUMBER, False),
        ("6002" + "6003" + "5f35" + "06" + "6001" + "1b" + "600d" + "01" + "601e" + "39" + NUMBER, True),
        ("6001" + "6040" + "6000" + "5b" + "39" + NUMBER, True),
        ("6001" + "6040" + "6000" + "39" + STOP, False),
    ],
)
def test_code_that_copies_itself_is_told_by_what_it_copies(code: str, is_read: bool) -> None:
    assert reads_own_copy(bytes.fromhex(code)) is is_read


@pytest.mark.parametrize(
    ("code", "does"),
    [
        ("30" + "3f", "inspects_code"),
        ("5f5f5f30" + "3c", "inspects_code"),
        ("5f40", "reads_block_hash"),
        (NUMBER, "reads_number"),
    ],
)
def test_what_code_may_do_is_told_by_what_it_can_reach(code: str, does: str) -> None:
    assert getattr(read_code(bytes.fromhex(code)), does)()
    assert not getattr(read_code(bytes.fromhex(STOP + code)), does)()


def test_what_asks_for_the_chains_own_number_and_what_is_no_code_of_the_machine_is_seen() -> None:
    assert read_code(bytes.fromhex("63a3b1b31d")).asks_arbsys
    assert not read_code(bytes.fromhex("63a3b1b31e")).asks_arbsys
    assert read_code(bytes.fromhex("eff00000")).opaque
    assert not read_code(bytes.fromhex("ef0100" + "22" * 20)).opaque


# --- requests --------------------------------------------------------------------------------------

LOOK = SimulatedStep("look", ENVIRONMENT.reader, Call(TOKEN, "0x"), 30_000)
PLAN = Plan(ENVIRONMENT, (PlannedBlock(1, (LOOK,)), PlannedBlock(3600, ())))


def blocks(plan: Plan, dialect: Dialect, copies: NumberCopies | None) -> list[dict[str, Any]]:
    options: Any = build(plan, PINNED, dialect, copies).params[0]
    found: list[dict[str, Any]] = options["blockStateCalls"]
    return found


@pytest.mark.parametrize(
    ("name", "dialect", "field", "digits"),
    [
        ("COINBASE", NITRO, "feeRecipient", 40),
        ("PREVRANDAO", NITRO, "difficulty", 7),
        ("PREVRANDAO", GETH, "prevRandao", 64),
        ("BLOBBASEFEE", NITRO, "blobBaseFee", 7),
    ],
)
def test_each_block_has_the_number_that_its_time_has(
    name: NumberInstruction, dialect: Dialect, field: str, digits: int
) -> None:
    copies = NumberCopies(name, 23_000_000, ((TOKEN, "0x41"),))
    first, second = blocks(PLAN, dialect, copies)
    assert first["stateOverrides"][TOKEN] == {"code": "0x41"}
    assert first["blockOverrides"][field] == f"0x{23_000_001:0{digits}x}"
    assert second["blockOverrides"][field] == f"0x{23_000_301:0{digits}x}"
    assert TOKEN not in second["stateOverrides"]


def test_a_control_gives_the_copy_the_originals_number() -> None:
    still = NumberCopies("COINBASE", 23_000_000, (), still=True)
    at_nitro = [int(block["blockOverrides"]["feeRecipient"], 16) for block in blocks(PLAN, NITRO, still)]
    assert at_nitro == [23_000_000] * 2
    at_geth = blocks(PLAN, GETH, still)
    assert [b["blockOverrides"]["feeRecipient"] for b in at_geth] == [
        f"0x{int(b['blockOverrides']['number'], 16):040x}" for b in at_geth
    ]


def test_code_that_a_plan_sets_itself_stays() -> None:
    plan = Plan(ENVIRONMENT, (PlannedBlock(1, (LOOK,), codes=((TOKEN, "0xfe"),)),))
    (block,) = blocks(plan, NITRO, NumberCopies("COINBASE", 1, ((TOKEN, "0x41"),)))
    assert block["stateOverrides"][TOKEN] == {"code": "0xfe"}


def test_without_copies_nothing_of_a_request_changes() -> None:
    assert build(PLAN, PINNED, ANVIL) == build(PLAN, PINNED, ANVIL, None)


# --- what stands in on a node ----------------------------------------------------------------------


def words(*values: int) -> StepResult:
    return StepResult(True, 21_100, b"".join(value.to_bytes(32, "big") for value in values), False)


def test_an_instruction_stands_in_where_it_follows_the_request_in_each_block() -> None:
    plan, copies = probe_plan(ENVIRONMENT, "COINBASE")
    first, second = copies.numbers(tuple(block.delay_s for block in plan.blocks), (), NITRO)

    def copy_results(*values: int) -> Results:
        return {f"tell-{n}": words(23_000_000, value) for n, value in enumerate(values)}

    assert is_honoured(plan, copies, copy_results(first, second), NITRO)
    assert not is_honoured(plan, copies, copy_results(first, first), NITRO)
    assert not is_honoured(plan, copies, copy_results(int(ENVIRONMENT.coinbase, 16), second), NITRO)
    assert not is_honoured(plan, copies, Missing("node", ""), NITRO)
    assert number_at(copy_results(1, 2), PINNED, NITRO) == 23_000_000
    assert number_at(copy_results(1, 2), PINNED, GETH) == PINNED.number
    assert number_at(Missing("node", ""), PINNED, NITRO) is None
