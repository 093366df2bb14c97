# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Only small sales pass
@notice The buyer can buy any amount and send it on, but a sale above a small
        share of the supply is refused.
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
    if owned._is_holder(source) and to.is_contract:
        assert amount <= erc20.totalSupply * MAX_BPS // 10_000, "too much"
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
