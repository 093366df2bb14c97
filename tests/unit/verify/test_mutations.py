"""Nothing in the steps of a right answer can be changed unnoticed.

Every byte of every step of every kind of trade is changed: where it goes, its calldata, and the eth that goes
along. Not one change is harmless. In the calls of curves every byte takes each of the 255 other values; in
longer ones some, drawn by a fixed seed.
"""

import random
from collections.abc import Iterator

import pytest

from unit.verify.samples import CASES, TradeCase, body, caught

EVERY = 255
DRAWN = {"launchpad_curve": EVERY, "amm_v3": 3, "amm_v4": 1, "launchpad_pool": 1}
"""How many other values a byte of the trade takes. Every case of v4 has others like it beside it."""

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def changed(data: bytes, count: int, draws: random.Random) -> Iterator[bytes]:
    """``data`` with one byte changed, each byte ``count`` times: first one of its bits, then anything."""
    for at, value in enumerate(data):
        others = [other for other in range(256) if other != value]
        if count < EVERY:
            others = [value ^ (1 << draws.randrange(8)), *draws.sample(others, count - 1)]
        for other in others:
            yield data[:at] + bytes([other]) + data[at + 1 :]


@every_case
def test_every_change_of_one_byte_of_a_step_is_caught(case: TradeCase) -> None:
    draws = random.Random(case.name)
    answer = body(case)
    for step in answer["steps"]:
        right = dict(step)
        to, data = bytes.fromhex(right["to"][2:]), bytes.fromhex(right["data"][2:])
        # The calls of a curve with eth stand for all approvals; those of the others are the same.
        count = min(DRAWN[case.kind], EVERY if case.quote == "eth" else 3)
        for mutant in changed(data, count, draws):
            step["data"] = "0x" + mutant.hex()
            assert caught(answer), (right["n"], mutant.hex())
        step["data"] = right["data"]
        for mutant in changed(to, 2, draws):
            step["to"] = "0x" + mutant.hex()
            assert caught(answer), (right["n"], mutant.hex())
        step["to"] = right["to"]
        for mutant in changed(int(right["value"]).to_bytes(32, "big"), 2, draws):
            step["value"] = str(int.from_bytes(mutant, "big"))
            assert caught(answer), (right["n"], mutant.hex())
        step["value"] = right["value"]
    assert not caught(answer)


@every_case
def test_no_byte_can_be_added_or_left_out(case: TradeCase) -> None:
    answer = body(case)
    for step in answer["steps"]:
        right = step["data"]
        for cut in (2, 4, *range(10, len(right), 64)):
            step["data"] = right[:cut]
            assert caught(answer)
            step["data"] = right[:cut] + "00" + right[cut:]
            assert caught(answer)
        for more in ("00", "00" * 32, "ff", "0"):
            step["data"] = right + more
            assert caught(answer)
        step["data"] = right


@every_case
def test_the_case_of_hex_digits_means_nothing(case: TradeCase) -> None:
    """The one change of a character that is harmless, because the bytes are the same."""
    answer = body(case)
    for step in answer["steps"]:
        step["data"] = "0x" + step["data"][2:].upper()
        step["to"] = "0x" + step["to"][2:].upper()
    answer["venue"]["at"] = "0x" + answer["venue"]["at"][2:].upper()
    assert not caught(answer)


@every_case
def test_gas_is_free_within_what_a_transaction_may_take(case: TradeCase) -> None:
    answer = body(case)
    for step in answer["steps"]:
        for gas, harmless in (
            (20_999, False),
            (21_000, True),
            (2**24, True),
            (2**24 + 1, False),
            (-1, False),
        ):
            step["gas"] = gas
            assert caught(answer) is not harmless
        step["gas"] = 90_000
