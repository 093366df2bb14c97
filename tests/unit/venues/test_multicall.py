"""Many reads in one call, against an independent encoder."""

from eth_abi.abi import decode, encode
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address
from roundtrip.venues.base import Call
from roundtrip.venues.multicall import AGGREGATE3, plan_reads, read_answers
from unit.venues.network import CONTRACTS

_CALLS = st.lists(st.tuples(st.integers(1, 2**160 - 1), st.binary(max_size=100)), max_size=5)


@given(_CALLS)
def test_calls_are_encoded_as_the_contract_reads_them(calls: list[tuple[int, bytes]]) -> None:
    planned = plan_reads([Call(Address(f"0x{to:040x}"), "0x" + data.hex()) for to, data in calls], CONTRACTS)
    (decoded,) = decode(["(address,bool,bytes)[]"], bytes.fromhex(planned.data[10:]))
    assert planned.to == CONTRACTS.multicall3
    assert planned.data.startswith(AGGREGATE3)
    assert list(decoded) == [(f"0x{to:040x}", True, data) for to, data in calls]


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=100)), max_size=5))
def test_answers_are_read_and_a_failed_one_is_none(answers: list[tuple[bool, bytes]]) -> None:
    data = encode(["(bool,bytes)[]"], [answers])
    assert read_answers(data, len(answers)) == tuple(answer if ok else None for ok, answer in answers)
    assert read_answers(data, len(answers) + 1) is None


@given(st.binary(max_size=400), st.integers(0, 5))
def test_no_answer_raises(data: bytes, count: int) -> None:
    answers = read_answers(data, count)
    assert answers is None or len(answers) == count
