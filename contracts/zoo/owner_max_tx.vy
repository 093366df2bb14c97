# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The owner sets how much sells at once
@notice The buyer can sell any amount until the owner sets a smaller ceiling, down to
        nothing.
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

maxTx: public(uint256)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    self.maxTx = supply


@external
def setMaxTx(amount: uint256):
    owned._only_owner()
    self.maxTx = amount


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source):
        assert amount <= self.maxTx, "max tx"
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
