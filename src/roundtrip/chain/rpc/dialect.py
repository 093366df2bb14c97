"""How a node's blocks advance and what its errors mean. Chosen by probing (``probing``), not by name."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

OUT_OF_GAS = -32015
"""geth: an error of the virtual machine other than a revert; its message tells which."""


class SimulatedCallAnswer(Protocol):
    """The parts of a simulated call's answer that a dialect reads."""

    @property
    def gas_used(self) -> int: ...
    @property
    def return_data(self) -> bytes: ...
    @property
    def error_code(self) -> int: ...
    @property
    def error_message(self) -> str: ...
    @property
    def error_data(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between nodes.

    ``seconds_a_number``: how fast NUMBER counts, for cooldowns measured in blocks. On this chain it is the
    parent chain's estimate, a block every 12 seconds. ``most_numbers``: so many block numbers one simulation
    may span, filled ones counted; None: any. ``own_numbers``: NUMBER is the one that was asked for; where it
    is not, no simulation makes it pass. ``tells_machine_errors``: what is no revert has a code of its own.
    ``drops_tips``: whoever offers a tip keeps it, and GASPRICE is the base fee. ``sets_randomness``:
    PREVRANDAO may be set.
    """

    name: str
    seconds_a_number: int = 12
    most_numbers: int | None = None
    own_numbers: bool = True
    tells_machine_errors: bool = False
    drops_tips: bool = False
    sets_randomness: bool = True

    def number_after(self, delay_s: int) -> int:
        """How many numbers later a block ``delay_s`` seconds later stands: at least one."""
        return max(1, delay_s // self.seconds_a_number)

    def numbers(self, delays_s: tuple[int, ...]) -> tuple[int, ...]:
        """By how many numbers each of a simulation's blocks comes after the one before: within what one
        simulation may span, all waits are cut alike, and none below one. Where NUMBER does not follow them,
        each is the next: every number passed over is a block that the node has to make."""
        if not self.own_numbers:
            return (1,) * len(delays_s)
        steps = [self.number_after(delay_s) for delay_s in delays_s]
        if self.most_numbers is None or sum(steps) <= max(self.most_numbers, len(steps)):
            return tuple(steps)
        room, beyond = max(0, self.most_numbers - len(steps)), sum(steps) - len(steps)
        return tuple(1 + (step - 1) * room // beyond for step in steps)

    def lets_numbers_pass(self) -> bool:
        """True where a simulation can wait as long in block numbers as in seconds. Elsewhere a token that
        counts blocks shows another face than it does on the chain."""
        return self.own_numbers and self.most_numbers is None

    def waits(self, delays_s: tuple[int, ...]) -> bool:
        """True where a simulation of blocks so far apart lets as many numbers pass as the chain does."""
        return self.own_numbers and self.numbers(delays_s) == tuple(map(self.number_after, delays_s))

    def revert_data(self, answer: SimulatedCallAnswer) -> bytes:
        """The bytes a failed call reverted with: geth puts them in error.data, anvil in returnData."""
        return answer.error_data if answer.error_data is not None else answer.return_data

    def out_of_gas(self, answer: SimulatedCallAnswer, gas_limit: int) -> bool:
        """Whether a failed call ran out of gas. Nodes without an error of its own for that show it by the gas
        used, when nothing was said."""
        if self.tells_machine_errors:
            return answer.error_code == OUT_OF_GAS and "out of gas" in answer.error_message
        return not self.revert_data(answer) and answer.gas_used >= gas_limit

    def layer_one_gas(self, data: str) -> int:
        """What the parent chain's fee adds to the gas limit of a transaction with this calldata, beyond what
        a simulation tells: nothing on chains that have no parent, and nitro's simulations take it too."""
        return 0


ANVIL = Dialect("anvil")
GETH = Dialect("geth", most_numbers=250, tells_machine_errors=True)
"""geth fills the gaps between numbers with empty blocks, 256 in all."""
NITRO = Dialect(
    "nitro",
    most_numbers=250,
    own_numbers=False,
    tells_machine_errors=True,
    drops_tips=True,
    sets_randomness=False,
)
"""NUMBER is what the parent chain's was when the block was made, and stands in the state that no override may
touch. Tips are not taken. A header's mixHash holds the version of the rules, so it must stay what it is;
PREVRANDAO is 1 in every block (OffchainLabs/nitro: arbos/tx_processor.go; its go-ethereum:
internal/ethapi/override/override.go)."""

BY_NAME = MappingProxyType({one.name: one for one in (ANVIL, GETH, NITRO)})
