"""Finds a node's dialect with one trip, at the start and from time to time.

A simulation of two blocks gives code to three addresses. The first returns NUMBER, TIMESTAMP and GAS, the
second reverts with bytes, the third uses up its gas. What the first uses beyond its instructions is the fee
for its data. A plain call returns NUMBER on the chain, and the gas that the node gives one request.
"""

from dataclasses import dataclass, replace

import msgspec

from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi

from .client import Answer, RpcCall, RpcError, RpcNode, hex_bytes
from .data_fee import DataFee
from .dialect import ANVIL, GAS_POOL, GETH, NITRO, OUT_OF_GAS, Dialect, SimulatedBlock, SimulatedCall
from .node_words import quote
from .refusals import explain_no_call, explain_no_simulation, explain_odd_simulation, explain_unknown_form

TELLER = Address("0x" + "7e" * 20)
REVERTER = Address("0x" + "7f" * 20)
BURNER = Address("0x" + "7c" * 20)
SENDER = Address("0x" + "7d" * 20)

TELLER_CODE = "0x43600052426020525a60405260606000f3"
"""Returns NUMBER in the first word, TIMESTAMP in the second, GAS in the third."""
TELLER_GAS = 21_039
"""What a call of it uses: 21,000, its instructions and three words of memory."""
REVERTER_CODE = "0x7f" + "aa" * 32 + "60005260206000fd"
"""Reverts with 32 bytes of 0xaa."""
REVERTED_WITH = "0x" + "aa" * 32
BURNER_CODE = "0x5b5f56"
"""JUMPDEST PUSH0 JUMP: a loop without end."""
_GAS = 10_000_000
"""Far above the intrinsic gas, which on nitro has the fee for the data in it."""
_MAX_WEI = 10**30
_SECONDS_LATER, _NUMBERS_LATER = 36, 3
_NITRO_POOL, _LARGE_POOL = 30_000_000, 60_000_000
"""Nitro gives one call at most 32 M, so from there on a call's gas does not show the pool."""
_USED_BEFORE = 100_000
"""More than a call uses before it reads the gas that is left."""
MIN_POOL = 20_000_000
"""With less, no sale under the highest gas limit can be run."""


@dataclass(frozen=True, slots=True)
class ProbedDialect:
    """The dialect with its measured fee and pool, and NUMBER and TIMESTAMP inside the second block (None
    where the call failed). ``fills_gaps``: the answer has empty blocks for the numbers between two blocks."""

    dialect: Dialect
    number_inside: int | None
    timestamp_inside: int | None
    fills_gaps: bool


def probe_call(pinned: BlockRef, base_fee_wei: int) -> RpcCall:
    """The simulation to send."""
    numbers = (pinned.number + 1, pinned.number + 1 + _NUMBERS_LATER)
    times_s = (pinned.timestamp_s + 1, pinned.timestamp_s + 1 + _SECONDS_LATER)
    calls = [[TELLER], [TELLER, REVERTER, BURNER]]
    blocks = [
        {
            "stateOverrides": {
                SENDER: {"balance": hex(_MAX_WEI)},
                TELLER: {"code": TELLER_CODE},
                REVERTER: {"code": REVERTER_CODE},
                BURNER: {"code": BURNER_CODE},
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
                    "gas": hex(_GAS),
                    "maxFeePerGas": hex(2 * base_fee_wei),
                    "maxPriorityFeePerGas": "0x0",
                }
                for to in calls[index]
            ],
        }
        for index, (number, time_s) in enumerate(zip(numbers, times_s, strict=True))
    ]
    options = {"blockStateCalls": blocks, "validation": True, "traceTransfers": False}
    return RpcCall("eth_simulateV1", [options, {"blockHash": pinned.hash}])


def number_call(pinned: BlockRef) -> RpcCall:
    """Asks for NUMBER in the pinned block itself, outside of simulations, with all the gas that the node
    gives."""
    overrides = {TELLER: {"code": TELLER_CODE}}
    return RpcCall("eth_call", [{"to": TELLER}, {"blockHash": pinned.hash}, overrides])


