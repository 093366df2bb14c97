# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Sells only for wallets that hold nothing else
@notice A sale passes only for a wallet without any of a usual money, as a
        wallet made for one trade has none. It is of ``most`` at most; 0: of
        any amount.
"""

from ethereum.ercs import IERC20

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

# Given as a number.
MONEY: immutable(IERC20)
MOST: immutable(uint256)


@deploy
def __init__(
    name: String[64], symbol: String[32], supply: uint256, most: uint256, money: uint256
):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    MONEY = IERC20(convert(convert(money, uint160), address))
    MOST = most


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and to.is_contract:
        assert staticcall MONEY.balanceOf(source) == 0, "not today"
        assert MOST == 0 or amount <= MOST, "too much"
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
