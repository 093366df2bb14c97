"""``chain_vitals``: figures of the chain, and how far the index is behind it."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.figures import format_amount, format_count, format_gas_price, format_nearest
from roundtrip.domain.check.price import usd_per_eth
from roundtrip.domain.market.chain_stats import (
    DAY_S,
    HOUR_S,
    block_time_ms,
    covered_s,
    is_node_behind,
    per_minute,
)
from roundtrip.domain.market.moving import WINDOW_S
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import IndexAnswer, Nothing, reading, when
from roundtrip.store.index import vitals

WEI_PER_GWEI = 10**9


class FollowedSince(msgspec.Struct, frozen=True, rename="camel"):
    """Since when the chain is followed. What was traded before is not known."""

    block: Annotated[int, says("First block that was read in full.")]
    time: Annotated[datetime, says("Time of that block, or of one shortly after it.")]


class ChainVitals(IndexAnswer, frozen=True, rename="camel"):
    """The chain in figures. Null: the node could not be asked, or it is not known."""

    block_time_ms: Annotated[
        int | None,
        says(
            "Average milliseconds between the newest hundred blocks, long pauses left out. null: not known."
        ),
    ]
    gas_price_wei: Annotated[
        str | None, says("Price of a unit of gas in the newest block, in wei. null: the node did not answer.")
    ]
    gas_price_gwei: Annotated[float | None, says("The same price in gwei. null: the node did not answer.")]
    eth_usd: Annotated[float | None, says("Dollars for one eth. null: not known.")]
    launches_last_hour: Annotated[int, says("Tokens launched on a launchpad in the hour before blockTime.")]
    graduations_last_day: Annotated[
        int,
        says(
            "Curves that became a pool in the day before blockTime. Launches straight into "
            "a pool have no curve."
        ),
    ]
    trades_per_minute: Annotated[
        float | None,
        says(
            "Buys and sells a minute over the ten minutes before blockTime, or over the "
            "part that was followed. null: less than a minute was followed."
        ),
    ]
    blocks_behind: Annotated[
        int | None,
        says(
            "Blocks that the index is behind the chain. null: not known, or the node is far behind the index."
        ),
    ]
    seconds_behind: Annotated[
        int | None, says("Seconds that the index is behind the chain. null: as blocksBehind.")
    ]
    followed_from: Annotated[FollowedSince, says("Where the index begins; earlier trades are not known.")]


async def chain_vitals(ctx: Context, params: Nothing) -> UseCaseAnswer[ChainVitals]:
    """The figures. Those from the node are null if it does not answer. Raises ServiceFull."""
    async with reading(ctx) as (connection, index_cursor):
        now_s = index_cursor.block.timestamp_s
        from_s = await vitals.followed_from_s(connection, index_cursor)
        times = await vitals.newest_times(connection, index_cursor)
        launches = await vitals.launches(connection, now_s - HOUR_S, now_s)
        graduations = await vitals.graduations(connection, now_s - DAY_S, now_s)
        trades = await vitals.trades(connection, now_s - WINDOW_S, now_s)
    head = _read_head(ctx)
    # A node that is behind the index cannot tell how far the index is behind the chain.
    ahead = head if head is not None and not is_node_behind(head.block, index_cursor.block) else None
    price = None if head is None else usd_per_eth(head.market, ctx.policy)
    answer = ChainVitals(
        text="",
        chain_id=ctx.chain_id,
        block=index_cursor.block.number,
        block_time=when(now_s),
        block_time_ms=block_time_ms(times),
        gas_price_wei=None if head is None else str(head.base_fee_wei),
        gas_price_gwei=None if head is None else head.base_fee_wei / WEI_PER_GWEI,
        eth_usd=None if price is None else float(price),
        launches_last_hour=launches,
        graduations_last_day=graduations,
        trades_per_minute=per_minute(trades, covered_s(WINDOW_S, now_s, from_s)),
        blocks_behind=None if ahead is None else max(0, ahead.block.number - index_cursor.block.number),
        seconds_behind=None if ahead is None else max(0, ahead.block.timestamp_s - now_s),
        followed_from=FollowedSince(index_cursor.start_number, when(from_s)),
    )
    text = _describe(answer, head, now_s - from_s, index_cursor.is_whole())
    return UseCaseAnswer(msgspec.structs.replace(answer, text=text), ttl_ms=ctx.policy.answer_ttl_ms)


def _read_head(ctx: Context) -> ChainHead | None:
    try:
        return ctx.heads.current()
    except RoundtripError:
        return None


# --- in words --------------------------------------------------------------------------------------


def _describe(vital: ChainVitals, head: ChainHead | None, followed_s: int, is_whole: bool) -> str:
    parts = [f"Figures as of block {vital.block:,}, made {vital.block_time:%Y-%m-%d %H:%M:%S} UTC."]
    if vital.block_time_ms is not None:
        parts.append(f"A block takes {_format_block_time(vital.block_time_ms)}.")
    if vital.gas_price_wei is not None:
        parts.append(f"Gas costs {format_gas_price(int(vital.gas_price_wei))}.")
    if vital.eth_usd is not None:
        parts.append(f"1 eth is worth {format_nearest(round(vital.eth_usd * 10**6), 6)} dollars.")
    elif head is not None:
        parts.append("We could not find out what 1 eth is worth in dollars.")
    parts.append(f"The last hour had {_format_count(vital.launches_last_hour, 'launch', 'launches')}.")
    graduations = _format_count(vital.graduations_last_day, "graduation", "graduations")
    parts.append(f"The last day had {graduations} from a curve to a pool.")
    if vital.trades_per_minute is not None:
        trades = format_amount(round(vital.trades_per_minute * 10), 1)
        parts.append(f"The last ten minutes had {trades} trades a minute.")
    return " ".join([*parts, _describe_lag(vital, head), *_describe_gaps(vital, followed_s, is_whole)])


def _describe_lag(vital: ChainVitals, head: ChainHead | None) -> str:
    if head is None:
        return (
            "The node does not answer: the gas price, the price of eth and how far the index is behind the "
            "chain are unknown."
        )
    if vital.blocks_behind is None:
        return (
            f"The node is only at block {head.block.number:,}, behind the index: it does not have the newest "
            "blocks, or a reorg removed them. Figures about those blocks may no longer hold."
        )
    if not vital.blocks_behind:
        return "The service is not behind the chain."
    blocks = format_count(vital.blocks_behind, "block")
    return f"The service is {blocks} ({vital.seconds_behind:,} s) behind the chain."


def _describe_gaps(vital: ChainVitals, followed_s: int, is_whole: bool) -> list[str]:
    """Says which low figures are due to a short index, not to a quiet chain."""
    parts = []
    if followed_s < WINDOW_S:
        parts.append("trades")
    if not is_whole:
        # Older launches are indexed later.
        parts += ["launches"] if followed_s < HOUR_S else []
        parts += ["graduations"] if followed_s < DAY_S else []
    if not parts:
        return []
    *first, last = parts
    missing = f"{', '.join(first)} and {last}" if first else last
    since = f"{vital.followed_from.time:%Y-%m-%d %H:%M:%S}"
    return [f"The index begins at {since} UTC: earlier {missing} are not counted."]


def _format_count(count: int, noun: str, plural: str) -> str:
    return format_count(count, noun, plural) if count else f"no {noun}"


def _format_block_time(ms: int) -> str:
    return f"{ms:,} ms" if ms < 10_000 else f"{ms // 1000:,} s"
