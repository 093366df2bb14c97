# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that sells what it mints, to a pool, past every wallet
@notice Whoever calls has what the pool pays.
"""

from ..tokens.lib import erc20
initializes: erc20
exports: (erc20.name, erc20.symbol, erc20.decimals, erc20.totalSupply, erc20.balanceOf, erc20.allowance, erc20.approve, erc20.transferFrom, erc20.transfer)
interface IPool:
    def swap(recipient: address, zeroForOne: bool, amount: int256, limit: uint160, data: Bytes[32]) -> (int256, int256): nonpayable
    def token0() -> address: view

@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)

@external
def rebalance(pool: address, amount: uint256):
    """mints straight into the pool, and has what it pays"""
    low: bool = staticcall IPool(pool).token0() == self
    limit: uint160 = 4295128740
    if not low:
        limit = 1461446703485210103287273052203988822378723970341
    extcall IPool(pool).swap(msg.sender, low, convert(amount, int256), limit, b"")

@external
def uniswapV3SwapCallback(a: int256, b: int256, data: Bytes[32]):
    owed: int256 = a
    if b > 0:
        owed = b
    erc20._mint(msg.sender, convert(owed, uint256))
