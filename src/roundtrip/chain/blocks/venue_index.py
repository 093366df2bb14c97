"""An in-memory index of the venues of each token, from the chain's logs of new pools and launches.

Only a hint: a check reads every venue from the chain. So a log that a reorg removed, or a forged one, costs a
few calls and changes no verdict.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError
from roundtrip.chain.rpc.node_logs import UnverifiedLog
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import MAX_OTHERS_COUNTED, MAX_VENUES_A_TOKEN, Venue
from roundtrip.venues import LISTINGS
from roundtrip.venues.base import Contracts, Log

MAX_TOKENS = 200_000
MAX_BLOCKS_A_CALL = 10_000
"""Providers limit the range of eth_getLogs; all that were tried take 10,000 blocks. A range without an answer
is halved, down to the fewest, and doubled again after an answer."""
FEWEST_BLOCKS_A_CALL = 128


READ_AGAIN_BLOCKS = 64
"""How many of the newest blocks are read again each time: a reorg may have replaced them."""


class ListedVenues(NamedTuple):
    """A token's venues by the logs that this process has read, oldest first. ``others``: its pools whose
    quote is no money, MAX_OTHERS_COUNTED at most: the quote by the pool's address or id. ``complete_from``:
    every pool against money since that block is among these; None: one may be missing."""

    venues: tuple[Venue, ...] = ()
    others: Mapping[str, Address] = MappingProxyType({})
    complete_from: int | None = None


class VenueIndex:
    """``look_back_blocks``: how far behind the first head the index starts. None: it starts at the first
    block and is complete once it has caught up, so that an unknown token has no pool."""

    def __init__(
        self, contracts: Contracts, look_back_blocks: int | None = None, max_tokens: int = MAX_TOKENS
    ) -> None:
        self._max_tokens = max_tokens
        self._contracts = contracts
        self._look_back = look_back_blocks
        self._start: int | None = 0 if look_back_blocks is None else None
        self._next = 0
        self._span = MAX_BLOCKS_A_CALL
        self._venues: OrderedDict[Address, list[Venue]] = OrderedDict()
        self._token_at: dict[str, Address] = {}
        self._others: OrderedDict[Address, dict[str, Address]] = OrderedDict()
        self._crowded: set[Address] = set()
        self._forgot = False
        self._caught_up = False

    def list_venues(self, token: Address) -> ListedVenues:
        """What is known of ``token`` now."""
        can_be_complete = self._caught_up and token not in self._crowded
        # An index from the first block on has no other source for a token that it forgot.
        is_forgotten = self._forgot and self._start == 0
        return ListedVenues(
            self.venues_of(token),
            MappingProxyType(dict(self._others.get(token, {}))),
            self._start if can_be_complete and not is_forgotten else None,
        )

    def venues_of(self, token: Address) -> tuple[Venue, ...]:
        """Every known venue of ``token`` with money as its quote, oldest first."""
        return tuple(self._venues.get(token, ()))

    def token_at(self, place: str) -> Address | None:
        """The token that trades at a pool's or curve's address, or under a pool's id; a token's own address
        returns itself. None: unknown."""
        return Address(place) if place in self._venues else self._token_at.get(place)

    def complete(self, token: Address) -> bool:
        """Whether no pool of ``token`` can be missing here."""
        return self.list_venues(token).complete_from == 0

    def calls(self, head: int) -> list[RpcCall]:
        """The next request on the way to ``head``: at most one range, the oldest not yet read."""
        if self._start is None:
            self._next = self._start = max(0, head - (self._look_back or 0))
        if self._next > head + 1 + READ_AGAIN_BLOCKS:
            # A wrong head led beyond the chain's end.
            self._next = max(self._start, head + 1)
            self._caught_up = False
        if self._next > head:
            return []
        self._caught_up = False
        first = max(self._start, self._next - READ_AGAIN_BLOCKS)
        senders, topics = self._filter()
        wanted = {
            "fromBlock": hex(first),
            "toBlock": hex(self._last(head)),
            "address": sorted(senders),
            "topics": [sorted(topics)],
        }
        return [RpcCall("eth_getLogs", [wanted])]

    def read(self, answer: Answer, head: int) -> bool:
        """Adds the answer to ``calls``. False when it is an error: the next range is then narrower."""
        if isinstance(answer, RpcError):
            return self.narrow_span()
        try:
            logs = [log.decode() for log in msgspec.json.decode(answer, type=list[UnverifiedLog])]
        except (msgspec.DecodeError, ValueError, RecursionError):
            return self.narrow_span()
        for log in logs:
            self._add_log(log)
        self._next = self._last(head) + 1
        self._span = min(MAX_BLOCKS_A_CALL, 2 * self._span)
        self._caught_up = self._next > head
        return True

    def narrow_span(self) -> bool:
        """Halves the next range, after one without an answer. Always False."""
        self._span = max(FEWEST_BLOCKS_A_CALL, self._span // 2)
        return False

    def add(self, token: Address, venues: Iterable[Venue]) -> None:
        """Adds venues that were found another way."""
        for venue in venues:
            self._add_venue(token, venue)

    def _last(self, head: int) -> int:
        return min(head, self._next + self._span - READ_AGAIN_BLOCKS - 1)

    def _filter(self) -> tuple[set[str], set[str]]:
        listings = [listing for file in LISTINGS for listing in file.listings(self._contracts)]
        return {sender for sender, _ in listings}, {topic for _, topic in listings}

    def _add_log(self, log: Log) -> None:
        for file in LISTINGS:
            if log.topics and (log.address, log.topics[0]) in file.listings(self._contracts):
                for listing in file.decode_listings(log, self._contracts):
                    self._add_venue(listing.token, listing.venue)

    def _add_venue(self, token: Address, venue: Venue) -> None:
        if token in (self._contracts.weth, self._contracts.usdg):
            return
        if not venue.is_paid_in_money(self._venues.get(token, ())):
            self._note_other(token, venue)
            return
        venues = self._venues.setdefault(token, [])
        if venue in venues:
            return
        if len(venues) >= MAX_VENUES_A_TOKEN:
            self._crowded.add(token)
            return
        venues.append(venue)
        self._token_at.setdefault(venue.pool or venue.pool_id or "", token)
        if len(self._venues) > self._max_tokens:
            forgotten, dropped = self._venues.popitem(last=False)
            for old in dropped:
                self._token_at.pop(old.pool or old.pool_id or "", None)
            self._crowded.discard(forgotten)
            self._forgot = True

    def _note_other(self, token: Address, venue: Venue) -> None:
        seen = self._others.setdefault(token, {})
        if len(seen) < MAX_OTHERS_COUNTED:
            seen[venue.at() or ""] = venue.quote_address
        if len(self._others) > self._max_tokens:
            self._others.popitem(last=False)
