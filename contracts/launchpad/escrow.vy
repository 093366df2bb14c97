# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title Fees waiting for their owners
@notice Anyone can leave an amount for anyone; only its owner gets it out.
        The zero address stands for native eth.
"""

from .lib import money

event Credited:
    account: indexed(address)
    asset: indexed(address)
    amount: uint256

event Claimed:
    account: indexed(address)
    asset: indexed(address)
    amount: uint256

# By account and asset.
balances: public(HashMap[address, HashMap[address, uint256]])


@external
@payable
@nonreentrant
def credit(account: address, asset: address, amount: uint256):
    money._collect(asset, msg.sender, amount, msg.value)
    self.balances[account][asset] += amount
    log Credited(account=account, asset=asset, amount=amount)


@external
@nonreentrant
def claim(asset: address) -> uint256:
    amount: uint256 = self.balances[msg.sender][asset]
    self.balances[msg.sender][asset] = 0
    money._pay(asset, msg.sender, amount)
    log Claimed(account=msg.sender, asset=asset, amount=amount)
    return amount
