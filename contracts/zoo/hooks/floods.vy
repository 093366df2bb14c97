# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that floods whoever asks
@notice Swaps in one direction, buys of the token or sales, fail with a reason of a quarter of a
        megabyte; those in the other pass.
@dev Low 14 bits of the address: 0x0080 (BEFORE_SWAP).
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)

WORDS: constant(uint256) = 8_192

# Which direction fails.
ON_SELL: public(immutable(bool))


@deploy
def __init__(manager: address, quote: address, on_sell: bool):
    v4.__init__(manager, quote)
    ON_SELL = on_sell


@external
@view
def beforeSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, hook_data: Bytes[1024]) -> (bytes4, int256, uint24):
    v4._only_manager()
    if v4._is_sell(key, params) == ON_SELL:
        # Nothing but zeros, which cost next to no gas.
        raw_revert(abi_encode(empty(bytes32[WORDS])))
    return v4.BEFORE_SWAP, 0, 0
