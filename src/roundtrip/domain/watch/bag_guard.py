"""The bag guard: what of a token's doings its holders are told, and when its verdict has changed. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from roundtrip.domain.base.clock_age import age_s
from roundtrip.domain.base.types import Address
from roundtrip.domain.market.signals import Turnover, is_traded_in

from .rules import Happening


@dataclass(frozen=True, slots=True)
class Guard:
    """Every threshold of the bag guard.

    ``sold_ppm``: of the supply; each time that all the deployer ever sold passes one more of these it is
    told: so a sale in small parts is told as often as one at once. ``left_ppm``: of a pool's liquidity, in
    one transaction; ``left_wei``: what has to be worth so much where the share is not known;
    ``least_left_wei``: of less nobody is told, whatever share it was. ``place_ppm``: of the money in a
    token's pools; one that has so much matters, whether it is traded in or not. ``given_ppm``: of the supply;
    a wallet that never bought a token holds it from so much on: anybody can send anybody tokens.
    ``most_held``, ``most_given``: of one wallet so many tokens are guarded by checks, the newest that it
    bought and the newest that it was given.

    ``confirmed_s``: between two checks that say the same. ``again_s``: so long after a row about a token's
    verdict it is not told that it is better. ``checked_every_s``: how old a held token's newest check may be;
    ``event_every_s``: between two checks for what happened. ``most_waiting``: so many checks at most wait or
    run when some are wished for; ``most_of_events``: beside them, of those for what happened."""

    sold_ppm: int = 1_000
    left_ppm: int = 50_000
    left_wei: int = 10**18
    least_left_wei: int = 5 * 10**16
    place_ppm: int = 200_000
    given_ppm: int = 1_000
    confirmed_s: int = 10
    again_s: int = 3_600
    checked_every_s: int = 300
    event_every_s: int = 60
    most_waiting: int = 8
    most_of_events: int = 3
    most_held: int = 50
    most_given: int = 10


GUARD = Guard()
_PPM = 1_000_000


def sells_much(before_raw: int, sold_raw: int, supply_raw: int | None, guard: Guard = GUARD) -> bool:
    """Whether a deployer who had sold ``before_raw`` and sells ``sold_raw`` more passes a multiple of the
    threshold. Of a supply that is not known, anything counts."""
    if not supply_raw:
        return sold_raw > 0
    part = max(1, supply_raw * guard.sold_ppm // _PPM)
    return (before_raw + sold_raw) // part > before_raw // part


def drains_much(draining: Happening, guard: Guard = GUARD) -> bool:
    """Whether so much left a pool that its token's holders are told, if the pool matters."""
    share_ppm, left_wei = draining.share_ppm(), draining.eth_wei
    if left_wei is not None and left_wei < guard.least_left_wei:
        return False
    if share_ppm is not None:
        return share_ppm >= guard.left_ppm
    return left_wei is not None and left_wei >= guard.left_wei


class PoolMoney(NamedTuple):
    """One of a token's pools: what was traded in it within a day, and the money that lies in it, in wei;
    None: not known."""

    traded: Turnover
    wei: int | None


def matters(own: PoolMoney, everywhere: Collection[PoolMoney], guard: Guard = GUARD) -> bool:
    """Whether a pool is one of those in which its token can be sold: a good part of the day's trade was in
    it, or it has a good part of the money. ``everywhere``: it among them. Where of a pool that is traded in
    nobody knows the money, or of this one, the trade alone tells; and where nothing was traded, a pool of
    which the money is not known may be all there is."""
    trade = [place.traded for place in everywhere]
    if is_traded_in(own.traded, trade):
        return True
    if own.wei is None:
        return not any(one.trades for one in trade)
    if any(place.wei is None and is_traded_in(place.traded, trade) for place in everywhere):
        return False
    return own.wei * _PPM >= guard.place_ppm * sum(place.wei or 0 for place in everywhere)


# --- what is counted and checked -------------------------------------------------------------------


def source_of(token_number: int, verb: str) -> int:
    """Under which what happens to a token counts for an account: the token's number in facts.address. Below
    zero for liquidity that leaves, so that it crowds out no sale of the deployer's."""
    return -token_number if verb == "draining" else token_number


class BagHolding(NamedTuple):
    """An account's wallet holds a token. ``is_given``: it bought none of it."""

    account_id: int
    token: Address
    is_given: bool


