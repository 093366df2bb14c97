# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A wallet that is a contract
@notice It takes its owner's signature for its own, as EIP-1271 has it, and what its
        owner approved on the chain: then the signature is empty, or Safe's v = 1.
        Made in another manner it answers what only looks like that.
"""

YES: constant(bytes4) = 0x1626ba7e

# 0: honest. 1: reverts. 2: burns all gas. 3: the word one. 4: the right bytes at the
# wrong end of the word. 5: with more behind them in the word. 6: with nothing behind
# them. 7: with another word behind. 8: nothing.
MANNER: immutable(uint256)
OWNER: immutable(address)

approved: HashMap[bytes32, bool]


@deploy
def __init__(owner: address, manner: uint256):
    OWNER = owner
    MANNER = manner


@external
def approveHash(hashed: bytes32):
    assert msg.sender == OWNER
    self.approved[hashed] = True


@internal
@view
def _is_owners(hashed: bytes32, signature: Bytes[8192]) -> bool:
    if len(signature) == 0:
        return self.approved[hashed]
    if len(signature) != 65:
        return False
    r: uint256 = convert(slice(signature, 0, 32), uint256)
    s: uint256 = convert(slice(signature, 32, 32), uint256)
    v: uint256 = convert(slice(signature, 64, 1), uint256)
    if v == 1:
        return r == convert(OWNER, uint256) and self.approved[hashed]
    return ecrecover(hashed, v, r, s) == OWNER


@external
@view
@raw_return
def isValidSignature(hashed: bytes32, signature: Bytes[8192]) -> Bytes[64]:
    yes: Bytes[32] = concat(YES, empty(bytes28))
    if MANNER == 0:
        if self._is_owners(hashed, signature):
            return yes
        return concat(0xffffffff, empty(bytes28))
    assert MANNER != 1
    if MANNER == 2:
        burnt: uint256 = 0
        for i: uint256 in range(1000000000):
            burnt += i
    if MANNER == 3:
        return abi_encode(True)
    if MANNER == 4:
        return concat(empty(bytes28), YES)
    if MANNER == 5:
        return concat(YES, slice(hashed, 0, 28))
    if MANNER == 6:
        return slice(yes, 0, 4)
    if MANNER == 7:
        return concat(yes, hashed)
    return b""
