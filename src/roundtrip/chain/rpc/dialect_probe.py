"""Finds a node's dialect with one trip, at the start and from time to time.

A simulation of two blocks gives code to two addresses. One returns NUMBER and TIMESTAMP; the other reverts
with bytes, once with enough gas and once with too little. A plain call returns NUMBER on the chain.
"""

from dataclasses import dataclass

import msgspec

from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import WEI_PER_ETH, Address, BlockRef
from roundtrip.venues import abi

from .client import Answer, RpcCall, RpcError, RpcNode, hex_bytes
from .dialect import ANVIL, GETH, NITRO, OUT_OF_GAS, Dialect
from .errors import describe_error

TELLER = Address("0x" + "7e" * 20)
REVERTER = Address("0x" + "7f" * 20)
SENDER = Address("0x" + "7d" * 20)

TELLER_CODE = "0x436000524260205260406000f3"
"""Returns NUMBER in the first word, TIMESTAMP in the second."""
REVERTER_CODE = "0x7f" + "aa" * 32 + "60005260206000fd"
"""Reverts with 32 bytes of 0xaa."""
REVERTED_WITH = "0x" + "aa" * 32
_GAS, _TOO_LITTLE_GAS = 100_000, 21_005
_SECONDS_LATER, _NUMBERS_LATER = 36, 3


class _Error(msgspec.Struct):
    code: int = 0
    message: str = ""
    data: str | None = None


class _ProbeCall(msgspec.Struct, rename="camel"):
    status: str
    return_data: str
    error: _Error | None = None


class _SimulatedBlock(msgspec.Struct, rename="camel"):
    number: str
    timestamp: str
    calls: list[_ProbeCall]


@dataclass(frozen=True, slots=True)
class ProbedDialect:
    """The dialect, and NUMBER and TIMESTAMP inside the second block (None where the call failed).
    ``fills_gaps``: the answer holds empty blocks for the numbers between two blocks."""

    dialect: Dialect
    number_inside: int | None
    timestamp_inside: int | None
    fills_gaps: bool


def probe_call(pinned: BlockRef, base_fee_wei: int) -> RpcCall:
    """The simulation to send."""
    numbers = (pinned.number + 1, pinned.number + 1 + _NUMBERS_LATER)
    times_s = (pinned.timestamp_s + 1, pinned.timestamp_s + 1 + _SECONDS_LATER)
    calls = [
        [(TELLER, _GAS)],
        [(TELLER, _GAS), (REVERTER, _GAS), (REVERTER, _TOO_LITTLE_GAS)],
    ]
    blocks = [
        {
            "stateOverrides": {
                SENDER: {"balance": hex(WEI_PER_ETH)},
                TELLER: {"code": TELLER_CODE},
                REVERTER: {"code": REVERTER_CODE},
            }
            if index == 0
            else {},
            "blockOverrides": {
                "number": hex(number),
                "time": hex(time_s),
                "baseFeePerGas": hex(base_fee_wei),
            },
            "calls": [
                {
                    "from": SENDER,
                    "to": to,
                    "gas": hex(gas),
                    "maxFeePerGas": hex(2 * base_fee_wei),
                    "maxPriorityFeePerGas": "0x0",
                }
                for to, gas in calls[index]
            ],
        }
        for index, (number, time_s) in enumerate(zip(numbers, times_s, strict=True))
    ]
    options = {"blockStateCalls": blocks, "validation": True, "traceTransfers": False}
    return RpcCall("eth_simulateV1", [options, {"blockHash": pinned.hash}])


def number_call(pinned: BlockRef) -> RpcCall:
    """Asks for NUMBER in the pinned block itself, outside of simulations."""
    overrides = {TELLER: {"code": TELLER_CODE}}
    return RpcCall("eth_call", [{"to": TELLER, "gas": hex(_GAS)}, {"blockHash": pinned.hash}, overrides])


def read_probe(answer: Answer, on_chain: Answer, pinned: BlockRef) -> ProbedDialect:
    """The dialect, from the answers to ``probe_call`` and ``number_call``. Raises NodeFault when the node
    does not simulate, or when its simulations use other block numbers than the chain: deadlines in contracts
    would be missed."""
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node refused to simulate ({describe_error(answer)})")
    try:
        blocks = {
            int(block.number, 16): block for block in msgspec.json.decode(answer, type=list[_SimulatedBlock])
        }
        last = blocks[pinned.number + 1 + _NUMBERS_LATER]
        teller, reverted, starved = last.calls
        number, time_s = _decode_words(teller)
    except (msgspec.DecodeError, ValueError, KeyError, RecursionError) as error:
        raise NodeFault("the node's simulation does not match the request") from error
    own_numbers = number == pinned.number + 1 + _NUMBERS_LATER
    chain_number = abi.uint_at(hex_bytes(on_chain), 0)
    if own_numbers and chain_number not in (pinned.number, pinned.number + 1):
        raise NodeFault(f"NUMBER is {chain_number} on the node's chain, but {number} in its simulations")
    has_error_data = reverted.error is not None and (reverted.error.data or "").lower() == REVERTED_WITH
    has_gas_error = starved.error is not None and starved.error.code == OUT_OF_GAS
    if reverted.return_data.lower() == REVERTED_WITH and not has_error_data:
        dialect = ANVIL
    elif has_error_data and has_gas_error:
        dialect = GETH if own_numbers else NITRO
    else:
        raise NodeFault("the node's simulation errors have an unknown form")
    return ProbedDialect(dialect, number, time_s, len(blocks) > 2)


def _decode_words(call: _ProbeCall) -> tuple[int | None, int | None]:
    body = bytes.fromhex(call.return_data.removeprefix("0x"))
    if call.status != "0x1" or len(body) != 64:
        return None, None
    return int.from_bytes(body[:32], "big"), int.from_bytes(body[32:], "big")


async def probe(node: RpcNode, pinned: BlockRef, base_fee_wei: int) -> ProbedDialect:
    """Probes the node. Raises NodeFault when it does not simulate, or in no known dialect."""
    calls = [probe_call(pinned, base_fee_wei), number_call(pinned)]
    answer, on_chain = await node.batch(calls, budgeted=False)
    return read_probe(answer, on_chain, pinned)


async def speaks_dialect(
    dialect: Dialect | None, node: RpcNode, pinned: BlockRef, base_fee_wei: int
) -> bool | RpcError:
    """Whether the node simulates in this dialect (None: in any known one); the node's error where it did not
    simulate. Raises NodeFault when it gave no answer."""
    calls = [probe_call(pinned, base_fee_wei), number_call(pinned)]
    answer, on_chain = await node.batch(calls, budgeted=False)
    for outcome in (answer, on_chain):
        if isinstance(outcome, RpcError):
            return outcome
    try:
        probed = read_probe(answer, on_chain, pinned).dialect
    except NodeFault:
        return False
    return dialect is None or probed == dialect
