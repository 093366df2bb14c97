# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The owner can stop all trading
@notice The owner can pause the token. While it is paused nobody else can buy,
        sell or send it.
"""

from .lib import erc20
from .lib import owned

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

event Paused:
    account: address

event Unpaused:
    account: address

paused: public(bool)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def pause():
    owned._only_owner()
    self.paused = True
    log Paused(account=msg.sender)


@external
def unpause():
    owned._only_owner()
    self.paused = False
    log Unpaused(account=msg.sender)


@internal
def _move(source: address, to: address, amount: uint256):
    if self.paused:
        assert owned.owner in [source, msg.sender], "paused"
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
