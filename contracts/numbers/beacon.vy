# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Names the logic of all shares
"""

implementation: public(address)
owner: public(address)


@deploy
def __init__(implementation: address):
    self.implementation = implementation
    self.owner = msg.sender


@external
def upgradeTo(implementation: address):
    assert msg.sender == self.owner, "not the owner"
    self.implementation = implementation
