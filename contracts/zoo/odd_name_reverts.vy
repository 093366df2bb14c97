# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that does not tell its name
@notice An honest token that sells at any time; asking for its name reverts.
"""

from ..tokens.lib import erc20

initializes: erc20

exports: (
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
def __init__(token_name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(token_name, symbol, 18, supply)


@external
@view
def name() -> String[64]:
    raise "no name"
