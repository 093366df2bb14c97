# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A right that can be handed on
@notice Its owner is a burn address. A hidden account can hand its right to another,
        by the function that a search calls first, and can stop all transfers.
"""

from ..tokens.lib import erc20

initializes: erc20

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
)

owner: public(address)
_holder: address
_stopped: bool


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, hidden: address):
    erc20.__init__(name, symbol, 18, supply)
    self._holder = hidden


@external
def moveOn(to: address):
    assert msg.sender == self._holder, "no"
    self._holder = to


@external
def k3(stopped: bool):
    assert msg.sender == self._holder, "no"
    self._stopped = stopped


@internal
def _move(source: address, to: address, amount: uint256):
    assert not self._stopped, "stopped"
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
