# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title A launched token
@notice An ordinary ERC-20 without an owner. The whole supply goes to the
        factory, which hands it to the token's curve in the same transaction.
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
    erc20.transfer,
    erc20.transferFrom,
)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
