# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Draws each sale by the hash of the last block
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

maker: address


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    self.maker = msg.sender


@internal
def _move(source: address, to: address, amount: uint256):
    if source != self.maker and to.is_contract:
        assert convert(blockhash(block.number - 1), uint256) % 1000 != 0, "bad luck"
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
