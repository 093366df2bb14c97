"""The logs of one token and of its venues, read and checked one after the other. It asks nobody.

A busy token has half a million of them: so what comes again (addresses, blocks, transactions) is read once,
and a transfer by hand. Trades are read by their venues' own files.
"""

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import gt, lt
from typing import NamedTuple

import msgspec

from roundtrip.chain.blocks.spans import NodeLied
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.events import CurveTraded
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.base.venue import TRAITS, VenueKind
from roundtrip.domain.holders.token_flows import Move, TokenTx, VenueFill
from roundtrip.venues import SWAPS, abi, amm_v4
from roundtrip.venues.base import Contracts, Log, SwapReader
from roundtrip.venues.erc20 import TRANSFER_TOPIC

_MOST_LOG_INDEX = 2**31 - 1
_WORD_CHARACTERS = 2 + 2 * abi.WORD


class VenueSides(NamedTuple):
    """What a venue of the token is, and which of its sides are which. ``token_is_low``: the token's address
    is below the quote's; of a curve it means nothing."""

    kind: VenueKind
    token_is_low: bool
    quote: Address


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked for. ``venues``: by the place of their fills: a curve's or v3 pool's address, a v4
    pool's id, in lower case."""

    token: Address
    venues: Mapping[str, VenueSides]
    contracts: Contracts


def is_contract(quoted: VenueSides) -> bool:
    """Whether the venue sends its logs itself."""
    return TRAITS[quoted.kind].is_contract


class RawLog(msgspec.Struct, rename="camel", gc=False):
    """A log as a node gives it: what its texts hold is checked as it is read."""

    address: str
    topics: tuple[str, ...]
    data: str
    block_number: str
    block_hash: str
    transaction_hash: str
    transaction_index: str
    log_index: str
    block_timestamp: str | None = None
    removed: bool = False


_LOGS = msgspec.json.Decoder(list[RawLog])


def decode_logs(answer: msgspec.Raw) -> list[RawLog]:
    """Its hex in lower case. Raises NodeFault when it is no list of logs."""
    try:
        found = _LOGS.decode(answer)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("it gave logs that cannot be read") from error
    # Of some nodes addresses have letters of both cases, of others everything is in upper case.
    seen = {raw.address for raw in found}
    if found and not "".join((*seen, found[0].block_hash, *found[0].topics)).islower():
        for raw in found:
            raw.address, raw.data, raw.block_hash = (
                raw.address.lower(),
                raw.data.lower(),
                raw.block_hash.lower(),
            )
            raw.transaction_hash = raw.transaction_hash.lower()
            raw.topics = tuple(topic.lower() for topic in raw.topics)
    return found


def merge_logs(lists: Sequence[list[RawLog]]) -> list[RawLog]:
    """The logs of all lists in the order of the chain, where each list is. Raises NodeLied where one is not,
    ValueError where that cannot be read."""
    if len(lists) == 1:
        return lists[0]
    logs: list[RawLog] = []
    places: list[int] = []
    for own in lists:
        found = [(int(raw.block_number, 16) << 31) + int(raw.log_index, 16) for raw in own]
        if not all(map(lt, found, found[1:])):
            raise NodeLied("the logs it gave are not in their order")
        logs += own
        places += found
    return [logs[place] for place in sorted(range(len(logs)), key=places.__getitem__)]


@dataclass(slots=True)
class LogBlock:
    """One that has some of the logs. ``at_s`` None: not told."""

    number: int
    hash: str
    at_s: int | None


