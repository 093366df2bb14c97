# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that one router may not move
@notice An honest ledger, but for one spender that may take nothing out of a wallet. Once capped, others
        take at most a ten-thousandth of the supply at a time.
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

refused: immutable(address)
most: uint256


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, router: address):
    erc20.__init__(name, symbol, 18, supply)
    refused = router
    self.most = supply


@external
def cap():
    self.most = erc20.totalSupply // 10_000


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    assert msg.sender != refused, "router refused"
    assert amount <= self.most, "too much"
    erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
    return True
