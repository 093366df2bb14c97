"""How the service is, for people who look: what it follows and undid, how long it takes, what waits."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

from roundtrip.chain.rpc.client import SORTS
from roundtrip.chain.rpc.endpoints import Condition
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.domain.base.errors import RoundtripError, ServiceFull
from roundtrip.domain.base.metrics import Durations
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.market.chain_stats import BEHIND_S, DAY_S, is_node_behind
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing, looking, when
from roundtrip.store.index import queue_stats as backlog
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.server.rows import Connection

SLOW_JOBS_S = 300
"""Work that is due for longer is late."""
SHOWN = ("check_token", "token_holders", "simulate_transaction", "prepare_buy", "prepare_sell")
_MOST_SHOWN = 12


class Took(msgspec.Struct, frozen=True, rename="camel"):
    """How long something took, of the newest of this process; null: it was not done yet. ``count``: how often
    it was done; ``failed``: how often in vain."""

    name: str
    count: int
    failed: int
    p50_ms: float | None
    p95_ms: float | None


class OneNode(msgspec.Struct, frozen=True, rename="camel"):
    """A node of several, by its place: its host is not told."""

    number: int
    condition: Condition
    why: str
    lacks: list[str]


class NodeHealth(msgspec.Struct, frozen=True, rename="camel"):
    """``head``: the newest block heard of; ``why``: what is wrong where it does not answer. ``nodes``: empty
    where there is one, of which no more is known."""

    answers: bool
    head: int
    head_time: datetime | None
    why: str
    nodes: list[OneNode]
    took: list[Took]


class Reorgs(msgspec.Struct, frozen=True, rename="camel"):
    """Of the day before the index's newest block. ``deepest``: in blocks; null: none, or of none it is known.
    ``unmeasured``: of how many it is not."""

    count: int
    deepest: int | None
    deepest_at: datetime | None
    newest_at: datetime | None
    unmeasured: int


class IndexStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How far the index is. Null: the node does not tell. ``older_left``: blocks from before it began whose
    launches are still to be read."""

    block: int
    block_time: datetime
    blocks_behind: int | None
    seconds_behind: int | None
    keeps_up: bool | None
    older_left: int
    reorgs: Reorgs


class JobsWaiting(msgspec.Struct, frozen=True, rename="camel"):
    """One kind of work. ``oldest_s``: since when a piece of it is due; null: none is, or it is not kept."""

    kind: str
    due: int
    later: int
    given_up: int
    oldest_s: int | None


class Backlog(msgspec.Struct, frozen=True, rename="camel"):
    """What waits. ``alerts_behind``: blocks that alerts were not made of yet; null: nobody makes any."""

    due: int
    given_up: int
    oldest_s: int | None
    jobs: list[JobsWaiting]
    deliveries: int
    oldest_delivery_s: int | None
    alerts_behind: int | None


class ServiceStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Null: it cannot be told just now. ``index``: why there is none of it."""

    node: NodeHealth
    index: Literal["followed", "never", "unread"]
    followed: IndexStatus | None
    backlog: Backlog | None
    took: list[Took]


async def service_status(ctx: Context, params: Nothing) -> UseCaseAnswer[ServiceStatus]:
    """Never fails for want of a node or a database: what they would tell is null."""
    node, head = _node(ctx)
    index: Literal["followed", "never", "unread"] = "unread"
    followed, waits = None, None
    try:
        async with looking(ctx) as (connection, stands):
            waits = await _backlog(connection, stands, ctx.now_s())
            index = "never" if stands is None else "followed"
            followed = None if stands is None else await _index_status(connection, stands, head)
    except ServiceFull:
        followed, waits = None, None
        index = "unread"
    return UseCaseAnswer(ServiceStatus(node, index, followed, waits, _operations(ctx)), counted=False)


def _node(ctx: Context) -> tuple[NodeHealth, BlockRef | None]:
    head, why = None, ""
    try:
        head = ctx.heads.current().block
    except RoundtripError as error:
        why = error.message
    states = ctx.node.state() if isinstance(ctx.node, NodePool) else ()
    nodes = [OneNode(number, one.condition, one.why, list(one.lacks)) for number, one in enumerate(states, 1)]
    took = [_took(ctx, "node", sort, ("answered",), ("failed",)) for sort in SORTS]
    number = ctx.heads.last_number() if head is None else head.number
    at = None if head is None else when(head.timestamp_s)
    return NodeHealth(head is not None, number, at, why, nodes, took), head


def _operations(ctx: Context) -> list[Took]:
    """Those that people wait for, and then whatever else was asked, the most first."""
    asked = {name for (what, name, _), _ in ctx.measures.all() if what == "operation"}
    found = [_took(ctx, "operation", name, ("made",), ("failed",)) for name in {*asked, *SHOWN}]
    first = {name: place for place, name in enumerate(SHOWN)}
    found.sort(key=lambda one: (first.get(one.name, len(SHOWN)), -one.count, one.name))
    return [one for one in found if one.count or one.failed or one.name in SHOWN][:_MOST_SHOWN]


def _took(ctx: Context, what: str, name: str, well: tuple[str], badly: tuple[str]) -> Took:
    known = dict(ctx.measures.all())
    made, failed = (known.get((what, name, ended), Durations()) for (ended,) in (well, badly))
    return Took(name, made.count(), failed.count(), _ms(made.quantile_s(50)), _ms(made.quantile_s(95)))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


async def _index_status(connection: Connection, stands: Cursor, head: BlockRef | None) -> IndexStatus:
    at_s = stands.block.timestamp_s
    knows = head is not None and not is_node_behind(head, stands.block)
    blocks = max(0, head.number - stands.block.number) if knows and head is not None else None
    seconds = max(0, head.timestamp_s - at_s) if knows and head is not None else None
    found = await backlog.rewound_since(connection, at_s - DAY_S)
    deepest = max((one for one in found if one.blocks is not None), key=_depth, default=None)
    return IndexStatus(
        block=stands.block.number,
        block_time=when(at_s),
        blocks_behind=blocks,
        seconds_behind=seconds,
        keeps_up=None if seconds is None else seconds <= BEHIND_S,
        older_left=max(0, stands.start_number - stands.older_number),
        reorgs=Reorgs(
            count=len(found),
            deepest=None if deepest is None else deepest.blocks,
            deepest_at=None if deepest is None else when(deepest.to_s),
            newest_at=when(found[0].to_s) if found else None,
            unmeasured=sum(one.blocks is None for one in found),
        ),
    )


def _depth(one: backlog.RewoundBlocks) -> int:
    return one.blocks or 0


async def _backlog(connection: Connection, stands: Cursor | None, now_s: float) -> Backlog:
    now = datetime.fromtimestamp(now_s, UTC)

    def since_s(oldest: datetime | None) -> int | None:
        return None if oldest is None else max(0, int((now - oldest).total_seconds()))

    kinds = await backlog.jobs_waiting(connection, now)
    deliveries = await backlog.deliveries_waiting(connection)
    alerted = await backlog.alerted_to(connection)
    return Backlog(
        due=sum(one.due for one in kinds),
        given_up=sum(one.given_up for one in kinds),
        oldest_s=since_s(min((one.oldest for one in kinds if one.oldest is not None), default=None)),
        jobs=[JobsWaiting(one.kind, one.due, one.later, one.given_up, since_s(one.oldest)) for one in kinds],
        deliveries=deliveries.waiting,
        oldest_delivery_s=since_s(deliveries.oldest),
        alerts_behind=None if alerted is None or stands is None else max(0, stands.block.number - alerted),
    )
