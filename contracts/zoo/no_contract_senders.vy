# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Contracts may not move a holder's tokens
@notice A holder's tokens move only when a plain wallet asks; a contract such
        as a router is blocked until the owner allows it.
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
    erc20.transfer,
    owned.owner,
)

allowed: public(HashMap[address, bool])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def allow(account: address):
    owned._only_owner()
    self.allowed[account] = True


@internal
@view
def _check_caller(source: address):
    if owned._is_holder(source):
        assert not msg.sender.is_contract or self.allowed[msg.sender], "contracts blocked"


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    self._check_caller(source)
    erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
    return True
