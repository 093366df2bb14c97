# pragma version 0.4.3
# pragma evm-version cancun
"""
@title An account in the code can raise a tax
@notice It has no owner(). An account that is a constant of its code can tax sales
        without a bound.
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

KEEPER: immutable(address)

_tax_bps: uint256


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, keeper: address):
    erc20.__init__(name, symbol, 18, supply)
    KEEPER = keeper


@external
def setSellTax(bps: uint256):
    assert msg.sender == KEEPER, "not the keeper"
    self._tax_bps = bps


@internal
def _move(source: address, to: address, amount: uint256):
    if source.is_contract or self._tax_bps == 0:
        erc20._move(source, to, amount)
    else:
        erc20._move_with_fee(source, to, amount, self._tax_bps, KEEPER)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
