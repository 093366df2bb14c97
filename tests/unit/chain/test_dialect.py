"""How numbers advance, and where a node puts the bytes of a revert."""

from dataclasses import dataclass

import pytest

from roundtrip.chain.dialect import ANVIL, Dialect


@dataclass(frozen=True)
class Answer:
    return_data: bytes
    error_data: bytes | None
    gas_used: int = 21_000


@pytest.mark.parametrize(
    ("delay_s", "numbers"), [(1, 1), (11, 1), (12, 1), (13, 1), (23, 1), (24, 2), (3600, 300), (86_400, 7200)]
)
def test_a_number_passes_every_twelve_seconds_and_at_least_one(delay_s: int, numbers: int) -> None:
    assert ANVIL.number_after(delay_s) == numbers


def test_a_network_may_count_numbers_faster() -> None:
    assert Dialect("quick", seconds_a_number=2).number_after(13) == 6


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (Answer(b"", b"why"), b"why"),
        (Answer(b"why", None), b"why"),
        (Answer(b"other", b"why"), b"why"),
        (Answer(b"other", b""), b""),
        (Answer(b"", None), b""),
    ],
    ids=["in the error", "in the return data", "in both", "an error that says nothing", "nowhere"],
)
def test_the_errors_own_bytes_come_before_the_returned_ones(answer: Answer, found: bytes) -> None:
    assert ANVIL.revert_data(answer) == found
