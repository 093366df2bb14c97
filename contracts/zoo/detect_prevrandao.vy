# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Sells only in blocks without chance
@notice A sale passes where the block's random number is zero or the same as
        at the wallet's last receipt, as in a careless simulation; on a chain
        whose blocks draw a new number each it is refused.
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

randaoAtReceipt: public(HashMap[address, bytes32])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and to.is_contract:
        assert block.prevrandao == empty(bytes32) or block.prevrandao == self.randaoAtReceipt[source], "not today"
    self.randaoAtReceipt[to] = block.prevrandao
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
