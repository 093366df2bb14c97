# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Tells the receiver
@notice An honest token that calls a receiving contract after each transfer,
        as ERC-677 does, and ignores how that ends.
"""

from ..tokens.lib import erc20

initializes: erc20

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
)

CALLBACK_GAS: constant(uint256) = 50_000


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)


@internal
def _move(source: address, to: address, amount: uint256):
    erc20._move(source, to, amount)
    if to.is_contract:
        note: Bytes[196] = abi_encode(source, amount, b"", method_id=method_id("onTokenTransfer(address,uint256,bytes)"))
        done: bool = raw_call(to, note, gas=CALLBACK_GAS, revert_on_failure=False)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
