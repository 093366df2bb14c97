# pragma version 0.4.3
"""
@title ERC-20 bookkeeping shared by the sample tokens
@notice An honest token's ledger. A contract that imports it exports the
        functions it keeps as they are and writes its own `transfer` and
        `transferFrom` where its story differs.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

name: public(String[64])
symbol: public(String[32])
decimals: public(immutable(uint8))
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])


@deploy
def __init__(token_name: String[64], token_symbol: String[32], places: uint8, supply: uint256):
    self.name = token_name
    self.symbol = token_symbol
    decimals = places
    self._mint(msg.sender, supply)


@internal
def _mint(to: address, amount: uint256):
    assert to != empty(address), "zero address"
    self.totalSupply += amount
    self.balanceOf[to] += amount
    log Transfer(sender=empty(address), receiver=to, value=amount)


@internal
def _move(source: address, to: address, amount: uint256):
    assert to != empty(address), "zero address"
    assert self.balanceOf[source] >= amount, "balance too low"
    self.balanceOf[source] -= amount
    self.balanceOf[to] += amount
    log Transfer(sender=source, receiver=to, value=amount)


@internal
def _move_with_fee(source: address, to: address, amount: uint256, bps: uint256, collector: address):
    # The receiver gets the amount less the fee, the collector gets the fee.
    fee: uint256 = amount * bps // 10_000
    self._move(source, to, amount - fee)
    if fee > 0:
        self._move(source, collector, fee)


@internal
def _spend(holder: address, spender: address, amount: uint256):
    # An allowance of the largest number never runs down.
    allowed: uint256 = self.allowance[holder][spender]
    if allowed != max_value(uint256):
        assert allowed >= amount, "allowance too low"
        self.allowance[holder][spender] = allowed - amount


@internal
def _approve(holder: address, spender: address, amount: uint256):
    self.allowance[holder][spender] = amount
    log Approval(owner=holder, spender=spender, value=amount)


@external
def approve(spender: address, amount: uint256) -> bool:
    self._approve(msg.sender, spender, amount)
    return True


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    self._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
