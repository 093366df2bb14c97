# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A locker of v3 positions by lock number
@notice It keeps an NFT until its owner's date, and pays its fees meanwhile to whom the
        owner named. The owner can put the date off and hand the lock on. Only the newest
        lock of an NFT opens, whatever storage the contract was made with.
"""

from ethereum.ercs import IERC721

struct Fees:
    tokenId: uint256
    recipient: address
    amount0Max: uint128
    amount1Max: uint128

interface PositionManager:
    def collect(fees: Fees) -> (uint256, uint256): payable

struct Lock:
    lockId: uint256
    manager: address
    nftId: uint256
    owner: address
    collector: address
    unlockDate: uint256

event LockOpened:
    lockId: indexed(uint256)
    manager: indexed(address)
    nftId: indexed(uint256)
    owner: address
    unlockDate: uint256

event LockClosed:
    lockId: indexed(uint256)
    receiver: indexed(address)

# A date that never comes.
ETERNAL: constant(uint256) = max_value(uint256)

lockCount: public(uint256)
_locks: HashMap[uint256, Lock]
# The number of an NFT's lock, by its manager and its own number.
_lockOf: HashMap[address, HashMap[uint256, uint256]]


@external
@view
def getLock(lockId: uint256) -> Lock:
    return self._locks[lockId]


@external
@view
def locks(manager: address, nftId: uint256) -> Lock:
    """
    @notice The lock of an NFT.
    """
    return self._locks[self._lockOf[manager][nftId]]


@external
def lock(manager: address, nftId: uint256, owner: address, collector: address, unlockDate: uint256) -> uint256:
    """
    @notice Takes the caller's NFT, which the caller approved.
    @return The lock's number, from 0 on.
    """
    assert owner != empty(address), "no owner"
    assert unlockDate > block.timestamp, "not in the future"
    lockId: uint256 = self.lockCount
    self.lockCount = lockId + 1
    self._locks[lockId] = Lock(
        lockId=lockId, manager=manager, nftId=nftId, owner=owner, collector=collector, unlockDate=unlockDate
    )
    self._lockOf[manager][nftId] = lockId
    extcall IERC721(manager).transferFrom(msg.sender, self, nftId)
    log LockOpened(lockId=lockId, manager=manager, nftId=nftId, owner=owner, unlockDate=unlockDate)
    return lockId


@external
def relock(lockId: uint256, unlockDate: uint256):
    self._only_owner(lockId)
    assert unlockDate > self._locks[lockId].unlockDate, "earlier"
    self._locks[lockId].unlockDate = unlockDate


@external
def transferLockOwnership(lockId: uint256, owner: address):
    self._only_owner(lockId)
    assert owner != empty(address), "no owner"
    self._locks[lockId].owner = owner


@external
def collect(
    lockId: uint256, recipient: address, amount0Max: uint128, amount1Max: uint128
) -> (uint256, uint256):
    """
    @notice Pays the position's fees; its liquidity stays.
    """
    found: Lock = self._locks[lockId]
    assert msg.sender in [found.owner, found.collector], "not the collector"
    fees: Fees = Fees(
        tokenId=found.nftId, recipient=recipient, amount0Max=amount0Max, amount1Max=amount1Max
    )
    return extcall PositionManager(found.manager).collect(fees)


@external
def withdraw(lockId: uint256, receiver: address):
    self._only_owner(lockId)
    found: Lock = self._locks[lockId]
    assert self._lockOf[found.manager][found.nftId] == lockId, "not its lock"
    assert found.unlockDate != ETERNAL, "locked for ever"
    assert block.timestamp >= found.unlockDate, "not yet"
    self._locks[lockId] = empty(Lock)
    extcall IERC721(found.manager).transferFrom(self, receiver, found.nftId)
    log LockClosed(lockId=lockId, receiver=receiver)


@internal
@view
def _only_owner(lockId: uint256):
    assert msg.sender == self._locks[lockId].owner, "not the owner"
