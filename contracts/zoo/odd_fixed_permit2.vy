# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that Permit2 may always take
@notice An honest token that sells at any time. Its allowance for Permit2 is the
        largest number from the start, and an approval of less is refused, as a
        widely used library of contracts has it.
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
    erc20.transfer,
    owned.owner,
)

PERMIT2: constant(address) = 0x000000000022D473030F116dDEE9F6B43aC78BA3


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
@view
def allowance(holder: address, spender: address) -> uint256:
    if spender == PERMIT2:
        return max_value(uint256)
    return erc20.allowance[holder][spender]


@external
def approve(spender: address, amount: uint256) -> bool:
    assert spender != PERMIT2 or amount == max_value(uint256), "fixed"
    erc20._approve(msg.sender, spender, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    if msg.sender != PERMIT2:
        erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
    return True
