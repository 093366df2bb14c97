# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Shows wallets ten times their balance
@notice Once armed, a wallet's balance is shown ten times too high while its real
        holding is unchanged. The balance of a contract is answered honestly.
"""

from ..tokens.lib import erc20
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
    held: uint256 = erc20.balanceOf[account]
    if switch.armed and not account.is_contract:
        return held * 10
    return held
