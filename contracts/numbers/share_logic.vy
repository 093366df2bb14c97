# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The logic of a share behind a beacon
@notice Honest: a pause, a list of blocked wallets, and a multiplier that is shown
        from a moment on and moves no balance.
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

initialized: bool
operator: address
paused: bool
blocked: HashMap[address, bool]
multiplier: uint256
nextMultiplier: uint256
effectiveAt: public(uint256)


@deploy
def __init__():
    erc20.__init__("", "", 18, 0)
    self.initialized = True


@external
def initialize(name: String[64], symbol: String[32], supply: uint256, receiver: address):
    assert not self.initialized, "initialized"
    self.initialized = True
    erc20.name = name
    erc20.symbol = symbol
    self.operator = receiver
    self.multiplier = 10**18
    self.nextMultiplier = 2 * 10**18
    self.effectiveAt = block.timestamp + 3600
    erc20._mint(receiver, supply)


@external
@view
def uiMultiplier() -> uint256:
    return self.nextMultiplier if block.timestamp >= self.effectiveAt else self.multiplier


@external
def setPaused(paused: bool):
    assert msg.sender == self.operator, "not the operator"
    self.paused = paused


@external
def setBlocked(wallet: address, blocked: bool):
    assert msg.sender == self.operator, "not the operator"
    self.blocked[wallet] = blocked


@internal
def _move(source: address, to: address, amount: uint256):
    assert not self.paused, "paused"
    assert not self.blocked[source] and not self.blocked[to], "blocked"
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
