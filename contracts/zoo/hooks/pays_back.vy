# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that pays the buyer back
@notice Whoever buys the token in this pool gets the eth for it out of the hook's own, as
        long as it has any: the swap costs the buyer nothing.
@dev Low 14 bits of the address: 0x0080 (BEFORE_SWAP).
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)


@deploy
def __init__(manager: address, quote: address):
    v4.__init__(manager, quote)


@external
@payable
def __default__():
    pass


@external
def beforeSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, hook_data: Bytes[1024]) -> (bytes4, int256, uint24):
    v4._only_manager()
    # An exact input is a negative amount.
    if not v4._is_sell(key, params) and params.amountSpecified < 0:
        paid: uint256 = convert(-params.amountSpecified, uint256)
        raw_call(tx.origin, b"", value=min(paid, self.balance))
    return v4.BEFORE_SWAP, 0, 0
