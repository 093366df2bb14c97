"""How a node's blocks advance and what its errors mean. One dialect today; more are added here."""

from dataclasses import dataclass
from typing import Protocol


class CallAnswer(Protocol):
    """The parts of a simulated call's answer that a dialect reads."""

    @property
    def gas_used(self) -> int: ...
    @property
    def return_data(self) -> bytes: ...
    @property
    def error_data(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """``seconds_a_number``: how fast NUMBER counts, for cooldowns measured in blocks. On this chain it
    is the parent chain's estimate, a block every 12 seconds."""

    name: str
    seconds_a_number: int = 12

    def number_after(self, delay_s: int) -> int:
        """How many numbers later a block ``delay_s`` seconds later stands: at least one."""
        return max(1, delay_s // self.seconds_a_number)

    def revert_data(self, answer: CallAnswer) -> bytes:
        """The bytes a failed call reverted with: geth puts them in error.data, anvil in returnData."""
        return answer.error_data if answer.error_data is not None else answer.return_data

    def layer_one_gas(self, data: str) -> int:
        """What the parent chain's fee adds to the gas limit of a transaction with this calldata: nothing on
        chains that have no parent."""
        return 0


ANVIL = Dialect("anvil")
