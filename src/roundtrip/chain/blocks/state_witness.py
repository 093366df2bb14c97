"""Whether a node still has the state that it answers from, told by what others did around it.

A node that has let a state go may answer zeros for it, and where its zeros end looks just like a beginning.
So senders of the blocks around are asked for, too: their transactions tell what their nonces have to be, and
not all of them are empty.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError, RpcNode, quantity
from roundtrip.chain.rpc.errors import concern, describe_error
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef

BEFORE, AFTER, WITNESSES = 16, 4, 8
"""How many blocks around the edge are read for senders, and how many of those are asked for. A chain that is
used has some in any second; where there are none it could not be found out."""
_FIRST_UNSIGNED = 0x64
"""From here on types of transactions are the chain's own: its bridge's deposits, what it starts itself."""

Answer = msgspec.Raw | RpcError


class NoArchive(NodeFault):
    """The node has no state that old, whether it says so or not."""


class AccountState(NamedTuple):
    """A wallet's nonce and balance when a block is over."""

    nonce: int
    balance_wei: int

    def is_empty(self) -> bool:
        """As before anything reached it."""
        return self == (0, 0)


class NonceBounds(NamedTuple):
    """What a sender's nonce has to be, by its transactions in the blocks around; ``most`` None: unknown."""

    least: int
    most: int | None


_Quantity = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{1,64}$")]
_Word = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{64}$")]
_Address = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$")]


class WitnessTx(msgspec.Struct):
    """What is read of a transaction here."""

    sender: _Address = msgspec.field(name="from")
    value: _Quantity
    nonce: _Quantity
    input: str
    to: _Address | None = None
    type: _Quantity = "0x0"

    def is_signed(self) -> bool:
        """Whether its sender signed it here."""
        return int(self.type, 16) < _FIRST_UNSIGNED


class WitnessHeader(msgspec.Struct):
    """What is read of a header here."""

    number: _Quantity
    hash: _Word
    timestamp: _Quantity
    parent_hash: _Word = msgspec.field(name="parentHash")


class WitnessBlock(WitnessHeader):
    """A block in full."""

    transactions: list[WitnessTx]


async def read_witnessed(
    node: RpcNode, number: int, edge: int, high: BlockRef, deciding: Sequence[RpcCall]
) -> tuple[WitnessBlock, list[Answer]]:
    """The block ``number``, which is one of those around ``edge``, and the answers to the calls that decided:
    they are asked once more, in one trip with what shows that the node has the state at the end of ``edge``
    and that ``high`` is still there. Raises NodeFault where any of it is otherwise, NoArchive where that
    state is not there."""
    around = range(max(edge - BEFORE + 1, 0), min(edge + AFTER, high.number) + 1)
    blocks = read_blocks(await node.batch([block_call(one, True) for one in around]), around.start)
    block = blocks[number - around.start]
    witnesses = bounds(blocks, edge)
    if not witnesses:
        raise NodeFault("nobody is around by whom to tell whether it has that state")
    shown = state_calls((who, edge) for who in witnesses)
    kept, pinned, *answers = await node.batch(
        [block_call(number, False), block_call(high.number, False), *deciding, *shown]
    )
    if header(kept).hash.lower() != block.hash.lower() or header(pinned).hash.lower() != high.hash.lower():
        raise NodeFault("the chain is another one by now")
    if any(isinstance(answer, RpcError) and concern(answer) == "pruned" for answer in answers):
        raise NoArchive("it does not have that state any more")
    if not _has_state(list(witnesses.values()), states(answers[len(deciding) :])):
        raise NoArchive("it does not have that state any more")
    if int(block.timestamp, 16) > high.timestamp_s:
        raise NodeFault("its block is younger than a later one")
    return block, answers[: len(deciding)]


def bounds(blocks: Sequence[WitnessBlock], edge: int) -> dict[Address, NonceBounds]:
    """Some senders around the end of the block ``edge``, those that were there before it first. A nonce is
    above that of every transaction until then, and not above that of any later one."""
    found: dict[Address, NonceBounds] = {}
    for block in blocks:
        for tx in block.transactions:
            if not tx.is_signed():
                continue
            sender, nonce = Address(tx.sender.lower()), int(tx.nonce, 16)
            known = found.get(sender, NonceBounds(0, None))
            if int(block.number, 16) <= edge:
                found[sender] = NonceBounds(max(known.least, nonce + 1), None)
            elif known.most is None:
                found[sender] = NonceBounds(known.least, nonce)
    chosen = sorted(found.items(), key=lambda one: (one[1].least == 0, one[1].most is None))[:WITNESSES]
    return dict(chosen)


def _has_state(witnesses: Sequence[NonceBounds], found: Sequence[AccountState]) -> bool:
    """Whether every sender is as it has to be, and one at least is not empty."""
    return any(not state.is_empty() for state in found) and all(
        bound.least <= state.nonce and (bound.most is None or state.nonce <= bound.most)
        for bound, state in zip(witnesses, found, strict=True)
    )


# --- what is asked and answered --------------------------------------------------------------------


def block_call(number: int, in_full: bool) -> RpcCall:
    """``in_full``: with its transactions."""
    return RpcCall("eth_getBlockByNumber", [hex(number), in_full])


def state_calls(asked: Iterable[tuple[Address, int]]) -> list[RpcCall]:
    """Two calls each."""
    return [
        RpcCall(method, [who, hex(number)])
        for who, number in asked
        for method in ("eth_getTransactionCount", "eth_getBalance")
    ]


def states(answers: Sequence[Answer]) -> list[AccountState]:
    """What ``state_calls`` was answered. Raises NodeFault."""
    numbers = [quantity(answer) for answer in answers]
    return [AccountState(nonce, balance) for nonce, balance in zip(numbers[::2], numbers[1::2], strict=True)]


def header(answer: Answer) -> WitnessHeader:
    """Raises NodeFault when it is none."""
    if isinstance(answer, RpcError):
        raise NodeFault(f"it gave no such block ({describe_error(answer)})")
    try:
        return msgspec.json.decode(answer, type=WitnessHeader)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("its block has no header that can be read") from error


def read_blocks(answers: Sequence[Answer], start: int) -> list[WitnessBlock]:
    """Blocks in full, from the number ``start`` on. Raises NodeFault, also where one is not the child of the
    one before."""
    blocks: list[WitnessBlock] = []
    for number, answer in enumerate(answers, start):
        if isinstance(answer, RpcError):
            raise NodeFault(f"it gave no such block ({describe_error(answer)})")
        try:
            block = msgspec.json.decode(answer, type=WitnessBlock)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise NodeFault("its block cannot be read") from error
        if int(block.number, 16) != number or (
            blocks and block.parent_hash.lower() != blocks[-1].hash.lower()
        ):
            raise NodeFault("its blocks are not those that were asked for")
        blocks.append(block)
    return blocks
