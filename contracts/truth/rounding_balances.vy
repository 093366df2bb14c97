# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Balances that round
@notice A ledger of shares: a balance is shares times a rate, rounded down,
        so that a transfer may arrive a unit or two short. Two traps look
        like it. With TRAP 1 what a buyer sells arrives short, whatever the
        amount. With TRAP 2 it does so from CLOSES_S after the purchase on.
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
    erc20.allowance,
    erc20.approve,
    owned.owner,
)

ONE: constant(uint256) = 10**27
TRAP: public(immutable(uint256))
CLOSES_S: public(immutable(uint256))

# In parts of ONE.
rate: public(uint256)
shares: HashMap[address, uint256]
bought_at: HashMap[address, uint256]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, trap: uint256, closes_s: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    TRAP = trap
    CLOSES_S = closes_s
    self.rate = ONE
    self.shares[msg.sender] = supply


@external
def rebase(rate: uint256):
    owned._only_owner()
    self.rate = rate


@external
@view
def balanceOf(account: address) -> uint256:
    return self.shares[account] * self.rate // ONE


@internal
def _move(source: address, to: address, amount: uint256):
    moved: uint256 = amount * ONE // self.rate
    assert self.shares[source] >= moved, "balance too low"
    self.shares[source] -= moved
    bought_at: uint256 = self.bought_at[source]
    is_late: bool = block.timestamp >= bought_at + CLOSES_S
    if bought_at > 0 and (TRAP == 1 or (TRAP == 2 and is_late)):
        # So many that no rounding makes up for it.
        moved -= min(moved, 4)
    self.shares[to] += moved
    if source.is_contract:
        self.bought_at[to] = block.timestamp
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
