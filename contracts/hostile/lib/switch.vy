# pragma version 0.4.3
"""
@title An owner with a switch
@notice The deployer owns the contract and may arm it once, for good.
"""

owner: public(address)
armed: public(bool)


@deploy
def __init__():
    self.owner = msg.sender


@external
def arm():
    assert msg.sender == self.owner, "not the owner"
    self.armed = True
