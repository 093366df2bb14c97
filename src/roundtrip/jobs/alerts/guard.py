"""The bag guard, of what happens: which accounts hold the token of what is done to it."""

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
    connection: Connection, contracts: Contracts, found: Sequence[Happening]
) -> dict[int, list[AlertSource]]:
    """To whom each of these is told because it holds the token, by its place among them; those that nobody
    is told are left out. What an account did itself it is not told."""
    some = sorted({*await _sales(connection, found), *_drains(found)})
    told: dict[int, list[AlertSource]] = {}
    holders = await bags.holders(connection, [found[place] for place in some])
    for place, holding in zip(some, holders, strict=True):
        sources = [_source(one, found[place]) for one in holding if _is_told(one, found[place])]
        if sources:
            told[place] = sources
    # Last: of most tokens no account holds any.
    drained = [place for place in told if found[place].verb == "draining"]
    weighed = await bag_pools.weigh_drains(connection, contracts, [found[place] for place in drained])
    for place, one in zip(drained, weighed, strict=True):
        if one is not None and not pool_matters(*one):
            del told[place]
    return told


async def _sales(connection: Connection, found: Sequence[Happening]) -> list[int]:
    """Where the deployer of a token sold so much of it that holders are told."""
    places = [place for place, one in enumerate(found) if one.verb == "selling"]
    if not places:
        return []
    deployers = await bags.deployers(connection, {found[place].token for place in places})
    own = [place for place in places if deployers.get(found[place].token) == found[place].wallet]
    if not own:
        return []
    much = []
    for place, up_to in zip(own, await bags.sold_up_to(connection, [found[p] for p in own]), strict=True):
        sold_raw, whole_raw = found[place].part_raw, found[place].whole_raw
        if sold_raw is None or up_to is None or sells_much(max(0, up_to - sold_raw), sold_raw, whole_raw):
            much.append(place)
    return much


def _drains(found: Sequence[Happening]) -> list[int]:
    return [place for place, one in enumerate(found) if one.verb == "draining" and drains_much(one)]


def _is_told(holder: BagHolder, happening: Happening) -> bool:
    return holder.wallet != happening.wallet and holder.from_number < happening.spot.block_number


def _source(holder: BagHolder, happening: Happening) -> AlertSource:
    number = guard_source_id(holder.token_number, happening.verb)
    return AlertSource("bag_guard", number, holder.account_id, BAG, holder.from_number)


async def wish_checks(connection: Connection, tokens: Collection[Address], now: datetime) -> None:
    """These are to be checked anew, each once a minute at most: its holders are told where that makes a
    difference. As far as there is room for more of them; the others are checked in their turn."""
    every = timedelta(seconds=GUARD.event_every_s)
    waiting = await jobs.waiting(connection, "recheck", EVENT) if tokens else 0
    room = GUARD.most_of_events - waiting
    if room <= 0:
        return
    checked = await bags.checked_at(connection, tokens, now)
    # Whatever was checked longest ago first: nobody's choice.
    never = now - 2 * every
    some = sorted(tokens, key=lambda token: (max(never, checked.get(token, never)), token))[:room]
    times: dict[datetime, list[Address]] = {}
    for token in some:
        at = max(now, checked[token] + every) if token in checked else now
        times.setdefault(at, []).append(token)
    for at, those in times.items():
        await jobs.enqueue_many(connection, "recheck", those, {**DEEP, **EVENT}, run_at=at)


DEEP: Mapping[str, bool] = {"deep": True}
"""As ``boards`` asks: what only deep checks find is not to come and go with who asks."""
EVENT: Mapping[str, bool] = {"event": True}
"""By which those for what happened are counted."""
