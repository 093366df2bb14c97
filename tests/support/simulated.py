"""Calls of a wallet, simulated; and contracts of strangers that wallets call."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from roundtrip.services.runtime.context import Context
from roundtrip.services.trade.simulate import simulate
from roundtrip.services.trade.simulate_params import OwnFees, SentParams
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.wallet import UnsignedStep, calldata

APPROVE = "approve(address,uint256)"
ALLOW = "approve(address,address,uint160,uint48)"
MAX = 2**256 - 1
LATE = 2**40


@dataclass(frozen=True)
class SimulatedAnswer:
    """A simulation's answer as a caller reads it, and what it took."""

    answer: dict[str, Any]
    trips: int
    counted: bool

    @property
    def code(self) -> str:
        return str(self.answer["verdict"]["code"])

    @property
    def level(self) -> str:
        return str(self.answer["verdict"]["level"])

    @property
    def text(self) -> str:
        return str(self.answer["verdict"]["text"])

    def spent(self) -> dict[str, int]:
        """Base units by asset."""
        return _raw(self.answer["spent"])

    def received(self) -> dict[str, int]:
        """Base units by asset."""
        return _raw(self.answer["received"])

    def approvals(self) -> set[tuple[str, str, bool]]:
        """Token, spender and whether it is without a bound."""
        return {(one["token"], one["spender"], one["unlimited"]) for one in self.answer["approvals"]}

    def gas(self) -> list[int]:
        return [call["gasUsed"] for call in self.answer["calls"]]


def _raw(amounts: list[dict[str, str]]) -> dict[str, int]:
    found = {one["asset"]: int(one["raw"]) for one in amounts}
    assert len(found) == len(amounts)
    assert all(raw > 0 for raw in found.values())
    return found


async def simulated(
    ctx: Context,
    sender: str,
    *steps: UnsignedStep,
    fund: bool = False,
    gas: Sequence[int | None] = (),
    nonce: Sequence[int | None] = (),
    fees: Sequence[OwnFees | None] = (),
) -> SimulatedAnswer:
    """These calls of this wallet: as one transaction where there is one, else as several calls. ``gas``,
    ``nonce``, ``fees``: those that the wallet sets."""
    sent = [{"to": one.to, "data": one.data, "value": str(one.value_wei)} for one in steps]
    raw: dict[str, Any] = {"from": sender, "fund": fund, "gas": gas, "nonce": nonce, "maxFeePerGas": fees}
    raw |= sent[0] if len(sent) == 1 else {"calls": sent}
    answered = await simulate(ctx, msgspec.convert(raw, SentParams))
    answer = msgspec.json.decode(msgspec.json.encode(answered.answer))
    assert "safe" not in answer["verdict"]["text"].lower()
    return SimulatedAnswer(answer, answered.meter.trips if answered.meter else 0, answered.counted)


def approve(token: str, spender: str, raw: int = MAX) -> UnsignedStep:
    return UnsignedStep(token, calldata(APPROVE, spender, raw))


def transfer(token: str, to: str, raw: int) -> UnsignedStep:
    return UnsignedStep(token, calldata("transfer(address,uint256)", to, raw))


def pay(to: str, wei: int) -> UnsignedStep:
    """Plain eth."""
    return UnsignedStep(to, "0x", wei)


# --- strangers' contracts --------------------------------------------------------------------------

TOKEN = """# pragma version 0.4.3
# pragma evm-version cancun
event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

event ApprovalForAll:
    owner: indexed(address)
    operator: indexed(address)
    approved: bool

name: public(String[8])
symbol: public(String[8])
decimals: public(uint8)
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
isApprovedForAll: public(HashMap[address, HashMap[address, bool]])
loud: bool
strict: bool
greedy: address


interface Other:
    def transferFrom(source: address, to: address, amount: uint256) -> bool: nonpayable
    def balanceOf(account: address) -> uint256: view


@deploy
def __init__(supply: uint256, loud: bool, strict: bool):
    self.name = "Odd"
    self.symbol = "ODD"
    self.decimals = 18
    self.totalSupply = supply
    self.balanceOf[msg.sender] = supply
    self.loud = loud
    self.strict = strict


@internal
def _move(source: address, to: address, amount: uint256):
    self.balanceOf[source] -= amount
    self.balanceOf[to] += amount
    if self.loud:
        log Transfer(sender=source, receiver=to, value=amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    self.allowance[source][msg.sender] -= amount
    self._move(source, to, amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    # As usdt has it: an allowance is taken back before another one is given.
    assert not self.strict or amount == 0 or self.allowance[msg.sender][spender] == 0, "allowance is set"
    self.allowance[msg.sender][spender] = amount
    if self.loud:
        log Approval(owner=msg.sender, spender=spender, value=amount)
    return True


@external
def setApprovalForAll(operator: address, approved: bool):
    self.isApprovedForAll[msg.sender][operator] = approved
    if self.loud:
        log ApprovalForAll(owner=msg.sender, operator=operator, approved=approved)


@external
def lie(to: address, amount: uint256):
    # Says that it moved and moves nothing.
    log Transfer(sender=self, receiver=to, value=amount)


@external
def grasp(token: address):
    self.greedy = token


@external
def claim():
    # Gives some of itself and takes everything of another token.
    self.balanceOf[msg.sender] += 10**18
    log Transfer(sender=empty(address), receiver=msg.sender, value=10**18)
    held: uint256 = staticcall Other(self.greedy).balanceOf(msg.sender)
    if held > 0:
        extcall Other(self.greedy).transferFrom(msg.sender, self, held)
"""

