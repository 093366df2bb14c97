# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title Keeps the first generation's liquidity for ever
@notice Owns the v3 positions of all launches. Nothing here moves one or takes
        liquidity out; what they earn goes to the launch's creator.
"""

struct Collect:
    tokenId: uint256
    recipient: address
    amount0Max: uint128
    amount1Max: uint128

interface PositionManager:
    def collect(what: Collect) -> (uint256, uint256): payable

FACTORY: public(immutable(address))
POSITIONS: public(immutable(PositionManager))

# Creator by position, zero for none.
creatorOf: public(HashMap[uint256, address])


@deploy
def __init__(factory: address, positions: address):
    FACTORY = factory
    POSITIONS = PositionManager(positions)


@external
def lock(position: uint256, creator: address):
    """
    @notice Notes whose launch a position is of. It is here already.
    """
    assert msg.sender == FACTORY, "not the factory"
    self.creatorOf[position] = creator


@external
def collect(position: uint256) -> (uint256, uint256):
    """
    @notice Pays out what a position has earned. Anyone may call it.
    @return The amounts of the pool's first and second token.
    """
    creator: address = self.creatorOf[position]
    assert creator != empty(address), "no such position"
    most: uint128 = max_value(uint128)
    return extcall POSITIONS.collect(
        Collect(tokenId=position, recipient=creator, amount0Max=most, amount1Max=most)
    )
