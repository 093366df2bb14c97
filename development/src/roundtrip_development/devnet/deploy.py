"""Deploys the exchange contracts and the sample tokens on a fresh local chain."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isqrt, log
from pathlib import Path
from typing import Any

from eth_abi.abi import encode

from roundtrip.venues.abi import selector
from roundtrip.venues.amm_v3 import POOL_INIT_CODE_HASH

from .compile import compile_contract
from .stories import DYNAMIC_FEE, SUPPLY_TOKENS, PoolPlan, Story
from .sync_rpc import SyncRpc

ZERO = "0x" + "0" * 40
PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11"
COINBASE = "0xa4b000000000000000000073657175656e636572"
"""Nitro's sequencer, the coinbase that contracts see on the real chain."""
V2_INIT_CODE_HASH = "96e8ac4277198ff8b6f785478aa9a39f403cb768dd02cbee326c3e7da348845f"

ETH_PRICE_USDG = 3500
_UNIT = {"eth": 10**18, "weth": 10**18, "usdg": 10**6}
_TICK_SPACING = {100: 1, 500: 10, 2500: 50, 3000: 60, 10_000: 200, DYNAMIC_FEE: 60}
_MAX_TICK = 887_272
_DEADLINE = 2**40
_MINT = "mint((address,address,uint24,int24,int24,uint256,uint256,uint256,uint256,address,uint256))"
MAX = 2**256 - 1
_GAS = 12_000_000
_FEES = {"maxFeePerGas": hex(20 * 10**9), "maxPriorityFeePerGas": hex(10**9)}
"""Explicit, because the node's defaults depend on the timing of requests, and builds would differ."""


class DeployError(Exception):
    """A set-up transaction failed."""


def await_receipt(chain: SyncRpc, transaction: str, wait_s: float = 10.0) -> dict[str, Any]:
    """The receipt, once the node has mined the transaction. Raises DeployError: it was not mined in time."""
    deadline, pause_s = time.monotonic() + wait_s, 0.001
    while time.monotonic() < deadline:
        receipt: dict[str, Any] | None = chain.call("eth_getTransactionReceipt", transaction)
        if receipt is not None:
            return receipt
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.05)
    raise DeployError(f"transaction {transaction} was not mined within {wait_s:.0f} s")


def calldata(signature: str, *values: object) -> str:
    """Calldata of any function by its signature."""
    return selector(signature) + encode(_argument_types(signature), values).hex()


def _argument_types(signature: str) -> list[str]:
    inner, parts, depth = signature[signature.index("(") + 1 : -1], [""], 0
    for character in inner:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


@dataclass
class ContractDeployer:
    """Sends set-up transactions from one of the node's accounts, each with a limit of ``gas``."""

    chain: SyncRpc
    account: str
    gas: int = _GAS
    sent: list[str] = field(default_factory=list)

    def send(self, to: str | None, data: str, value_wei: int = 0) -> str:
        """Sends a transaction and returns its hash once it is mined; ``check_receipts`` detects failures.

        Waiting makes builds reproducible: of two transactions sent fast, the node may put both in one block.
        """
        transaction = {"from": self.account, "data": data, "gas": hex(self.gas), "value": hex(value_wei)}
        transaction |= _FEES
        if to is not None:
            transaction["to"] = to
        self.sent.append(self.chain.call("eth_sendTransaction", transaction))
        await_receipt(self.chain, self.sent[-1])
        return self.sent[-1]

    def create(self, code: str, types: list[str] | None = None, values: list[Any] | None = None) -> str:
        """Deploys ``code`` with constructor arguments and returns its address. Raises DeployError."""
        receipt = self.receipt(self.send(None, code + encode(types or [], values or []).hex()))
        return str(receipt["contractAddress"])

    def receipt(self, transaction: str) -> dict[str, Any]:
        """The receipt of a transaction that succeeded. Raises DeployError."""
        receipt = await_receipt(self.chain, transaction)
        if receipt["status"] != "0x1":
            raise DeployError(f"set-up transaction {len(self.sent)} failed")
        return receipt

    def check_receipts(self) -> None:
        """Checks every transaction sent so far. Raises DeployError."""
        for sent in reversed(self.sent):
            self.receipt(sent)
        self.sent.clear()


