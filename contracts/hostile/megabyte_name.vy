# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A name of a megabyte
@notice Once armed, the name is a well-formed text of almost one million letters, as
        far as the gas allows, to fill the memory of whoever reads it.
"""

from ..tokens.lib import erc20
from .lib import switch

initializes: erc20
initializes: switch

exports: (
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    erc20.transferFrom,
    switch.owner,
    switch.armed,
    switch.arm,
)

LETTERS: constant(bytes32) = 0x4141414141414141414141414141414141414141414141414141414141414141

# Less gas than this buys only a tenth of the text.
LARGE_NEEDS: constant(uint256) = 21_000_000


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    switch.__init__()


@external
@view
@raw_return
def name() -> Bytes[1_000_064]:
    if not switch.armed:
        return abi_encode(erc20.name)
    if msg.gas < LARGE_NEEDS:
        few: bytes32[3_125] = empty(bytes32[3_125])
        for i: uint256 in range(3_125):
            few[i] = LETTERS
        return abi_encode(convert(32, uint256), convert(100_000, uint256), few)
    many: bytes32[31_250] = empty(bytes32[31_250])
    for i: uint256 in range(31_250):
        many[i] = LETTERS
    return abi_encode(convert(32, uint256), convert(1_000_000, uint256), many)
