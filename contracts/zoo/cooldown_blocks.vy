# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A wait counted in blocks
@notice The buyer has to wait a fixed number of blocks after receiving tokens
        before selling or sending any.
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

# Blocks.
COOLDOWN: public(immutable(uint256))

# Block of a wallet's last receipt, 0 for none.
receivedInBlock: public(HashMap[address, uint256])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, blocks: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    COOLDOWN = blocks


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and self.receivedInBlock[source] != 0:
        assert block.number >= self.receivedInBlock[source] + COOLDOWN, "cooldown"
    self.receivedInBlock[to] = block.number
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