def deploy_exchange(deployer: ContractDeployer, bytecode: dict[str, str], sources: Path) -> dict[str, str]:
    """The exchange's contracts by name. ``bytecode`` by name, ``sources``: the folder of our contracts."""
    create, account = deployer.create, deployer.account
    chain = deployer.chain
    weth = create(bytecode["WETH9"])
    usdg = create(compile_contract(sources / "tokens/usdg.vy"), ["uint256"], [10**9 * _UNIT["usdg"]])
    chain.call("anvil_setCode", PERMIT2, bytecode["Permit2Runtime"])
    multicall = create(bytecode["Multicall3"])
    chain.call("anvil_setCode", MULTICALL3, chain.call("eth_getCode", multicall, "latest"))
    v3 = create(bytecode["UniswapV3Factory"])
    deployer.send(v3, calldata("enableFeeAmount(uint24,int24)", 100, 1))
    positions = create(bytecode["NonfungiblePositionManager"], ["address"] * 3, [v3, weth, ZERO])
    router = create(bytecode["SwapRouter02"], ["address"] * 4, [ZERO, v3, positions, weth])
    quoter = create(bytecode["QuoterV2"], ["address"] * 2, [v3, weth])
    v4 = create(bytecode["PoolManager"], ["address"], [account])
    v4_positions = create(
        bytecode["PositionManager"],
        ["address", "address", "uint256", "address", "address"],
        [v4, PERMIT2, 300_000, ZERO, weth],
    )
    hashes = [bytes.fromhex(V2_INIT_CODE_HASH), bytes.fromhex(POOL_INIT_CODE_HASH)]
    universal = create(
        bytecode["UniversalRouter"],
        ["(address,address,address,address,bytes32,bytes32,address,address,address,address)"],
        [(PERMIT2, weth, ZERO, v3, *hashes, v4, positions, v4_positions, ZERO)],
    )
    addresses = {
        "weth": weth,
        "usdg": usdg,
        "multicall3": MULTICALL3,
        "permit2": PERMIT2,
        "v3Factory": v3,
        "v3PositionManager": positions,
        "swapRouter02": router,
        "quoterV2": quoter,
        "v4PoolManager": v4,
        "v4PositionManager": v4_positions,
        "v4StateView": create(bytecode["StateView"], ["address"], [v4]),
        "v4Quoter": create(bytecode["V4Quoter"], ["address"], [v4]),
        "universalRouter": universal,
    }
    return {name: address.lower() for name, address in addresses.items()}


def create_eth_pool(deployer: ContractDeployer, contracts: dict[str, str]) -> None:
    """Creates a deep weth/usdg pool, so that eth has a price and usdg can be bought."""
    weth, usdg = contracts["weth"], contracts["usdg"]
    deployer.send(weth, calldata("deposit()"), 5000 * _UNIT["weth"])
    for token in (weth, usdg):
        deployer.send(token, calldata("approve(address,uint256)", contracts["v3PositionManager"], MAX))
    eth = 1000
    amounts = {weth: eth * _UNIT["weth"], usdg: eth * ETH_PRICE_USDG * _UNIT["usdg"]}
    v3_pool(deployer, contracts, amounts, 500, fill=True)


def put_token(
    deployer: ContractDeployer,
    contracts: dict[str, str],
    story: Story,
    code: str,
    hooks: Mapping[str, str] | None = None,
) -> str:
    """Deploys a story's token, fills its pools, and returns its address. ``hooks`` by name and quote."""
    supply = SUPPLY_TOKENS * 10**story.decimals
    types, values = _constructor(story, supply)
    token = deployer.create(code, types, values).lower()
    for pool in story.pools:
        quote = contracts.get(pool.quote, ZERO)
        amounts = _amounts(pool, token, quote, supply)
        fill = pool.quote_milli > 0
        if pool.version == 4:
            hook = (hooks or {})[f"{pool.hook}_{pool.quote}"] if pool.hook else ZERO
            v4_pool(deployer, contracts, amounts, pool.key_fee(), fill, hook, pool.tick_spacing)
        else:
            deployer.send(token, calldata("approve(address,uint256)", contracts["v3PositionManager"], MAX))
            v3_pool(deployer, contracts, amounts, pool.fee_pips, fill, token if pool.one_sided else None)
    for signature in story.after:
        deployer.send(token, calldata(signature))
    return token


def _constructor(story: Story, supply: int) -> tuple[list[str], list[Any]]:
    if story.constructor == "none":
        return [], []
    if story.constructor == "words":
        words = [text.encode().ljust(32, b"\0") for text in (story.name, story.symbol)]
        return ["bytes32", "bytes32", "uint256"], [*words, supply]
    names: list[Any] = [] if story.constructor == "supply" else [story.name, story.symbol]
    extra = [
        bool(v) if t == "bool" else v for t, v in zip(story.extra_types, story.extra_values, strict=True)
    ]
    return ["string"] * len(names) + ["uint256", *story.extra_types], [*names, supply, *extra]


