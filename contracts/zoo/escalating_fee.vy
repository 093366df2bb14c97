# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A fee on the sale that grows with time
@notice The fee on a sale grows with every hour since the first receipt, up to
        99 percent; it goes to the owner and the pool gets that much less,
        which a v3 pool refuses.
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

CEILING_BPS: constant(uint256) = 9_900

# Hundredths of a percent; the second for every full hour held.
START_BPS: public(immutable(uint256))
STEP_BPS: public(immutable(uint256))

# Time of a wallet's first receipt, 0 for none.
firstReceivedAt: public(HashMap[address, uint256])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, start_bps: uint256, step_bps: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    assert start_bps <= CEILING_BPS, "more than the ceiling"
    START_BPS = start_bps
    STEP_BPS = step_bps


@internal
@view
def _fee_bps(account: address) -> uint256:
    first: uint256 = self.firstReceivedAt[account]
    if first == 0:
        return START_BPS
    return min(START_BPS + STEP_BPS * ((block.timestamp - first) // 3600), CEILING_BPS)


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and to.is_contract:
        erc20._move_with_fee(source, to, amount, self._fee_bps(source), owned.owner)
    else:
        erc20._move(source, to, amount)
    if self.firstReceivedAt[to] == 0:
        self.firstReceivedAt[to] = block.timestamp


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
