"""Follows the newest block by polling, with the price of eth at that block."""

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import msgspec
import structlog

from roundtrip.chain.rpc.background import run_in_background
from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError, RpcNode, hex_bytes, quantity
from roundtrip.chain.rpc.data_fee import DataFee
from roundtrip.chain.rpc.dialect import Dialect
from roundtrip.chain.rpc.dialect_probe import probe
from roundtrip.chain.rpc.hex_fields import HexAddress, Quantity, Word
from roundtrip.chain.rpc.node_words import quote_error
from roundtrip.chain.rpc.refusals import explain_other_chain
from roundtrip.domain.base.errors import NodeFault, RoundtripError
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.check.evidence import MarketRates, Missing
from roundtrip.venues import abi, amm_v3, multicall
from roundtrip.venues.base import Call, Contracts

from .venue_index import VenueIndex

QUOTED_WEI = 10**17
"""The amount of eth for which pools are asked what they pay: the size of an ordinary trade."""
LATEST_ROUND_DATA = "0xfeaf968c"
_MAX_RANGES_A_HEAD = 4
"""How many ranges of blocks are searched for new venues after one head."""
NOT_PROBED = NodeFault("the node's simulations were not probed yet")
_PROBE_AGAIN_S = 2.0
"""After how long the node is probed again while its dialect is not known."""
_SILENT_S = 2.0
"""After so long without an answer a node counts as gone, until it answers again: requests fail at once."""
_PACE_HEADS = 64
"""The number of last heads from which the pace of the chain is estimated."""
_FEE_AGE_S = 20.0
"""How long a measured fee for data is used before the node is probed again."""
_BUSY_S = 2.0
"""How long after the last request that asked the node a service counts as idle."""
_STALE_POLLS = 3
"""A head that is older than this many poll intervals is read again before a request uses it."""
_IDLE_MARKET_S = 60.0
"""The largest age of the eth price in an idle service."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The node's newest block. ``heard_s``: when it was read, in monotonic seconds. ``dialect``: how the
    node's simulations differ from those of other kinds of node; None: not known yet, and ``why_no_dialect``
    says why."""

    block: BlockRef
    base_fee_wei: int
    coinbase: Address
    prev_randao: str
    market: MarketRates
    heard_s: float
    dialect: Dialect | None = None
    why_no_dialect: NodeFault = NOT_PROBED

    def known_dialect(self) -> Dialect:
        """The dialect of simulations. Raises NodeFault, with what the node answered, while it is not known:
        answers would be misread."""
        if self.dialect is None:
            raise self.why_no_dialect.with_traceback(None)
        return self.dialect


class HeadHeader(msgspec.Struct, rename="camel"):
    """The fields of a block's header that are read here."""

    number: Quantity
    hash: Word
    timestamp: Quantity
    miner: HexAddress
    mix_hash: Word
    base_fee_per_gas: Quantity

    def block(self) -> BlockRef:
        """The block's number, hash and time."""
        return BlockRef(int(self.number, 16), self.hash, int(self.timestamp, 16))

    def head(self, market: MarketRates, heard_s: float, dialect: Dialect | None = None) -> "ChainHead":
        """The header as a head."""
        return ChainHead(
            block=self.block(),
            base_fee_wei=int(self.base_fee_per_gas, 16),
            coinbase=Address(self.miner.lower()),
            prev_randao=self.mix_hash,
            market=market,
            heard_s=heard_s,
            dialect=dialect,
        )


