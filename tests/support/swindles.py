"""Contracts of strangers that behave while they are looked at, and what a wallet really meets there."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import isqrt, log
from pathlib import Path

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import MAX, ContractDeployer, calldata, v3_pool
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.attacks import Parties
from support.wallet import Receipt, UnsignedStep, Wallet

ETH = 10**18

SWINDLER = """# pragma version 0.4.3
# pragma evm-version cancun
event TransferSingle:
    operator: indexed(address)
    source: indexed(address)
    to: indexed(address)
    id: uint256
    amount: uint256

interface Token:
    def transfer(to: address, amount: uint256) -> bool: nonpayable
    def transferFrom(source: address, to: address, amount: uint256) -> bool: nonpayable

keeper: address
asked: HashMap[address, uint256]
chores: HashMap[uint256, uint256]
items: public(HashMap[address, uint256])


@deploy
def __init__():
    self.keeper = msg.sender


@external
@payable
def __default__():
    pass


@external
def balanceOf(account: address) -> uint256:
    # No view: it notes who was looked at, and when.
    self.asked[account] = block.number
    return 0


@internal
def _take(source: address, token: address, amount: uint256):
    extcall Token(token).transferFrom(source, self.keeper, amount)


@external
def take_unless_asked(token: address, amount: uint256):
    if self.asked[msg.sender] != block.number:
        self._take(msg.sender, token, amount)


@external
@payable
def trade_unless_asked(gift: address, given: uint256, token: address, amount: uint256):
    extcall Token(gift).transfer(msg.sender, given)
    if self.asked[msg.sender] != block.number:
        self._take(msg.sender, token, amount)


@external
def take_between(token: address, amount: uint256, least: uint256, most: uint256, work: uint256):
    # Takes with as much gas as that; else it is at work.
    if least <= msg.gas and msg.gas <= most:
        self._take(msg.sender, token, amount)
    else:
        for i: uint256 in range(work, bound=100):
            self.chores[i] = block.number


@external
@payable
def give(token: address, amount: uint256):
    extcall Token(token).transfer(msg.sender, amount)


@external
@payable
def relay(token: address, amount: uint256, left: uint256):
    assert msg.gas > left, "too little gas"
    extcall Token(token).transfer(msg.sender, amount)


@external
@payable
def bid_up(router: address, order: Bytes[1024], wei_paid: uint256, token: address, amount: uint256):
    raw_call(router, order, value=wei_paid)
    extcall Token(token).transfer(msg.sender, amount)


@external
def buy_cheap(token: address, amount: uint256, wei_paid: uint256):
    self._take(msg.sender, token, amount)
    send(msg.sender, wei_paid)


@external
def hand_item(to: address):
    self.items[to] += 1


@external
def give_for_item(token: address, amount: uint256):
    self.items[msg.sender] -= 1
    self.items[self.keeper] += 1
    log TransferSingle(operator=self, source=msg.sender, to=self.keeper, id=1, amount=1)
    extcall Token(token).transfer(msg.sender, amount)


@external
def rant(token: address, amount: uint256, times: uint256):
    # Thirty-two thousand bytes at a time.
    extcall Token(token).transfer(msg.sender, amount)
    for i: uint256 in range(times, bound=100):
        raw_log([empty(bytes32)], abi_encode(empty(uint256[1000])))


@external
def act(to: address, what: Bytes[1024]):
    assert msg.sender == self.keeper
    raw_call(to, what)
"""

FICKLE = """# pragma version 0.4.3
# pragma evm-version cancun
event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

name: public(String[8])
symbol: public(String[8])
decimals: public(constant(uint8)) = 18
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
banned: public(HashMap[address, bool])
chores: HashMap[uint256, uint256]
maker: address
tax_bps: uint256
shunned: address
pool: address
friend: address
lazy: bool
least: uint256
most: uint256


@deploy
def __init__(supply: uint256, tax_bps: uint256, shunned: address):
    self.name = "Fickle"
    self.symbol = "FCKL"
    self.maker = msg.sender
    self.totalSupply = supply
    self.balanceOf[msg.sender] = supply
    self.tax_bps = tax_bps
    self.shunned = shunned


@internal
def _leaves_pool(to: address):
    if self.friend != empty(address):
        assert to == self.friend, "closed"
    if self.lazy and tx.gasprice == 0:
        for i: uint256 in range(40):
            self.chores[i] = block.number
    elif self.least <= msg.gas and msg.gas <= self.most:
        self.banned[to] = True


@internal
def _move(source: address, to: address, amount: uint256, tax_bps: uint256):
    assert not self.banned[source], "banned"
    assert to != self.shunned, "shunned"
    if source == self.pool:
        self._leaves_pool(to)
    tax: uint256 = amount * tax_bps // 10000
    self.balanceOf[source] -= amount
    self.balanceOf[to] += amount - tax
    self.balanceOf[self.maker] += tax
    log Transfer(sender=source, receiver=to, value=amount - tax)


@external
def transfer(to: address, amount: uint256) -> bool:
    # Who sells has it moved by transferFrom; what a pool puts out is taxed here.
    free: bool = self.maker in [msg.sender, to]
    self._move(msg.sender, to, amount, 0 if free else self.tax_bps)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    self.allowance[source][msg.sender] -= amount
    self._move(source, to, amount, 0)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, value=amount)
    return True


