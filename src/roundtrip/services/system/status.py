"""``service_status``: state of node and index, durations, and backlog, for operators. ``health``: whether
the service keeps up with the chain, and which parts do not work."""

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.doctor import NEEDED
from roundtrip.chain.rpc.client import SORTS
from roundtrip.chain.rpc.endpoints import Condition
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.domain.base.errors import NodeFault, RoundtripError, ServiceFull
from roundtrip.domain.base.metrics import Durations
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.check.price import usd_per_eth
from roundtrip.domain.market.chain_stats import BEHIND_S, DAY_S, is_node_behind
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing, looking, when
from roundtrip.store.index import vitals as backlog
from roundtrip.store.index.cursor import Cursor, cursor
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

SLOW_JOBS_S = 300
"""A job that is due for longer is late."""
SHOWN = ("check_token", "token_holders", "simulate_transaction", "prepare_buy", "prepare_sell")
_MAX_SHOWN = 12
"""The operations whose durations are always listed, and how many are listed in all."""


class Took(msgspec.Struct, frozen=True, rename="camel"):
    """Durations of the newest runs in this process; null: none yet. ``count``: successful runs; ``failed``:
    failed ones."""

    name: str
    count: int
    failed: int
    p50_ms: float | None
    p95_ms: float | None


class OneNode(msgspec.Struct, frozen=True, rename="camel"):
    """One of several nodes, by its number; its host stays secret."""

    number: int
    condition: Condition
    why: str
    lacks: list[str]


class NodeHealth(msgspec.Struct, frozen=True, rename="camel"):
    """``head``: the newest block known; ``why``: the error, if it does not answer. ``nodes``: empty if
    there is only one node."""

    answers: bool
    head: int
    head_time: datetime | None
    why: str
    nodes: list[OneNode]
    took: list[Took]


class Reorgs(msgspec.Struct, frozen=True, rename="camel"):
    """Reorgs of the day before the index's newest block. ``deepest``: in blocks; null: none, or no depth is
    known. ``unmeasured``: how many have no known depth."""

    count: int
    deepest: int | None
    deepest_at: datetime | None
    newest_at: datetime | None
    unmeasured: int


class IndexStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The state of the index. Null: the node does not answer. ``older_left``: blocks before the index's start
    whose launches are still to be read."""

    block: int
    block_time: datetime
    blocks_behind: int | None
    seconds_behind: int | None
    keeps_up: bool | None
    older_left: int
    reorgs: Reorgs


class JobsWaiting(msgspec.Struct, frozen=True, rename="camel"):
    """Jobs of one kind. ``oldest_s``: seconds since the oldest became due; null: none is due, or it is not
    stored."""

    kind: str
    due: int
    later: int
    given_up: int
    oldest_s: int | None


class Backlog(msgspec.Struct, frozen=True, rename="camel"):
    """Waiting work. ``alerts_behind``: blocks whose alerts are not made yet; null: no process makes any."""

    due: int
    given_up: int
    oldest_s: int | None
    jobs: list[JobsWaiting]
    deliveries: int
    oldest_delivery_s: int | None
    alerts_behind: int | None


class ServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Null: unavailable now. ``index``: whether the index is there, and if not, why."""

    node: NodeHealth
    index: Literal["followed", "never", "unread"]
    followed: IndexStatus | None
    backlog: Backlog | None
    took: list[Took]


async def service_status(ctx: Context, params: Nothing) -> UseCaseAnswer[ServiceStatus]:
    """Never fails without a node or a database: their fields are null."""
    node, head = _read_node(ctx)
    index: Literal["followed", "never", "unread"] = "unread"
    followed, backlog_now = None, None
    try:
        async with looking(ctx) as (connection, index_cursor):
            backlog_now = await _read_backlog(connection, index_cursor, ctx.now_s())
            index = "never" if index_cursor is None else "followed"
            if index_cursor is not None:
                node = _with_read_head(node, head, index_cursor.block)
                followed = await _read_index(connection, index_cursor, head)
    except ServiceFull:
        followed, backlog_now = None, None
        index = "unread"
    return UseCaseAnswer(
        ServiceStatus(node, index, followed, backlog_now, _list_operations(ctx)), counted=False
    )


