"""Reads positions and the contracts that hold them at the pinned block. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError, hex_bytes
from roundtrip.chain.simulate.token_facts import PROXY_ADMIN_SLOT, code_call
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.liquidity.depth import Position
from roundtrip.venues import multicall, positions
from roundtrip.venues.base import Call, Contracts
from roundtrip.venues.positions import PoolState, PositionState

_READ_GAS = 40_000_000
"""Below the bound that nodes set for a call, for all positions of a pool; each takes some 40,000."""
_VIEWS_GAS = 3_000_000


@dataclass(frozen=True, slots=True)
class PoolRead:
    """A venue's state and its positions' at the block; None: it could not be read."""

    state: PoolState | None
    positions: tuple[PositionState | None, ...]


def pool_call(venue: Venue, held: Sequence[Position], contracts: Contracts, pinned: BlockRef) -> RpcCall:
    """One call that reads the venue and these positions in it."""
    return _call(multicall.plan_reads(_calls(venue, held, contracts), contracts), pinned, _READ_GAS)


def read_pool(
    answer: msgspec.Raw | RpcError, venue: Venue, held: Sequence[Position], contracts: Contracts
) -> PoolRead:
    """The answer to ``pool_call``."""
    nothing = PoolRead(None, (None,) * len(held))
    answers = read_many(answer, len(_calls(venue, held, contracts)))
    if answers is None:
        return nothing
    place = len(positions.state_calls(venue, contracts))
    state = positions.read_state(answers[:place])
    if state is None:
        return nothing
    states = []
    for position in held:
        count = len(positions.position_calls(position, venue, contracts))
        own = answers[place : place + count]
        states.append(positions.read_position(position, venue, contracts, state, own))
        place += count
    return PoolRead(state, tuple(states))


def _calls(venue: Venue, held: Sequence[Position], contracts: Contracts) -> list[Call]:
    calls = list(positions.state_calls(venue, contracts))
    for position in held:
        calls += positions.position_calls(position, venue, contracts)
    return calls


def views_call(calls: Sequence[Call], contracts: Contracts, pinned: BlockRef) -> RpcCall:
    """Several views of a stranger's contract, with little gas."""
    return _call(multicall.plan_reads(calls, contracts), pinned, _VIEWS_GAS)


def read_many(answer: msgspec.Raw | RpcError, count: int) -> tuple[bytes | None, ...] | None:
    """The answers to the calls within one multicall; None: it failed as a whole."""
    if isinstance(answer, RpcError):
        return None
    try:
        return multicall.read_answers(hex_bytes(answer), count)
    except (NodeFault, ValueError):
        return None


def holder_calls(holder: Address, pinned: BlockRef) -> Mapping[str, RpcCall]:
    """The reads of a holder: its code, and who may replace that where it is a proxy."""
    at = {"blockHash": pinned.hash}
    return {
        f"code {holder}": code_call(holder, pinned),
        f"admin {holder}": RpcCall("eth_getStorageAt", [holder, PROXY_ADMIN_SLOT, at]),
    }


def _call(call: Call, pinned: BlockRef, gas: int) -> RpcCall:
    request = {"to": call.to, "data": call.data, "gas": hex(gas)}
    return RpcCall("eth_call", [request, {"blockHash": pinned.hash}])
