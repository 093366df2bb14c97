"""A simulation that shows whether a node lets the value of another instruction, such as COINBASE, be set in
each block, so that a copy of a token's code can read its block number from there. Pure."""

from roundtrip.chain.rpc.dialect import Dialect
from roundtrip.domain.base.types import WEI_PER_ETH, Address, BlockRef
from roundtrip.domain.check.evidence import Environment, Missing, NumberInstruction
from roundtrip.venues import abi
from roundtrip.venues.base import Call

from .number_copies import INSTRUCTIONS, NumberCopies
from .request import Plan, PlannedBlock, Results, SimulatedStep

_TELLER = Address("0x" + "7c" * 20)
_GAS, _STEP_S = 100_000, 36
_START = 19_000_000
"""Far from the other values of a block."""


def probe_plan(environment: Environment, instruction: NumberInstruction) -> tuple[Plan, NumberCopies]:
    """Two blocks that return NUMBER and the instruction's value, and what sets that value."""
    code = f"0x43600052{INSTRUCTIONS[instruction]:02x}60205260406000f3"
    reader = environment.reader
    blocks = tuple(
        PlannedBlock(
            _STEP_S,
            (SimulatedStep(f"tell-{n}", reader, Call(_TELLER, "0x"), _GAS),),
            balances=((reader, WEI_PER_ETH),),
            codes=((_TELLER, code),) if n == 0 else (),
        )
        for n in range(2)
    )
    return Plan(environment, blocks), NumberCopies(instruction, _START, ())


def is_honoured(plan: Plan, copies: NumberCopies, results: Results | Missing, dialect: Dialect) -> bool:
    """Whether the instruction returned the number of each block."""
    if isinstance(results, Missing):
        return False
    numbers = copies.numbers(plan.delays_s(), (), dialect)
    return [abi.uint_at(results[f"tell-{n}"].data, 1) for n in range(len(numbers))] == numbers


def number_at(results: Results | Missing, pinned: BlockRef, dialect: Dialect) -> int | None:
    """NUMBER at the pinned block; None where the probe did not run."""
    if isinstance(results, Missing):
        return None
    return pinned.number if dialect.own_numbers else abi.uint_at(results["tell-0"].data, 0)
