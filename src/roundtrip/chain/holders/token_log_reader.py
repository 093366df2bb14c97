"""Reads and checks the logs of one token and of its venues, one after the other. It sends no requests.

A busy token has half a million of them, so what repeats (addresses, blocks, transactions) is decoded once,
and a transfer by hand. Trades are decoded by the venues' own files."""

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import gt, lt
from typing import NamedTuple

import msgspec

from roundtrip.chain.blocks.spans import NodeLied
from roundtrip.chain.rpc.node_logs import UnverifiedBlockLog, decode_bytes
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.events import CurveTraded
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.base.venue import TRAITS, VenueKind
from roundtrip.domain.holders.token_flows import Move, TokenTx, VenueFill
from roundtrip.venues import SWAPS, abi, amm_v4
from roundtrip.venues.base import Contracts, Log, SwapReader
from roundtrip.venues.erc20 import TRANSFER_TOPIC

_MAX_LOG_INDEX = 2**31 - 1
_WORD_CHARACTERS = 2 + 2 * abi.WORD


class VenueSides(NamedTuple):
    """The kind of a venue of the token, and its sides. ``token_is_low``: the token's address is below the
    quote's; meaningless for a curve."""

    kind: VenueKind
    token_is_low: bool
    quote: Address


@dataclass(frozen=True, slots=True)
class LogSources:
    """What is requested. ``venues``: by ``VenueFill.at``: a curve's or v3 pool's address, a v4 pool's id, in
    lower case."""

    token: Address
    venues: Mapping[str, VenueSides]
    contracts: Contracts


def is_contract(sides: VenueSides) -> bool:
    """Whether the venue emits its logs itself."""
    return TRAITS[sides.kind].is_contract


_LOGS = msgspec.json.Decoder(list[UnverifiedBlockLog])


def decode_logs(answer: msgspec.Raw) -> list[UnverifiedBlockLog]:
    """Decodes logs, with hex in lower case. Raises NodeFault if it is not a list of logs."""
    try:
        logs = _LOGS.decode(answer)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("the node sent unreadable logs") from error
    # Some nodes return addresses in mixed case, others everything in upper case.
    addresses = {raw.address for raw in logs}
    if logs and not "".join((*addresses, logs[0].block_hash, *logs[0].topics)).islower():
        for raw in logs:
            raw.address, raw.data, raw.block_hash = (
                raw.address.lower(),
                raw.data.lower(),
                raw.block_hash.lower(),
            )
            raw.transaction_hash = raw.transaction_hash.lower()
            raw.topics = tuple(topic.lower() for topic in raw.topics)
    return logs


def merge_logs(lists: Sequence[list[UnverifiedBlockLog]]) -> list[UnverifiedBlockLog]:
    """The logs of all lists in the order of the chain, which every list must have. Raises NodeLied if one has
    not, ValueError if that cannot be read."""
    if len(lists) == 1:
        return lists[0]
    logs: list[UnverifiedBlockLog] = []
    positions: list[int] = []
    for log_list in lists:
        positions_of_list = [(int(raw.block_number, 16) << 31) + int(raw.log_index, 16) for raw in log_list]
        if not all(map(lt, positions_of_list, positions_of_list[1:])):
            raise NodeLied("the node's logs are out of order")
        logs += log_list
        positions += positions_of_list
    return [logs[index] for index in sorted(range(len(logs)), key=positions.__getitem__)]


@dataclass(slots=True)
class LogBlock:
    """A block with logs. ``at_s`` None: not reported."""

    number: int
    hash: str
    at_s: int | None


