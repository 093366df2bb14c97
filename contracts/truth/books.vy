# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token whose log may lie
@notice An ordinary ERC-20 that can be burned, and thrown away to nobody. Until
        somebody makes balances grow that no log tells of, or tells of transfers
        that never were, its log is true. Anybody may.
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


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)


@internal
def _move(source: address, to: address, amount: uint256):
    # Nobody is a recipient like any other: what lies there is still of the supply.
    assert erc20.balanceOf[source] >= amount, "balance too low"
    erc20.balanceOf[source] -= amount
    erc20.balanceOf[to] += amount
    log erc20.Transfer(sender=source, receiver=to, value=amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True


@external
def mint(to: address, amount: uint256):
    erc20._mint(to, amount)


@external
def burn(amount: uint256):
    """
    @notice Makes the supply smaller.
    """
    erc20.balanceOf[msg.sender] -= amount
    erc20.totalSupply -= amount
    log erc20.Transfer(sender=msg.sender, receiver=empty(address), value=amount)


@external
def grow(account: address, amount: uint256):
    """
    @notice A balance that no transfer made.
    """
    erc20.balanceOf[account] += amount


@external
def inflate(account: address, amount: uint256):
    """
    @notice A mint that no log tells of.
    """
    erc20.balanceOf[account] += amount
    erc20.totalSupply += amount


@external
def shrink(account: address, amount: uint256):
    """
    @notice A balance that goes without a transfer.
    """
    erc20.balanceOf[account] -= amount


@external
def cry(sender: address, receiver: address, amount: uint256):
    """
    @notice A transfer that never was.
    """
    log erc20.Transfer(sender=sender, receiver=receiver, value=amount)
