# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The logic of a share behind a beacon, whose rights belong to roles
@notice Honest, and nobody's: one account may pause all transfers, another may block wallets,
        a third may burn what a wallet holds. It has no owner; its events name who has which role.
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

PAUSER: constant(bytes32) = keccak256("PAUSER_ROLE")
BLOCKER: constant(bytes32) = keccak256("BLOCKER_ROLE")
BURNER: constant(bytes32) = keccak256("BURNER_ROLE")

initialized: bool
hasRole: public(HashMap[bytes32, HashMap[address, bool]])
paused: public(bool)
blocked: public(HashMap[address, bool])


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
    self._grant(PAUSER, receiver)
    self._grant(BLOCKER, receiver)
    self._grant(BURNER, receiver)
    erc20._mint(receiver, supply)


@internal
def _grant(role: bytes32, granter: address):
    account: address = convert(slice(keccak256(concat(role, convert(granter, bytes20))), 0, 20), address)
    self.hasRole[role][account] = True
    log RoleGranted(role=role, account=account, sender=granter)


@external
def pause():
    assert self.hasRole[PAUSER][msg.sender], "no role"
    self.paused = True


@external
def unpause():
    assert self.hasRole[PAUSER][msg.sender], "no role"
    self.paused = False


@external
def setBlocked(wallet: address, blocked: bool):
    assert self.hasRole[BLOCKER][msg.sender], "no role"
    self.blocked[wallet] = blocked


@external
def adminBurn(wallet: address, amount: uint256):
    assert self.hasRole[BURNER][msg.sender], "no role"
    erc20.balanceOf[wallet] -= amount
    erc20.totalSupply -= amount


@internal
def _move(source: address, to: address, amount: uint256):
    assert not self.paused, "paused"
    assert not self.blocked[source] and not self.blocked[to], "blocked"
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
