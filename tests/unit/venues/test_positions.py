"""What is read of a position is of its own pool, and its unclaimed fees are what it earned there."""

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.depth import Position
from roundtrip.venues import abi, amm_v3, amm_v4
from roundtrip.venues.positions import NO_STATE, PoolState, read_position
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address

HOLDER = address(0x77)


@pytest.mark.parametrize(
    ("place", "is_its_own"),
    [
        ((BELOW, CONTRACTS.weth, 3000, -60, 60), True),
        ((BELOW, CONTRACTS.weth, 500, -60, 60), False),
        ((CONTRACTS.weth, ABOVE, 3000, -60, 60), False),
        ((BELOW, CONTRACTS.weth, 3000, -120, 60), False),
    ],
)
def test_an_nft_of_another_v3_pool_is_no_position_of_this_one(
    place: tuple[str | int, ...], is_its_own: bool
) -> None:
    venue = amm_v3.pool(BELOW, CONTRACTS.weth, 3000, CONTRACTS)
    position = Position(CONTRACTS.v3_position_manager, 7, -60, 60, 500, HOLDER)
    low, high, fee_pips, lower, upper = place
    record = "".join(map(abi.word, (0, 0, low, high, fee_pips)))
    record += "".join(int(tick).to_bytes(32, "big", signed=True).hex() for tick in (lower, upper))
    record += "".join(map(abi.word, (500, 0, 0, 0, 0)))
    tick, nobody = bytes(8 * 32), bytes.fromhex(abi.word(0))
    answers = (bytes.fromhex(record), tick, tick, bytes.fromhex(abi.word(HOLDER)), nobody)
    state = read_position(position, venue, CONTRACTS, NO_STATE, answers)
    assert (state is not None and (state.liquidity, state.holder) == (500, HOLDER)) == is_its_own


Q128, UNSIGNED = 2**128, 2**256
LIQUIDITY, GROWN = 500, (9 * Q128, 8 * Q128)
"""``GROWN``: of the pool, for one unit of liquidity, of its two currencies."""
LAST, OWED = (3 * Q128, Q128), (70, 60)
"""The growth inside the range at the position's last change, and what it was owed then."""


def words(*values: int | str) -> bytes:
    return b"".join(
        (value % UNSIGNED).to_bytes(32, "big") if isinstance(value, int) else bytes.fromhex(abi.word(value))
        for value in values
    )


def ticks(lower: tuple[int, int], upper: tuple[int, int]) -> tuple[bytes, bytes]:
    """What a v3 pool answers of two ticks, by the growth outside of each."""
    return words(0, 0, *lower, 0, 0, 0, 1), words(0, 0, *upper, 0, 0, 0, 1)


def v3_record(owner: Address, last: tuple[int, int]) -> bytes:
    """A v3 position, as the manager of its NFT or as the pool tells it."""
    own = (LIQUIDITY, *last, *OWED)
    if owner != CONTRACTS.v3_position_manager:
        return words(*own)
    return words(0, 0, BELOW, CONTRACTS.weth, 3000, -60, 60, *own)


@pytest.mark.parametrize("owner", [CONTRACTS.v3_position_manager, HOLDER])
@pytest.mark.parametrize(
    ("tick", "last", "fees"),
    [
        # Inside: what grew, less what grew below (1, 2) and above (2, 0). 6 - 3 and 6 - 1 for each unit.
        (0, LAST, (500 * 3 + 70, 500 * 5 + 60)),
        # Below the range nothing is earned: 1 - 2 and 2 - 0 since the ticks were first crossed.
        (-61, (-Q128, Q128), (70, 500 + 60)),
        (60, (Q128 * -3, Q128 * -5), (500 * (2 - 1 + 3) + 70, 500 * (0 - 2 + 5) + 60)),
        # Counters wrap.
        (0, (UNSIGNED - Q128, 6 * Q128), (500 * 7 + 70, 60)),
    ],
)
def test_fees_of_a_v3_position_are_what_grew_since_its_last_change_and_what_it_is_owed(
    owner: Address, tick: int, last: tuple[int, int], fees: tuple[int, int]
) -> None:
    venue = amm_v3.pool(BELOW, CONTRACTS.weth, 3000, CONTRACTS)
    position = Position(owner, 7, -60, 60, LIQUIDITY, HOLDER)
    below_above = ticks((Q128, 2 * Q128), (2 * Q128, 0))
    answers = (v3_record(owner, last), *below_above, words(HOLDER), words(0))
    state = read_position(position, venue, CONTRACTS, PoolState(2**96, tick, LIQUIDITY, GROWN), answers)
    assert state is not None
    assert state.fees == fees


def test_fees_of_a_v4_position_are_what_grew_since_its_last_change() -> None:
    venue = amm_v4.pool("amm_v4", BELOW, "weth", CONTRACTS.weth, 3000, 60)
    position = Position(CONTRACTS.v4_position_manager, 7, -60, 60, LIQUIDITY, HOLDER)
    answers = (words(LIQUIDITY, *LAST), words(6 * Q128, 5 * Q128 // 2), words(HOLDER), words(0))
    state = read_position(position, venue, CONTRACTS, NO_STATE, answers)
    assert state is not None
    assert state.fees == (500 * 3, 500 * 3 // 2)
    unread = read_position(position, venue, CONTRACTS, NO_STATE, (answers[0], None, *answers[2:]))
    assert unread is not None
    assert unread.fees is None