def in_turn(
    held: Iterable[BagHolding],
    due: Collection[Address],
    checked: Mapping[Address, datetime],
    open_ones: Collection[Address],
) -> list[Address]:
    """In which order ``due`` are checked: those of ``open_ones``, of which a change waits for another check;
    what somebody bought; what was given only. Within each accounts take turns, each with what of its own was
    checked longest ago, or never: who holds much takes nothing from others."""
    own: dict[int, list[tuple[bool, bool, float, Address]]] = {}
    given = dict.fromkeys(due, True)
    for one in held:
        if one.token in given:
            at = checked.get(one.token)
            age = (one.token not in open_ones, one.is_given, at.timestamp() if at else 0.0, one.token)
            own.setdefault(one.account_id, []).append(age)
            given[one.token] &= one.is_given
    turn: dict[Address, int] = {}
    for tokens in own.values():
        for place, (*_, token) in enumerate(sorted(tokens)):
            turn[token] = min(place, turn.get(token, place))
    return sorted(
        given,
        key=lambda token: (
            token not in open_ones,
            given[token],
            turn.get(token, 0),
            checked[token].timestamp() if token in checked else 0.0,
            token,
        ),
    )


# --- verdicts --------------------------------------------------------------------------------------

_RANK = {"ok": 0, "warn": 1, "danger": 2}
"""Worse is higher. ``unknown`` is none of them: what could not be found out is no change, and no pass."""


@dataclass(frozen=True, slots=True)
class StoredLevel:
    """One kept check. ``id`` grows with time. ``deep``: it asked more, and may find what others do not."""

    id: int
    at: datetime
    level: str
    code: str
    policy_version: str
    deep: bool


@dataclass(frozen=True, slots=True)
class BagStanding:
    """What holders know of a token, fields as the columns of accounts.bag_verdict."""

    level: str
    code: str
    policy_version: str
    seen_id: int
    next_level: str | None = None
    next_at: datetime | None = None
    told_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class VerdictTurn:
    """A verdict has changed: what it was, and the check that shows what it is, with the level that holds and
    without a code where that is not the check's own."""

    then_level: str
    then_code: str
    now: StoredLevel


def first_standing(seen: StoredLevel) -> BagStanding | None:
    """What holders are taken to know when a token is first looked at; None: that check found nothing out."""
    if seen.level not in _RANK:
        return None
    return BagStanding(seen.level, seen.code, seen.policy_version, seen.id)


def after(
    standing: BagStanding, checks: Iterable[StoredLevel], guard: Guard = GUARD
) -> tuple[BagStanding, list[VerdictTurn]]:
    """What stands after ``checks``, the oldest first, and what is to be told of them."""
    turned = []
    for seen in checks:
        standing, change = _after(standing, seen, guard)
        if change is not None:
            turned.append(change)
    return standing, turned


def _after(standing: BagStanding, seen: StoredLevel, guard: Guard) -> tuple[BagStanding, VerdictTurn | None]:
    standing = replace(standing, seen_id=max(standing.seen_id, seen.id))
    if seen.level not in _RANK:
        return standing, None
    if seen.policy_version != standing.policy_version:
        # We judge otherwise: the token has not changed.
        return replace(first_standing(seen) or standing, told_at=standing.told_at), None
    rank, was = _RANK[seen.level], _RANK[standing.level]
    if rank < was and not seen.deep:
        # A check that asks less finds less: it takes back nothing.
        return standing, None
    if rank == was:
        return replace(standing, code=seen.code, next_level=None, next_at=None), None
    agreed = _agreed_level(standing, seen, guard)
    if agreed is None:
        again = standing.next_level is not None and (_RANK[standing.next_level] > was) == (rank > was)
        if again and not _was_put_back(standing.next_at, seen.at):
            # The first of them: time runs from there.
            return standing, None
        return replace(standing, next_level=seen.level, next_at=seen.at), None
    told_at = standing.told_at
    if rank < was and told_at is not None and seen.at < told_at + timedelta(seconds=guard.again_s):
        # Later, if it still stands. What is worse never waits: nobody is to rest on what was said before.
        return standing, None
    # Of a level that it has only together with another check, its code tells no more.
    now = seen if agreed == seen.level else replace(seen, level=agreed, code="")
    change = VerdictTurn(standing.level, standing.code, now)
    known = replace(standing, level=agreed, code=now.code, next_level=None, next_at=None, told_at=seen.at)
    return known, change


def _was_put_back(first_at: datetime | None, at: datetime) -> bool:
    """Whether our clock was, between two checks: time would run for as long as that."""
    return first_at is not None and age_s(first_at.timestamp(), at.timestamp()) is None


def _agreed_level(standing: BagStanding, seen: StoredLevel, guard: Guard) -> str | None:
    """What this check and the one before it say at least, both; None: no other one said so, or not long
    enough ago."""
    first, at = standing.next_level, standing.next_at
    was, rank = _RANK[standing.level], _RANK[seen.level]
    if first is None or at is None or (_RANK[first] > was) != (rank > was):
        return None
    if seen.at < at + timedelta(seconds=guard.confirmed_s):
        return None
    # The nearer to what was: a token that is danger in one check and warn in the next is at least warn.
    return min(first, seen.level, key=lambda level: abs(_RANK[level] - was))
