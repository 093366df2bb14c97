"""How a node's simulations number blocks, and what its errors mean. Found by probing (``dialect_probe``), not
by the node's name."""

from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from roundtrip.domain.check.evidence import NumberInstruction

from .data_fee import NO_DATA_FEE, DataFee

OUT_OF_GAS = -32015
"""geth: an error of the virtual machine other than a revert; the message names it."""


class CallError(msgspec.Struct):
    """Why a simulated call failed. ``data``: hex, where it returned some."""

    code: int = 0
    message: str = ""
    data: str | None = None


class SimulatedCall(msgspec.Struct, rename="camel"):
    """A call in a simulation's answer, hex as the node writes it."""

    status: str
    gas_used: str
    return_data: str
    error: CallError | None = None
    logs: msgspec.Raw = msgspec.Raw(b"[]")


class SimulatedBlock(msgspec.Struct):
    """A block in a simulation's answer."""

    number: str
    timestamp: str
    calls: list[SimulatedCall]


@dataclass(frozen=True, slots=True)
class SimulatedCallAnswer:
    """The fields of a simulated call's answer that a dialect reads."""

    gas_used: int
    return_data: bytes
    error_code: int
    error_message: str
    error_data: bytes | None


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between nodes.

    ``seconds_a_number``: how fast NUMBER counts, for cooldowns measured in blocks. On this chain it is the
    parent chain's estimate, a block every 12 seconds. ``most_numbers``: how many block numbers one simulation
    may span, including filled gaps; None: any. ``own_numbers``: NUMBER is the requested one; where it is not,
    no simulation makes it advance. ``tells_machine_errors``: errors other than reverts have their own code.
    ``drops_tips``: the node does not charge tips, and GASPRICE is the base fee. ``sets_randomness``: the
    node takes an override of prevRandao. ``gas_pool``: the gas that all calls of one simulation share; None:
    no limit. ``stand_ins``: the instructions whose value a simulation can set, which may stand for NUMBER.
    ``data_fee``: as measured by the last probe; not part of the dialect itself.
    """

    name: str
    seconds_a_number: int = 12
    most_numbers: int | None = None
    own_numbers: bool = True
    tells_machine_errors: bool = False
    drops_tips: bool = False
    sets_randomness: bool = True
    gas_pool: int | None = None
    stand_ins: tuple[NumberInstruction, ...] = ()
    data_fee: DataFee = field(default=NO_DATA_FEE, compare=False)

    def number_after(self, delay_s: int) -> int:
        """How many block numbers pass in ``delay_s`` seconds: at least one."""
        return max(1, delay_s // self.seconds_a_number)

    def numbers(self, delays_s: tuple[int, ...], passing: bool) -> tuple[int, ...]:
        """By how many numbers each block of a simulation follows the one before: by one, or where numbers are
        to pass (``passing``) by as many as pass in its seconds. Where the sum exceeds what one simulation may
        span, all waits are cut in proportion, none below one."""
        if not passing or not self.own_numbers:
            return (1,) * len(delays_s)
        steps = [self.number_after(delay_s) for delay_s in delays_s]
        if self.most_numbers is None or sum(steps) <= max(self.most_numbers, len(steps)):
            return tuple(steps)
        room, excess = max(0, self.most_numbers - len(steps)), sum(steps) - len(steps)
        return tuple(1 + (step - 1) * room // excess for step in steps)

    def lets_numbers_pass(self) -> bool:
        """Whether a simulation can wait as long in block numbers as in seconds. Where it cannot, a token that
        counts blocks behaves differently than on the chain."""
        return self.own_numbers and self.most_numbers is None

    def can_pass(self, delays_s: tuple[int, ...]) -> bool:
        """Whether a simulation with these waits can let as many block numbers pass as the chain does."""
        steps = tuple(map(self.number_after, delays_s))
        return self.own_numbers and self.numbers(delays_s, passing=True) == steps

    def revert_data(self, answer: SimulatedCallAnswer) -> bytes:
        """The bytes a failed call reverted with: geth puts them in error.data, anvil in returnData."""
        return answer.error_data if answer.error_data is not None else answer.return_data

    def out_of_gas(self, answer: SimulatedCallAnswer, gas_limit: int) -> bool:
        """Whether a failed call ran out of gas. Nodes without a separate error for it show it by the gas used
        and empty revert data."""
        if self.tells_machine_errors:
            return answer.error_code == OUT_OF_GAS and "out of gas" in answer.error_message
        return not self.revert_data(answer) and answer.gas_used >= gas_limit


GAS_POOL = 50_000_000
"""The default of ``rpc.gascap``, which geth and nitro give one request for the calls of all its blocks."""
ANVIL = Dialect("anvil", stand_ins=("COINBASE", "PREVRANDAO"))
GETH = Dialect(
    "geth",
    most_numbers=250,
    tells_machine_errors=True,
    gas_pool=GAS_POOL,
    stand_ins=("COINBASE", "PREVRANDAO", "BLOBBASEFEE"),
)
"""geth fills the gaps between numbers with empty blocks, 256 in all."""
NITRO = Dialect(
    "nitro",
    most_numbers=250,
    own_numbers=False,
    tells_machine_errors=True,
    drops_tips=True,
    sets_randomness=False,
    gas_pool=GAS_POOL,
    stand_ins=("COINBASE", "PREVRANDAO"),
)
"""NUMBER is the parent chain's number when the block was made; it is read from state that no override can
change. Tips are not charged. A header's mixHash holds the version of the rules, so it must not be set;
PREVRANDAO is 1 in every block, and a simulation sets it by the difficulty (OffchainLabs/nitro:
arbos/tx_processor.go; its go-ethereum: internal/ethapi/override/override.go). BLOBBASEFEE is no instruction
there."""

BY_NAME = MappingProxyType({dialect.name: dialect for dialect in (ANVIL, GETH, NITRO)})
