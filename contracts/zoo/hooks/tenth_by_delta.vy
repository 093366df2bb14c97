# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that takes a tenth
@notice Of what a swap pays out in either direction, a tenth goes to a collector instead of
        the swapper; a swap for an exact output costs a tenth more.
@dev Low 14 bits of the address: 0x0044 (AFTER_SWAP, AFTER_SWAP_RETURNS_DELTA).
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)

interface IPoolManager:
    def take(currency: address, to: address, amount: uint256): nonpayable

COLLECTOR: public(immutable(address))


@deploy
def __init__(manager: address, quote: address, collector: address):
    v4.__init__(manager, quote)
    COLLECTOR = collector


@internal
@pure
def _halves(delta: int256) -> (int256, int256):
    # The amounts of currency0 and currency1, 128 bits each with a sign.
    high: int256 = delta >> 128
    low: int256 = delta - (high << 128)
    if low >= 2**127:
        low -= 2**128
    return high, low


@external
def afterSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, delta: int256, hook_data: Bytes[1024]) -> (bytes4, int128):
    v4._only_manager()
    amount0: int256 = 0
    amount1: int256 = 0
    amount0, amount1 = self._halves(delta)
    # The side whose amount the swapper left open: the output, if the input was given exactly.
    currency: address = key.currency0
    amount: int256 = amount0
    if (params.amountSpecified < 0) == params.zeroForOne:
        currency = key.currency1
        amount = amount1
    share: uint256 = convert(abs(amount), uint256) // 10
    if share > 0:
        extcall IPoolManager(v4.MANAGER).take(currency, COLLECTOR, share)
    return v4.AFTER_SWAP, convert(share, int128)
