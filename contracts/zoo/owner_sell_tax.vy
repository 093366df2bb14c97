# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The owner sets the tax on sales
@notice Sales are free until the owner sets a tax on them, of at most 99 percent; the
        owner collects it.
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

# Hundredths.
sellTax: public(uint256)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def setSellTax(percent: uint256):
    owned._only_owner()
    assert percent <= 99, "too much"
    self.sellTax = percent


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and to.is_contract:
        erc20._move_with_fee(source, to, amount, self.sellTax * 100, owned.owner)
    else:
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
