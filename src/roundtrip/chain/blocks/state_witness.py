"""Checks whether a node still has the state that it answers from, by the nonces of other accounts.

A node that dropped a state may answer zeros for it, and the end of its zeros looks like an account's first
activity. So the senders of nearby blocks are read, too: their transactions bound their nonces, and not all of
them can be empty.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError, RpcNode, quantity
from roundtrip.chain.rpc.errors import concern, describe_error
from roundtrip.chain.rpc.hex_fields import HexAddress, Quantity
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef

from .spans import CHAINS_OWN_TYPES, NodeHeader

BEFORE, AFTER, WITNESSES = 16, 4, 8
"""How many blocks before and after the edge are read for senders, and how many senders are checked. A chain
in use has senders in every second; if these blocks have none, the check fails."""


class NoArchive(NodeFault):
    """The node has no state that old, whether it admits it or not."""


class AccountState(NamedTuple):
    """A wallet's nonce and balance at the end of a block."""

    nonce: int
    balance_wei: int

    def is_empty(self) -> bool:
        """Whether nonce and balance are both 0."""
        return self == (0, 0)


class NonceBounds(NamedTuple):
    """The bounds of a sender's nonce, from its transactions in nearby blocks. ``most`` None: unknown."""

    least: int
    most: int | None


class WitnessTx(msgspec.Struct):
    """The fields of a transaction that this module and ``chain.holders.origins`` read."""

    sender: HexAddress = msgspec.field(name="from")
    value: Quantity
    nonce: Quantity
    input: str
    to: HexAddress | None = None
    type: Quantity = "0x0"

    def is_signed(self) -> bool:
        """Whether its sender signed it on this chain."""
        return int(self.type, 16) < CHAINS_OWN_TYPES


class WitnessBlock(NodeHeader):
    """A block with its transactions."""

    transactions: list[WitnessTx]


async def read_witnessed(
    node: RpcNode, number: int, edge: int, high: BlockRef, deciding: Sequence[RpcCall]
) -> tuple[WitnessBlock, list[Answer]]:
    """Reads the block ``number``, near the block ``edge``, and repeats the calls ``deciding`` in one trip
    with the check that the node has the state at the end of ``edge`` and that ``high`` is still in the chain.
    ``edge``: the last block whose state the caller takes for empty, or 0; ``high``: the last one searched.
    Raises NodeFault where a check fails, NoArchive where the node does not have that state."""
    nearby = range(max(edge - BEFORE + 1, 0), min(edge + AFTER, high.number) + 1)
    blocks = read_blocks(await node.batch([block_call(near, True) for near in nearby]), nearby.start)
    block = blocks[number - nearby.start]
    witnesses = find_witnesses(blocks, edge)
    if not witnesses:
        raise NodeFault("no transaction near that block shows whether the node has its state")
    witness_calls = state_calls((sender, edge) for sender in witnesses)
    again, pinned, *answers = await node.batch(
        [block_call(number, False), block_call(high.number, False), *deciding, *witness_calls]
    )
    if (
        read_header(again).hash.lower() != block.hash.lower()
        or read_header(pinned).hash.lower() != high.hash.lower()
    ):
        raise NodeFault("the chain was reorganized during the read")
    if any(isinstance(answer, RpcError) and concern(answer) == "pruned" for answer in answers):
        raise NoArchive("the node no longer has that state")
    if not _has_state(list(witnesses.values()), states(answers[len(deciding) :])):
        raise NoArchive("the node no longer has that state")
    if int(block.timestamp, 16) > high.timestamp_s:
        raise NodeFault("the node's block is newer than a later one")
    return block, answers[: len(deciding)]


def find_witnesses(blocks: Sequence[WitnessBlock], edge: int) -> dict[Address, NonceBounds]:
    """The nonce bounds, at the end of the block ``edge``, of up to WITNESSES nearby senders; those seen
    before it come first. A nonce is above that of every transaction until then, and not above that of any
    later one."""
    by_sender: dict[Address, NonceBounds] = {}
    for block in blocks:
        for tx in block.transactions:
            if not tx.is_signed():
                continue
            sender, nonce = Address(tx.sender.lower()), int(tx.nonce, 16)
            known = by_sender.get(sender, NonceBounds(0, None))
            if int(block.number, 16) <= edge:
                by_sender[sender] = NonceBounds(max(known.least, nonce + 1), None)
            elif known.most is None:
                by_sender[sender] = NonceBounds(known.least, nonce)
    ranked = sorted(by_sender.items(), key=lambda item: (item[1].least == 0, item[1].most is None))
    return dict(ranked[:WITNESSES])


def _has_state(witnesses: Sequence[NonceBounds], account_states: Sequence[AccountState]) -> bool:
    """Whether every sender's nonce is within its bounds, and at least one sender is not empty."""
    return any(not state.is_empty() for state in account_states) and all(
        bound.least <= state.nonce and (bound.most is None or state.nonce <= bound.most)
        for bound, state in zip(witnesses, account_states, strict=True)
    )


# --- calls and answers -----------------------------------------------------------------------------


def block_call(number: int, in_full: bool) -> RpcCall:
    """Asks for a block. ``in_full``: with its transactions."""
    return RpcCall("eth_getBlockByNumber", [hex(number), in_full])


def state_calls(wallets_at: Iterable[tuple[Address, int]]) -> list[RpcCall]:
    """Asks for wallets' nonces and balances at blocks: two calls each."""
    return [
        RpcCall(method, [wallet, hex(number)])
        for wallet, number in wallets_at
        for method in ("eth_getTransactionCount", "eth_getBalance")
    ]


def states(answers: Sequence[Answer]) -> list[AccountState]:
    """Decodes the answers to ``state_calls``. Raises NodeFault."""
    numbers = [quantity(answer) for answer in answers]
    return [AccountState(nonce, balance) for nonce, balance in zip(numbers[::2], numbers[1::2], strict=True)]


def read_header(answer: Answer) -> NodeHeader:
    """Decodes a header. Raises NodeFault when it is none."""
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node sent no such block ({describe_error(answer)})")
    try:
        return msgspec.json.decode(answer, type=NodeHeader)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("the node's block has an unreadable header") from error


def read_blocks(answers: Sequence[Answer], start: int) -> list[WitnessBlock]:
    """Decodes blocks with their transactions, from the number ``start`` on. Raises NodeFault, also where one
    is not the child of the one before."""
    blocks: list[WitnessBlock] = []
    for number, answer in enumerate(answers, start):
        if isinstance(answer, RpcError):
            raise NodeFault(f"the node sent no such block ({describe_error(answer)})")
        try:
            block = msgspec.json.decode(answer, type=WitnessBlock)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise NodeFault("the node sent an unreadable block") from error
        if int(block.number, 16) != number or (
            blocks and block.parent_hash.lower() != blocks[-1].hash.lower()
        ):
            raise NodeFault("the node sent different blocks than requested")
        blocks.append(block)
    return blocks
