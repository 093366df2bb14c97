# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A ceiling on what a wallet may hold
@notice A holder may own only a small share of the supply; a purchase that
        would go above it is refused, and selling is free.
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

# Hundredths of a percent of the supply.
MAX_BPS: public(immutable(uint256))


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, max_bps: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    assert max_bps <= 10_000, "more than the supply"
    MAX_BPS = max_bps


@internal
def _move(source: address, to: address, amount: uint256):
    erc20._move(source, to, amount)
    if owned._is_holder(to):
        assert erc20.balanceOf[to] <= erc20.totalSupply * MAX_BPS // 10_000, "max wallet"


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
