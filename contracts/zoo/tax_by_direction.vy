# pragma version 0.4.3
# pragma evm-version cancun
"""
@title One tax to buy, another to sell
@notice The owner sets a tax on buying and another on selling, both paid to
        the owner; a v3 pool refuses any taxed sale.
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

event TaxesSet:
    buyBps: uint256
    sellBps: uint256

# Hundredths of a percent.
buyBps: public(uint256)
sellBps: public(uint256)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, buy_bps: uint256, sell_bps: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    self._set(buy_bps, sell_bps)


@external
def setTaxes(buy_bps: uint256, sell_bps: uint256):
    owned._only_owner()
    self._set(buy_bps, sell_bps)


@internal
def _set(buy_bps: uint256, sell_bps: uint256):
    assert max(buy_bps, sell_bps) <= 10_000, "more than everything"
    self.buyBps = buy_bps
    self.sellBps = sell_bps
    log TaxesSet(buyBps=buy_bps, sellBps=sell_bps)


@internal
def _move(source: address, to: address, amount: uint256):
    bps: uint256 = 0
    if source.is_contract and owned._is_holder(to):
        bps = self.buyBps
    elif owned._is_holder(source) and to.is_contract:
        bps = self.sellBps
    erc20._move_with_fee(source, to, amount, bps, owned.owner)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
