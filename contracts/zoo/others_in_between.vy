# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A buyer can sell until others have bought
@notice Whoever buys can sell until so many others have bought, each for at least so many
        tokens; smaller buys are not counted.
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

# How many others, and from how many whole tokens on a buy is counted.
OTHERS: public(immutable(uint256))
LEAST: public(immutable(uint256))

buys: public(uint256)
number: public(HashMap[address, uint256])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, others: uint256, least: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    OTHERS = others
    LEAST = least


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and to.is_contract:
        assert self.buys < self.number[source] + OTHERS, "too late"
    if source.is_contract and owned._is_holder(to) and amount >= LEAST * 10**18:
        self.buys += 1
        self.number[to] = self.buys
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
