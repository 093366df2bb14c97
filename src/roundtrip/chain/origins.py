"""When a wallet was first reached by money, found in a node's archive, and who sent it.

The first block after which the wallet's nonce or balance is not zero, searched with sixteen probes a trip: a
chain of a hundred million blocks takes nine trips. The search is right because nothing goes back to zero: a
nonce never falls, and a balance falls only by what the wallet itself signed, which raises its nonce; a
contract has a nonce from its making on. It is not so for a contract that destroyed itself: its life before is
overlooked, or its answers contradict each other, which is None. Tokens that reached an empty wallet are not
seen.

None is "could not find out": no archive, a fault, an answer that fits no chain. A node that has let a state
go may answer zeros for it, and where its zeros end looks just like an origin. So senders of the blocks around
are asked for, too: their transactions tell what their nonces have to be, and not all of them are empty.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple

import msgspec

from roundtrip.domain.errors import NodeFault
from roundtrip.domain.types import Address, BlockRef

from .code import DELEGATED
from .node_errors import in_our_words
from .rpc import Asks, RpcCall, RpcError, hex_bytes, quantity

PROBES = 16
"""States asked for in one trip."""
BEFORE, AFTER, WITNESSES = 16, 4, 8
"""How many blocks around the edge are read for senders, and how many of those are asked for. A chain that is
used has some in any second; where there are none it could not be found out."""
_FIRST_UNSIGNED = 0x64
"""From here on types of transactions are the chain's own: its bridge's deposits, what it starts itself."""


class Found(NamedTuple):
    """The first block after which the wallet had a nonce or a balance, and its time in seconds since 1970.
    ``funder``: who sent it eth in that block, in a plain transfer, before anything else that is seen gave it
    any and before it sent anything; None where nobody did, since money also comes out of contracts and
    bridges, and for contracts."""

    first_number: int
    first_s: int
    funder: Address | None


class Never(NamedTuple):
    """Nothing had reached the wallet when the block ``searched_number`` was over."""

    searched_number: int


class State(NamedTuple):
    """A wallet's nonce and balance when a block is over."""

    nonce: int
    balance_wei: int

    def is_empty(self) -> bool:
        """As before anything reached it."""
        return self == (0, 0)


class Bounds(NamedTuple):
    """What a sender's nonce has to be, by its transactions in the blocks around; ``most`` None: unknown."""

    least: int
    most: int | None


_Quantity = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{1,64}$")]
_Word = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{64}$")]
_Address = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$")]


class _Tx(msgspec.Struct):
    sender: _Address = msgspec.field(name="from")
    value: _Quantity
    nonce: _Quantity
    input: str
    to: _Address | None = None
    type: _Quantity = "0x0"

    def is_signed(self) -> bool:
        """Whether its sender signed it here."""
        return int(self.type, 16) < _FIRST_UNSIGNED


class _Header(msgspec.Struct):
    number: _Quantity
    hash: _Word
    timestamp: _Quantity
    parent_hash: _Word = msgspec.field(name="parentHash")


class _Block(_Header):
    transactions: list[_Tx]


async def find_origin(node: Asks, wallet: Address, low: int, high: BlockRef) -> Found | Never | None:
    """Searches the blocks from ``low`` to ``high``, which should be one that stays; None: could not find out,
    also where the wallet was reached before ``low``. Raises ServiceFull when the budget is spent."""
    if not 0 <= low <= high.number:
        raise ValueError("the search ends before it begins")
    try:
        first, is_contract = await _search(node, wallet, low, high.number)
        if first is None:
            await _confirm(node, wallet, None, high)
            return Never(high.number)
        block = await _confirm(node, wallet, first, high)
    except NodeFault:
        return None
    return Found(first, int(block.timestamp, 16), None if is_contract else _funder(block, wallet))


# --- the search ------------------------------------------------------------------------------------


async def _search(node: Asks, wallet: Address, low: int, high: int) -> tuple[int | None, bool]:
    """The first number with a state that is not empty, None: there is none; and whether a contract is at the
    address. Raises NodeFault."""
    numbers = [*between(low - 1, high, PROBES - 1), high]
    code, *answers = await node.batch(
        [RpcCall("eth_getCode", [wallet, hex(high)]), *_state_calls((wallet, number) for number in numbers)]
    )
    found = hex_bytes(code)
    is_contract = bool(found) and not found.startswith(DELEGATED)
    seen = dict(zip(numbers, _states(answers), strict=True))
    while True:
        if not is_monotone(seen):
            raise NodeFault("its states contradict each other")
        empty = max((number for number, state in seen.items() if state.is_empty()), default=low - 1)
        first = min((number for number, state in seen.items() if not state.is_empty()), default=None)
        if first is None or first == empty + 1:
            return first, is_contract
        numbers = between(empty, first, PROBES)
        answers = await node.batch(_state_calls((wallet, number) for number in numbers))
        seen |= zip(numbers, _states(answers), strict=True)


