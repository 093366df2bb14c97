"""Logs written with eth_abi from events as contracts declare them: nothing here knows how they are read."""

from dataclasses import dataclass, replace
from typing import Any

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from roundtrip.domain.base.types import Address
from roundtrip.venues.base import Log
from unit.venues.network import CONTRACTS, address

V1_FACTORIES = (address(0xF1), address(0xF2))
NETWORK = replace(CONTRACTS, launchpad_v1_factories=V1_FACTORIES)
STRANGER = address(0x5712A46E)


@dataclass(frozen=True)
class Shape:
    """An event: its name and its types, those of indexed arguments with a star."""

    name: str
    types: tuple[str, ...]

    @property
    def indexed(self) -> tuple[int, ...]:
        return tuple(n for n, kind in enumerate(self.types) if kind.endswith("*"))

    @property
    def rest(self) -> tuple[int, ...]:
        return tuple(n for n, kind in enumerate(self.types) if not kind.endswith("*"))

    @property
    def plain(self) -> tuple[str, ...]:
        return tuple(kind.rstrip("*") for kind in self.types)

    @property
    def topic(self) -> str:
        return "0x" + keccak(text=f"{self.name}({','.join(self.plain)})").hex()

    def log(self, emitter: Address, *values: Any) -> Log:
        """The event with these arguments, in the order of its declaration."""
        assert len(values) == len(self.types)
        words = [encode([self.plain[n]], [values[n]]).hex() for n in self.indexed]
        data = encode([self.plain[n] for n in self.rest], [values[n] for n in self.rest])
        return Log(emitter, (self.topic, *(f"0x{word}" for word in words)), data)


def shape(declared: str) -> Shape:
    """``Name(type*,type)``."""
    name, types = declared.rstrip(")").split("(")
    return Shape(name, tuple(types.split(",")) if types else ())


V3_CREATED = shape("PoolCreated(address*,address*,uint24*,int24,address)")
V3_INITIALIZE = shape("Initialize(uint160,int24)")
V3_SWAP = shape("Swap(address*,address*,int256,int256,uint160,uint128,int24)")
V3_MINT = shape("Mint(address,address*,int24*,int24*,uint128,uint256,uint256)")
V3_BURN = shape("Burn(address*,int24*,int24*,uint128,uint256,uint256)")
V3_INCREASED = shape("IncreaseLiquidity(uint256*,uint128,uint256,uint256)")
V3_DECREASED = shape("DecreaseLiquidity(uint256*,uint128,uint256,uint256)")
NFT_TRANSFER = shape("Transfer(address*,address*,uint256*)")
V4_INITIALIZE = shape("Initialize(bytes32*,address*,address*,uint24,int24,address,uint160,int24)")
V4_SWAP = shape("Swap(bytes32*,address*,int128,int128,uint160,uint128,int24,uint24)")
V4_MODIFY = shape("ModifyLiquidity(bytes32*,address*,int24,int24,int256,bytes32)")
LAUNCHED = shape("TokenLaunched(address*,address*,address*,address,uint256,uint256)")
CURVE_BUY = shape("CurveBuy(address*,address*,uint256,uint256,uint256,uint256)")
CURVE_SELL = shape("CurveSell(address*,address*,uint256,uint256,uint256,uint256)")
BUYBACK = shape("BuybackLocked(uint256,uint256)")
SWEPT = shape("LaunchSwept(address*,uint256,uint256)")
GRADUATED = shape("PoolGraduated(address*,uint256,uint256,uint256)")
FORCE_SWEPT = shape("LaunchForceSwept(address*)")
HOOK_FEE = shape("HookFeeCollected(bytes32*,address,uint256,uint256)")
V1_LAUNCHED = shape(
    "TokenLaunched(address*,address*,address*,address,address,uint256,uint256,uint256,uint256,uint256)"
)
TRANSFER = shape("Transfer(address*,address*,uint256)")
EXECUTING = shape("BeforeExecution()")
AGGREGATOR = shape("SignatureAggregatorChanged(address*)")
OPERATION = shape("UserOperationEvent(bytes32*,address*,address*,uint256,bool,uint256,uint256)")


def pool_id(low: Address, high: Address, fee_pips: int, spacing: int, hook: Address) -> bytes:
    """A v4 pool's id."""
    return keccak(
        encode(["address", "address", "uint24", "int24", "address"], [low, high, fee_pips, spacing, hook])
    )


def v3_pool(factory: Address, low: Address, high: Address, fee_pips: int) -> Address:
    """A v3 pool's address, by CREATE2."""
    salt = keccak(encode(["address", "address", "uint24"], [low, high, fee_pips]))
    code = bytes.fromhex("e34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54")
    return Address("0x" + keccak(b"\xff" + bytes.fromhex(factory[2:]) + salt + code)[12:].hex())
