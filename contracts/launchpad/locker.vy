# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title Keeps graduated liquidity for ever
@notice Makes the full-range v4 position and owns it. Nothing here moves a
        position or a token out again.
"""

from ethereum.ercs import IERC20

from .lib import shapes

interface PositionManager:
    def nextTokenId() -> uint256: view
    def modifyLiquidities(plan: Bytes[4096], deadline: uint256): payable

interface Permit2:
    def approve(token: address, spender: address, amount: uint160, expiration: uint48): nonpayable

# v4-periphery's action numbers: twice settle, mint from deltas, take pair.
ACTIONS: constant(Bytes[4]) = x"0b0b0511"
MAX_TICK: constant(int24) = 887_272

FACTORY: public(immutable(address))
POSITIONS: public(immutable(PositionManager))
PERMIT2: public(immutable(Permit2))

# Position by pool id, 0 for none.
positionOf: public(HashMap[bytes32, uint256])


@deploy
def __init__(factory: address, positions: address, permit2: address):
    FACTORY = factory
    POSITIONS = PositionManager(positions)
    PERMIT2 = Permit2(permit2)


@internal
def _allow(currency: address, amount: uint256):
    if currency != empty(address):
        extcall IERC20(currency).approve(PERMIT2.address, amount, default_return_value=True)
        limit: uint160 = convert(amount, uint160)
        extcall PERMIT2.approve(currency, POSITIONS.address, limit, convert(block.timestamp, uint48))


@external
@payable
def lock(key: shapes.PoolKey, amount0: uint256, amount1: uint256) -> uint256:
    """
    @notice Puts both amounts into the pool over the full range. They are here already.
    @return The position's number.
    """
    assert msg.sender == FACTORY, "not the factory"
    position: uint256 = staticcall POSITIONS.nextTokenId()
    self._allow(key.currency0, amount0)
    self._allow(key.currency1, amount1)
    edge: int24 = MAX_TICK // key.tickSpacing * key.tickSpacing
    most: uint128 = max_value(uint128)
    steps: DynArray[Bytes[512], 4] = [
        abi_encode(key.currency0, amount0, key.currency0 != empty(address)),
        abi_encode(key.currency1, amount1, True),
        abi_encode(key, -edge, edge, most, most, self, b""),
        abi_encode(key.currency0, key.currency1, self),
    ]
    extcall POSITIONS.modifyLiquidities(abi_encode(ACTIONS, steps), block.timestamp, value=msg.value)
    self.positionOf[shapes._pool_id(key)] = position
    return position


@external
@payable
def __default__():
    # What a position could not use comes back.
    pass