class TokenLogReader:
    """Takes the logs of a range in their order, hex in lower case. ``txs``: at 0 seconds where the time of
    their block is not told; some may have neither moves nor fills."""

    def __init__(self, sources: Sources, first: int, last: int) -> None:
        self._sources, self._first, self._last = sources, first, last
        self._manager = sources.contracts.v4_pool_manager
        self._emitters = {
            sources.token,
            *(at for at, quoted in sources.venues.items() if is_contract(quoted)),
        }
        self._read = {
            (at, topic): read
            for at, quoted in sources.venues.items()
            for topic, read in SWAPS[quoted.kind].items()
        }
        self._topics = {TRANSFER_TOPIC, *(topic for _, topic in self._read)}
        self.blocks: list[LogBlock] = []
        self.txs: list[TokenTx] = []
        self.transfers = self.unreadable = 0
        self._wallets: dict[str, Address] = {}
        self._words: list[str] = []
        """To be checked."""
        self._before = RawLog("", (), "", "", "", "", "", "")
        self._log_index = self._tx_index = -1

    def take(self, logs: Iterable[RawLog]) -> None:
        """Some more. Raises NodeLied where they contradict what was asked for, or each other, and ValueError
        where they cannot be read."""
        token, wallets, words, before = self._sources.token, self._wallets, self._words, self._before
        for raw in logs:
            if raw.block_number != before.block_number:
                self._begin_block(raw)
                self._begin_transaction(raw)
            else:
                if raw.block_hash != before.block_hash or raw.block_timestamp != before.block_timestamp:
                    self._go_on_in_block(raw)
                if raw.transaction_hash != before.transaction_hash:
                    self._begin_transaction(raw)
                elif raw.transaction_index != before.transaction_index:
                    raise NodeLied(f"it gave a transaction of block {self._number()} two places")
            place = int(raw.log_index, 16)
            if not self._log_index < place <= _MOST_LOG_INDEX:
                raise NodeLied(f"the logs it gave of block {self._number()} are not in their order")
            if raw.removed:
                raise NodeLied(f"it gave a removed log of block {self._number()}")
            self._log_index, before = place, raw
            topics, data = raw.topics, raw.data
            if raw.address != token or not topics or topics[0] != TRANSFER_TOPIC:
                self._take_other(raw)
                continue
            if len(topics) != 3 or len(data) < _WORD_CHARACTERS:
                self.unreadable += 1
                continue
            if len(data) > _WORD_CHARACTERS:
                data = "0x" + _bytes(data)[:32].hex()
            sender = wallets.get(topics[1]) or self._wallet(topics[1])
            recipient = wallets.get(topics[2]) or self._wallet(topics[2])
            words.append(data)
            if sender is None or recipient is None:
                self.unreadable += 1
            else:
                self.txs[-1].moves.append(Move(sender, recipient, int(data, 16)))  # type: ignore[attr-defined]
                self.transfers += 1
        self._before = before
        _check_words(words)
        words.clear()

    # --- where it is ---

    def _number(self) -> int:
        return self.blocks[-1].number

    def _begin_block(self, raw: RawLog) -> None:
        number, block_hash, told = int(raw.block_number, 16), raw.block_hash, raw.block_timestamp
        if not self._first <= number <= self._last:
            raise NodeLied("it gave a log of a block that was not asked for")
        if self.blocks:
            before = self.blocks[-1]
            if number <= before.number:
                raise NodeLied("the logs it gave are not in the order of their blocks")
            if block_hash == before.hash:
                raise NodeLied(f"its block {before.number} has another number, too")
        self._words.append(block_hash)
        self.blocks.append(LogBlock(number, block_hash, None if told is None else int(told, 16)))
        self._log_index = self._tx_index = -1

    def _go_on_in_block(self, raw: RawLog) -> None:
        """Of two answers, which may be two nodes', one may tell no time."""
        block, told = self.blocks[-1], raw.block_timestamp
        at_s = None if told is None else int(told, 16)
        if raw.block_hash != block.hash or not (None in (at_s, block.at_s) or at_s == block.at_s):
            raise NodeLied(f"it gave logs of two blocks {block.number}")
        if at_s is not None:
            block.at_s = at_s

    def _begin_transaction(self, raw: RawLog) -> None:
        tx_hash, tx_index, block = raw.transaction_hash, int(raw.transaction_index, 16), self.blocks[-1]
        if tx_index <= self._tx_index:
            raise NodeLied(
                f"the logs it gave of block {block.number} are not in the order of its transactions"
            )
        self._tx_index = tx_index
        self._words.append(tx_hash)
        self.txs.append(TokenTx(tx_hash, block.number, block.at_s or 0, [], []))  # type: ignore[arg-type]

    # --- what it says ---

    def _wallet(self, topic: str) -> Address | None:
        """The address in a topic that was not met before; None: it holds more."""
        self._words.append(topic)
        found = abi.address_in(topic)
        if found is not None:
            self._wallets[topic] = found
        return found

    def _take_other(self, raw: RawLog) -> None:
        """A log of a venue, or of nobody. A token may say whatever a pool says: that was asked for, too, and
        means nothing."""
        address, topic = raw.address, raw.topics[0] if raw.topics else ""
        if address == self._manager and topic == amm_v4.SWAP and len(raw.topics) > 1:
            at, read = raw.topics[1], self._read.get((raw.topics[1], topic))
        else:
            at, read = address, self._read.get((address, topic))
        if read is not None:
            self._fill(raw, at, read)
        elif address not in self._emitters or topic not in self._topics:
            raise NodeLied(f"it gave a log of block {self._number()} that was not asked for")

    def _fill(self, raw: RawLog, at: str, read: SwapReader) -> None:
        self._words += raw.topics
        event = read(Log(raw.address, raw.topics, _bytes(raw.data)))  # type: ignore[arg-type]
        if event is None:
            self.unreadable += 1
            return
        quoted = self._sources.venues[at]
        if isinstance(event, CurveTraded):
            fill = VenueFill(at, event.buys, event.token_raw, quoted.quote, event.quote_raw)
        else:
            token, money = event.amount0, event.amount1
            if not quoted.token_is_low:
                token, money = money, token
            # The launchpad's hook converts its own fees: nobody's trade.
            if token * money > 0 or event.sender == self._sources.contracts.launchpad_hook:
                return
            fill = VenueFill(at, token < 0, abs(token), quoted.quote, abs(money))
        if fill.token_raw:
            self.txs[-1].fills.append(fill)  # type: ignore[attr-defined]


