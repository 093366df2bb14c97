"""Where tokens may trade, as the chain's own logs tell it: every new pool and launch, kept in memory.

Only a hint: what stands here is asked of the chain before anything is believed. So a log that a reorg took
back, or one that never was, costs a few calls and changes no verdict.
"""

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.base.venue import Venue
from roundtrip.venues import LISTINGS, abi
from roundtrip.venues.base import Contracts, Log

MOST_TOKENS = 200_000
MOST_VENUES_A_TOKEN = 256
"""The first ones are kept. A token with more is known not to be known whole."""
MOST_COUNTED = 1000
"""Pools of a token against nobody's money are counted up to here."""
COMMON_MONEY = ("eth", "weth", "usdg")
MOST_BLOCKS_A_CALL = 10_000
"""Providers bound the range of eth_getLogs; 10,000 blocks pass with all that were tried. A range that gets no
answer is halved, down to the fewest, and grows again after one that did."""
FEWEST_BLOCKS_A_CALL = 128


_TOPIC_CHARACTERS = 2 + 2 * abi.WORD


class _VenueRawLog(msgspec.Struct, rename="camel"):
    address: str
    topics: list[str]
    data: str


READ_AGAIN_BLOCKS = 64
"""So many of the newest blocks are read again each time: a reorg may have put others in their place."""


