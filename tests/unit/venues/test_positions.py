"""What is read of a position is of its own pool."""

import pytest

from roundtrip.domain.liquidity.positions import Position
from roundtrip.venues import abi, amm_v3
from roundtrip.venues.positions import NO_STATE, read_position
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