def between(below: int, above: int, most: int) -> list[int]:
    """Up to ``most`` numbers above the one and below the other, evenly, in order."""
    gap = above - below
    count = min(most, gap - 1)
    return [below + gap * part // (count + 1) for part in range(1, count + 1)]


def is_monotone(seen: dict[int, State]) -> bool:
    """Whether no nonce falls and nothing is empty that was not, by number of block."""
    states = [seen[number] for number in sorted(seen)]
    return all(
        before.nonce <= later.nonce and (before.is_empty() or not later.is_empty())
        for before, later in pairwise(states)
    )


# --- that it is so ---------------------------------------------------------------------------------


async def _confirm(node: Asks, wallet: Address, first: int | None, high: BlockRef) -> _Block:
    """The block ``first``, or ``high`` where there is none. What decided is asked for once more, in one trip
    with what shows that the node still has the state on which it rests and that ``high`` is still there.
    Raises NodeFault where any of it is otherwise."""
    number = high.number if first is None else first
    edge = number if first is None else max(first - 1, 0)
    around = range(max(edge - BEFORE + 1, 0), min(edge + AFTER, high.number) + 1)
    blocks = _blocks(await node.batch([_block_call(one, True) for one in around]), around.start)
    block = blocks[number - around.start]
    witnesses = bounds(blocks, edge)
    asked = [(wallet, number), *([(wallet, first - 1)] if first else []), *((who, edge) for who in witnesses)]
    kept, pinned, *answers = await node.batch(
        [_block_call(number, False), _block_call(high.number, False), *_state_calls(asked)]
    )
    if _header(kept).hash.lower() != block.hash.lower() or _header(pinned).hash.lower() != high.hash.lower():
        raise NodeFault("the chain is another one by now")
    last, *others = _states(answers)
    if last.is_empty() != (first is None):
        raise NodeFault("its states contradict each other")
    if first and not others.pop(0).is_empty():
        raise NodeFault("the wallet was there before")
    if not _has_state(list(witnesses.values()), others):
        raise NodeFault("it does not have that state any more")
    if int(block.timestamp, 16) > high.timestamp_s:
        raise NodeFault("its block is younger than a later one")
    return block


def bounds(blocks: Sequence[_Block], edge: int) -> dict[Address, Bounds]:
    """Some senders around the end of the block ``edge``, those that were there before it first. A nonce is
    above that of every transaction until then, and not above that of any later one."""
    found: dict[Address, Bounds] = {}
    for block in blocks:
        for tx in block.transactions:
            if not tx.is_signed():
                continue
            sender, nonce = Address(tx.sender.lower()), int(tx.nonce, 16)
            known = found.get(sender, Bounds(0, None))
            if int(block.number, 16) <= edge:
                found[sender] = Bounds(max(known.least, nonce + 1), None)
            elif known.most is None:
                found[sender] = Bounds(known.least, nonce)
    chosen = sorted(found.items(), key=lambda one: (one[1].least == 0, one[1].most is None))[:WITNESSES]
    return dict(chosen)


def _has_state(witnesses: Sequence[Bounds], states: Sequence[State]) -> bool:
    """Whether every sender is as it has to be, and one at least is not empty."""
    return any(not state.is_empty() for state in states) and all(
        bound.least <= state.nonce and (bound.most is None or state.nonce <= bound.most)
        for bound, state in zip(witnesses, states, strict=True)
    )


def _funder(block: _Block, wallet: Address) -> Address | None:
    """As the sync tells it: whatever the wallet did or was given first decides."""
    for tx in block.transactions:
        sender, to = Address(tx.sender.lower()), (tx.to or "").lower()
        if sender == wallet:
            return None
        if to == wallet and int(tx.value, 16) > 0:
            return sender if tx.is_signed() and tx.input == "0x" else None
    return None


# --- what is asked and answered --------------------------------------------------------------------

_Answer = msgspec.Raw | RpcError


def _block_call(number: int, in_full: bool) -> RpcCall:
    return RpcCall("eth_getBlockByNumber", [hex(number), in_full])


def _state_calls(asked: Iterable[tuple[Address, int]]) -> list[RpcCall]:
    """Two calls each."""
    return [
        RpcCall(method, [who, hex(number)])
        for who, number in asked
        for method in ("eth_getTransactionCount", "eth_getBalance")
    ]


def _states(answers: Sequence[_Answer]) -> list[State]:
    numbers = [quantity(answer) for answer in answers]
    return [State(nonce, balance) for nonce, balance in zip(numbers[::2], numbers[1::2], strict=True)]


def _header(answer: _Answer) -> _Header:
    if isinstance(answer, RpcError):
        raise NodeFault(f"it gave no such block ({in_our_words(answer)})")
    try:
        return msgspec.json.decode(answer, type=_Header)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("its block has no header that can be read") from error


def _blocks(answers: Sequence[_Answer], start: int) -> list[_Block]:
    """Blocks in full, from the number ``start`` on, each the child of the one before."""
    blocks: list[_Block] = []
    for number, answer in enumerate(answers, start):
        if isinstance(answer, RpcError):
            raise NodeFault(f"it gave no such block ({in_our_words(answer)})")
        try:
            block = msgspec.json.decode(answer, type=_Block)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise NodeFault("its block cannot be read") from error
        if int(block.number, 16) != number or (
            blocks and block.parent_hash.lower() != blocks[-1].hash.lower()
        ):
            raise NodeFault("its blocks are not those that were asked for")
        blocks.append(block)
    return blocks
