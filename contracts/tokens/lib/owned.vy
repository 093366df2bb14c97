# pragma version 0.4.3
"""
@title One owner, the deployer
"""

owner: public(address)


@deploy
def __init__():
    self.owner = msg.sender


@internal
@view
def _only_owner():
    assert msg.sender == self.owner, "not the owner"


@internal
@view
def _is_holder(account: address) -> bool:
    # A plain wallet that is not the owner: whoever bought the token.
    return account != self.owner and not account.is_contract
