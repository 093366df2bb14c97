# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The logic of a token whose owner can pause it
@notice A ledger that a proxy, or a clone, fills once and runs as its own. The buyer can
        sell until the owner, whoever filled it, pauses it.
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

initialized: public(bool)
paused: public(bool)


@deploy
def __init__():
    erc20.__init__("", "", 18, 0)
    owned.__init__()
    self.initialized = True


@external
def initialize(name: String[64], symbol: String[32], supply: uint256, receiver: address):
    assert not self.initialized, "initialized"
    self.initialized = True
    erc20.name = name
    erc20.symbol = symbol
    owned.owner = receiver
    erc20._mint(receiver, supply)


@external
def setPaused(paused: bool):
    owned._only_owner()
    self.paused = paused


@internal
def _move(source: address, to: address, amount: uint256):
    assert not self.paused or source == owned.owner, "paused"
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
