# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The logic of a token behind a proxy
@notice An honest ledger that a proxy fills once and runs as its own; alone it is
        an empty token that nobody can fill.
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

initialized: public(bool)


@deploy
def __init__():
    erc20.__init__("", "", 18, 0)
    self.initialized = True


@external
def initialize(name: String[64], symbol: String[32], supply: uint256, receiver: address):
    assert not self.initialized, "initialized"
    self.initialized = True
    erc20.name = name
    erc20.symbol = symbol
    erc20._mint(receiver, supply)
