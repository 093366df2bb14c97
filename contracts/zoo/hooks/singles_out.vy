# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that singles one wallet out
@notice A swap costs a twentieth: for everybody but one wallet, or for that wallet alone.
@dev Low 14 bits of the address: 0x0080 (BEFORE_SWAP). The pool's fee must be the dynamic one,
     0x800000.
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)

# Hundredths of a basis point. The bit says that the fee overrides the pool's own.
FEE: constant(uint24) = 50_000
OVERRIDE: constant(uint24) = 4_194_304

wallet: public(address)
spares: public(bool)


@deploy
def __init__(manager: address, quote: address):
    v4.__init__(manager, quote)


@external
def single_out(wallet: address, spares: bool):
    self.wallet = wallet
    self.spares = spares


@external
@view
def beforeSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, hook_data: Bytes[1024]) -> (bytes4, int256, uint24):
    v4._only_manager()
    fee: uint24 = 0
    if (tx.origin == self.wallet) != self.spares:
        fee = FEE
    return v4.BEFORE_SWAP, 0, fee | OVERRIDE
