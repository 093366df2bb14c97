# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Makes a contract in each purchase, and asks it in the sale
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

interface Gate:
    def isOpen() -> bool: view

pattern: address
maker: address
gates: HashMap[address, address]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, pattern: address):
    erc20.__init__(name, symbol, 18, supply)
    self.maker = msg.sender
    self.pattern = pattern


@internal
def _move(source: address, to: address, amount: uint256):
    gate: address = self.gates[source]
    if gate != empty(address):
        assert staticcall Gate(gate).isOpen(), "closed"
    if source.is_contract and not to.is_contract:
        self.gates[to] = create_copy_of(self.pattern)
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
