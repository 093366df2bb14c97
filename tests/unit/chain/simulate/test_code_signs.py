"""What a token's code can read in a transfer, on code by compilers and by hand."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vyper.compiler import compile_code
from vyper.compiler.settings import OptimizationLevel, Settings

from conftest import PROJECT
from roundtrip.chain.simulate.code_signs import MAX_STEPS, code_signs
from roundtrip.chain.simulate.code_walk import CallWalk, scan
from roundtrip_development.devnet.compile import compile_contract

SOLIDITY: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parent / "solidity" / "tokens.json").read_text()
)
NOTHING: tuple[str, ...] = ()
OF_SOLIDITY = {
    "Plain": NOTHING,
    "SellsItsFees": NOTHING,
    "WalletsOnly": NOTHING,
    "Waits": ("origin",),
    "NotForSimulations": ("origin",),
    "SellsBelowAPrice": ("gas_price",),
    "LooksAtBuyers": ("balance", "block_hash", "code_hash"),
}

ORIGIN, CALLER, ADDRESS, BALANCE, GASPRICE, BLOCKHASH, EXTCODEHASH = "32", "33", "30", "31", "3a", "40", "3f"
EQ, ISZERO, AND, XOR, SUB, SHL, SSTORE, POP, JUMP, STOP = (
    "14",
    "15",
    "16",
    "18",
    "03",
    "1b",
    "55",
    "50",
    "56",
    "00",
)
ADDRESS_MASK = "73" + "ff" * 20
EVERY_SIGN = ORIGIN + ISZERO + GASPRICE + CALLER + BALANCE + CALLER + EXTCODEHASH + "43" + BLOCKHASH


SHIFTED = "60e01c"


def transfer(body: str, selector: str = "a9059cbb", read: str = SHIFTED, compared: str = "") -> bytes:
    """A contract with one function, whose body starts at 0x81. ``read`` makes the selector of the first word
    of the calldata, and ``compared`` of the constant that it is compared with."""
    head = "5f35" + read + "63" + selector + compared + EQ + "6080" + "57"
    return bytes.fromhex(head.ljust(0x80 * 2, "0") + "5b" + body + STOP)


@pytest.mark.parametrize("pipeline", SOLIDITY)
@pytest.mark.parametrize("name", OF_SOLIDITY)
def test_of_solidity(pipeline: str, name: str) -> None:
    assert code_signs(bytes.fromhex(SOLIDITY[pipeline][name])) == OF_SOLIDITY[name]


def test_every_solidity_token_is_judged() -> None:
    assert {name for codes in SOLIDITY.values() for name in codes} == OF_SOLIDITY.keys()


VYPER = """
last: HashMap[address, uint256]
one: public(uint256)
two: public(uint256)
three: public(uint256)

@external
def transfer(to: address, amount: uint256) -> bool:
    {transfer}
    return True

@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    {transfer_from}
    return True

@external
def rescue(to: address):
    assert tx.origin == self.first_owner and tx.gasprice > to.balance
    assert to.codehash != blockhash(block.number - 1)

