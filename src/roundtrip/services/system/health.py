"""``health``: whether the service keeps up with the chain, and which parts do not work."""

import asyncio
import contextlib
from typing import Annotated

import msgspec

from roundtrip.chain.doctor import NEEDED
from roundtrip.domain.base.errors import NodeFault, RoundtripError
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.check.price import usd_per_eth
from roundtrip.domain.market.chain_stats import BEHIND_S, is_node_behind
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.store.index.cursor import cursor
from roundtrip.store.server.errors import DATABASE_FAULTS

_DATABASE_S = 1.0


class HealthParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


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


async def health(ctx: Context, params: HealthParams) -> UseCaseAnswer[Health]:
    """Never fails: a node that does not answer makes ``ok`` false."""
    index = await _read_index(ctx)
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
    price = usd_per_eth(head.market, ctx.policy)
    no_dialect = [] if head.dialect is not None else [_no_dialect(head.why_no_dialect)]
    missing_needed = any(row.what in NEEDED and row.state == "missing" for row in ctx.lacks())
    return UseCaseAnswer(
        Health(
            ok=not isinstance(index, Lack) and not lagging and not missing_needed and not no_dialect,
            head=head.block.number,
            blocks_behind=_count_behind(head.block.number, index),
            eth_usd=None if price is None else float(price),
            lacks=[*lacks, *lagging, *no_dialect],
        )
    )


def _no_dialect(fault: NodeFault) -> Lack:
    """The node does not simulate, or not in a known form; with what it answered."""
    return Lack("simulations", f"every check. {fault.message}")


def _count_behind(number: int, index: BlockRef | Lack | None) -> int:
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


async def _read_index(ctx: Context) -> BlockRef | Lack | None:
    """The newest indexed block, or what is missing if there is none. None: all database connections are in
    use, so it is not known now, and the database is well."""
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
