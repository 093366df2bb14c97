# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that burns gas
@notice Every swap runs until the gas is gone, hashing as much as fits: of all that gas can
        pay for, that takes a node longest.
@dev Low 14 bits of the address: 0x0080 (BEFORE_SWAP).
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)


@deploy
def __init__(manager: address, quote: address):
    v4.__init__(manager, quote)


@external
@view
def beforeSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, hook_data: Bytes[1024]) -> (bytes4, int256, uint24):
    v4._only_manager()
    noise: bytes32[2048] = empty(bytes32[2048])
    # The gas runs out long before the counter does.
    for i: uint256 in range(max_value(uint256)):
        noise[0] = keccak256(abi_encode(noise))
    return v4.BEFORE_SWAP, 0, 0
