# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that only counts
@notice The buyer buys and sells in this pool as usual; the hook counts the swaps.
@dev Low 14 bits of the address: 0x0040 (AFTER_SWAP).
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)

swaps: public(uint256)


@deploy
def __init__(manager: address, quote: address):
    v4.__init__(manager, quote)


@external
def afterSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, delta: int256, hook_data: Bytes[1024]) -> (bytes4, int128):
    v4._only_manager()
    self.swaps += 1
    return v4.AFTER_SWAP, 0
