# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A sale that burns gas
@notice The buyer can sell at any time, but every sale first burns a fixed
        amount of gas.
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

GAS_AMOUNT: public(immutable(uint256))


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, gas_amount: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    GAS_AMOUNT = gas_amount


@internal
@view
def _burn():
    start: uint256 = msg.gas
    noise: bytes32 = empty(bytes32)
    for i: uint256 in range(max_value(uint256)):
        if start - msg.gas >= GAS_AMOUNT:
            break
        noise = keccak256(noise)


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and to.is_contract:
        self._burn()
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
