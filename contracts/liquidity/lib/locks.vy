# pragma version 0.4.3
"""
@title NFTs that are kept until a time
@notice One lock for each NFT, by its manager and number. Who locks it hands it over;
        its beneficiary takes it out from the unlock time on.
"""

from ethereum.ercs import IERC721

event Locked:
    manager: indexed(address)
    tokenId: indexed(uint256)
    beneficiary: indexed(address)
    unlockTime: uint256

event Withdrawn:
    manager: indexed(address)
    tokenId: indexed(uint256)
    to: indexed(address)

struct Lock:
    beneficiary: address
    unlockTime: uint256

_locks: HashMap[address, HashMap[uint256, Lock]]


@external
@view
def unlockTime(manager: address, tokenId: uint256) -> uint256:
    """
    @notice From when the NFT can be taken out. Seconds; 0 where it is not here.
    """
    return self._locks[manager][tokenId].unlockTime


@external
@view
def beneficiary(manager: address, tokenId: uint256) -> address:
    return self._locks[manager][tokenId].beneficiary


@external
def lock(manager: address, tokenId: uint256, unlockTime: uint256, beneficiary: address):
    """
    @notice Takes the caller's NFT, which the caller approved.
    """
    self._lock(manager, tokenId, unlockTime, beneficiary)


@internal
def _lock(manager: address, tokenId: uint256, unlockTime: uint256, beneficiary: address):
    assert beneficiary != empty(address), "no beneficiary"
    assert unlockTime > block.timestamp, "not in the future"
    self._locks[manager][tokenId] = Lock(beneficiary=beneficiary, unlockTime=unlockTime)
    extcall IERC721(manager).transferFrom(msg.sender, self, tokenId)
    log Locked(manager=manager, tokenId=tokenId, beneficiary=beneficiary, unlockTime=unlockTime)


@external
def withdraw(manager: address, tokenId: uint256):
    """
    @notice Hands the NFT to its beneficiary, who asks for it.
    """
    found: Lock = self._locks[manager][tokenId]
    assert msg.sender == found.beneficiary, "not the beneficiary"
    assert block.timestamp >= found.unlockTime, "still locked"
    self._hand_over(manager, tokenId, msg.sender)


@internal
def _hand_over(manager: address, tokenId: uint256, to: address):
    self._locks[manager][tokenId] = empty(Lock)
    extcall IERC721(manager).transferFrom(self, to, tokenId)
    log Withdrawn(manager=manager, tokenId=tokenId, to=to)
