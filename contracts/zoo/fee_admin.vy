# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The owner can set any fee
@notice Trading is free until the owner sets a fee, of up to everything, on
        every purchase and sale; the owner collects it.
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

event FeeSet:
    bps: uint256

# Hundredths of a percent.
feeBps: public(uint256)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def setFee(bps: uint256):
    owned._only_owner()
    assert bps <= 10_000, "more than everything"
    self.feeBps = bps
    log FeeSet(bps=bps)


@internal
def _move(source: address, to: address, amount: uint256):
    trade: bool = source.is_contract or to.is_contract
    if trade and owned.owner not in [source, to]:
        erc20._move_with_fee(source, to, amount, self.feeBps, owned.owner)
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