def _amounts(pool: PoolPlan, token: str, quote: str, supply: int) -> dict[str, int]:
    if pool.quote_milli == 0:
        return {token: 1, quote: 1}
    return {token: supply * pool.supply_bps // 10_000, quote: pool.quote_milli * _UNIT[pool.quote] // 1000}


def v3_pool(
    deployer: ContractDeployer,
    contracts: dict[str, str],
    amounts: dict[str, int],
    fee_pips: int,
    fill: bool,
    only: str | None = None,
) -> None:
    """Creates a v3 pool at the price given by ``amounts`` (by token), and deposits them over the full range.

    ``only``: only this token is deposited, over the prices at which the pool would sell it.
    """
    low, high = sorted(amounts, key=lambda address: int(address, 16))
    sqrt_price_x96 = isqrt((amounts[high] << 192) // amounts[low])
    manager = contracts["v3PositionManager"]
    create = "createAndInitializePoolIfNecessary(address,address,uint24,uint160)"
    deployer.send(manager, calldata(create, low, high, fee_pips, sqrt_price_x96))
    if not fill:
        return
    spacing = _TICK_SPACING[fee_pips]
    edge = _MAX_TICK // spacing * spacing
    bottom, top = -edge, edge
    if only is not None:
        # A spacing further than needed, because the tick comes from a rounded logarithm.
        tick = int(log(amounts[high] / amounts[low], 1.0001)) // spacing * spacing
        bottom, top = (tick + 2 * spacing, edge) if only == low else (-edge, tick - spacing)
    deposits = {token: amount if only in (None, token) else 0 for token, amount in amounts.items()}
    position = (
        low,
        high,
        fee_pips,
        bottom,
        top,
        deposits[low],
        deposits[high],
        0,
        0,
        deployer.account,
        _DEADLINE,
    )
    deployer.send(manager, calldata(_MINT, position))


_V4_MINT, _V4_SETTLE_PAIR, _V4_SWEEP = 0x02, 0x0D, 0x14
_KEY = "(address,address,uint24,int24,address)"


def v4_pool(
    deployer: ContractDeployer,
    contracts: dict[str, str],
    amounts: dict[str, int],
    fee_pips: int,
    fill: bool,
    hook: str = ZERO,
    tick_spacing: int | None = None,
) -> None:
    """Creates a v4 pool at the price given by ``amounts`` (by currency, zero for eth), and deposits them over
    the full range."""
    low, high = sorted(amounts, key=lambda address: int(address, 16))
    sqrt_price_x96 = isqrt((amounts[high] << 192) // amounts[low])
    spacing = tick_spacing or _TICK_SPACING[fee_pips]
    key = (low, high, fee_pips, spacing, hook)
    deployer.send(contracts["v4PoolManager"], calldata(f"initialize({_KEY},uint160)", key, sqrt_price_x96))
    if not fill:
        return
    manager = contracts["v4PositionManager"]
    for currency in (low, high):
        if currency != ZERO:
            deployer.send(currency, calldata("approve(address,uint256)", PERMIT2, MAX))
            approve = calldata(
                "approve(address,address,uint160,uint48)", currency, manager, 2**160 - 1, _DEADLINE
            )
            deployer.send(PERMIT2, approve)
    edge = _MAX_TICK // spacing * spacing
    # Over the full range a pool holds the liquidity times the root of the price, and times its inverse.
    liquidity = min(amounts[high] * 2**96 // sqrt_price_x96, amounts[low] * sqrt_price_x96 // 2**96)
    position = encode(
        [_KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes"],
        [key, -edge, edge, liquidity * 999_999 // 10**6, amounts[low], amounts[high], deployer.account, b""],
    )
    pair = encode(["address", "address"], [low, high])
    sweep = encode(["address", "address"], [ZERO, deployer.account])
    actions = bytes([_V4_MINT, _V4_SETTLE_PAIR, _V4_SWEEP])
    unlock = encode(["bytes", "bytes[]"], [actions, [position, pair, sweep]])
    deployer.send(
        manager, calldata("modifyLiquidities(bytes,uint256)", unlock, _DEADLINE), amounts.get(ZERO, 0)
    )