MOVER = """# pragma version 0.4.3
# pragma evm-version cancun
event Noise:
    what: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

interface Token:
    def transfer(to: address, amount: uint256) -> bool: nonpayable
    def transferFrom(source: address, to: address, amount: uint256) -> bool: nonpayable
    def balanceOf(account: address) -> uint256: view

interface Voice:
    def speak(): nonpayable

tokens: DynArray[address, 8]
voices: DynArray[address, 64]


@deploy
@payable
def __init__():
    pass


@external
@payable
def __default__():
    pass


@external
def aim(token: address):
    self.tokens.append(token)


@external
def gather(count: uint256):
    for i: uint256 in range(count, bound=64):
        self.voices.append(create_minimal_proxy_to(self))


@external
def speak():
    log Noise(what=1)


@external
def take():
    for token: address in self.tokens:
        held: uint256 = staticcall Token(token).balanceOf(msg.sender)
        extcall Token(token).transferFrom(msg.sender, self, held)


@external
def take_behind_voices():
    for voice: address in self.voices:
        extcall Voice(voice).speak()
    for token: address in self.tokens:
        held: uint256 = staticcall Token(token).balanceOf(msg.sender)
        extcall Token(token).transferFrom(msg.sender, self, held)


@external
def take_behind_noise(times: uint256):
    for i: uint256 in range(times, bound=8192):
        log Noise(what=i)
    for token: address in self.tokens:
        held: uint256 = staticcall Token(token).balanceOf(msg.sender)
        extcall Token(token).transferFrom(msg.sender, self, held)


@external
def take_from_the_poor():
    # Nobody holds a million eth but in a simulation.
    if msg.sender.balance < 10**24:
        for token: address in self.tokens:
            held: uint256 = staticcall Token(token).balanceOf(msg.sender)
            extcall Token(token).transferFrom(msg.sender, self, held)


@external
def take_with_little_gas():
    # What takes a hundred thousand gas nobody sends with ten million.
    if msg.gas < 5000000:
        for token: address in self.tokens:
            held: uint256 = staticcall Token(token).balanceOf(msg.sender)
            extcall Token(token).transferFrom(msg.sender, self, held)


@external
def false_approvals(count: uint256):
    for i: uint256 in range(count, bound=256):
        log Approval(owner=msg.sender, spender=convert(2**100 + i, address), value=1)


@external
@payable
def give():
    for token: address in self.tokens:
        held: uint256 = staticcall Token(token).balanceOf(self)
        extcall Token(token).transfer(msg.sender, held // 2)


@external
@payable
def give_behind_burn(gas_left: uint256):
    while_burning: uint256 = 0
    for i: uint256 in range(1000000):
        if msg.gas < gas_left:
            break
        while_burning += 1
    for token: address in self.tokens:
        held: uint256 = staticcall Token(token).balanceOf(self)
        extcall Token(token).transfer(msg.sender, held // 2)


@external
def pay_out(amount: uint256):
    send(msg.sender, amount)


@external
def fail(reason: String[200]):
    raise reason
"""

_CODE: dict[str, str] = {}


def _compiled(source: str, folder: Path) -> str:
    if source not in _CODE:
        # A file is compiled once in a process, by its path.
        path = folder / f"odd_{len(_CODE)}.vy"
        path.write_text(source)
        _CODE[source] = compile_contract(path)
    return _CODE[source]


@dataclass
class Strangers:
    """Puts odd contracts on the chain."""

    rpc: SyncRpc
    folder: Path

    def __post_init__(self) -> None:
        self.deployer = ContractDeployer(self.rpc, self.rpc.call("eth_accounts")[0])

    def token(self, *, loud: bool = True, strict: bool = False) -> str:
        """A token; ``loud``: with events; ``strict``: an allowance is only raised from zero."""
        code = _compiled(TOKEN, self.folder)
        found = self.deployer.create(code, ["uint256", "bool", "bool"], [10**27, loud, strict])
        return found.lower()

    def mover(self, *tokens: str) -> str:
        """A contract that takes, gives and makes noise; it aims at these tokens."""
        found = self.deployer.create(_compiled(MOVER, self.folder)).lower()
        for token in tokens:
            self.do(found, "aim(address)", token)
        return found

    def do(self, to: str, signature: str, *values: object, wei: int = 0) -> None:
        self.deployer.receipt(self.deployer.send(to, calldata(signature, *values), wei))

    def give(self, token: str, to: str, raw: int) -> None:
        """Of what its maker has."""
        self.do(token, "transfer(address,uint256)", to, raw)
