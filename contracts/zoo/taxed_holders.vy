# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A tax for wallets that the owner names
@notice The owner sets what a wallet pays of what it sends, in hundredths of a percent; others pay nothing.
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

event TaxSet:
    account: indexed(address)
    tax_bps: uint256

taxes_bps: HashMap[address, uint256]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def setTax(account: address, tax_bps: uint256):
    owned._only_owner()
    assert tax_bps <= 9900, "too much"
    self.taxes_bps[account] = tax_bps
    log TaxSet(account=account, tax_bps=tax_bps)


@internal
def _move(source: address, to: address, amount: uint256):
    tax: uint256 = amount * self.taxes_bps[source] // 10_000
    if tax > 0:
        erc20._move(source, self, tax)
    erc20._move(source, to, amount - tax)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
