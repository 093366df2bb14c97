# pragma version 0.4.3
"""
@title Liquidity that a contract holds in a v3 pool itself
@notice The contract has both tokens already, and pays the pool when it asks.
"""

from ethereum.ercs import IERC20

interface Pool:
    def token0() -> address: view
    def token1() -> address: view
    def mint(
        owner: address, lower: int24, upper: int24, liquidity: uint128, data: Bytes[32]
    ) -> (uint256, uint256): nonpayable
    def burn(lower: int24, upper: int24, liquidity: uint128) -> (uint256, uint256): nonpayable
    def collect(
        to: address, lower: int24, upper: int24, most0: uint128, most1: uint128
    ) -> (uint128, uint128): nonpayable

# The pool that may ask for money now.
_paying: address


@internal
def _add(pool: address, lower: int24, upper: int24, liquidity: uint128):
    self._paying = pool
    extcall Pool(pool).mint(self, lower, upper, liquidity, b"")
    self._paying = empty(address)


@internal
def _remove(pool: address, lower: int24, upper: int24, liquidity: uint128, to: address):
    extcall Pool(pool).burn(lower, upper, liquidity)
    extcall Pool(pool).collect(to, lower, upper, max_value(uint128), max_value(uint128))


@external
def uniswapV3MintCallback(amount0: uint256, amount1: uint256, data: Bytes[32]):
    assert msg.sender == self._paying, "not the pool"
    if amount0 > 0:
        extcall IERC20(staticcall Pool(msg.sender).token0()).transfer(msg.sender, amount0)
    if amount1 > 0:
        extcall IERC20(staticcall Pool(msg.sender).token1()).transfer(msg.sender, amount1)