class Heads:
    """Follows the chain's head. ``current`` never waits for the node.

    ``market_age_s``: how old the eth price may be. ``stale_s``: how long after the node's last answer
    ``current`` still returns the head, unless a read has no answer for _SILENT_S. ``patience_s``: how long
    after the last answer a lower head is ignored. One of several nodes may be behind; a head that stays lower
    for longer is a reorganisation, or from the only node left. ``dialect``: of the node's simulations, where
    it is known; None: the node is probed until it is. ``oldest_s``: a node whose newest block is older, by
    the clock ``wall``, has stopped following the chain; so has a node whose newest block stays the same for
    as long. ``idle_s``: the interval of polls while no request comes; None: as in a busy service.
    ``note_data_fee``: takes the fee for data, each time that it was measured.
    """

    def __init__(
        self,
        node: RpcNode,
        chain_id: int,
        contracts: Contracts,
        poll_ms: int = 200,
        market_age_s: float = 2.0,
        stale_s: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
        venue_index: VenueIndex | None = None,
        patience_s: float = 0.0,
        oldest_s: float = math.inf,
        wall: Callable[[], float] = time.time,
        dialect: Dialect | None = None,
        idle_s: float | None = None,
        note_data_fee: Callable[[DataFee], None] | None = None,
    ) -> None:
        self._node = node
        self._chain_id = chain_id
        self._contracts = contracts
        self._poll_s = poll_ms / 1000
        self._market_age_s = market_age_s
        self._stale_s = stale_s
        self._clock = clock
        self._patience_s = patience_s
        self._oldest_s, self._wall = oldest_s, wall
        self.venue_index = venue_index
        self._dialect, self._why_no_dialect = dialect, NOT_PROBED
        self._note_data_fee, self._probed_s = note_data_fee, -1e9
        self._idle_s, self._asked_s = idle_s, -1e9
        self._woken, self._is_following, self._logs_faults = asyncio.Event(), False, False
        self._head: ChainHead | None = None
        self._last_number = 0
        self._answered_s = self._moved_s = -1e9
        self._unanswered_s: float | None = None
        """When the first read began that is not answered yet, or failed."""
        self._is_failing = False
        self._pace: deque[tuple[float, int]] = deque(maxlen=_PACE_HEADS)
        """When each of the last heads was read, and its number."""
        self._market: tuple[float, MarketRates] | None = None
        self._fault: RoundtripError = NodeFault("the node has reported no block yet")
        self._refreshing, self._refreshes = asyncio.Lock(), 0
        self._outcome: tuple[int, ChainHead | RoundtripError] | None = None
        """The number of the last refresh, and its result."""

    def current(self) -> ChainHead:
        """The newest head. Raises NodeFault when the node has not answered for a while."""
        now_s = self._clock()
        if self._head is None or now_s - self._answered_s > self._stale_s:
            raise self._fault
        if self._is_silent():
            silent_s = int(now_s - (self._unanswered_s or now_s))
            silent = NodeFault(f"the node has not answered for {silent_s} s")
            raise self._fault if self._is_failing else silent
        return self._head

    def _is_silent(self) -> bool:
        return self._unanswered_s is not None and self._clock() - self._unanswered_s > _SILENT_S

    async def read_now(self) -> ChainHead:
        """The node's newest block, read now: for answers about a wallet, which may know of a later block than
        the last poll. Raises NodeFault, at once where the node has not answered for a while."""
        self.current()
        return await self.refresh()

    def blocks_missed(self) -> int:
        """About how many blocks the chain has made since the node's last answer, by the pace of the last
        ones; 0 while the node answers."""
        if self._unanswered_s is None or len(self._pace) < 2:
            return 0
        (first_s, first), (last_s, last) = self._pace[0], self._pace[-1]
        return int((self._clock() - self._unanswered_s) * (last - first) / max(last_s - first_s, 1e-3))

    def dialect(self) -> Dialect | None:
        """The dialect of simulations; None while it is not known."""
        return self._dialect

    def age_s(self) -> float | None:
        """How long the head has been the same; None: there is none yet."""
        return None if self._head is None else self._clock() - self._head.heard_s

    def last_number(self) -> int:
        """The highest block ever seen; 0 before the first."""
        return self._last_number

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator["Heads"]:
        """Polls in the background while the block of ``async with`` runs."""
        self._logs_faults = True
        with contextlib.suppress(RoundtripError):
            await self.refresh()
        async with run_in_background(self._follow(), "heads"):
            self._is_following = True
            try:
                yield self
            finally:
                self._is_following = False

    async def wake(self) -> None:
        """For a request that will ask the node: reads the newest block where polls had become slow, and
        makes them fast for a while. Never raises: ``current`` does, where the node does not answer."""
        self._asked_s = self._clock()
        # Requests that come at the same time share the read. None waits for a node that is silent already.
        is_old = self._clock() - self._answered_s > _STALE_POLLS * self._poll_s
        if self._idle_s is not None and self._is_following and is_old:
            self._woken.set()
            if not self._is_silent():
                with contextlib.suppress(RoundtripError):
                    await self.refresh()

    def poll_soon(self) -> None:
        """For a request that only tells the head: polls once now where polls had become slow. The request
        does not wait, and the next one knows whether the node answers."""
        self._woken.set()

    def _is_idle(self) -> bool:
        return self._idle_s is not None and self._clock() - self._asked_s > _BUSY_S

    async def _pause(self) -> None:
        """Waits for the next poll: a long time, unless a request wakes it."""
        if self._is_idle():
            self._woken.clear()
            # Not wait_for: before Python 3.12 it may lose a cancellation that arrives with the result.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._idle_s):
                    await self._woken.wait()
            if not self._woken.is_set():
                return
        await asyncio.sleep(self._poll_s)

    async def _follow(self) -> None:
        while True:
            await self._pause()
            try:
                await self.refresh()
            except RoundtripError as fault:
                self._fault = fault
            except Exception:
                # Whatever a node answers, polling goes on: no check runs without a head.
                log.exception("reading the newest block failed")

    async def refresh(self) -> ChainHead:
        """Asks the node once. Raises NodeFault when the node is on a different chain, gives no header, or has
        stopped following the chain.

        The request begins after this call; concurrent callers share the next request.
        """
        started = self._refreshes
        async with self._refreshing:
            if self._outcome is None or self._outcome[0] <= started:
                self._refreshes += 1
                self._outcome = self._refreshes, await self._try_refresh()
            outcome = self._outcome[1]
        if isinstance(outcome, RoundtripError):
            raise outcome
        return outcome

    async def _try_refresh(self) -> ChainHead | RoundtripError:
        self._unanswered_s = self._clock() if self._unanswered_s is None else self._unanswered_s
        try:
            head = await self._refresh()
        except RoundtripError as fault:
            self._log_fault("reading the newest block failed", fault, self._fault)
            self._fault, self._is_failing = fault, True
            return fault
        self._unanswered_s, self._is_failing = None, False
        return head

    async def _refresh(self) -> ChainHead:
        calls = [RpcCall("eth_chainId", []), RpcCall("eth_getBlockByNumber", ["latest", False])]
        chain, latest = await self._node.batch(calls, budgeted=False)
        if quantity(chain) != self._chain_id:
            self._head = None
            raise explain_other_chain(quantity(chain), self._chain_id).fault()
        header = read_header(latest)
        self._check_age(header.block())
        answered_s, self._unanswered_s = self._clock(), None
        block = header.block()
        if self._head is not None and self._head.block.hash == block.hash:
            self._check_not_stuck()
            self._answered_s = answered_s
            if self._head.dialect is None:
                dialect = await self._learn_dialect(block, self._head.base_fee_wei)
                self._head = replace(self._head, dialect=dialect, why_no_dialect=self._why_no_dialect)
            return self._head
        if self._head is not None and block.number < self._head.block.number and self._is_patient():
            return self._head
        market = await self._market_at(block)
        await self._read_venues(block.number)
        self._answered_s = answered_s
        self._last_number = max(self._last_number, block.number)
        self._pace.append((answered_s, block.number))
        dialect = await self._learn_dialect(block, int(header.base_fee_per_gas, 16))
        head = header.head(market, self._clock(), dialect)
        self._head, self._moved_s = replace(head, why_no_dialect=self._why_no_dialect), answered_s
        return self._head

    async def _learn_dialect(self, block: BlockRef, base_fee_wei: int) -> Dialect | None:
        """The dialect of the node's simulations, with the fee for data as it was lately; None: no probe has
        succeeded yet."""
        if self._clock() - self._probed_s < self._probe_age_s():
            return self._dialect
        self._probed_s = self._clock()
        try:
            probed = (await probe(self._node, block, base_fee_wei)).dialect
        except RoundtripError as fault:
            self._log_fault("probing the node failed", fault, self._why_no_dialect)
            self._why_no_dialect = _as_node_fault(fault)
            return self._dialect
        if self._dialect is None or probed.name == self._dialect.name:
            self._dialect = probed
            if self._note_data_fee is not None:
                self._note_data_fee(probed.data_fee)
        return self._dialect

    def _log_fault(self, event: str, fault: RoundtripError, last: RoundtripError) -> None:
        """Logs a new fault while polls run in the background; otherwise the caller of ``refresh`` gets it."""
        if self._logs_faults and fault.message != last.message:
            log.warning(event, error=fault.message)

    def _probe_age_s(self) -> float:
        """After how long the node is probed again: soon while its dialect is not known, and from time to time
        where a fee that changes was measured."""
        if self._dialect is None:
            return _PROBE_AGAIN_S
        return _FEE_AGE_S if self._dialect.drops_tips or self._dialect.data_fee.wei else math.inf

    def _check_age(self, block: BlockRef) -> None:
        age_s = int(self._wall()) - block.timestamp_s
        if age_s > self._oldest_s:
            raise NodeFault(f"the node's newest block is {age_s} s old")

    def _check_not_stuck(self) -> None:
        """Raises NodeFault when the head has not moved for too long. Independent of the wall clock: where
        that is behind, no block looks old."""
        same_s = self._clock() - self._moved_s
        if same_s > self._oldest_s:
            raise NodeFault(f"the node has sent no new block for {int(same_s)} s")

    def _is_patient(self) -> bool:
        return self._clock() - self._answered_s < self._patience_s

    async def _read_venues(self, head: int) -> None:
        """Reads the new venues since the last head; after a fault the next head reads them. A long history is
        read in parts, so that the newest block never waits for it."""
        if self.venue_index is None:
            return
        for _ in range(_MAX_RANGES_A_HEAD):
            calls = self.venue_index.calls(head)
            if not calls:
                return
            try:
                (answer,) = await self._node.batch(calls, budgeted=False)
            except RoundtripError:
                self.venue_index.narrow_span()
                return
            if not self.venue_index.read(answer, head):
                return

    async def _market_at(self, block: BlockRef) -> MarketRates:
        now_s, max_age_s = self._clock(), _IDLE_MARKET_S if self._is_idle() else self._market_age_s
        if self._market is not None and now_s - self._market[0] < max_age_s:
            return self._market[1]
        try:
            (answer,) = await self._node.batch([market_call(self._contracts, block)], budgeted=False)
            market = read_market(answer, self._contracts, block)
        except RoundtripError as fault:
            market = MarketRates(block.number, Missing("node", fault.message), None, None)
        self._market = (now_s, market)
        return market


