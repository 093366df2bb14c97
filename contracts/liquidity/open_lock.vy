# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Logic that lets everything out
@notice What the upgradable lock becomes: its beneficiary takes the NFT out at any time.
"""

from .lib import locks

initializes: locks

exports: (locks.unlockTime, locks.beneficiary, locks.lock)


@external
def withdraw(manager: address, tokenId: uint256):
    assert msg.sender == locks._locks[manager][tokenId].beneficiary, "not the beneficiary"
    locks._hand_over(manager, tokenId, msg.sender)
