# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that keeps most of a larger sale
@notice The pool's fee is 0.3 %, but 60 % of a sale of more than a hundred thousand tokens.
@dev Low 14 bits of the address: 0x0080 (BEFORE_SWAP). The pool's fee must be the dynamic one,
     0x800000.
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)

LARGE: constant(int256) = 100_000 * 10**18

# Hundredths of a basis point. The bit says that the fee overrides the pool's own.
FEE: constant(uint24) = 3_000
LARGE_FEE: constant(uint24) = 600_000
OVERRIDE: constant(uint24) = 4_194_304


@deploy
def __init__(manager: address, quote: address):
    v4.__init__(manager, quote)


@external
@view
def beforeSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, hook_data: Bytes[1024]) -> (bytes4, int256, uint24):
    v4._only_manager()
    # An exact input is a negative amount.
    large: bool = v4._is_sell(key, params) and params.amountSpecified < -LARGE
    fee: uint24 = LARGE_FEE if large else FEE
    return v4.BEFORE_SWAP, 0, fee | OVERRIDE