def _check_words(words: Sequence[str]) -> None:
    """That each is ``0x`` and 64 hex digits in lower case, all at once: one by one it takes
    longer than all else that is done with a log. Raises ValueError."""
    if not words:
        return
    written, count = "".join(words), len(words)
    if set(map(len, words)) != {_WORD_CHARACTERS}:
        raise ValueError("a word is 0x and 64 hex digits")
    if written[::_WORD_CHARACTERS] != "0" * count or written[1::_WORD_CHARACTERS] != "x" * count:
        raise ValueError("a word begins with 0x")
    # What else has an x in it is shorter by then; bytes.fromhex passes over spaces.
    if not written.islower() or len(bytes.fromhex(written.replace("0x", ""))) != 32 * count:
        raise ValueError("a word is 0x and 64 hex digits")


def times_of(blocks: Sequence[LogBlock], begun: BlockRef, over: BlockRef) -> dict[int, int] | None:
    """When each block was made, those not told read off the line between the times around them; None: all
    were told. ``begun``, ``over``: headers of the range's first and last block. Raises NodeLied where times
    fall, or blocks are not those of the headers."""
    for block in (*blocks[:1], *blocks[-1:]):
        for header in (begun, over):
            if block.number != header.number:
                continue
            if block.hash != header.hash:
                raise NodeLied(f"it gave a log of another block {block.number}")
            if block.at_s not in (None, header.timestamp_s):
                raise NodeLied(f"it gave block {block.number} two times")
    told = [block.at_s for block in blocks if block.at_s is not None]
    times = [begun.timestamp_s, *told, over.timestamp_s]
    if any(map(gt, times, times[1:])):
        raise NodeLied("times of its blocks fall")
    return None if len(told) == len(blocks) else _between(blocks, begun, over)


def _between(blocks: Sequence[LogBlock], begun: BlockRef, over: BlockRef) -> dict[int, int]:
    known = {block.number: block.at_s for block in blocks if block.at_s is not None}
    known |= {begun.number: begun.timestamp_s, over.number: over.timestamp_s}
    numbers = sorted(known)
    times: dict[int, int] = {}
    for block in blocks:
        place = bisect(numbers, block.number)
        low = numbers[place - 1]
        high = numbers[min(place, len(numbers) - 1)]
        passed = block.number - low
        times[block.number] = known[low] + (
            (known[high] - known[low]) * passed // (high - low) if passed else 0
        )
    return times


def _bytes(text: str) -> bytes:
    """Raises ValueError when it is no ``0x`` hex."""
    data = bytes.fromhex(text[2:])
    # bytes.fromhex passes over spaces.
    if len(text) != 2 + 2 * len(data) or not text.startswith("0x"):
        raise ValueError("not 0x and hex digits")
    return data
