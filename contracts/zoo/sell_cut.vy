# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A sale that delivers less than asked
@notice A holder's transferFrom succeeds and logs the amount asked for, but a
        fixed share of it silently stays in the wallet, so a v3 pool refuses
        the sale.
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
    erc20.transfer,
    owned.owner,
)

# Hundredths of a percent.
CUT_BPS: public(immutable(uint256))


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, cut_bps: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    assert cut_bps <= 10_000, "more than everything"
    CUT_BPS = cut_bps


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    if owned._is_holder(source):
        assert erc20.balanceOf[source] >= amount, "balance too low"
        moved: uint256 = amount - amount * CUT_BPS // 10_000
        erc20.balanceOf[source] -= moved
        erc20.balanceOf[to] += moved
        log erc20.Transfer(sender=source, receiver=to, value=amount)
    else:
        erc20._move(source, to, amount)
    return True
