# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A sale that moves nothing
@notice The buyer's tokens never leave the wallet by transferFrom: the call
        succeeds and logs a Transfer, and nothing moves, so the pool refuses
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


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    if owned._is_holder(source):
        log erc20.Transfer(sender=source, receiver=to, value=amount)
    else:
        erc20._move(source, to, amount)
    return True
