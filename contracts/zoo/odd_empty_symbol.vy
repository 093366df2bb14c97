# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token with an empty symbol
@notice An honest token that sells at any time; its symbol is the empty text,
        whatever it was given.
"""

from ..tokens.lib import erc20

initializes: erc20

exports: (
    erc20.name,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    erc20.transferFrom,
)


@deploy
def __init__(name: String[64], token_symbol: String[32], supply: uint256):
    erc20.__init__(name, token_symbol, 18, supply)


@external
@view
def symbol() -> String[32]:
    return ""
