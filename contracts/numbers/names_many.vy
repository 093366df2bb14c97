# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Asks one of many contracts in each trade
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

gate0: Gate
gate1: Gate
gate2: Gate
gate3: Gate
gate4: Gate
gate5: Gate
gate6: Gate
gate7: Gate
gate8: Gate
gate9: Gate
gate10: Gate
gate11: Gate
gate12: Gate
gate13: Gate
gate14: Gate
gate15: Gate
gate16: Gate
gate17: Gate
gate18: Gate
gate19: Gate


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, pattern: address):
    erc20.__init__(name, symbol, 18, supply)
    self.gate0 = Gate(create_copy_of(pattern))
    self.gate1 = Gate(create_copy_of(pattern))
    self.gate2 = Gate(create_copy_of(pattern))
    self.gate3 = Gate(create_copy_of(pattern))
    self.gate4 = Gate(create_copy_of(pattern))
    self.gate5 = Gate(create_copy_of(pattern))
    self.gate6 = Gate(create_copy_of(pattern))
    self.gate7 = Gate(create_copy_of(pattern))
    self.gate8 = Gate(create_copy_of(pattern))
    self.gate9 = Gate(create_copy_of(pattern))
    self.gate10 = Gate(create_copy_of(pattern))
    self.gate11 = Gate(create_copy_of(pattern))
    self.gate12 = Gate(create_copy_of(pattern))
    self.gate13 = Gate(create_copy_of(pattern))
    self.gate14 = Gate(create_copy_of(pattern))
    self.gate15 = Gate(create_copy_of(pattern))
    self.gate16 = Gate(create_copy_of(pattern))
    self.gate17 = Gate(create_copy_of(pattern))
    self.gate18 = Gate(create_copy_of(pattern))
    self.gate19 = Gate(create_copy_of(pattern))


@internal
def _move(source: address, to: address, amount: uint256):
    assert staticcall self.gate0.isOpen(), "closed"
    assert staticcall self.gate1.isOpen(), "closed"
    assert staticcall self.gate2.isOpen(), "closed"
    assert staticcall self.gate3.isOpen(), "closed"
    assert staticcall self.gate4.isOpen(), "closed"
    assert staticcall self.gate5.isOpen(), "closed"
    assert staticcall self.gate6.isOpen(), "closed"
    assert staticcall self.gate7.isOpen(), "closed"
    assert staticcall self.gate8.isOpen(), "closed"
    assert staticcall self.gate9.isOpen(), "closed"
    assert staticcall self.gate10.isOpen(), "closed"
    assert staticcall self.gate11.isOpen(), "closed"
    assert staticcall self.gate12.isOpen(), "closed"
    assert staticcall self.gate13.isOpen(), "closed"
    assert staticcall self.gate14.isOpen(), "closed"
    assert staticcall self.gate15.isOpen(), "closed"
    assert staticcall self.gate16.isOpen(), "closed"
    assert staticcall self.gate17.isOpen(), "closed"
    assert staticcall self.gate18.isOpen(), "closed"
    assert staticcall self.gate19.isOpen(), "closed"
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
