# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The owner sets how long buyers wait
@notice The buyer can sell at once until the owner sets a wait between a purchase and
        the sale of it, of any length.
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

cooldown: public(uint256)
lastBuy: HashMap[address, uint256]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def setCooldown(duration: uint256):
    owned._only_owner()
    self.cooldown = duration


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source):
        assert block.timestamp >= self.lastBuy[source] + self.cooldown, "cooldown"
    if owned._is_holder(to):
        self.lastBuy[to] = block.timestamp
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
