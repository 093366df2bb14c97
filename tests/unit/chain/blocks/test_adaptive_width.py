"""How many blocks are asked for at once."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from roundtrip.chain.blocks.adaptive_width import (
    FIRST_BLOCKS,
    MAX_BLOCKS,
    MAX_LOGS,
    TAKEN_TO_FORGET,
    TARGET_S,
    Width,
)

FAST, SLOW = TARGET_S / 10, 3 * TARGET_S


def test_fast_answers_widen_to_the_most() -> None:
    width = Width()
    seen = [width.blocks]
    for _ in range(7):
        width.note_answer(width.blocks, FAST, 0)
        seen.append(width.blocks)
    assert seen == [32, 64, 128, MAX_BLOCKS, MAX_BLOCKS, MAX_BLOCKS, MAX_BLOCKS, MAX_BLOCKS]


def test_a_slow_answer_halves_and_one_between_changes_nothing() -> None:
    width = Width()
    width.note_answer(FIRST_BLOCKS, 1.5 * TARGET_S, 0)
    assert width.blocks == FIRST_BLOCKS
    width.note_answer(FIRST_BLOCKS, SLOW, 0)
    assert width.blocks == FIRST_BLOCKS // 2


def test_many_logs_keep_it_from_growing_and_more_halve_it() -> None:
    width = Width()
    width.note_answer(FIRST_BLOCKS, FAST, MAX_LOGS // 2 + 1)
    assert width.blocks == FIRST_BLOCKS
    width.note_answer(FIRST_BLOCKS, FAST, MAX_LOGS + 1)
    assert width.blocks == FIRST_BLOCKS // 2


def test_several_sent_together_that_fail_together_narrow_once() -> None:
    width = Width()
    for _ in range(4):
        width.note_failure(FIRST_BLOCKS)
    assert width.blocks == FIRST_BLOCKS // 2


def test_an_answer_to_fewer_blocks_widens_nothing() -> None:
    width = Width()
    width.note_answer(1, FAST, 0)
    assert width.blocks == FIRST_BLOCKS


def test_what_was_refused_is_tried_again_after_a_while_only() -> None:
    width, limit, refused = Width(), 100, 0
    for _ in range(4 * TAKEN_TO_FORGET):
        if width.blocks > limit:
            width.note_refusal(width.blocks)
            refused += 1
        else:
            width.note_answer(width.blocks, FAST, 0)
    assert 2 <= refused <= 5
    for _ in range(20 * TAKEN_TO_FORGET):
        width.note_answer(width.blocks, FAST, 0)
    assert width.blocks == MAX_BLOCKS, "a limit that is gone is forgotten"


def test_after_a_failure_that_was_no_refusal_it_widens_again_at_once() -> None:
    width = Width()
    while width.blocks > 1:
        width.note_failure(width.blocks)
    for _ in range(11):
        width.note_answer(width.blocks, FAST, 0)
    assert width.blocks == MAX_BLOCKS


@given(st.floats(0.05, 20.0), st.integers(1, 400))
def test_it_settles_where_an_answer_takes_about_the_target(ms_a_block: float, logs_a_block: int) -> None:
    width = Width()
    for _ in range(60):
        width.note_answer(width.blocks, width.blocks * ms_a_block / 1000, width.blocks * logs_a_block)
    took_s, logs = width.blocks * ms_a_block / 1000, width.blocks * logs_a_block
    assert took_s <= 2 * TARGET_S
    assert logs <= MAX_LOGS
    assert width.blocks == MAX_BLOCKS or 2 * took_s >= TARGET_S / 2 or 2 * logs > MAX_LOGS, (
        "and uses what room there is"
    )


class Used(RuleBasedStateMachine):
    """Whatever is told to it in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self.width = Width()

    @rule(blocks=st.integers(1, MAX_BLOCKS), seconds=st.floats(0, 100), logs=st.integers(0, 10**6))
    def took(self, blocks: int, seconds: float, logs: int) -> None:
        before = self.width.blocks
        self.width.note_answer(blocks, seconds, logs)
        assert self.width.blocks <= 2 * max(before, blocks)

    @rule(blocks=st.integers(1, MAX_BLOCKS))
    def refused(self, blocks: int) -> None:
        self.width.note_refusal(blocks)
        assert self.width.blocks <= max(1, blocks // 2)

    @rule(blocks=st.integers(1, MAX_BLOCKS))
    def failed(self, blocks: int) -> None:
        before = self.width.blocks
        self.width.note_failure(blocks)
        assert self.width.blocks <= before

    @invariant()
    def within_bounds(self) -> None:
        assert 1 <= self.width.blocks <= MAX_BLOCKS


TestUsed = Used.TestCase
