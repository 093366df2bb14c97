# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Buyers are caught afterwards
@notice Whoever bought can sell until the owner, some blocks later, lists the wallets that did.
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
    owned.owner,
)

event Listed:
    account: indexed(address)

listed: HashMap[address, bool]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def sync(accounts: DynArray[address, 20]):
    owned._only_owner()
    for account: address in accounts:
        self.listed[account] = True
        log Listed(account=account)


@internal
def _move(source: address, to: address, amount: uint256):
    assert not self.listed[source], "listed"
    erc20._move(source, to, amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