def _as_node_fault(fault: RoundtripError) -> NodeFault:
    return fault if isinstance(fault, NodeFault) else NodeFault(fault.message.rstrip("."))


async def newest(node: RpcNode) -> tuple[BlockRef, int]:
    """A node's newest block and its base fee in wei. Raises NodeFault."""
    (latest,) = await node.batch([RpcCall("eth_getBlockByNumber", ["latest", False])], budgeted=False)
    header = read_header(latest)
    return header.block(), int(header.base_fee_per_gas, 16)


def read_header(answer: Answer) -> HeadHeader:
    """Decodes a block's header. Raises NodeFault when there is no readable one."""
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node sent no newest block ({quote_error(answer)})")
    try:
        return msgspec.json.decode(answer, type=HeadHeader)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault("the node's newest block has an unreadable header") from error


# --- the price of eth ------------------------------------------------------------------------------


def market_call(contracts: Contracts, block: BlockRef) -> RpcCall:
    """Asks for the price and the output of an ordinary trade of every standard weth/usdg pool, and for the
    price feed where there is one: many reads in one call."""
    call = multicall.plan_reads(_market_reads(contracts), contracts)
    return RpcCall("eth_call", [{"to": call.to, "data": call.data}, {"blockHash": block.hash}])


def _market_reads(contracts: Contracts) -> list[Call]:
    reads: list[Call] = []
    for fee in amm_v3.FEE_TIERS_PIPS:
        pool = amm_v3.pool_address(contracts.v3_factory, contracts.weth, contracts.usdg, fee)
        quote = amm_v3.plan_quote(contracts, contracts.weth, contracts.usdg, fee, QUOTED_WEI)
        reads += [Call(pool, amm_v3.SLOT0), quote]
    if contracts.eth_usd_feed is not None:
        reads.append(Call(contracts.eth_usd_feed, LATEST_ROUND_DATA))
    return reads


