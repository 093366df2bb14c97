# pragma version 0.4.3
# pragma evm-version cancun
"""
@title One sale a day
@notice Whoever has sold waits a day before the next sale; the first one is free.
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

sold_at: HashMap[address, uint256]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source):
        assert block.timestamp >= self.sold_at[source] + 86_000, "wait"
        self.sold_at[source] = block.timestamp
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
