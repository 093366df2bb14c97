# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that refuses sales
@notice The buyer buys from this pool as usual; every swap of the token into the quote
        is refused.
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
    assert not v4._is_sell(key, params), "no sale"
    return v4.BEFORE_SWAP, 0, 0
