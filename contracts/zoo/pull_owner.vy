# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The owner can take anybody's tokens
@notice An ordinary token that sells at any time, but the owner can take any
        wallet's tokens without asking.
"""

from ..tokens.lib import erc20
from ..tokens.lib import owned

initializes: erc20
initializes: owned

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
    owned.owner,
)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def seize(source: address, amount: uint256):
    owned._only_owner()
    erc20._move(source, owned.owner, amount)