class VenueIndex:
    """``look_back_blocks``: how far behind the first head it begins; None: at the chain's beginning, and
    then it is complete once it has caught up: a token it does not know has no pool."""

    def __init__(self, contracts: Contracts, look_back_blocks: int | None = None) -> None:
        self._contracts = contracts
        self._look_back = look_back_blocks
        self._start: int | None = 0 if look_back_blocks is None else None
        self._next = 0
        self._span = MOST_BLOCKS_A_CALL
        self._venues: OrderedDict[Address, list[Venue]] = OrderedDict()
        self._at: dict[str, Address] = {}
        self._others: OrderedDict[Address, set[str]] = OrderedDict()
        self._crowded: set[Address] = set()
        self._told: set[Address] = set()
        self._forgot = False
        self._whole = False

    most_counted = MOST_COUNTED

    def wants(self, token: Address) -> bool:
        """Whether places of ``token`` from before the book began are to be told."""
        return self._start != 0 and token not in self._told

    def tell(
        self, token: Address, venues: Iterable[Venue], others: Iterable[str], whole_to: int | None
    ) -> None:
        """Remembers what an index knows of ``token``: its venues, oldest first, and places against nobody's
        money. ``whole_to``: the index has every place of the chain up to that block; None: it has not."""
        own = self._venues.pop(token, [])
        for venue in (*venues, *own):
            self._put(token, venue)
        seen = self._others.setdefault(token, set())
        seen.update(others)
        if whole_to is not None and self._start is not None and whole_to >= self._start - 1:
            self._told.add(token)

    def venues_of(self, token: Address) -> tuple[Venue, ...]:
        """Every venue seen for ``token`` that is paid in money, oldest first."""
        return tuple(self._venues.get(token, ()))

    def token_at(self, place: str) -> Address | None:
        """The token that trades at a pool's or curve's address, or under a pool's id; a token's own address
        is its own. None: nothing known here."""
        return Address(place) if place in self._venues else self._at.get(place)

    def complete(self, token: Address) -> bool:
        """True when no pool of ``token`` can be missing here."""
        from_the_start = self._start == 0 and not self._forgot
        return self._whole and (from_the_start or token in self._told) and token not in self._crowded

    def calls(self, head: int) -> list[RpcCall]:
        """What to ask to know everything up to ``head``: at most one range, the oldest not yet read."""
        if self._start is None:
            self._next = self._start = max(0, head - (self._look_back or 0))
        if self._next > head + 1 + READ_AGAIN_BLOCKS:
            # A head that never was has led beyond the chain's end.
            self._next = max(self._start, head + 1)
            self._whole = False
        if self._next > head:
            return []
        self._whole = False
        first = max(self._start, self._next - READ_AGAIN_BLOCKS)
        senders, topics = self._filter()
        wanted = {
            "fromBlock": hex(first),
            "toBlock": hex(self._last(head)),
            "address": sorted(senders),
            "topics": [sorted(topics)],
        }
        return [RpcCall("eth_getLogs", [wanted])]

    def read(self, answer: msgspec.Raw | RpcError, head: int) -> bool:
        """Takes the answer to ``calls`` in; False when it was none, and less is asked the next time."""
        if isinstance(answer, RpcError):
            return self.narrow_span()
        try:
            raw = msgspec.json.decode(answer, type=list[_VenueRawLog])
            logs = [_log(one) for one in raw]
        except (msgspec.DecodeError, ValueError, RecursionError):
            return self.narrow_span()
        for log in logs:
            self._take(log)
        self._next = self._last(head) + 1
        self._span = min(MOST_BLOCKS_A_CALL, 2 * self._span)
        self._whole = self._next > head
        return True

    def narrow_span(self) -> bool:
        """The last range got no answer: half of it is asked next. Always False."""
        self._span = max(FEWEST_BLOCKS_A_CALL, self._span // 2)
        return False

    def others(self, token: Address) -> int:
        """How many more pools of the token were seen and not kept: paid in what is nobody's money."""
        return len(self._others.get(token, ()))

    def add(self, token: Address, venues: Iterable[Venue]) -> None:
        """Remembers venues that were found another way."""
        for venue in venues:
            self._put(token, venue)

    def _last(self, head: int) -> int:
        return min(head, self._next + self._span - READ_AGAIN_BLOCKS - 1)

    def _filter(self) -> tuple[set[str], set[str]]:
        found = [pair for file in LISTINGS for pair in file.listings(self._contracts)]
        return {sender for sender, _ in found}, {topic for _, topic in found}

    def _take(self, log: Log) -> None:
        for file in LISTINGS:
            if log.topics and (log.address, log.topics[0]) in file.listings(self._contracts):
                for listed in file.decode_listings(log, self._contracts):
                    self._put(listed.token, listed.venue)

    def _put(self, token: Address, venue: Venue) -> None:
        if token in (self._contracts.weth, self._contracts.usdg):
            return
        if not self._is_paid_in_money(token, venue):
            self._count(token, venue)
            return
        own = self._venues.setdefault(token, [])
        if venue in own:
            return
        if len(own) >= MOST_VENUES_A_TOKEN:
            self._crowded.add(token)
            return
        own.append(venue)
        self._at.setdefault(venue.pool or venue.pool_id or "", token)
        if len(self._venues) > MOST_TOKENS:
            forgotten, places = self._venues.popitem(last=False)
            for place in places:
                self._at.pop(place.pool or place.pool_id or "", None)
            self._crowded.discard(forgotten)
            self._told.discard(forgotten)
            self._forgot = True

    def _is_paid_in_money(self, token: Address, venue: Venue) -> bool:
        """True for eth, weth, usdg, and what the launchpad launched this token against. Anybody can make a
        pool of a token against one of his own, and of those there may be any number."""
        if venue.quote in COMMON_MONEY or venue.is_curve:
            return True
        curves = (v for v in self._venues.get(token, ()) if v.is_curve)
        return any(curve.quote_address == venue.quote_address for curve in curves)

    def _count(self, token: Address, venue: Venue) -> None:
        seen = self._others.setdefault(token, set())
        if len(seen) < MOST_COUNTED:
            seen.add(venue.pool or venue.pool_id or "")
        if len(self._others) > MOST_TOKENS:
            self._others.popitem(last=False)


def _log(raw: _VenueRawLog) -> Log:
    topics = tuple("0x" + bytes.fromhex(topic.removeprefix("0x")).hex() for topic in raw.topics)
    if any(len(topic) != _TOPIC_CHARACTERS for topic in topics):
        raise ValueError("a topic is a word")
    return Log(parse_address(raw.address), topics, bytes.fromhex(raw.data.removeprefix("0x")))
