# pragma version 0.4.3
# pragma evm-version cancun
"""
@title No transfer above a gas price
@notice Nobody but the owner can buy, sell or send the token in a transaction
        that pays more than a fixed gas price.
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
    owned.owner,
)

# Wei for a unit of gas.
CAP: public(immutable(uint256))


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, cap_wei: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    CAP = cap_wei


@internal
def _move(source: address, to: address, amount: uint256):
    if source != owned.owner:
        assert tx.gasprice <= CAP, "gas price"
    erc20._move(source, to, amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
