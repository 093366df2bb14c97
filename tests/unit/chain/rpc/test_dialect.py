"""How numbers advance, and where a node puts the bytes of a revert."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.rpc.dialect import ANVIL, GETH, NITRO, Dialect, SimulatedCallAnswer


def failed(
    returned: bytes,
    error_data: bytes | None,
    gas_used: int = 21_000,
    code: int = 3,
    message: str = "execution reverted",
) -> SimulatedCallAnswer:
    return SimulatedCallAnswer(gas_used, returned, code, message, error_data)


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
        (failed(b"", b"why"), b"why"),
        (failed(b"why", None), b"why"),
        (failed(b"other", b"why"), b"why"),
        (failed(b"other", b""), b""),
        (failed(b"", None), b""),
    ],
    ids=["in the error", "in the return data", "in both", "an error that says nothing", "nowhere"],
)
def test_the_errors_own_bytes_come_before_the_returned_ones(
    answer: SimulatedCallAnswer, found: bytes
) -> None:
    assert ANVIL.revert_data(answer) == found


def test_the_numbers_of_a_simulation_stay_within_what_a_node_spans() -> None:
    delays_s = (1, 12, 3588, 82_800, 6)
    assert ANVIL.numbers(delays_s, passing=True) == (1, 1, 299, 6900, 1)
    assert GETH.most_numbers == 250
    steps = GETH.numbers(delays_s, passing=True)
    assert 245 <= sum(steps) <= 250
    assert min(steps) >= 1
    assert steps[3] > steps[2] > 1


@pytest.mark.parametrize(
    ("dialect", "passing"), [(NITRO, True), (NITRO, False), (GETH, False), (ANVIL, False)]
)
def test_no_number_is_skipped_without_need(dialect: Dialect, passing: bool) -> None:
    assert dialect.numbers((1, 12, 3588, 82_800, 6), passing) == (1, 1, 1, 1, 1)


@pytest.mark.parametrize(
    ("dialect", "moment", "hour"), [(ANVIL, True, True), (GETH, True, False), (NITRO, False, False)]
)
def test_whether_a_wait_in_numbers_is_as_long_as_on_the_chain(
    dialect: Dialect, moment: bool, hour: bool
) -> None:
    assert dialect.can_pass((1, 7, 6)) is moment
    assert dialect.can_pass((1, 3594, 6)) is hour


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=8), st.integers(1, 300))
def test_every_block_has_a_number_of_its_own(delays_s: list[int], most: int) -> None:
    steps = Dialect("bound", most_numbers=most).numbers(tuple(delays_s), passing=True)
    assert len(steps) == len(delays_s)
    assert min(steps) >= 1
    assert sum(steps) <= max(most, len(delays_s))
    for step, delay_s in zip(steps, delays_s, strict=True):
        assert step <= ANVIL.number_after(delay_s)


@pytest.mark.parametrize(
    ("dialect", "answer", "limit", "out"),
    [
        (ANVIL, failed(b"", None, 90_000, -3200, "execution failed"), 90_000, True),
        (ANVIL, failed(b"", None, 89_999, -3200, "execution failed"), 90_000, False),
        (ANVIL, failed(b"why", None, 90_000, -3200, "execution failed"), 90_000, False),
        (GETH, failed(b"", None, 90_000, -32015, "out of gas"), 90_000, True),
        (GETH, failed(b"", None, 90_000, -32015, "invalid opcode: INVALID"), 90_000, False),
        (GETH, failed(b"", b"", 1_000, 3, "execution reverted"), 90_000, False),
        (GETH, failed(b"", b"", 90_000, 3, "execution reverted"), 90_000, False),
    ],
)
def test_running_out_of_gas_is_told_from_a_revert(
    dialect: Dialect, answer: SimulatedCallAnswer, limit: int, out: bool
) -> None:
    assert dialect.out_of_gas(answer, limit) is out


def test_only_where_numbers_pass_as_seconds_do_is_a_token_that_counts_blocks_judged() -> None:
    assert ANVIL.lets_numbers_pass()
    assert not GETH.lets_numbers_pass()
    assert not NITRO.lets_numbers_pass()
