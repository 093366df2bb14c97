# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Honest, with dear approvals
@notice It keeps a history of approvals: each writes some words more and takes two or three
        times the usual gas.
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
    erc20.transfer,
    erc20.transferFrom,
    owned.owner,
)

WORDS: public(immutable(uint256))

written: public(HashMap[address, uint256])
history: public(HashMap[address, HashMap[uint256, uint256]])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, words: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    WORDS = words


@external
def approve(spender: address, amount: uint256) -> bool:
    erc20._approve(msg.sender, spender, amount)
    first: uint256 = self.written[msg.sender]
    for n: uint256 in range(WORDS, bound=64):
        self.history[msg.sender][first + n] = block.timestamp
    self.written[msg.sender] = first + WORDS
    return True
