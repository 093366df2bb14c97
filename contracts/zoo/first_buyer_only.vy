# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Only the first buyers can sell
@notice The first few wallets that buy can sell at any time; everybody who
        buys later can never sell.
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

# How many of the first buyers may sell.
LUCKY: public(immutable(uint256))

buyers: public(uint256)
# The number of a buyer, from 1; 0 for who never bought.
place: public(HashMap[address, uint256])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, lucky: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    LUCKY = lucky


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and to.is_contract:
        assert self.place[source] != 0 and self.place[source] <= LUCKY, "too late"
    if source.is_contract and owned._is_holder(to) and self.place[to] == 0:
        self.buyers += 1
        self.place[to] = self.buyers
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
