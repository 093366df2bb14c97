# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that pays who sells it, past the router
@notice Each transferFrom pays its sender a hundredth of an eth while there is that much.
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
)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
    if self.balance >= 10**16:
        send(source, 10**16)
    return True
