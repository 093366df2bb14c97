"""An in-memory index of the venues of each token, from the chain's logs of new pools and launches.

Only a hint: a check reads every venue from the chain. So a log that a reorg removed, or a forged one, costs a
few calls and changes no verdict.
"""

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice

import msgspec

from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.base.venue import MOST_OTHERS_NAMED, OtherPool, Venue
from roundtrip.venues import LISTINGS, abi
from roundtrip.venues.base import Contracts, Log

MOST_TOKENS = 200_000
MOST_VENUES_A_TOKEN = 256
"""The first ones are kept. A token with more is marked incomplete."""
MOST_COUNTED = 1000
"""Pools of a token against a quote that is no money are counted up to here."""
COMMON_MONEY = ("eth", "weth", "usdg")
MOST_BLOCKS_A_CALL = 10_000
"""Providers limit the range of eth_getLogs; all that were tried take 10,000 blocks. A range without an answer
is halved, down to the fewest, and doubled again after an answer."""
FEWEST_BLOCKS_A_CALL = 128
_TOPIC_CHARACTERS = 2 + 2 * abi.WORD


class _VenueRawLog(msgspec.Struct, rename="camel"):
    address: str
    topics: list[str]
    data: str


READ_AGAIN_BLOCKS = 64
"""How many of the newest blocks are read again each time: a reorg may have replaced them."""


class VenueIndex:
    """``look_back_blocks``: how far behind the first head the index starts. None: it starts at the first
    block and is complete once it has caught up, so that an unknown token has no pool."""

    def __init__(self, contracts: Contracts, look_back_blocks: int | None = None) -> None:
        self._contracts = contracts
        self._look_back = look_back_blocks
        self._start: int | None = 0 if look_back_blocks is None else None
        self._next = 0
        self._span = MOST_BLOCKS_A_CALL
        self._venues: OrderedDict[Address, list[Venue]] = OrderedDict()
        self._token_at: dict[str, Address] = {}
        self._others: OrderedDict[Address, dict[str, Address]] = OrderedDict()
        self._crowded: set[Address] = set()
        self._with_history: set[Address] = set()
        self._forgot = False
        self._caught_up = False

    most_counted = MOST_COUNTED

    def needs_history(self, token: Address) -> bool:
        """Whether venues of ``token`` from before the index's start are unknown."""
        return self._start != 0 and token not in self._with_history

    def add_history(
        self, token: Address, venues: Iterable[Venue], others: Iterable[OtherPool], complete_to: int | None
    ) -> None:
        """Adds what the database knows of ``token``: its venues, oldest first, and its pools against a quote
        that is no money. ``complete_to``: the database has every venue up to that block; None: it has not."""
        known = self._venues.pop(token, [])
        for venue in (*venues, *known):
            self._add_venue(token, venue)
        self._others.setdefault(token, {}).update({pool.at: pool.against for pool in others})
        if complete_to is not None and self._start is not None and complete_to >= self._start - 1:
            self._with_history.add(token)

    def venues_of(self, token: Address) -> tuple[Venue, ...]:
        """Every known venue of ``token`` with money as its quote, oldest first."""
        return tuple(self._venues.get(token, ()))

    def token_at(self, place: str) -> Address | None:
        """The token that trades at a pool's or curve's address, or under a pool's id; a token's own address
        returns itself. None: unknown."""
        return Address(place) if place in self._venues else self._token_at.get(place)

    def complete(self, token: Address) -> bool:
        """Whether no pool of ``token`` can be missing here."""
        from_first_block = self._start == 0 and not self._forgot
        has_history = from_first_block or token in self._with_history
        return self._caught_up and has_history and token not in self._crowded

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
            raw = msgspec.json.decode(answer, type=list[_VenueRawLog])
            logs = [_log(raw_log) for raw_log in raw]
        except (msgspec.DecodeError, ValueError, RecursionError):
            return self.narrow_span()
        for log in logs:
            self._add_log(log)
        self._next = self._last(head) + 1
        self._span = min(MOST_BLOCKS_A_CALL, 2 * self._span)
        self._caught_up = self._next > head
        return True

    def narrow_span(self) -> bool:
        """Halves the next range, after one without an answer. Always False."""
        self._span = max(FEWEST_BLOCKS_A_CALL, self._span // 2)
        return False

    def others(self, token: Address) -> int:
        """How many further pools of the token were skipped because their quote is not money."""
        return len(self._others.get(token, ()))

    def other_pools(self, token: Address) -> tuple[OtherPool, ...]:
        """The first of these pools."""
        known = self._others.get(token, {}).items()
        return tuple(OtherPool(at, against) for at, against in islice(known, MOST_OTHERS_NAMED))

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
        if not self._is_paid_in_money(token, venue):
            self._count(token, venue)
            return
        venues = self._venues.setdefault(token, [])
        if venue in venues:
            return
        if len(venues) >= MOST_VENUES_A_TOKEN:
            self._crowded.add(token)
            return
        venues.append(venue)
        self._token_at.setdefault(venue.pool or venue.pool_id or "", token)
        if len(self._venues) > MOST_TOKENS:
            forgotten, dropped = self._venues.popitem(last=False)
            for old in dropped:
                self._token_at.pop(old.pool or old.pool_id or "", None)
            self._crowded.discard(forgotten)
            self._with_history.discard(forgotten)
            self._forgot = True

    def _is_paid_in_money(self, token: Address, venue: Venue) -> bool:
        """Whether the quote is eth, weth, usdg, or what the launchpad launched this token against. Anyone can
        create any number of pools of a token against a token of their own."""
        if venue.quote in COMMON_MONEY or venue.is_curve:
            return True
        curves = (v for v in self._venues.get(token, ()) if v.is_curve)
        return any(curve.quote_address == venue.quote_address for curve in curves)

    def _count(self, token: Address, venue: Venue) -> None:
        seen = self._others.setdefault(token, {})
        if len(seen) < MOST_COUNTED:
            seen[venue.at() or ""] = venue.quote_address
        if len(self._others) > MOST_TOKENS:
            self._others.popitem(last=False)


def _log(raw: _VenueRawLog) -> Log:
    topics = tuple("0x" + bytes.fromhex(topic.removeprefix("0x")).hex() for topic in raw.topics)
    if any(len(topic) != _TOPIC_CHARACTERS for topic in topics):
        raise ValueError("a topic is a word")
    return Log(parse_address(raw.address), topics, bytes.fromhex(raw.data.removeprefix("0x")))
