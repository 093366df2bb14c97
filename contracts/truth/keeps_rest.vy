# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that does not sell whole
@notice Whoever sells to a pool must keep a part of the balance and a number
        of units, or pays a tax on top of the amount. With CLOSES_S above
        zero nothing sells from so long after the purchase on.
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

KEPT_RAW: public(immutable(uint256))
KEPT_BPS: public(immutable(uint256))
TOP_BPS: public(immutable(uint256))
CLOSES_S: public(immutable(uint256))
bought_at: HashMap[address, uint256]


@deploy
def __init__(
    name: String[64],
    symbol: String[32],
    supply: uint256,
    kept_raw: uint256,
    kept_bps: uint256,
    top_bps: uint256,
    closes_s: uint256,
):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    KEPT_RAW = kept_raw
    KEPT_BPS = kept_bps
    TOP_BPS = top_bps
    CLOSES_S = closes_s


@internal
def _sell_or_move(source: address, to: address, amount: uint256):
    bought_at: uint256 = self.bought_at[source]
    if bought_at > 0:
        assert CLOSES_S == 0 or block.timestamp < bought_at + CLOSES_S, "closed"
        held: uint256 = erc20.balanceOf[source]
        assert amount + KEPT_RAW + held * KEPT_BPS // 10_000 <= held, "keep a rest"
        if TOP_BPS > 0:
            erc20._move(source, self, amount * TOP_BPS // 10_000)
    erc20._move(source, to, amount)
    if source.is_contract:
        self.bought_at[to] = block.timestamp


@external
def transfer(to: address, amount: uint256) -> bool:
    self._sell_or_move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._sell_or_move(source, to, amount)
    return True