@external
def close(pool: address, friend: address):
    self.pool = pool
    self.friend = friend


@external
def ban(pool: address, lazy: bool, least: uint256, most: uint256):
    self.pool = pool
    self.lazy = lazy
    self.least = least
    self.most = most
"""

_CODE: dict[str, str] = {}


def _compiled(source: str, folder: Path) -> str:
    if source not in _CODE:
        path = folder / "swindle.vy"
        path.write_text(source)
        _CODE[source] = compile_contract(path)
    return _CODE[source]


class Swindles:
    """Puts them on the chain: all of them are the stranger's."""

    def __init__(self, rpc: SyncRpc, parties: Parties, folder: Path) -> None:
        self.rpc, self.parties, self.folder = rpc, parties, folder
        self.who, self.contracts = parties.stranger, parties.contracts

    def swindler(self, eth: int = 0) -> str:
        """With so much eth."""
        found = self.who.create(_compiled(SWINDLER, self.folder)).lower()
        self.who.receipt(self.who.send(found, "0x", eth * ETH))
        return found

    def fickle(self, tax_bps: int = 0, shunned: str = "0x" + "0" * 40) -> str:
        """A token with 20 eth and 700 million of it in a v3 pool of 0.3 %."""
        code, weth = _compiled(FICKLE, self.folder), self.contracts["weth"]
        token = self.who.create(code, ["uint256", "uint256", "address"], [10**27, tax_bps, shunned]).lower()
        manager = self.contracts["v3PositionManager"]
        self.who.send(weth, calldata("deposit()"), 20 * ETH)
        for asset in (weth, token):
            self.who.send(asset, calldata("approve(address,uint256)", manager, MAX))
        v3_pool(self.who, self.contracts, {token: 7 * 10**26, weth: 20 * ETH}, 3000, fill=True)
        self.who.check_receipts()
        return token

    def dust_pool(self, token: str, raw: int, tokens_per_eth: int) -> None:
        """A v3 pool of 1 % with that little of the token alone, one step wide, at that price."""
        who, weth, spacing = self.who, self.contracts["weth"], 200
        low, high = sorted((token, weth), key=lambda one: int(one, 16))
        amounts = {token: tokens_per_eth * 10**9, weth: 10**9}
        manager, tick = self.contracts["v3PositionManager"], log(amounts[high] / amounts[low], 1.0001)
        root = isqrt((amounts[high] << 192) // amounts[low])
        create = "createAndInitializePoolIfNecessary(address,address,uint24,uint160)"
        who.send(manager, calldata(create, low, high, 10_000, root))
        who.send(token, calldata("approve(address,uint256)", manager, MAX))
        edge = int(tick) // spacing * spacing
        bottom, top = (edge + 400, edge + 600) if token == low else (edge - 400, edge - 200)
        put = (raw, 0) if token == low else (0, raw)
        mint = "mint((address,address,uint24,int24,int24,uint256,uint256,uint256,uint256,address,uint256))"
        who.send(manager, calldata(mint, (low, high, 10_000, bottom, top, *put, 0, 0, who.account, 2**40)))
        who.check_receipts()

    def do(self, to: str, signature: str, *values: object, wei: int = 0) -> None:
        """Sent by the stranger, and goes through."""
        do(self.who, to, signature, *values, wei=wei)

    def claims(self, holder: str, number: int, raw: int) -> None:
        """Gives claims on the v4 pool manager, where it keeps them."""
        manager = self.contracts["v4PoolManager"]
        inner = keccak(encode(["address", "uint256"], [holder, 4]))
        slot = "0x" + keccak(encode(["uint256"], [number]) + inner).hex()
        self.rpc.call("anvil_setStorageAt", manager, slot, f"0x{raw:064x}")
        self.rpc.call("evm_mine")


def do(who: ContractDeployer, to: str, signature: str, *values: object, wei: int = 0) -> None:
    who.receipt(who.send(to, calldata(signature, *values), wei))


def buy_order(contracts: dict[str, str], token: str, to: str, wei: int) -> bytes:
    """A swap on the v3 pool of 0.3 %, for weth that is sent along."""
    swap = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
    return bytes.fromhex(calldata(swap, (contracts["weth"], token, 3000, to, wei, 0, 0))[2:])


def asked_uint(rpc: SyncRpc, to: str, signature: str, *values: object) -> int:
    """What a contract tells."""
    answer = rpc.call("eth_call", {"to": to, "data": calldata(signature, *values)}, "latest")
    return int(answer, 16)


@contextmanager
def for_real(rpc: SyncRpc) -> Iterator[None]:
    """What is sent within is sent, and is undone afterwards."""
    snapshot = rpc.call("evm_snapshot")
    yield
    rpc.call("evm_mine")
    assert rpc.call("evm_revert", snapshot)


def sent_with(rpc: SyncRpc, wallet: Wallet, step: UnsignedStep, gas: int) -> Receipt:
    """Signed with that gas limit and mined."""
    (one,) = wallet.queue([step], gas, 10**10, 0)
    return wallet.receipt(one)
