# pragma version 0.4.3
# pragma evm-version cancun
"""
@title An account with a role can block wallets
@notice Its owner is a burn address. An account that an event gives a role, as
        AccessControl does it, can keep any wallet from selling.
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
)

event RoleGranted:
    role: indexed(bytes32)
    account: indexed(address)
    sender: indexed(address)

KEEPER: constant(bytes32) = keccak256("KEEPER_ROLE")

hasRole: public(HashMap[bytes32, HashMap[address, bool]])
blocked: public(HashMap[address, bool])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, keeper: address):
    erc20.__init__(name, symbol, 18, supply)
    self.hasRole[KEEPER][keeper] = True
    log RoleGranted(role=KEEPER, account=keeper, sender=msg.sender)


@external
@view
def owner() -> address:
    # Renounced from the first block.
    return empty(address)


@external
def setBlacklist(account: address, listed: bool):
    assert self.hasRole[KEEPER][msg.sender], "no role"
    self.blocked[account] = listed


@internal
def _move(source: address, to: address, amount: uint256):
    assert not self.blocked[source], "blocked"
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
