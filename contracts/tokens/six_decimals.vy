# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Plain token with six decimals
@notice The buyer gets an ordinary ERC-20 and can sell it at any time.
        The only difference is that one whole token is 10**6 units.
"""

from .lib import erc20

initializes: erc20

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    erc20.transferFrom,
)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 6, supply)
