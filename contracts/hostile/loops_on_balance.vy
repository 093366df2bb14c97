# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Burns all gas when asked for a wallet's balance
@notice Once armed, asking for the balance of a wallet loops until the gas is gone.
        The balance of a contract, and so of a pool, is answered honestly.
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
def balanceOf(account: address) -> uint256:
    if switch.armed and not account.is_contract:
        burner._burn_all_gas()
    return erc20.balanceOf[account]