class TokenLogReader:
    """Takes the logs of a range in their order, hex in lower case. ``txs``: at 0 seconds if the time of the
    block is not reported; some may have neither moves nor fills."""

    def __init__(self, sources: LogSources, first: int, last: int) -> None:
        self._sources, self._first, self._last = sources, first, last
        self._manager = sources.contracts.v4_pool_manager
        self._emitters = {sources.token, *(at for at, sides in sources.venues.items() if is_contract(sides))}
        self._read = {
            (at, topic): read
            for at, sides in sources.venues.items()
            for topic, read in SWAPS[sides.kind].items()
        }
        self._topics = {TRANSFER_TOPIC, *(topic for _, topic in self._read)}
        self.blocks: list[LogBlock] = []
        self.txs: list[TokenTx] = []
        self.transfers = self.unreadable = 0
        self._wallets: dict[str, Address] = {}
        self._words: list[str] = []
        """Hex of the logs taken now, for ``_check_words``."""
        self._previous = UnverifiedBlockLog("", (), "", "", "", "", "", "")
        self._log_index = self._tx_index = -1

    def take(self, logs: Iterable[UnverifiedBlockLog]) -> None:
        """Takes more logs. Raises NodeLied if they contradict the request, or each other, ValueError if they
        cannot be read."""
        token, wallets, words, previous = self._sources.token, self._wallets, self._words, self._previous
        for raw in logs:
            if raw.block_number != previous.block_number:
                self._begin_block(raw)
                self._begin_transaction(raw)
            else:
                if raw.block_hash != previous.block_hash or raw.block_timestamp != previous.block_timestamp:
                    self._continue_block(raw)
                if raw.transaction_hash != previous.transaction_hash:
                    self._begin_transaction(raw)
                elif raw.transaction_index != previous.transaction_index:
                    raise NodeLied(f"the node sent two indexes for one transaction of block {self._number()}")
            log_index = int(raw.log_index, 16)
            if not self._log_index < log_index <= _MAX_LOG_INDEX:
                raise NodeLied(f"the node's logs of block {self._number()} are out of order")
            if raw.removed:
                raise NodeLied(f"the node sent a removed log of block {self._number()}")
            self._log_index, previous = log_index, raw
            topics, data = raw.topics, raw.data
            if raw.address != token or not topics or topics[0] != TRANSFER_TOPIC:
                self._take_other(raw)
                continue
            if len(topics) != 3 or len(data) < _WORD_CHARACTERS:
                self.unreadable += 1
                continue
            if len(data) > _WORD_CHARACTERS:
                data = "0x" + decode_bytes(data)[:32].hex()
            sender = wallets.get(topics[1]) or self._wallet(topics[1])
            recipient = wallets.get(topics[2]) or self._wallet(topics[2])
            words.append(data)
            if sender is None or recipient is None:
                self.unreadable += 1
            else:
                self.txs[-1].moves.append(Move(sender, recipient, int(data, 16)))  # type: ignore[attr-defined]
                self.transfers += 1
        self._previous = previous
        _check_words(words)
        words.clear()

    # --- position ---

    def _number(self) -> int:
        return self.blocks[-1].number

    def _begin_block(self, raw: UnverifiedBlockLog) -> None:
        number, block_hash, timestamp = int(raw.block_number, 16), raw.block_hash, raw.block_timestamp
        if not self._first <= number <= self._last:
            raise NodeLied("the node sent a log of a block outside the requested range")
        if self.blocks:
            previous = self.blocks[-1]
            if number <= previous.number:
                raise NodeLied("the node's logs are not in block order")
            if block_hash == previous.hash:
                raise NodeLied(f"the node sent block {previous.number} under two numbers")
        self._words.append(block_hash)
        self.blocks.append(LogBlock(number, block_hash, None if timestamp is None else int(timestamp, 16)))
        self._log_index = self._tx_index = -1

    def _continue_block(self, raw: UnverifiedBlockLog) -> None:
        """Checks another log of the block. Of two answers, possibly from two nodes, one may lack the time."""
        block, timestamp = self.blocks[-1], raw.block_timestamp
        at_s = None if timestamp is None else int(timestamp, 16)
        if raw.block_hash != block.hash or not (None in (at_s, block.at_s) or at_s == block.at_s):
            raise NodeLied(f"the node sent logs of two different blocks {block.number}")
        if at_s is not None:
            block.at_s = at_s

    def _begin_transaction(self, raw: UnverifiedBlockLog) -> None:
        tx_hash, tx_index, block = raw.transaction_hash, int(raw.transaction_index, 16), self.blocks[-1]
        if tx_index <= self._tx_index:
            raise NodeLied(f"the node's logs of block {block.number} are not in transaction order")
        self._tx_index = tx_index
        self._words.append(tx_hash)
        self.txs.append(TokenTx(tx_hash, block.number, block.at_s or 0, [], []))  # type: ignore[arg-type]

    # --- contents ---

    def _wallet(self, topic: str) -> Address | None:
        """The address in a topic that was not seen before; None: it is not an address."""
        self._words.append(topic)
        address = abi.address_in(topic)
        if address is not None:
            self._wallets[topic] = address
        return address

    def _take_other(self, raw: UnverifiedBlockLog) -> None:
        """A log of a venue, or an irrelevant one. A token may emit any event of a pool: it matches the filter
        and is ignored."""
        address, topic = raw.address, raw.topics[0] if raw.topics else ""
        if address == self._manager and topic == amm_v4.SWAP and len(raw.topics) > 1:
            at, read = raw.topics[1], self._read.get((raw.topics[1], topic))
        else:
            at, read = address, self._read.get((address, topic))
        if read is not None:
            self._take_fill(raw, at, read)
        elif address not in self._emitters or topic not in self._topics:
            raise NodeLied(f"the node sent a log of block {self._number()} that was not requested")

    def _take_fill(self, raw: UnverifiedBlockLog, at: str, read: SwapReader) -> None:
        self._words += raw.topics
        event = read(Log(raw.address, raw.topics, decode_bytes(raw.data)))  # type: ignore[arg-type]
        if event is None:
            self.unreadable += 1
            return
        sides = self._sources.venues[at]
        if isinstance(event, CurveTraded):
            fill = VenueFill(at, event.buys, event.token_raw, sides.quote, event.quote_raw)
        else:
            token_amount, quote_amount = event.amount0, event.amount1
            if not sides.token_is_low:
                token_amount, quote_amount = quote_amount, token_amount
            # The launchpad's hook converts its own fees; that is not a wallet's trade.
            if token_amount * quote_amount > 0 or event.sender == self._sources.contracts.launchpad_hook:
                return
            fill = VenueFill(at, token_amount < 0, abs(token_amount), sides.quote, abs(quote_amount))
        if fill.token_raw:
            self.txs[-1].fills.append(fill)  # type: ignore[attr-defined]


