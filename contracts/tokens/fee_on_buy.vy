# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A fee on the purchase
@notice The buyer receives less than the pool paid out: part of it goes to the
        owner. Selling costs nothing extra.
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
    erc20.transferFrom,
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
def transfer(to: address, amount: uint256) -> bool:
    # A pool is a contract and pays a buyer with `transfer`.
    if msg.sender.is_contract and to != owned.owner:
        erc20._move_with_fee(msg.sender, to, amount, TAX_BPS, owned.owner)
    else:
        erc20._move(msg.sender, to, amount)
    return True