def _read_node(ctx: Context) -> tuple[NodeHealth, BlockRef | None]:
    head, why = None, ""
    try:
        head = ctx.heads.current().block
    except RoundtripError as error:
        why = error.message
    states = ctx.node.state() if isinstance(ctx.node, NodePool) else ()
    nodes = [
        OneNode(number, node.condition, node.why, list(node.lacks)) for number, node in enumerate(states, 1)
    ]
    took = [_measure(ctx, "node", sort, "answered", "failed") for sort in SORTS]
    number = ctx.heads.last_number() if head is None else head.number
    at = None if head is None else when(head.timestamp_s)
    return NodeHealth(head is not None, number, at, why, nodes, took), head


def _with_read_head(node: NodeHealth, head: BlockRef | None, followed: BlockRef) -> NodeHealth:
    """The node with the index's newest block as its head, where that is above the head of the last poll: the
    index got the block from the node. Unchanged where the node is far behind the index."""
    if head is None or head.number >= followed.number or is_node_behind(head, followed):
        return node
    return msgspec.structs.replace(node, head=followed.number, head_time=when(followed.timestamp_s))


def _list_operations(ctx: Context) -> list[Took]:
    """Durations of the ``SHOWN`` operations, then of the others, the most frequent first."""
    asked = {name for (sort, name, _), _ in ctx.measures.all() if sort == "operation"}
    durations = [_measure(ctx, "operation", name, "made", "failed") for name in {*asked, *SHOWN}]
    shown_order = {name: place for place, name in enumerate(SHOWN)}
    durations.sort(key=lambda took: (shown_order.get(took.name, len(SHOWN)), -took.count, took.name))
    return [took for took in durations if took.count or took.failed or took.name in SHOWN][:_MAX_SHOWN]


def _measure(ctx: Context, sort: str, name: str, success: str, failure: str) -> Took:
    durations = dict(ctx.measures.all())
    successes, failures = (
        durations.get((sort, name, outcome), Durations()) for outcome in (success, failure)
    )
    p50_ms, p95_ms = _to_ms(successes.quantile_s(50)), _to_ms(successes.quantile_s(95))
    return Took(name, successes.count(), failures.count(), p50_ms, p95_ms)


def _to_ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


async def _read_index(connection: Connection, index_cursor: Cursor, head: BlockRef | None) -> IndexStatus:
    at_s = index_cursor.block.timestamp_s
    is_comparable = head is not None and not is_node_behind(head, index_cursor.block)
    blocks = max(0, head.number - index_cursor.block.number) if is_comparable and head is not None else None
    seconds = max(0, head.timestamp_s - at_s) if is_comparable and head is not None else None
    rewinds = await backlog.rewound_since(connection, at_s - DAY_S)
    deepest = max(
        (rewind for rewind in rewinds if rewind.blocks is not None),
        key=lambda rewind: rewind.blocks or 0,
        default=None,
    )
    return IndexStatus(
        block=index_cursor.block.number,
        block_time=when(at_s),
        blocks_behind=blocks,
        seconds_behind=seconds,
        keeps_up=None if seconds is None else seconds <= BEHIND_S,
        older_left=max(0, index_cursor.start_number - index_cursor.older_number),
        reorgs=Reorgs(
            count=len(rewinds),
            deepest=None if deepest is None else deepest.blocks,
            deepest_at=None if deepest is None else when(deepest.to_s),
            newest_at=when(rewinds[0].to_s) if rewinds else None,
            unmeasured=sum(rewind.blocks is None for rewind in rewinds),
        ),
    )


async def _read_backlog(connection: Connection, index_cursor: Cursor | None, now_s: float) -> Backlog:
    now = datetime.fromtimestamp(now_s, UTC)

    def since_s(oldest: datetime | None) -> int | None:
        return None if oldest is None else max(0, int((now - oldest).total_seconds()))

    kinds = await backlog.jobs_waiting(connection, now)
    deliveries, oldest_delivery = await backlog.deliveries_waiting(connection)
    alerted = await backlog.alerted_to(connection)
    return Backlog(
        due=sum(job_kind.due for job_kind in kinds),
        given_up=sum(job_kind.given_up for job_kind in kinds),
        oldest_s=since_s(
            min((job_kind.oldest for job_kind in kinds if job_kind.oldest is not None), default=None)
        ),
        jobs=[
            JobsWaiting(
                job_kind.kind, job_kind.due, job_kind.later, job_kind.given_up, since_s(job_kind.oldest)
            )
            for job_kind in kinds
        ],
        deliveries=deliveries,
        oldest_delivery_s=since_s(oldest_delivery),
        alerts_behind=None
        if alerted is None or index_cursor is None
        else max(0, index_cursor.block.number - alerted),
    )


_DATABASE_S = 1.0


