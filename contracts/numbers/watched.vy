# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Waits some block numbers, and has another contract look at its code
"""

from ..tokens.lib import erc20
from .lib import waiting

initializes: erc20
initializes: waiting[erc20 := erc20]

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
)

interface Watcher:
    def isSame() -> bool: nonpayable

WATCHER: immutable(address)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, watcher: address):
    erc20.__init__(name, symbol, 18, supply)
    waiting.maker = msg.sender
    WATCHER = watcher


@internal
def _move(source: address, to: address, amount: uint256):
    same: bool = extcall Watcher(WATCHER).isSame()
    waiting._move(source, to, amount, 10 if same else 0)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
