# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A share of every transfer for all holders
@notice Part of every transfer is spread over all balances, the pool's too. The owner
        and exempted accounts pay nothing; a v3 pool refuses sales until it is exempt.
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

# Hundredths of a percent.
FEE_BPS: public(immutable(uint256))

# Shares in one unit; a fee makes it smaller, and with it all balances larger. 10**27 at the start.
rate: public(uint256)
shares: HashMap[address, uint256]
exempt: public(HashMap[address, bool])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, fee_bps: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    assert fee_bps <= 5_000, "more than half"
    FEE_BPS = fee_bps
    self.rate = 10**27
    self.shares[msg.sender] = supply * self.rate
    self.exempt[msg.sender] = True


@external
def setExempt(account: address, free: bool):
    """
    @notice Free the transfers from and to an account of the fee.
    """
    owned._only_owner()
    self.exempt[account] = free


@external
@view
def balanceOf(account: address) -> uint256:
    return self.shares[account] // self.rate


@internal
def _move(source: address, to: address, amount: uint256):
    assert to != empty(address), "zero address"
    rate: uint256 = self.rate
    assert self.shares[source] >= amount * rate, "balance too low"
    fee: uint256 = amount * FEE_BPS // 10_000
    if self.exempt[source] or self.exempt[to]:
        fee = 0
    self.shares[source] -= amount * rate
    self.shares[to] += (amount - fee) * rate
    # The fee's shares vanish: the supply stays, so every share left is worth more.
    self.rate = rate - rate * fee // erc20.totalSupply
    log erc20.Transfer(sender=source, receiver=to, value=amount - fee)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