class Lack(msgspec.Struct, frozen=True):
    """Something that does not work, or works only in part."""

    what: Annotated[str, says("The part that does not work, or works only in part.")]
    costs: Annotated[str, says("What that costs a caller.")]


_NO_INDEX = Lack("index", "boards, wallets, alerts: no process writes the chain into the database")
_NODE_BEHIND = Lack("node", "fresh answers: the node is far behind the index")
_INDEX_BEHIND = Lack("index", "fresh boards and alerts: the index is far behind the chain")
_NO_DATABASE = Lack("database", "every check: the database is unavailable, so evidence cannot be stored")


class Health(msgspec.Struct, frozen=True, rename="camel"):
    """Whether the service keeps up with the chain, and what does not work."""

    ok: Annotated[
        bool, says("false: the service or its node is far behind the chain, or no check can be made.")
    ]
    head: Annotated[int, says("Number of the newest known block.")]
    blocks_behind: Annotated[
        int,
        says(
            "Blocks that the index is behind head; while the node does not answer, also those "
            "that the chain has made since, by its pace."
        ),
    ]
    eth_usd: Annotated[float | None, says("Dollars for one eth. null: not known.")]
    lacks: Annotated[list[Lack], says("What does not work; never empty while ok is false.")]


async def health(ctx: Context, params: Nothing) -> UseCaseAnswer[Health]:
    """Never fails: a node that does not answer makes ``ok`` false."""
    ctx.heads.poll_soon()
    index = await _read_newest_block(ctx)
    lacks = [Lack(row.what, row.costs) for row in ctx.lacks()]
    lacks += [index] if isinstance(index, Lack) else []
    try:
        head = ctx.heads.current()
    except RoundtripError as fault:
        no_node = Lack("node", f"every check. {fault.message}")
        number = ctx.heads.last_number()
        behind = _count_behind(number, index) + ctx.heads.blocks_missed()
        return UseCaseAnswer(Health(False, number, behind, None, [*lacks, no_node]))
    lagging = _find_lagging(head.block, index)
    newest = head.block
    if isinstance(index, BlockRef) and index.number > newest.number and not is_node_behind(newest, index):
        # The index got its block from the node, after the last poll.
        newest = index
    price = usd_per_eth(head.market, ctx.policy)
    no_dialect = [] if head.dialect is not None else [_no_dialect(head.why_no_dialect)]
    missing_needed = any(row.what in NEEDED and row.state == "missing" for row in ctx.lacks())
    return UseCaseAnswer(
        Health(
            ok=not isinstance(index, Lack) and not lagging and not missing_needed and not no_dialect,
            head=newest.number,
            blocks_behind=_count_behind(newest.number, index),
            eth_usd=None if price is None else float(price),
            lacks=[*lacks, *lagging, *no_dialect],
        )
    )


def _no_dialect(fault: NodeFault) -> Lack:
    """The node does not simulate, or not in a known form; with what it answered."""
    return Lack("simulations", f"every check. {fault.message}")


def _count_behind(number: int, index: BlockRef | Lack | None) -> int:
    """Blocks that the index is behind block ``number``: all if there is no index, 0 if it is not known
    now."""
    if index is None:
        return 0
    return max(0, number - index.number) if isinstance(index, BlockRef) else number


def _find_lagging(head: BlockRef, index: BlockRef | Lack | None) -> list[Lack]:
    """Whether the node or the index is far behind the other."""
    if not isinstance(index, BlockRef):
        return []
    if is_node_behind(head, index):
        return [_NODE_BEHIND]
    return [_INDEX_BEHIND] if head.timestamp_s - index.timestamp_s > BEHIND_S else []


async def _read_newest_block(ctx: Context) -> BlockRef | Lack | None:
    """The newest indexed block, or what is missing if there is none. None: it is not known now, as all
    database connections are in use; that is no fault of the database."""
    try:
        connection = await ctx.pool.acquire(timeout=_DATABASE_S)
    except TimeoutError:
        return None if ctx.pool.get_size() >= ctx.pool.get_max_size() else _NO_DATABASE
    except DATABASE_FAULTS:
        return _NO_DATABASE
    try:
        async with asyncio.timeout(_DATABASE_S):
            index_cursor = await cursor(connection)
    except DATABASE_FAULTS:
        return _NO_DATABASE
    finally:
        with contextlib.suppress(*DATABASE_FAULTS):
            await ctx.pool.release(connection, timeout=_DATABASE_S)
    return _NO_INDEX if index_cursor is None else index_cursor.block
