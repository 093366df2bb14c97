# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Another contract decides on its transfers
@notice Its owner is a burn address and it has no function that changes anything.
        Each transfer asks a controller, which has an owner of its own.
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

interface Controller:
    def isAllowed(source: address) -> bool: view

_controller: Controller


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, controller: address):
    erc20.__init__(name, symbol, 18, supply)
    self._controller = Controller(controller)


@external
@view
def owner() -> address:
    # Renounced from the first block.
    return empty(address)


@internal
def _move(source: address, to: address, amount: uint256):
    assert staticcall self._controller.isAllowed(source), "not allowed"
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
