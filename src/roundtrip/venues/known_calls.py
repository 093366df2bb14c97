"""Functions by their selectors, and what a transaction that calls one does: a failed or pending transaction
has no logs to read."""

from types import MappingProxyType
from typing import NamedTuple

from roundtrip.domain.transaction.account import Kind

from . import abi


class KnownCall(NamedTuple):
    """``name``: the function's; ``kind``: what its transaction does."""

    name: str
    kind: Kind


_LAUNCH_PARAMS = (
    "(string,string,string,string,(string,string,string,string,string),address,uint16,bool,bytes32,bytes32)"
)
_OPERATION_06 = "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)"
_OPERATION_07 = "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"
_SIGNATURES: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("transfer", ("transfer(address,uint256)", "transferFrom(address,address,uint256)")),
    (
        "approval",
        (
            "approve(address,uint256)",
            "approve(address,address,uint160,uint48)",
            "setApprovalForAll(address,bool)",
            "increaseAllowance(address,uint256)",
            "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
        ),
    ),
    ("wrap", ("deposit()", "withdraw(uint256)")),
    (
        "trade",
        (
            "buy(uint256,uint256,address)",
            "sell(uint256,uint256,address)",
            "execute(bytes,bytes[],uint256)",
            "execute(bytes,bytes[])",
            "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))",
            "exactInput((bytes,address,uint256,uint256))",
            "exactOutputSingle((address,address,uint24,address,uint256,uint256,uint160))",
            "exactOutput((bytes,address,uint256,uint256))",
        ),
    ),
    ("launch", (f"launchToken({_LAUNCH_PARAMS},uint256,address,address[])",)),
    ("launch", (f"launchAndBuy({_LAUNCH_PARAMS},uint256,address,uint256,uint256,address,address[])",)),
    ("graduation", ("graduate(address)", "createGraduatedPool(address)", "forceSweep(address)")),
    ("liquidity", ("modifyLiquidities(bytes,uint256)",)),
    ("operations", (f"handleOps({_OPERATION_06}[],address)", f"handleOps({_OPERATION_07}[],address)")),
    ("call", ("multicall(bytes[])", "multicall(uint256,bytes[])")),
)
KNOWN_CALLS: MappingProxyType[str, KnownCall] = MappingProxyType(
    {
        abi.selector(signature): KnownCall(signature.partition("(")[0], kind)
        for kind, signatures in _SIGNATURES
        for signature in signatures
    }
)
"""By selector, ``0x`` and eight hex digits."""


def find_known_call(data: bytes) -> KnownCall | None:
    """The call by the selector of its calldata; None: unknown, or no calldata."""
    return KNOWN_CALLS.get("0x" + data[:4].hex()) if len(data) >= 4 else None
