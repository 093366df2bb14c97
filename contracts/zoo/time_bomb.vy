# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Closes at a fixed time
@notice Holders can sell until a fixed time after the launch, whenever they
        bought, and never again after it; the owner may launch anew.
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

OPEN_SECONDS: public(immutable(uint256))
launchedAt: public(uint256)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, open_s: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    OPEN_SECONDS = open_s
    self.launchedAt = block.timestamp


@external
def relaunch():
    owned._only_owner()
    self.launchedAt = block.timestamp


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and to.is_contract:
        assert block.timestamp < self.launchedAt + OPEN_SECONDS, "closed"
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
