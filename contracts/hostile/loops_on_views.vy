# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Burns all gas when asked for its name
@notice Once armed, asking for the name or the symbol loops until the gas is gone.
        Everything else is honest.
"""

from ..tokens.lib import erc20
from .lib import burner
from .lib import switch

initializes: erc20
initializes: switch

exports: (
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    erc20.transferFrom,
    switch.owner,
    switch.armed,
    switch.arm,
)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    switch.__init__()


@external
@view
def name() -> String[64]:
    if switch.armed:
        burner._burn_all_gas()
    return erc20.name


@external
@view
def symbol() -> String[32]:
    if switch.armed:
        burner._burn_all_gas()
    return erc20.symbol
