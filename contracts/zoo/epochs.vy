# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Only buyers of the newest epoch can sell
@notice The owner begins a new epoch now and then; who received tokens in an earlier one cannot send them.
"""

from ..tokens.lib import erc20
from ..tokens.lib import owned

initializes: erc20
initializes: owned

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    owned.owner,
)

event EpochBegun:
    epoch: uint256

epoch: uint256
came_in: HashMap[address, uint256]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def begin():
    owned._only_owner()
    self.epoch += 1
    log EpochBegun(epoch=self.epoch)


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source):
        assert self.came_in[source] == self.epoch, "epoch"
    erc20._move(source, to, amount)
    self.came_in[to] = self.epoch


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
