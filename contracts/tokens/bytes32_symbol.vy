# pragma version 0.4.3
# pragma evm-version cancun
"""
@title An honest token with a fixed-width name
@notice The buyer gets an ordinary token and can sell it at any time. Its name and
        symbol are 32 raw bytes instead of text, as some early tokens have them.
"""

from .lib import erc20

initializes: erc20

exports: (
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    erc20.transferFrom,
)

name: public(bytes32)
symbol: public(bytes32)


@deploy
def __init__(token_name: bytes32, token_symbol: bytes32, supply: uint256):
    erc20.__init__("", "", 18, supply)
    self.name = token_name
    self.symbol = token_symbol
