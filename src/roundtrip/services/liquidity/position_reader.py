"""Reads pools, their positions and who holds them, at one block."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from roundtrip.chain.liquidity import position_logs, position_reads
from roundtrip.chain.liquidity.position_reads import PoolRead
from roundtrip.chain.rpc.client import Answer, CodeFault, Meter, RpcCall, RpcNode
from roundtrip.chain.rpc.node_logs import UnverifiedBlockLog
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BURN_ADDRESSES, Address, BlockRef
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.liquidity.depth import Position
from roundtrip.venues.base import Contracts
from roundtrip.venues.positions import PoolState

from .locks import Holder, read_holder

MAX_POOLS = 4
MAX_POSITIONS = 200
"""Positions of one pool that are read; the rest is counted."""
_MAX_HOLDERS = 64
"""Holders, of all pools together, that are read: those of the largest positions."""


@dataclass(frozen=True, slots=True)
class KnownPool:
    """The positions of a pool that are known before they are read, the most important first, and how many
    more there are."""

    positions: tuple[Position, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class ReadPool:
    """The positions that were read, and what was read of them."""

    positions: tuple[Position, ...]
    read: PoolRead
    left_out: int

    def is_whole(self) -> bool:
        """Whether the positions account for all of the liquidity in range."""
        state = self.read.state
        if state is None:
            return False
        pairs = zip(self.positions, self.read.positions, strict=True)
        known = sum(one.liquidity for position, one in pairs if one and position.is_active(state.tick))
        return known >= state.liquidity


UNREAD = ReadPool((), PoolRead(None, ()), 0)


def in_range_first(positions: Iterable[Position], state: PoolState | None) -> tuple[Position, ...]:
    """The positions, those in range first where the price is known: only ``MAX_POSITIONS`` are read, and
    strangers can add large ones out of range for little money."""
    return tuple(sorted(positions, key=lambda one: state is not None and not one.is_active(state.tick)))


class PositionReader:
    """What was read at the block: ``pools`` by venue, ``holders`` by address."""

    def __init__(self, node: RpcNode, contracts: Contracts, block: BlockRef, meter: Meter) -> None:
        self._node, self._contracts, self._block, self.meter = node, contracts, block, meter
        self.pools: dict[Venue, ReadPool] = {}
        self.holders: dict[Address, Holder] = {}

    async def read(self, known: Mapping[Venue, KnownPool]) -> None:
        """Reads these pools and positions, and the holders that are known, in one trip. Raises NodeFault."""
        to_read = {
            venue: pool.positions[:MAX_POSITIONS] for venue, pool in known.items() if not venue.is_curve
        }
        if not to_read:
            return
        every = sorted((one for held in to_read.values() for one in held), key=lambda one: -one.liquidity)
        holders = self._unread_holders(one.holder for one in every)
        calls = [
            position_reads.pool_call(venue, held, self._contracts, self._block)
            for venue, held in to_read.items()
        ]
        groups = [calls, self._holder_calls(holders)] if holders else [calls]
        answers, *holder_answers = await self._node.batches(groups, self.meter)
        if isinstance(answers, NodeFault):
            raise answers
        for (venue, held), answer in zip(to_read.items(), answers, strict=True):
            left_out = known[venue].left_out + len(known[venue].positions) - len(held)
            read = position_reads.read_pool(answer, venue, held, self._contracts)
            self.pools[venue] = ReadPool(held, read, left_out)
        for holder_answer in holder_answers:
            self._note_holders(holders, holder_answer)

    async def complete(self, venues: Sequence[Venue]) -> None:
        """Reads what is missing of these pools: positions from their logs where those that were known do not
        account for the liquidity, and holders that were not known before. Raises NodeFault."""
        open_venues = [venue for venue in venues if not self.pools.get(venue, UNREAD).is_whole()]
        if open_venues:
            found = await self._find_in_logs(open_venues)
            if found:
                await self.read(found)
        held = (
            state.holder
            for venue in venues
            for state in self.pools.get(venue, UNREAD).read.positions
            if state is not None
        )
        if holders := self._unread_holders(held):
            (answers,) = await self._node.batches([self._holder_calls(holders)], self.meter)
            self._note_holders(holders, answers)

    # --- logs ---------------------------------------------------------------------------------------

    async def _find_in_logs(self, venues: Sequence[Venue]) -> dict[Venue, KnownPool]:
        """The positions by the logs of these pools; a pool whose logs the node does not return is left out.
        Two trips, one where no v3 pool is among them."""
        calls = [[position_logs.log_call(venue, self._contracts, self._block)] for venue in venues]
        answers = await self._node.batches(calls, self.meter)
        logs: dict[Venue, tuple[UnverifiedBlockLog, ...]] = {}
        for venue, answer in zip(venues, answers, strict=True):
            read = None if isinstance(answer, NodeFault) else position_logs.read_logs(answer[0])
            if read is not None:
                logs[venue] = read
        numbers = await self._read_numbers(logs)
        found = {}
        for venue, read in logs.items():
            folded = position_logs.fold_positions(read, venue, self._contracts, numbers.get(venue, {}))
            found[venue] = KnownPool(in_range_first(folded, self.pools.get(venue, UNREAD).read.state), 0)
        return found

    async def _read_numbers(
        self, logs: Mapping[Venue, tuple[UnverifiedBlockLog, ...]]
    ) -> dict[Venue, Mapping[position_logs.Key, tuple[int, ...]]]:
        """The NFTs' numbers in v3 pools, from the receipts of the transactions that minted them. Pools
        without any are left out."""
        minting = {venue: position_logs.minting(read, venue, self._contracts) for venue, read in logs.items()}
        minting = {venue: hashes for venue, hashes in minting.items() if hashes}
        if not minting:
            return {}
        calls = [[position_logs.receipt_call(one) for one in hashes] for hashes in minting.values()]
        answers = await self._node.batches(calls, self.meter)
        return {
            venue: {}
            if isinstance(answer, NodeFault)
            else position_logs.read_numbers(answer, venue, self._contracts)
            for venue, answer in zip(minting, answers, strict=True)
        }

    # --- holders ------------------------------------------------------------------------------------

    def _unread_holders(self, holders: Iterable[Address | None]) -> list[Address]:
        """Those that have to be read: not those that were, the network's own contracts, or burn addresses. At
        most ``_MAX_HOLDERS`` with those that were."""
        keyless = BURN_ADDRESSES | self._contracts.all_addresses() | self.holders.keys()
        found = [holder for holder in dict.fromkeys(holders) if holder is not None and holder not in keyless]
        return found[: max(0, _MAX_HOLDERS - len(self.holders))]

    def _holder_calls(self, holders: Sequence[Address]) -> list[RpcCall]:
        calls: dict[str, RpcCall] = {}
        for holder in holders:
            calls |= position_reads.holder_calls(holder, self._block)
        return list(calls.values())

    def _note_holders(self, holders: Sequence[Address], answers: list[Answer] | NodeFault) -> None:
        """Notes what was read of the holders. Where a stranger's code was too much for the answer, nothing is
        known of any. Raises NodeFault."""
        if isinstance(answers, CodeFault):
            return
        if isinstance(answers, NodeFault):
            raise answers
        names = [name for holder in holders for name in position_reads.holder_calls(holder, self._block)]
        by_name = dict(zip(names, answers, strict=True))
        self.holders |= {holder: read_holder(holder, by_name) for holder in holders}