def read_probe(answer: Answer, on_chain: Answer, pinned: BlockRef, base_fee_wei: int) -> ProbedDialect:
    """The dialect, from the answers to ``probe_call`` and ``number_call``. Raises NodeFault when the node
    does not simulate, or in no known dialect, or with too little gas, or when its simulations use other block
    numbers than the chain: deadlines in contracts would be missed."""
    if isinstance(answer, RpcError):
        raise explain_no_simulation(answer).fault()
    if isinstance(on_chain, RpcError):
        raise explain_no_call(on_chain).fault()
    try:
        blocks = {
            int(block.number, 16): block for block in msgspec.json.decode(answer, type=list[SimulatedBlock])
        }
        last = blocks[pinned.number + 1 + _NUMBERS_LATER]
        teller, reverted, starved = last.calls
        number, time_s = _decode_words(teller)
        data_gas = max(0, int(teller.gas_used, 16) - TELLER_GAS)
    except (msgspec.DecodeError, ValueError, KeyError, RecursionError) as error:
        raise explain_odd_simulation("the node's simulation does not match the request").fault() from error
    own_numbers = number == pinned.number + 1 + _NUMBERS_LATER
    called = hex_bytes(on_chain)
    chain_number = abi.uint_at(called, 0)
    if own_numbers and chain_number not in (pinned.number, pinned.number + 1):
        seen = f"NUMBER is {chain_number} on the node's chain, but {number} in its simulations"
        raise explain_odd_simulation(seen).fault()
    has_error_data = reverted.error is not None and (reverted.error.data or "").lower() == REVERTED_WITH
    has_gas_error = starved.error is not None and starved.error.code == OUT_OF_GAS
    if reverted.return_data.lower() == REVERTED_WITH and not has_error_data:
        dialect = ANVIL
    elif has_error_data and has_gas_error:
        dialect = GETH if own_numbers else NITRO
    else:
        raise explain_unknown_form(_describe_end(reverted), _describe_end(starved)).fault()
    pool = None if dialect.gas_pool is None else _read_pool(dialect, abi.uint_at(called, 2))
    fee = DataFee(data_gas * base_fee_wei, base_fee_wei)
    measured = replace(dialect, gas_pool=pool, data_fee=fee)
    return ProbedDialect(measured, number, time_s, len(blocks) > 2)


def _read_pool(dialect: Dialect, given: int | None) -> int | None:
    """The pool, by the gas that a plain call got. Raises NodeFault where it is too small for one trade."""
    lowest = _NITRO_POOL if dialect == NITRO else GAS_POOL - _USED_BEFORE
    pool = GAS_POOL if given is None or lowest < given < _LARGE_POOL else given // 10**6 * 10**6
    if pool < MIN_POOL:
        why = f"the node gives one request {pool:,} gas, and a check needs {MIN_POOL:,}"
        raise NodeFault(why, "raise its rpc.gascap, or use another node")
    return pool


def _decode_words(call: SimulatedCall) -> tuple[int | None, int | None]:
    body = bytes.fromhex(call.return_data.removeprefix("0x"))
    if call.status != "0x1" or len(body) != 3 * abi.WORD:
        return None, None
    return abi.uint_at(body, 0), abi.uint_at(body, 1)


def _describe_end(call: SimulatedCall) -> str:
    if call.error is None:
        return "no error"
    return f"error {call.error.code} {quote(call.error.message)}".rstrip()


async def probe(node: RpcNode, pinned: BlockRef, base_fee_wei: int) -> ProbedDialect:
    """Probes the node. Raises NodeFault when it does not simulate, or in no known dialect."""
    calls = [probe_call(pinned, base_fee_wei), number_call(pinned)]
    answer, on_chain = await node.batch(calls, budgeted=False)
    return read_probe(answer, on_chain, pinned, base_fee_wei)


async def speaks_dialect(
    dialect: Dialect | None, node: RpcNode, pinned: BlockRef, base_fee_wei: int
) -> bool | NodeFault | RpcError:
    """Whether the node simulates in this dialect; the node's error where it did not simulate. ``dialect``
    None: in any known one, else why in none. Raises NodeFault when it gave no answer."""
    calls = [probe_call(pinned, base_fee_wei), number_call(pinned)]
    answer, on_chain = await node.batch(calls, budgeted=False)
    for outcome in (answer, on_chain):
        if isinstance(outcome, RpcError):
            return outcome
    try:
        probed = read_probe(answer, on_chain, pinned, base_fee_wei).dialect
    except NodeFault as fault:
        return False if dialect is not None else fault
    return dialect is None or probed == dialect
