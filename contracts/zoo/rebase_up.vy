# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Balances that grow
@notice Every balance, the pool's too, grows by a small share a day without any transfer. It sells at any time, for a little more.
"""

from ..tokens.lib import erc20
from ..tokens.lib import owned

initializes: erc20
initializes: owned

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.allowance,
    erc20.approve,
    owned.owner,
)

# 10**27 is one.
ONE: constant(uint256) = 10**27

LAUNCHED_AT: immutable(uint256)

# Seconds from one change of the balances to the next.
STEP: public(immutable(uint256))

# What every step multiplies the balances by.
FACTOR: public(immutable(uint256))


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, bps_a_day: uint256, step_s: uint256):
    # The shared ledger keeps shares: units as they were at the launch.
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    assert step_s > 0 and bps_a_day * step_s < 10_000 * 86_400, "out of range"
    LAUNCHED_AT = block.timestamp
    STEP = step_s
    FACTOR = ONE + ONE * bps_a_day * step_s // (10_000 * 86_400)


@internal
@view
def _index() -> uint256:
    # FACTOR to the power of the steps since the launch.
    steps: uint256 = (block.timestamp - LAUNCHED_AT) // STEP
    index: uint256 = ONE
    square: uint256 = FACTOR
    for i: uint256 in range(256):
        if steps == 0:
            break
        if steps % 2 == 1:
            index = index * square // ONE
        square = square * square // ONE
        steps //= 2
    return index


@external
@view
def totalSupply() -> uint256:
    return erc20.totalSupply * self._index() // ONE


@external
@view
def balanceOf(account: address) -> uint256:
    return erc20.balanceOf[account] * self._index() // ONE


@internal
def _move(source: address, to: address, amount: uint256):
    # Rounded up: the receiver's balance grows by the whole amount, or a pool refuses it.
    index: uint256 = self._index()
    shares: uint256 = (amount * ONE + index - 1) // index
    assert to != empty(address), "zero address"
    assert erc20.balanceOf[source] >= shares, "balance too low"
    erc20.balanceOf[source] -= shares
    erc20.balanceOf[to] += shares
    log erc20.Transfer(sender=source, receiver=to, value=amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
