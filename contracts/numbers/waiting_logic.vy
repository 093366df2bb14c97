# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The logic of a token whose buyers wait some block numbers
@notice A proxy fills it once and runs it as its own.
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

BLOCKS: immutable(uint256)
initialized: bool


@deploy
def __init__(blocks: uint256):
    erc20.__init__("", "", 18, 0)
    BLOCKS = blocks
    self.initialized = True


@external
def initialize(name: String[64], symbol: String[32], supply: uint256, receiver: address):
    assert not self.initialized, "initialized"
    self.initialized = True
    erc20.name = name
    erc20.symbol = symbol
    waiting.maker = receiver
    erc20._mint(receiver, supply)


@internal
def _move(source: address, to: address, amount: uint256):
    waiting._move(source, to, amount, BLOCKS)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