first_owner: public(address)
"""


@pytest.mark.parametrize("level", [OptimizationLevel.NONE, OptimizationLevel.GAS, OptimizationLevel.CODESIZE])
@pytest.mark.parametrize(
    ("on_transfer", "on_transfer_from", "signs"),
    [
        ("assert self.balance == 0", "assert tx.origin == msg.sender", NOTHING),
        ("assert msg.sender != tx.origin", "pass", NOTHING),
        ("self.last[tx.origin] = block.number", "pass", ("origin",)),
        ("pass", "assert tx.gasprice == 0", ("gas_price",)),
        ("assert to.balance == 0 and to.codehash == empty(bytes32)", "pass", ("balance", "code_hash")),
        ("assert blockhash(block.number - 1) != empty(bytes32)", "pass", ("block_hash",)),
        ("assert tx.gasprice > 1", "assert to.balance == 0", ("balance", "gas_price")),
    ],
)
def test_of_vyper_with_each_of_its_jump_tables(
    level: OptimizationLevel, on_transfer: str, on_transfer_from: str, signs: tuple[str, ...]
) -> None:
    source = VYPER.format(transfer=on_transfer, transfer_from=on_transfer_from)
    output = compile_code(source, output_formats=["bytecode_runtime"], settings=Settings(optimize=level))
    assert code_signs(bytes.fromhex(output["bytecode_runtime"][2:])) == signs


@pytest.mark.parametrize(
    ("source", "signs"),
    [
        ("tokens/detect_simulation.vy", ("gas_price",)),
        ("zoo/detect_origin.vy", ("origin",)),
        ("zoo/detect_poor_sender.vy", ("balance",)),
        ("zoo/detect_balance_call.vy", NOTHING),
        ("zoo/proxy.vy", NOTHING),
    ],
)
def test_of_the_samples(source: str, signs: tuple[str, ...]) -> None:
    created = bytes.fromhex(compile_contract(PROJECT / "contracts" / source).removeprefix("0x"))
    starts = [at for at in (created.find(bytes.fromhex(head)) for head in ("5f3560e0", "600436")) if at > 0]
    assert code_signs(created[min(starts) :]) == signs


@pytest.mark.parametrize(
    ("body", "signs"),
    [
        (STOP, NOTHING),
        (GASPRICE, ("gas_price",)),
        ("60" + GASPRICE, NOTHING),
        (STOP + GASPRICE, NOTHING),
        (STOP + "5b" + GASPRICE, NOTHING),
        ("6083" + JUMP + GASPRICE, NOTHING),
        ("6086" + JUMP + STOP + STOP + "5b" + GASPRICE, ("gas_price",)),
        ("6085" + JUMP + "60" + "5b" + GASPRICE, NOTHING),
        ("6087" + JUMP + STOP * 2 + "5b5b" + GASPRICE, ("gas_price",)),
        ("5a" + "6088" + "57" + STOP * 3 + "5b" + GASPRICE, ("gas_price",)),
        ("5a" + "6087" + "57" + GASPRICE, ("gas_price",)),
        ("34" + "6088" + "57" + STOP * 3 + "5b" + GASPRICE, NOTHING),
        ("6005" + "5f" + "0a" + "608b" + "57" + GASPRICE + STOP + "5b", ("gas_price",)),
        (
            "601f" + "61ffff" + "5f" + "39" + "5a51" + "6090" + "57" + STOP * 3 + "5b" + GASPRICE,
            ("gas_price",),
        ),
        (
            "602061ffff5f39" + "60205f5f37" + "5f51" + "6096" + "57" + STOP * 4 + "5b" + GASPRICE,
            ("gas_price",),
        ),
        ("7f80" + "00" * 31 + "5f5f39" + GASPRICE, ("gas_price",)),
        ("5a" * 1025 + "5b" + GASPRICE, NOTHING),
        (ADDRESS + BALANCE, NOTHING),
        (ADDRESS + ADDRESS_MASK + AND + BALANCE, NOTHING),
        (CALLER + BALANCE, ("balance",)),
        ("600435" + BALANCE, ("balance",)),
        (ADDRESS + EXTCODEHASH, NOTHING),
        (ORIGIN + EXTCODEHASH, ("code_hash",)),
        ("6001" + BLOCKHASH, ("block_hash",)),
        (ORIGIN + CALLER + EQ, NOTHING),
        (CALLER + ADDRESS_MASK + AND + ORIGIN + XOR, NOTHING),
        (ORIGIN + ADDRESS_MASK + AND + CALLER + EQ, NOTHING),
        (CALLER + ORIGIN + SUB + ISZERO, NOTHING),
        (CALLER + "6060" + SHL + ORIGIN + "6060" + SHL + EQ, NOTHING),
        (CALLER + "60a0" + SHL + ORIGIN + "60a0" + SHL + EQ, ("origin",)),
        (ORIGIN + "6060" + SHL + "600435" + EQ, ("origin",)),
        (ORIGIN + POP, NOTHING),
        (ORIGIN + ORIGIN + EQ, ("origin",)),
        (ORIGIN + ISZERO, ("origin",)),
        (ORIGIN + "600435" + EQ, ("origin",)),
        (ORIGIN + "5f" + SSTORE, ("origin",)),
        ("5f" + GASPRICE + "90" * 2, ("gas_price",)),
        ("90" + GASPRICE, NOTHING),
        ("81" + GASPRICE, NOTHING),
        (POP + GASPRICE, NOTHING),
        ("0c" + GASPRICE, NOTHING),
    ],
)
def test_only_what_a_transfer_can_reach_counts(body: str, signs: tuple[str, ...]) -> None:
    assert code_signs(transfer(body)) == signs


def test_a_party_is_known_after_an_internal_call() -> None:
    """A function at 0x90 compares its argument with the origin, and returns."""
    check = "5b" + ORIGIN + EQ + "90" + JUMP
    for argument, signs in ((CALLER, NOTHING), ("600435", ("origin",))):
        body = ("6088" + argument + "6090" + JUMP).ljust(14, "0") + "5b" + POP + STOP
        assert code_signs(transfer(body.ljust(30, "0") + check)) == signs


@pytest.mark.parametrize(
    "code",
    [
        b"",
        bytes.fromhex("363d3d373d3d3d363d73" + "32" * 20 + "5af43d82803e903d91602b57fd5bf3"),
        transfer(EVERY_SIGN, selector="095ea7b3"),
        transfer("5f54" + JUMP + "5b" + EVERY_SIGN),
        transfer(GASPRICE).ljust(98_305, b"\0"),
    ],
    ids=["nothing", "a minimal proxy", "another function", "a computed jump", "more than a chain takes"],
)
def test_no_sign(code: bytes) -> None:
    assert code_signs(code) == NOTHING


def test_a_transfer_from_is_followed_too() -> None:
    signs = ("balance", "block_hash", "code_hash", "gas_price", "origin")
    assert code_signs(transfer(EVERY_SIGN, selector="23b872dd")) == signs


@pytest.mark.parametrize(
    ("read", "compared"),
    [
        (SHIFTED, ""),
        ("7c01" + "00" * 28 + "90" + "04", ""),
        ("60e0" + "6002" + "0a" + "90" + "04" + "63ffffffff" + AND, ""),
        ("63ffffffff" + "60e0" + SHL + AND, "60e0" + SHL),
        ("601c" + "52" + "5f" + "51", ""),
    ],
    ids=["a shift", "a division", "a power", "a mask", "memory"],
)
def test_the_selector_is_known_however_it_is_read(read: str, compared: str) -> None:
    assert code_signs(transfer(GASPRICE, "a9059cbb", read, compared)) == ("gas_price",)
    assert code_signs(transfer(GASPRICE, "095ea7b3", read, compared)) == NOTHING


HOSTILE = {
    "a loop that pushes": transfer("5b" + ADDRESS + GASPRICE + "6081" + JUMP),
    "branches without end": transfer("5b5a" + "6081" + "57" + "5b5a33" + "6085" + "57" + "6085" + JUMP),
    "jump destinations": transfer("5b" * 95_000),
    "one long block": transfer((GASPRICE + POP) * 45_000),
    "a deep stack": transfer("5a" * 1000 + "5b5a" * 40_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_is_left_after_so_many_steps(name: str) -> None:
    assert steps(HOSTILE[name]) <= MAX_STEPS + 600


@pytest.mark.parametrize("back", [JUMP, "6001" + "90" + "57"])
def test_a_loop_is_walked_once_however_it_counts(back: str) -> None:
    assert steps(transfer("5f" + "5b" + "6001" + "01" + "6082" + back)) < 200


def test_a_certain_branch_keeps_what_it_needs_to_find_the_next() -> None:
    body = "6001" + "6001" + "608a" + "57" + STOP * 2 + "5b" + "608f" + "01" + JUMP + STOP + "5b" + GASPRICE
    assert code_signs(transfer(body)) == ("gas_price",)


def test_new_code_is_walked_before_the_same_code_again() -> None:
    endless = "5b" + "5a" + "6090" + "57" + ADDRESS + "6081" + JUMP
    assert code_signs(transfer(endless.ljust(30, "0") + "5b" + GASPRICE)) == ("gas_price",)


def steps(code: bytes) -> int:
    """How many steps were counted, or instructions seen if those were more."""
    seen: list[int] = []
    targets, _ = scan(code)
    counted = CallWalk(code, targets, 0xA9059CBB, 68, lambda op, operands: seen.append(op)).run(MAX_STEPS)
    return max(counted, len(seen))


OPCODES = st.one_of(
    st.sampled_from(
        [b"\x5b", b"\x56", b"\x57", b"\x32", b"\x31", b"\x3a", b"\x80", b"\x90", b"\x39", b"\x51"]
    ),
    st.integers(0, 255).map(lambda target: bytes([0x60, target])),
    st.binary(min_size=1, max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(OPCODES, max_size=80).map(b"".join))
def test_any_bytes_have_signs_within_the_limit(code: bytes) -> None:
    _, present = scan(code)
    assert len(code_signs(code)) <= len(present)
    assert steps(code) <= MAX_STEPS + 600
