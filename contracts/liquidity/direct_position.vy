# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Liquidity in a v3 pool without a position manager
@notice The pool knows this contract itself; its owner can pull all of it at any time.
"""

from .lib import pool_account

initializes: pool_account

exports: pool_account.uniswapV3MintCallback

owner: public(address)
_pool: address
_lower: int24
_upper: int24
_liquidity: uint128


@deploy
def __init__():
    self.owner = msg.sender


@external
def add(pool: address, lower: int24, upper: int24, liquidity: uint128):
    """
    @notice Deposits what the contract was sent.
    """
    assert msg.sender == self.owner, "not the owner"
    assert self._liquidity == 0, "there is a position"
    self._pool = pool
    self._lower = lower
    self._upper = upper
    self._liquidity = liquidity
    pool_account._add(pool, lower, upper, liquidity)


@external
def pull():
    assert msg.sender == self.owner, "not the owner"
    liquidity: uint128 = self._liquidity
    self._liquidity = 0
    pool_account._remove(self._pool, self._lower, self._upper, liquidity, self.owner)
