"""Deploys the launchpad on the local chain; launches, buys and graduates there.

Interface and formulas follow the public descriptions of the launchpad of chain 4663: a bonding curve for
every token, then a v4 pool whose hook takes a fee. Amounts are raw integers, shares hundredths of a percent.
"""

import contextlib
import gc
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_abi.abi import encode

from roundtrip.venues.abi import keccak

from .compile import compile_contract
from .deploy import ZERO, ContractDeployer, DeployError, calldata

LAUNCH_TUPLE = (
    "(string,string,string,string,(string,string,string,string,string),address,uint16,bool,bytes32,bytes32)"
)
LAUNCH = f"launchToken({LAUNCH_TUPLE},uint256,address,address[])"
LAUNCH_AND_BUY = f"launchAndBuy({LAUNCH_TUPLE},uint256,address,uint256,uint256,address,address[])"
TOKEN_LAUNCHED = keccak(b"TokenLaunched(address,address,address,address,uint256,uint256)").hex()

LAUNCH_FEE_WEI = 5 * 10**14
POOL_FEE = 0
TICK_SPACING = 200
HOOK_FLAGS = 0x2044
"""beforeInitialize, afterSwap, afterSwapReturnsDelta: v4 reads them from the address's last 14 bits."""
_ALL_FLAGS = 0x3FFF

NATIVE_TERMS = (168 * 10**16, 420 * 10**16)
"""Phantom quote and graduation threshold of native eth, in wei."""
USDG_TERMS = (3_236 * 10**6, 8_090 * 10**6)
"""The same of usdg, which has six decimals."""

_V4_SWAP, _SWAP_SETTLE_TAKE = bytes([0x10]), bytes([0x06, 0x0C, 0x0F])
_SINGLE = "((address,address,uint24,int24,address),bool,uint128,uint128,uint256,bytes)"
_ANY_PRICE = 0x140
"""Router 2.1.1 reads this word as a price bound per hop, times 1e36: next to nothing. The published 2.1.0 has
no such field: it reads the same word as the offset of the empty hook data, which is exactly there."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """The parameters of a launch. ``quote``: an approved token, or the zero address for native eth.

    ``creator`` None: the launcher. Only launcher, creator and ``exempt`` escape the snipe tax of the first
    three seconds. The same launcher, salt, name and symbol cannot launch twice.
    """

    name: str
    symbol: str
    quote: str = ZERO
    creator: str | None = None
    creator_tax_bps: int = 0
    buyback: bool = False
    exempt: tuple[str, ...] = ()
    salt: int = 0

    def as_tuple(self) -> tuple[Any, ...]:
        """The launchpad's own structure: empty texts, no expectation of the terms."""
        socials = ("",) * 5
        creator = self.creator or ZERO
        numbers = (self.creator_tax_bps, self.buyback, bytes(32), self.salt.to_bytes(32, "big"))
        return (self.name, self.symbol, "", "", socials, creator, *numbers)


@dataclass(frozen=True, slots=True)
class CurveToken:
    """A token on its curve. ``quote`` as in ``LaunchRequest``."""

    token: str
    curve: str
    quote: str


