# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Waits some block numbers, and looks at its own code
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

seen: bytes32


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    waiting.maker = msg.sender


@internal
def _move(source: address, to: address, amount: uint256):
    code: bytes32 = keccak256(slice(self.code, 0, 1600))
    if self.seen == empty(bytes32):
        self.seen = code
    waiting._move(source, to, amount, 10 if self.seen == code else 0)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
