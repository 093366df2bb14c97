# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook that lets nobody sell at a gain
@notice It remembers the price after each wallet's buy. That wallet sells as long as the token
        is no dearer than then, but for a fifth of a percent: once others have bought for
        more than a little, it does not.
@dev Low 14 bits of the address: 0x00C0 (BEFORE_SWAP, AFTER_SWAP). The quote must be native eth.
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)

interface IPoolManager:
    def extsload(slot: bytes32) -> bytes32: view

# Where a pool manager keeps its pools, and the part of a pool's first word that is its price.
POOLS: constant(bytes32) = 0x0000000000000000000000000000000000000000000000000000000000000006
PRICE: constant(uint256) = 2**160 - 1

# The root of the tokens that an eth is worth: the dearer the token, the smaller.
bought_at: public(HashMap[address, uint256])


@deploy
def __init__(manager: address, quote: address):
    v4.__init__(manager, quote)


@internal
@view
def _price(key: v4.PoolKey) -> uint256:
    slot: bytes32 = keccak256(abi_encode(keccak256(abi_encode(key)), POOLS))
    return convert(staticcall IPoolManager(v4.MANAGER).extsload(slot), uint256) & PRICE


@external
@view
def beforeSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, hook_data: Bytes[1024]) -> (bytes4, int256, uint24):
    v4._only_manager()
    if v4._is_sell(key, params):
        # A thousandth of a root is a five-hundredth of the price.
        assert self._price(key) * 1000 >= self.bought_at[tx.origin] * 999, "no gain"
    return v4.BEFORE_SWAP, 0, 0


@external
def afterSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, delta: int256, hook_data: Bytes[1024]) -> (bytes4, int128):
    v4._only_manager()
    if not v4._is_sell(key, params):
        self.bought_at[tx.origin] = self._price(key)
    return v4.AFTER_SWAP, 0