def deploy_launchpad(deployer: ContractDeployer, contracts: dict[str, str], sources: Path) -> dict[str, str]:
    """The launchpad's addresses by name. ``sources``: the folder of our contracts.

    Native eth is an approved quote; so is usdg where ``contracts`` has it. Raises DeployError.
    """
    with without_collector():
        code = {path.stem: compile_contract(path) for path in sorted((sources / "launchpad").glob("*.vy"))}
    create, manager = deployer.create, contracts["v4PoolManager"]
    blueprints = [create(blueprint(code[name])) for name in ("token", "curve")]
    escrow = create(code["escrow"])
    factory = create(code["factory"], ["address"] * 4, [*blueprints, manager, escrow])
    owners = [factory, contracts["v4PositionManager"], contracts["permit2"]]
    locker = create(code["locker"], ["address"] * 3, owners)
    router = create(code["router"], ["address"], [factory])
    arguments = encode(["address"] * 3, [manager, factory, escrow])
    hook = _hook(deployer, code["create2"], bytes.fromhex(code["hook"][2:]) + arguments)
    deployer.send(factory, calldata("wire(address,address,address)", hook, locker, router))
    approve_quote(deployer, factory, ZERO, *NATIVE_TERMS)
    if "usdg" in contracts:
        approve_quote(deployer, factory, contracts["usdg"], *USDG_TERMS)
    deployer.check_receipts()
    addresses = {"Factory": factory, "Hook": hook, "Router": router, "Locker": locker, "Escrow": escrow}
    return {f"launchpad{part}": address.lower() for part, address in addresses.items()}


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Runs the block without garbage collection: the compiler makes millions of small objects, and scanning
    them repeatedly is a third of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def blueprint(code: str) -> str:
    """Creation code of a blueprint (ERC-5202): it stores ``code`` instead of running it."""
    stored = "fe7100" + code[2:]
    return f"0x61{len(stored) // 2:04x}3d81600a3d39f3{stored}"


def _hook(deployer: ContractDeployer, create2: str, code: bytes) -> str:
    """Deploys the hook at an address that ends in its permissions. Raises DeployError."""
    helper = deployer.create(create2)
    salt, address = mine_salt(helper, code)
    deployer.receipt(deployer.send(helper, calldata("deploy(bytes,bytes32)", code, salt)))
    if deployer.chain.call("eth_getCode", address, "latest") == "0x":
        raise DeployError("the hook is not where its salt should have put it")
    return address


def mine_salt(creator: str, code: bytes, flags: int = HOOK_FLAGS) -> tuple[bytes, str]:
    """A salt for which CREATE2 (EIP-1014) from ``creator`` gives an address that ends in ``flags``."""
    head, tail = b"\xff" + bytes.fromhex(creator[2:]), keccak(code)
    for number in itertools.count():
        salt = number.to_bytes(32, "big")
        digest = keccak(head + salt + tail)
        if digest[31] == flags & 0xFF and int.from_bytes(digest[30:], "big") & _ALL_FLAGS == flags:
            return salt, "0x" + digest[12:].hex()
    raise AssertionError("counting does not end")


def approve_quote(
    deployer: ContractDeployer, factory: str, quote: str, phantom_raw: int, threshold_raw: int
) -> None:
    """Lets tokens launch against ``quote``. Only the launchpad's deployer can do that."""
    terms = calldata("setQuoteTerms(address,uint256,uint256,bool)", quote, phantom_raw, threshold_raw, True)
    deployer.send(factory, terms)


def launch(deployer: ContractDeployer, contracts: dict[str, str], request: LaunchRequest) -> CurveToken:
    """Launches a token. ``contracts`` as returned by ``deploy_launchpad``. Raises DeployError."""
    data = calldata(LAUNCH, request.as_tuple(), 0, request.quote, list(request.exempt))
    sent = deployer.send(contracts["launchpadFactory"], data, LAUNCH_FEE_WEI)
    return _read_launch(deployer.receipt(sent), request.quote)


def launch_and_buy(
    deployer: ContractDeployer,
    contracts: dict[str, str],
    request: LaunchRequest,
    quote_in_raw: int,
    recipient: str,
) -> CurveToken:
    """Launches through the router, which buys for ``recipient`` in the same transaction. Raises
    DeployError."""
    router, quote = contracts["launchpadRouter"], request.quote
    _approve(deployer, quote, router, quote_in_raw)
    values = (request.as_tuple(), 0, quote, quote_in_raw, 0, recipient, list(request.exempt))
    value_wei = LAUNCH_FEE_WEI + (quote_in_raw if quote == ZERO else 0)
    sent = deployer.send(router, calldata(LAUNCH_AND_BUY, *values), value_wei)
    return _read_launch(deployer.receipt(sent), quote)


