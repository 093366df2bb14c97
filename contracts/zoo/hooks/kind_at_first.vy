# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that is kind at first
@notice Swaps cost nothing, but whoever sells later than ten minutes after buying pays 70 %.
@dev Low 14 bits of the address: 0x0080 (BEFORE_SWAP). The pool's fee must be the dynamic one,
     0x800000.
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)

KIND_FOR: constant(uint256) = 600

# Hundredths of a basis point. The bit says that the fee overrides the pool's own.
LATE_FEE: constant(uint24) = 700_000
OVERRIDE: constant(uint24) = 4_194_304

bought_at: public(HashMap[address, uint256])


@deploy
def __init__(manager: address, quote: address):
    v4.__init__(manager, quote)


@external
def beforeSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, hook_data: Bytes[1024]) -> (bytes4, int256, uint24):
    v4._only_manager()
    fee: uint24 = 0
    if not v4._is_sell(key, params):
        self.bought_at[tx.origin] = block.timestamp
    elif block.timestamp - self.bought_at[tx.origin] > KIND_FOR:
        fee = LATE_FEE
    return v4.BEFORE_SWAP, 0, fee | OVERRIDE
