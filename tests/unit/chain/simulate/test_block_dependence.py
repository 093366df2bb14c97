"""Which contracts may count blocks, told from their code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import PROJECT
from roundtrip.chain.simulate.block_dependence import may_count_blocks
from roundtrip_development.devnet.compile import compile_contract

NUMBER, BLOCKHASH, STOP, JUMPDEST, JUMP = "43", "40", "00", "5b", "56"


@pytest.mark.parametrize(
    ("code", "counts"),
    [
        ("", False),
        (NUMBER, True),
        ("6001" + BLOCKHASH, True),
        ("6043" + STOP, False),
        ("7f" + NUMBER * 32 + STOP, False),
        ("7f" + NUMBER * 31, False),
        (STOP + NUMBER, False),
        (STOP + JUMPDEST + NUMBER, True),
        (STOP + "60" + JUMPDEST + NUMBER, False),
        ("600356" + JUMPDEST + NUMBER, True),
        ("fe" + "a26469706673" + NUMBER * 4, False),
        ("fe" + JUMPDEST + NUMBER, True),
        ("5f5f5f5f5f5f" + "f1", True),
        ("5f5f5f5f5f" + "f4", True),
        ("5f5f5f5f5f" + "fa", True),
        ("5f5f5f5f5f5f" + "f2", True),
        ("5f5f5f" + "f0", True),
        ("5f5f5f5f" + "f5", True),
        ("ef0100" + "22" * 20, True),
        ("42" + "41" + "44" + "45" + "48" + "3a" + STOP, False),
    ],
)
def test_only_instructions_that_can_be_reached_count(code: str, counts: bool) -> None:
    assert may_count_blocks(bytes.fromhex(code)) is counts


def runtime(source: str) -> bytes:
    """What stands on the chain of a contract: the creation code's end."""
    code = bytes.fromhex(compile_contract(PROJECT / "contracts" / source).removeprefix("0x"))
    return code[code.index(bytes.fromhex("5f35")) :]


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ("tokens/plain.vy", False),
        ("tokens/owner_only_sell.vy", False),
        ("tokens/cooldown.vy", False),
        ("tokens/blacklist_after_buy.vy", True),
        ("zoo/cooldown_blocks.vy", True),
        ("zoo/proxy.vy", True),
    ],
)
def test_of_the_samples_those_count_that_do(source: str, counts: bool) -> None:
    assert may_count_blocks(runtime(source)) is counts


@given(st.binary(max_size=200))
def test_what_counts_still_does_with_more_behind_it(code: bytes) -> None:
    if may_count_blocks(code):
        assert may_count_blocks(code + b"\x00")
    assert may_count_blocks(b"\x43" + code)
