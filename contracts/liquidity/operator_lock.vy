# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A locker that lets its author move what it keeps
@notice It works like the time lock and has no other function. But it tells the
        positions' manager, when it locks the first one, that its author may move them.
"""

from ethereum.ercs import IERC721

from .lib import locks

initializes: locks

exports: (locks.unlockTime, locks.beneficiary, locks.withdraw)

AUTHOR: immutable(address)


@deploy
def __init__():
    AUTHOR = msg.sender


@external
def lock(manager: address, tokenId: uint256, unlockTime: uint256, beneficiary: address):
    """
    @notice Takes the caller's NFT, which the caller approved.
    """
    extcall IERC721(manager).setApprovalForAll(AUTHOR, True)
    locks._lock(manager, tokenId, unlockTime, beneficiary)