def _check_words(words: Sequence[str]) -> None:
    """Checks that each is ``0x`` and 64 hex digits in lower case, all at once: one by one it takes longer
    than everything else done with a log. Raises ValueError."""
    if not words:
        return
    joined, count = "".join(words), len(words)
    if set(map(len, words)) != {_WORD_CHARACTERS}:
        raise ValueError("a word is 0x and 64 hex digits")
    if joined[::_WORD_CHARACTERS] != "0" * count or joined[1::_WORD_CHARACTERS] != "x" * count:
        raise ValueError("a word begins with 0x")
    # Any other x shortens the result; bytes.fromhex skips spaces.
    if not joined.islower() or len(bytes.fromhex(joined.replace("0x", ""))) != 32 * count:
        raise ValueError("a word is 0x and 64 hex digits")


def block_times(blocks: Sequence[LogBlock], first_ref: BlockRef, last_ref: BlockRef) -> dict[int, int] | None:
    """When each block was made, with missing times interpolated between known ones; None: all times were
    reported. ``first_ref``, ``last_ref``: headers of the range's first and last block. Raises NodeLied if
    times fall, or blocks contradict the headers."""
    for block in (*blocks[:1], *blocks[-1:]):
        for header in (first_ref, last_ref):
            if block.number != header.number:
                continue
            if block.hash != header.hash:
                raise NodeLied(f"the node sent a log of a different block {block.number}")
            if block.at_s not in (None, header.timestamp_s):
                raise NodeLied(f"the node sent block {block.number} twice")
    known_times = [block.at_s for block in blocks if block.at_s is not None]
    times = [first_ref.timestamp_s, *known_times, last_ref.timestamp_s]
    if any(map(gt, times, times[1:])):
        raise NodeLied("the timestamps of the node's blocks decrease")
    return None if len(known_times) == len(blocks) else _interpolate(blocks, first_ref, last_ref)


def _interpolate(blocks: Sequence[LogBlock], first_ref: BlockRef, last_ref: BlockRef) -> dict[int, int]:
    known = {block.number: block.at_s for block in blocks if block.at_s is not None}
    known |= {first_ref.number: first_ref.timestamp_s, last_ref.number: last_ref.timestamp_s}
    numbers = sorted(known)
    times: dict[int, int] = {}
    for block in blocks:
        index = bisect(numbers, block.number)
        low = numbers[index - 1]
        high = numbers[min(index, len(numbers) - 1)]
        blocks_after_low = block.number - low
        times[block.number] = known[low] + (
            (known[high] - known[low]) * blocks_after_low // (high - low) if blocks_after_low else 0
        )
    return times