def read_market(answer: Answer, contracts: Contracts, block: BlockRef) -> MarketRates:
    """The market price, from the pool with the largest output for an ordinary trade. A pool's reserve and
    price are cheap to fake; its output is not. ``answer``: to ``market_call``."""
    answers = _read_answers(answer, len(_market_reads(contracts)))
    best: tuple[int, int, int] | None = None
    for number, fee in enumerate(amm_v3.FEE_TIERS_PIPS):
        sqrt_price, output = (_uint(answers[2 * number + part]) for part in range(2))
        if sqrt_price and output and (best is None or output > best[0]):
            best = (output, sqrt_price, fee)
    feed = None
    if contracts.eth_usd_feed is not None:
        # latestRoundData answers (roundId, answer, startedAt, updatedAt, answeredInRound), 8 decimals.
        feed = _uint(answers[-1], 1)
    if best is None:
        missing = Missing("node", "no pool has a price for eth")
        return MarketRates(block.number, missing, None, feed)
    return MarketRates(block.number, _usdg_per_eth(best[1], contracts), best[2], feed)


def _read_answers(answer: Answer, count: int) -> tuple[bytes | None, ...]:
    try:
        return multicall.read_answers(hex_bytes(answer), count) or (None,) * count
    except NodeFault:
        return (None,) * count


def _usdg_per_eth(sqrt_price_x96: int, contracts: Contracts) -> int:
    square = sqrt_price_x96 * sqrt_price_x96
    if contracts.weth < contracts.usdg:
        return square * 10**18 >> 192
    return (10**18 << 192) // square


def _uint(data: bytes | None, index: int = 0) -> int | None:
    return None if data is None else abi.uint_at(data, index)
