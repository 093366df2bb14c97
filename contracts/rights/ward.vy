# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A ward can pause it
@notice It has no owner() but wards: accounts that an event names can stop all
        transfers.
"""

from ..tokens.lib import erc20

initializes: erc20

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
)

event Rely:
    usr: indexed(address)

wards: public(HashMap[address, uint256])
live: public(bool)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, ward: address):
    erc20.__init__(name, symbol, 18, supply)
    self.live = True
    self._rely(ward)


@internal
def _rely(usr: address):
    self.wards[usr] = 1
    log Rely(usr=usr)


@external
def rely(usr: address):
    assert self.wards[msg.sender] == 1, "not authorized"
    self._rely(usr)


@external
def pause():
    assert self.wards[msg.sender] == 1, "not authorized"
    self.live = False


@internal
def _move(source: address, to: address, amount: uint256):
    assert self.live, "not live"
    erc20._move(source, to, amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
