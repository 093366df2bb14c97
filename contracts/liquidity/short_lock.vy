# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A locker whose owner sets the times
@notice It works like the time lock. But its owner can set the time of any lock, also
        to one that has passed; then its beneficiary takes the NFT out.
"""

from .lib import locks

initializes: locks

exports: (locks.unlockTime, locks.beneficiary, locks.lock, locks.withdraw)

owner: public(address)


@deploy
def __init__():
    self.owner = msg.sender


@external
def setUnlockTime(manager: address, tokenId: uint256, unlockTime: uint256):
    assert msg.sender == self.owner, "not the owner"
    locks._locks[manager][tokenId].unlockTime = unlockTime
