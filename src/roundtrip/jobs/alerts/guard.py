"""The bag guard for happenings: finds the accounts that hold the token of a large sale or a drain."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import BAG
from roundtrip.domain.watch.bag_guard import GUARD, drains_much, guard_source_id, pool_matters, sells_much
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import Happening
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import bag_pools, bags
from roundtrip.store.watch.bags import BagHolder
from roundtrip.venues.base import Contracts


async def holders_to_alert(
    connection: Connection, contracts: Contracts, happenings: Sequence[Happening]
) -> dict[int, list[AlertSource]]:
    """The holders to alert of each happening, by its index in ``happenings``; an entry is never empty. An
    account is not alerted of its own actions."""
    candidates = sorted({*await _large_sales(connection, happenings), *_large_drains(happenings)})
    alerted: dict[int, list[AlertSource]] = {}
    holders_of_each = await bags.holders(connection, [happenings[i] for i in candidates])
    for i, holders in zip(candidates, holders_of_each, strict=True):
        sources = [_source(holder, happenings[i]) for holder in holders if _is_alerted(holder, happenings[i])]
        if sources:
            alerted[i] = sources
    # Drains are weighed last: most tokens have no account that holds them.
    drains = [i for i in alerted if happenings[i].verb == "draining"]
    weighed = await bag_pools.weigh_drains(connection, contracts, [happenings[i] for i in drains])
    for i, weights in zip(drains, weighed, strict=True):
        if weights is not None and not pool_matters(*weights):
            del alerted[i]
    return alerted


async def _large_sales(connection: Connection, happenings: Sequence[Happening]) -> list[int]:
    """The indexes of sales in which a token's deployer sold so much that holders are alerted."""
    sales = [i for i, happening in enumerate(happenings) if happening.verb == "selling"]
    if not sales:
        return []
    deployers = await bags.deployers(connection, {happenings[i].token for i in sales})
    by_deployer = [i for i in sales if deployers.get(happenings[i].token) == happenings[i].wallet]
    if not by_deployer:
        return []
    large = []
    totals_raw = await bags.read_sold_totals(connection, [happenings[i] for i in by_deployer])
    for i, total_raw in zip(by_deployer, totals_raw, strict=True):
        sold_raw, whole_raw = happenings[i].part_raw, happenings[i].whole_raw
        if (
            sold_raw is None
            or total_raw is None
            or sells_much(max(0, total_raw - sold_raw), sold_raw, whole_raw)
        ):
            large.append(i)
    return large


def _large_drains(happenings: Sequence[Happening]) -> list[int]:
    return [
        i for i, happening in enumerate(happenings) if happening.verb == "draining" and drains_much(happening)
    ]


def _is_alerted(holder: BagHolder, happening: Happening) -> bool:
    return holder.wallet != happening.wallet and holder.from_number < happening.spot.block_number


def _source(holder: BagHolder, happening: Happening) -> AlertSource:
    number = guard_source_id(holder.token_number, happening.verb)
    return AlertSource("bag_guard", number, holder.account_id, BAG, holder.from_number)


async def enqueue_checks(connection: Connection, tokens: Collection[Address], now: datetime) -> None:
    """Enqueues a check of each token, each once a minute at most, as far as the queue has room; the others
    are checked in their turn. The holders are alerted when a verdict changes."""
    every = timedelta(seconds=GUARD.event_every_s)
    waiting = await jobs.waiting(connection, "recheck", EVENT) if tokens else 0
    room = GUARD.most_of_events - waiting
    if room <= 0:
        return
    checked = await bags.checked_at(connection, tokens, now)
    # The longest unchecked tokens go first, so that users cannot influence which are checked.
    never = now - 2 * every
    oldest = sorted(tokens, key=lambda token: (max(never, checked.get(token, never)), token))[:room]
    tokens_at: dict[datetime, list[Address]] = {}
    for token in oldest:
        run_at = max(now, checked[token] + every) if token in checked else now
        tokens_at.setdefault(run_at, []).append(token)
    for run_at, due_tokens in tokens_at.items():
        await jobs.enqueue_many(connection, "recheck", due_tokens, {**DEEP, **EVENT}, run_at=run_at)


DEEP: Mapping[str, bool] = {"deep": True}
"""The payload that ``boards`` uses too: a finding of deep checks must not come and go with the caller."""
EVENT: Mapping[str, bool] = {"event": True}
"""Marks the checks that a happening enqueued; they are counted by it."""
