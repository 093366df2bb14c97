"""A scripted chain that is read in spans."""

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues.base import Log
from support.scripted_chain import FIRST_TIME_S, ScriptedChain

A, B = Address("0x" + "a1" * 20), Address("0x" + "b2" * 20)


FIRST, SECOND, THIRD = (
    Log(A, ("0x" + "01" * 32, "0x" + "02" * 32), b"one"),
    Log(B, (), b""),
    Log(A, ("0x" + "03" * 32,), b"three"),
)


def chain() -> ScriptedChain:
    """Blocks 0 to 4: the second has two transactions with three logs, the third one with one."""
    made = ScriptedChain(1, blocks=1)
    made.mine([])
    made.mine([FIRST, SECOND], [THIRD])
    made.mine([THIRD])
    made.mine()
    return made


def ref_of(made: ScriptedChain, number: int) -> BlockRef:
    return BlockRef(number, made.hash_of(number), FIRST_TIME_S + number)


OTHER_HASH = "0x" + "77" * 32
