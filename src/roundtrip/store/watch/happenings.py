"""What happened on the chain, as rules see it: the same from the index as it advances and in a replay.

``happening_trades`` and ``happening_moves`` define what each verb means. Every value
is a function of facts that are in the index once the block is written, with one exception: the supply of a
token that no launchpad launched is the one read last."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.watch.rules import VERBS, Happening, Watch
from roundtrip.store.server.rows import Connection, fetch_optional
from roundtrip.venues.base import Contracts

from .happening_moves import drains, moves, removals
from .happening_rows import (
    ALL,
    NEWEST,
    FactSpan,
    HappeningPage,
    HappeningReader,
    RuleFilter,
    days_back,
    narrow_to_rule,
)
from .happening_trades import graduations, launches, trades

MAX_COUNTED = 10_000
MAX_TOLD = 10
"""Hits of a replay that are returned, the newest."""


class IndexedBlock(NamedTuple):
    """A block that the index has, with its time in seconds since 1970."""

    number: int
    at_s: int


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """How often a rule would have matched; ``at_least``: there are more, which were not counted. ``last``:
    the newest hits. ``at_s``: the time of each counted hit, in seconds since 1970. Both the newest first."""

    hits: int
    at_least: bool
    last: Sequence[Happening]
    at_s: Sequence[int] = ()


async def read_happenings(
    connection: Connection, contracts: Contracts, after: IndexedBlock, to: IndexedBlock
) -> list[Happening]:
    """Every happening in the blocks after ``after`` up to ``to``, in the chain's order. Call it in a
    transaction."""
    reader, start_number = await HappeningReader.of(connection, contracts), await _start_number(connection)
    span = FactSpan(after.at_s, to.at_s, after.number, to.number)
    pages = (
        await trades(reader, span, ALL),
        await launches(reader, span, ALL),
        await graduations(reader, span, ALL),
        await moves(reader, span, ALL),
        await drains(reader, span, ALL, start_number),
        await removals(reader, span, ALL),
    )
    return sorted(
        (happening for page in pages for happening in page.happenings),
        key=lambda happening: (*happening.spot[:2], VERBS.index(happening.verb)),
    )


async def replay_rule(
    connection: Connection, contracts: Contracts, watch: Watch, after_s: int, to: IndexedBlock
) -> ReplayResult:
    """The happenings of ``read_happenings`` that match ``watch``, after ``after_s``, seconds since 1970, up
    to ``to``, counted up to MAX_COUNTED. Call it in a transaction; it runs many statements, one per day, and
    the caller bounds the time."""
    reader, start_number = await HappeningReader.of(connection, contracts), await _start_number(connection)
    rule_filter = await narrow_to_rule(connection, watch)
    last, at_s = list[Happening](), list[int]()
    if rule_filter is None:
        return ReplayResult(0, False, last)
    for first_s, last_s in days_back(after_s, to.at_s):
        before = NEWEST
        while True:
            # One more than is counted, so that most rules take one statement per day.
            span = FactSpan(first_s, last_s, -1, to.number, before, MAX_COUNTED + 1)
            page = await _read_page(reader, span, rule_filter, watch, start_number)
            for happening in page.happenings:
                if not watch.matches(happening):
                    continue
                if len(at_s) == MAX_COUNTED:
                    return ReplayResult(len(at_s), True, last, at_s)
                at_s.append(happening.spot.at_s)
                if len(at_s) <= MAX_TOLD:
                    last.append(happening)
            if page.rest is None:
                break
            before = page.rest
    return ReplayResult(len(at_s), False, last, at_s)


async def _read_page(
    reader: HappeningReader, span: FactSpan, rule_filter: RuleFilter, watch: Watch, start_number: int
) -> HappeningPage:
    """The newest happenings of a span that may match the rule."""
    verb = watch.rule.verb
    if verb in ("buying", "selling"):
        return await trades(reader, span, rule_filter, verb == "buying")
    if verb == "launching":
        return await launches(reader, span, rule_filter)
    if verb == "graduating":
        return await graduations(reader, span, rule_filter)
    if verb == "moving":
        return await moves(reader, span, rule_filter)
    if verb == "draining":
        return await drains(reader, span, rule_filter, start_number)
    return await removals(reader, span, rule_filter)


async def _start_number(connection: Connection) -> int:
    return await fetch_optional(connection, int, "SELECT start_number FROM facts.cursor") or 0