def _read_launch(receipt: dict[str, Any], quote: str) -> CurveToken:
    for log in receipt["logs"]:
        if log["topics"][0] == "0x" + TOKEN_LAUNCHED:
            token, curve = ("0x" + topic[26:] for topic in log["topics"][1:3])
            return CurveToken(token, curve, quote)
    raise DeployError("the launch says nothing of a token")


def _approve(deployer: ContractDeployer, asset: str, spender: str, amount_raw: int) -> None:
    if asset != ZERO:
        deployer.send(asset, calldata("approve(address,uint256)", spender, amount_raw))


def curve_buy(
    deployer: ContractDeployer, launched: CurveToken, quote_in_raw: int, recipient: str | None = None
) -> str:
    """Buys on the curve; returns the transaction's hash. The curve refunds what exceeds its remaining
    sale."""
    _approve(deployer, launched.quote, launched.curve, quote_in_raw)
    buy = calldata("buy(uint256,uint256,address)", quote_in_raw, 0, recipient or deployer.account)
    return deployer.send(launched.curve, buy, quote_in_raw if launched.quote == ZERO else 0)


def curve_sell(deployer: ContractDeployer, launched: CurveToken, tokens_raw: int) -> str:
    """Sells the deployer's tokens to the curve; returns the transaction's hash."""
    _approve(deployer, launched.token, launched.curve, tokens_raw)
    sell = calldata("sell(uint256,uint256,address)", tokens_raw, 0, deployer.account)
    return deployer.send(launched.curve, sell)


def graduate(deployer: ContractDeployer, contracts: dict[str, str], token: str) -> str:
    """Takes a sold-out curve to its pool in the two transactions it needs; returns the pool's id.

    Raises DeployError, also when the curve is not sold out.
    """
    factory = contracts["launchpadFactory"]
    deployer.receipt(deployer.send(factory, calldata("graduate(address)", token)))
    receipt = deployer.receipt(deployer.send(factory, calldata("createGraduatedPool(address)", token)))
    registered = "0x" + keccak(b"PoolRegistered(bytes32,address,address,address)").hex()
    return next(str(log["topics"][1]) for log in receipt["logs"] if log["topics"][0] == registered)


def v4_swap(
    deployer: ContractDeployer,
    contracts: dict[str, str],
    key: tuple[str, str, int, int, str],
    source: str,
    amount_in_raw: int,
) -> str:
    """Swaps an exact input of ``source`` in any v4 pool through the universal router; returns the hash.

    ``contracts`` has the exchange's contracts, too.
    """
    target = key[1] if source == key[0] else key[0]
    router, permit2 = contracts["universalRouter"], contracts["permit2"]
    if source != ZERO:
        _approve(deployer, source, permit2, amount_in_raw)
        approve = "approve(address,address,uint160,uint48)"
        deployer.send(permit2, calldata(approve, source, router, amount_in_raw, 2**40))
    steps = [
        encode([_SINGLE], [(key, source == key[0], amount_in_raw, 0, _ANY_PRICE, b"")]),
        encode(["address", "uint256"], [source, amount_in_raw]),
        encode(["address", "uint256"], [target, 0]),
    ]
    plan = encode(["bytes", "bytes[]"], [_SWAP_SETTLE_TAKE, steps])
    data = calldata("execute(bytes,bytes[],uint256)", _V4_SWAP, [plan], 2**40)
    return deployer.send(router, data, amount_in_raw if source == ZERO else 0)


def pool_key(contracts: dict[str, str], token: str, quote: str) -> tuple[str, str, int, int, str]:
    """v4's key of a graduated token's pool."""
    first, second = sorted((token, quote), key=lambda address: int(address, 16))
    return first, second, POOL_FEE, TICK_SPACING, contracts["launchpadHook"]


def pool_id(key: tuple[str, str, int, int, str]) -> bytes:
    """v4's id of a pool: the hash of its key."""
    return keccak(encode(["address", "address", "uint24", "int24", "address"], key))
