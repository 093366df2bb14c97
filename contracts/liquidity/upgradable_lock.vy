# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A locker whose logic its admin can replace
@notice An EIP-1967 proxy; behind it is the time lock, for as long as the admin leaves it there.
"""

event Upgraded:
    implementation: indexed(address)

# The slots that EIP-1967 names, 0x360894a1.. and 0xb5312768.., reached by leaving out all slots before
# them, written as numbers to the base of WIDE. The logic's own variables lie in the first of these;
# nothing here touches them.
WIDE: constant(uint256) = 2**63
before0: bytes32[2351945876927687612]
before1: bytes32[WIDE][1476126167079480146]
before2: bytes32[WIDE][WIDE][1846230248722982455]
before3: bytes32[WIDE][WIDE][WIDE][3478086274018777352]
before4: bytes32[WIDE][WIDE][WIDE][WIDE][3]
_implementation: address
between0: bytes32[3892039391633552710]
between1: bytes32[WIDE][3747142775249680287]
between2: bytes32[WIDE][WIDE][3826140239796182913]
between3: bytes32[WIDE][WIDE][WIDE][8738274346241835139]
between4: bytes32[WIDE][WIDE][WIDE][WIDE][7]
_admin: address


@deploy
def __init__(implementation: address):
    assert implementation.is_contract, "no code"
    self._implementation = implementation
    self._admin = msg.sender
    log Upgraded(implementation=implementation)


@external
def upgradeTo(implementation: address):
    assert msg.sender == self._admin, "not the admin"
    assert implementation.is_contract, "no code"
    self._implementation = implementation
    log Upgraded(implementation=implementation)


@external
@raw_return
def __default__() -> Bytes[1024]:
    return raw_call(self._implementation, msg.data, max_outsize=1024, is_delegate_call=True)
