"""Finds when a wallet first received eth, in a node's archive, and who sent it.

Searches the first block after which the wallet's nonce or balance is not zero, with sixteen probes per trip:
a chain of a hundred million blocks takes nine trips. The search is correct because neither returns to zero: a
nonce never falls, and a balance falls only by what the wallet itself signed, which raises its nonce; a
contract has a nonce from its creation. The exception is a contract that destroyed itself: its earlier life is
missed, or its answers contradict each other, which is None. Tokens that reached an empty wallet are not seen.

None means that it could not be found out: no archive, an error, an answer that fits no chain. The states of
other accounts show whether the node still has the state that it answers from (``state_witness``)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from roundtrip.chain.blocks.block_ranges import between
from roundtrip.chain.blocks.state_witness import (
    AccountState,
    NoArchive,
    WitnessBlock,
    read_witnessed,
    state_calls,
    states,
)
from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError, RpcNode, hex_bytes
from roundtrip.chain.rpc.errors import concern
from roundtrip.chain.simulate.block_dependence import DELEGATED
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.wallets.linked import FirstSeen

PROBES = 16
"""States requested in one trip."""


class NothingReached(NamedTuple):
    """The wallet was empty at the end of block ``searched_number``."""

    searched_number: int


async def find_origin(
    node: RpcNode, wallet: Address, low: int, high: BlockRef
) -> FirstSeen | NothingReached | None:
    """Searches the blocks from ``low`` to ``high``, which should be final. None: it could not be found out,
    also if the wallet was reached before ``low``. Raises ServiceFull when the budget is spent."""
    try:
        return await seek_origin(node, wallet, low, high)
    except NodeFault:
        return None


async def seek_origin(node: RpcNode, wallet: Address, low: int, high: BlockRef) -> FirstSeen | NothingReached:
    """The first block after which the wallet had a nonce or a balance. Its ``funder`` sent its first eth in
    that block, in a plain transfer, before any other visible credit and before it sent anything; None: no
    plain transfer, since eth also comes from contracts and bridges; or the address is a contract.

    As ``find_origin``, but raises NoArchive if the node has no states that old, NodeFault if it could not
    be found out otherwise."""
    if not 0 <= low <= high.number:
        raise ValueError("the search ends before it begins")
    first, is_contract = await _search(node, wallet, low, high.number)
    if first is None:
        await _confirm(node, wallet, None, high)
        return NothingReached(high.number)
    block = await _confirm(node, wallet, first, high)
    return FirstSeen(first, int(block.timestamp, 16), None if is_contract else _funder(block, wallet))


# --- the search ------------------------------------------------------------------------------------


async def _search(node: RpcNode, wallet: Address, low: int, high: int) -> tuple[int | None, bool]:
    """The first block number with a state that is not empty, None: there is none; and whether the address is
    a contract. Raises NodeFault."""
    numbers = [*between(low - 1, high, PROBES - 1), high]
    code, *answers = await node.batch(
        [RpcCall("eth_getCode", [wallet, hex(high)]), *state_calls((wallet, number) for number in numbers)]
    )
    code_bytes = hex_bytes(code)
    is_contract = bool(code_bytes) and not code_bytes.startswith(DELEGATED)
    states_at = dict(zip(numbers, _states(answers), strict=True))
    while True:
        if not is_monotone(states_at):
            raise NodeFault("the node's states contradict each other")
        empty = max((number for number, state in states_at.items() if state.is_empty()), default=low - 1)
        first = min((number for number, state in states_at.items() if not state.is_empty()), default=None)
        if first is None or first == empty + 1:
            return first, is_contract
        numbers = between(empty, first, PROBES)
        answers = await node.batch(state_calls((wallet, number) for number in numbers))
        states_at |= zip(numbers, _states(answers), strict=True)


def _states(answers: Sequence[Answer]) -> list[AccountState]:
    """Raises NoArchive if these are not states, NodeFault if the node is only rate-limited."""
    try:
        return states(answers)
    except NodeFault as fault:
        if any(isinstance(answer, RpcError) and concern(answer) == "limited" for answer in answers):
            raise
        raise NoArchive("the node has no states that old") from fault


def is_monotone(seen: dict[int, AccountState]) -> bool:
    """Whether, in order of block numbers, no nonce falls and no account becomes empty."""
    states = [seen[number] for number in sorted(seen)]
    return all(
        earlier.nonce <= later.nonce and (earlier.is_empty() or not later.is_empty())
        for earlier, later in pairwise(states)
    )


# --- confirmation ---------------------------------------------------------------------------------


async def _confirm(node: RpcNode, wallet: Address, first: int | None, high: BlockRef) -> WitnessBlock:
    """The block ``first``, or ``high`` if there is none. Reads the deciding states once more, with evidence
    that the node still has the state on which they rest. Raises NodeFault if any of it differs."""
    number = high.number if first is None else first
    edge = number if first is None else max(first - 1, 0)
    deciding = [(wallet, number), *([(wallet, first - 1)] if first else [])]
    block, answers = await read_witnessed(node, number, edge, high, state_calls(deciding))
    last, *earlier = states(answers)
    if last.is_empty() != (first is None):
        raise NodeFault("the node's states contradict each other")
    if earlier and not earlier[0].is_empty():
        raise NodeFault("the wallet existed before the search began")
    return block


def _funder(block: WitnessBlock, wallet: Address) -> Address | None:
    """Who sent the wallet its first eth in the block, decided as the sync does: its first transaction or
    credit counts. None: that is no plain transfer to it."""
    for tx in block.transactions:
        sender, to = Address(tx.sender.lower()), (tx.to or "").lower()
        if sender == wallet:
            return None
        if to == wallet and int(tx.value, 16) > 0:
            return sender if tx.is_signed() and tx.input == "0x" else None
    return None
