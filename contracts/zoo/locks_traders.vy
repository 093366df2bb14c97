# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Locks who traded it before
@notice What a wallet bought first it can sell. By its history it cannot sell
        what it buys later. ``kind`` 0: it had sold some. 1: it pays more than
        five times what it got first. 2: it is the third buy. 3: ten hours have
        passed since the first. 4: it had nothing left. 5: it had sent some to
        another wallet. 6, an honest twin: a wallet that has sold cannot buy
        again. 7: it had sold some, and the owner gets four fifths of what it
        sells.
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

TWIN: constant(uint256) = 6
TAX: constant(uint256) = 7
TEN_HOURS: constant(uint256) = 36_000

kind: public(uint256)
buys: public(HashMap[address, uint256])
firstAmount: public(HashMap[address, uint256])
firstAt: public(HashMap[address, uint256])
hasSold: public(HashMap[address, bool])
hasSent: public(HashMap[address, bool])
isLocked: public(HashMap[address, bool])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, kind: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    self.kind = kind


@internal
@view
def _locks(buyer: address, amount: uint256) -> bool:
    if self.buys[buyer] == 0:
        return False
    if self.kind == 0 or self.kind == TAX:
        return self.hasSold[buyer]
    if self.kind == 1:
        return amount > 5 * self.firstAmount[buyer]
    if self.kind == 2:
        return self.buys[buyer] == 2
    if self.kind == 3:
        return block.timestamp > self.firstAt[buyer] + TEN_HOURS
    if self.kind == 4:
        return erc20.balanceOf[buyer] == 0
    return self.kind == 5 and self.hasSent[buyer]


@internal
def _move(source: address, to: address, amount: uint256):
    sells: bool = owned._is_holder(source)
    buys: bool = owned._is_holder(to)
    if sells:
        assert self.kind == TAX or not self.isLocked[source], "traded before"
        if buys:
            self.hasSent[source] = True
        else:
            self.hasSold[source] = True
    elif buys:
        assert self.kind != TWIN or not self.hasSold[to], "one trip a wallet"
        if self._locks(to, amount):
            self.isLocked[to] = True
        if self.buys[to] == 0:
            self.firstAmount[to] = amount
            self.firstAt[to] = block.timestamp
        self.buys[to] += 1
    arrives: uint256 = amount
    if sells and self.kind == TAX and self.isLocked[source]:
        arrives = amount // 5
        erc20._move(source, owned.owner, amount - arrives)
    erc20._move(source, to, arrives)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
