# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A proxy of its own kind, whose owner can replace its logic
@notice It names neither logic nor owner where EIP-1967 proxies do. The logic's own
        variables are a mapping's, which lies elsewhere.
"""

_implementation: address
_owner: address


@deploy
def __init__(implementation: address):
    self._implementation = implementation
    self._owner = msg.sender


@external
def upgradeTo(implementation: address):
    assert msg.sender == self._owner, "not the owner"
    assert implementation.is_contract, "no code"
    self._implementation = implementation


@external
@raw_return
def __default__() -> Bytes[1024]:
    return raw_call(self._implementation, msg.data, max_outsize=1024, is_delegate_call=True)
