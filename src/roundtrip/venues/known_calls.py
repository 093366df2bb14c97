"""Functions by their selectors, what a transaction that calls one does, and which token a trade gives away: a
failed or pending transaction has no logs to read."""

from types import MappingProxyType
from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.domain.transaction.account import Kind

from . import abi, amm_v3, amm_v4, launchpad_curve


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


_INNER_SIGNATURES = (
    "balanceOf(address)", "allowance(address,address)", "refundETH()", "unwrapWETH9(uint256,address)",
    "sweepToken(address,uint256,address)", "swap(address,bool,int256,uint160,bytes)",
    "uniswapV3SwapCallback(int256,int256,bytes)", "unlock(bytes)", "unlockCallback(bytes)",
    "swap((address,address,uint24,int24,address),(bool,int256,uint160),bytes)", "sync(address)", "settle()",
    "take(address,address,uint256)", "transferFrom(address,address,uint160,address)",
    "beforeSwap(address,(address,address,uint24,int24,address),(bool,int256,uint160),bytes)",
    "afterSwap(address,(address,address,uint24,int24,address),(bool,int256,uint160),int256,bytes)",
    "mint(address,int24,int24,uint128,bytes)", "burn(int24,int24,uint128)",
    "selfPermit(address,uint256,uint256,uint8,bytes32,bytes32)",
)  # fmt: skip
FUNCTION_NAMES: MappingProxyType[str, str] = MappingProxyType(
    {abi.selector(signature): signature.partition("(")[0] for signature in _INNER_SIGNATURES}
    | {head: call.name for head, call in KNOWN_CALLS.items()}
)
"""By selector, also of functions that no transaction calls by itself: those of pools and of steps in a
multicall."""


def find_known_call(data: bytes) -> KnownCall | None:
    """The call by the selector of its calldata; None: unknown, or no calldata."""
    return KNOWN_CALLS.get("0x" + data[:4].hex()) if len(data) >= 4 else None


# --- what a call is made of -

_COMMANDS = MappingProxyType(
    {
        0x00: "V3 swap, exact in", 0x01: "V3 swap, exact out", 0x02: "take by Permit2",
        0x03: "allow by Permit2", 0x04: "sweep", 0x05: "transfer", 0x06: "pay a share",
        0x08: "V2 swap, exact in",
        0x09: "V2 swap, exact out", 0x0A: "allow by Permit2", 0x0B: "wrap eth", 0x0C: "unwrap weth",
        0x0D: "take by Permit2", 0x0E: "read a balance", 0x10: "V4 swap",
    }
)  # fmt: skip
"""The commands of the Universal Router."""


def list_steps(data: bytes) -> list[str]:
    """What the calldata says that the call is made of, in order: the functions in a multicall, the commands
    of the Universal Router. Empty: it is neither. The first ``_MAX_ITEMS``."""
    head, body = "0x" + data[:4].hex(), data[4:]
    if head in _ITEMS_AT:
        heads = ("0x" + call[:4].hex() for call in _items(body, _ITEMS_AT[head]))
        return [FUNCTION_NAMES.get(one, one) for one in heads]
    if head in _EXECUTE:
        codes = _bytes(body, 0)[:_MAX_ITEMS]
        return [_COMMANDS.get(code & _COMMAND_BITS, f"command {code & _COMMAND_BITS}") for code in codes]
    return []


# --- what a trade sells ----------------------------------------------------------------------------

CURVE_SELL = launchpad_curve.SELL
_SINGLE = frozenset(
    abi.selector(f"{name}((address,address,uint24,address,uint256,uint256,uint160))")
    for name in ("exactInputSingle", "exactOutputSingle")
)
_EXACT_INPUT = abi.selector("exactInput((bytes,address,uint256,uint256))")
_ITEMS_AT = MappingProxyType({amm_v3.MULTICALL: 0, amm_v3.MULTICALL_BY: 1})
"""By the selector of a multicall, the word of its list of calls."""
_EXECUTE = frozenset({amm_v4.EXECUTE, abi.selector("execute(bytes,bytes[])")})
_COMMAND_BITS = 0x3F
"""The bits of a command of the Universal Router that say which it is; the others are flags."""
_V3_IN, _V3_OUT, _V4 = int(amm_v3.V3_SWAP_EXACT_IN, 16), 0x01, int(amm_v4.V4_SWAP, 16)
_SETTLES = frozenset({int(amm_v4.SETTLE, 16), int(amm_v4.SETTLE_ALL, 16)})
_MAX_ITEMS = 16
"""The items of a list that are read, the first ones: anybody can send a longer one."""
SELL_CALLS = frozenset({CURVE_SELL, *_SINGLE, _EXACT_INPUT, amm_v3.EXACT_OUTPUT, *_ITEMS_AT, *_EXECUTE})
"""The selectors that ``find_sold`` reads."""


def find_sold(to: Address, data: bytes, nested: bool = False) -> Address | None:
    """The token that a trade gives away first, by its calldata; of a curve's sell, the curve. None: it is no
    such call. ``nested``: the call stands in a multicall."""
    head, body = "0x" + data[:4].hex(), data[4:]
    if head == CURVE_SELL:
        return to
    if head in _SINGLE:
        return abi.address_at(body, 0)
    if head in (_EXACT_INPUT, amm_v3.EXACT_OUTPUT):
        return _payer_end(_bytes(_tail(body, 0), 0), head == _EXACT_INPUT)
    sold: list[Address | None] = []
    if head in _ITEMS_AT and not nested:
        sold = [find_sold(to, call, nested=True) for call in _items(body, _ITEMS_AT[head])]
    elif head in _EXECUTE:
        commands = zip(_bytes(body, 0), _items(body, 1), strict=False)
        sold = [_paid_in(command & _COMMAND_BITS, given) for command, given in commands]
    return next((token for token in sold if token is not None), None)


def _paid_in(command: int, given: bytes) -> Address | None:
    """The token that a command of the Universal Router pays into a swap."""
    if command in (_V3_IN, _V3_OUT):
        return _payer_end(_bytes(given, 3), command == _V3_IN)
    if command != _V4:
        return None
    actions = zip(_bytes(given, 0), _items(given, 1), strict=False)
    return next((abi.address_at(values, 0) for action, values in actions if action in _SETTLES), None)


def _payer_end(path: bytes, is_first: bool) -> Address | None:
    """The token at the first or the last end of a path of tokens and fees."""
    end = path[:20] if is_first else path[-20:]
    return Address("0x" + end.hex()) if len(end) == 20 else None


def _tail(data: bytes, index: int) -> bytes:
    """The data from the offset in word ``index`` on; empty where there is none."""
    at = abi.uint_at(data, index, 32)
    return b"" if at is None else data[at:]


def _bytes(data: bytes, index: int) -> bytes:
    """The ``bytes`` whose offset is in word ``index``, as far as the data reaches."""
    tail = _tail(data, index)
    return tail[abi.WORD : abi.WORD + (abi.uint_at(tail, 0, 32) or 0)]


def _items(data: bytes, index: int) -> list[bytes]:
    """The first items of the ``bytes[]`` whose offset is in word ``index``."""
    tail = _tail(data, index)
    count = min(abi.uint_at(tail, 0, 32) or 0, _MAX_ITEMS)
    return [_bytes(tail[abi.WORD :], number) for number in range(count)]
