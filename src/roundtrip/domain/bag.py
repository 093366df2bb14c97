"""The bag guard: what of a token's doings its holders are told, and when its verdict has changed. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from .rules import Happening


@dataclass(frozen=True, slots=True)
class Guard:
    """Every threshold of the bag guard.

    ``sold_ppm``: of the supply; each time that all the deployer ever sold passes one more of these it is
    told: so a sale in small parts is told as often as one at once. ``left_ppm``: of a pool's liquidity, in
    one transaction; ``left_wei``: what has to be worth so much where the share is not known. ``given_ppm``:
    of the supply; a wallet that never bought a token holds it from so much on: anybody can send anybody
    tokens. ``most_held``: of one wallet so many tokens are guarded by checks, the newest.

    ``confirmed_s``: between two checks that say the same. ``again_s``: so long after a row about a token's
    verdict it is not told that it is better. ``checked_every_s``: how old a held token's newest check may be;
    ``event_every_s``: between two checks for what happened. ``most_waiting``: so many checks at most wait or
    run when some are wished for."""

    sold_ppm: int = 1_000
    left_ppm: int = 50_000
    left_wei: int = 10**18
    given_ppm: int = 1_000
    confirmed_s: int = 10
    again_s: int = 3_600
    checked_every_s: int = 300
    event_every_s: int = 60
    most_waiting: int = 8
    most_held: int = 50


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
    """Whether so much left a pool that its token's holders are told."""
    share_ppm = draining.share_ppm()
    if share_ppm is not None:
        return share_ppm >= guard.left_ppm
    return draining.eth_wei is not None and draining.eth_wei >= guard.left_wei


# --- verdicts --------------------------------------------------------------------------------------

_RANK = {"ok": 0, "warn": 1, "danger": 2}
"""Worse is higher. ``unknown`` is none of them: what could not be found out is no change, and no pass."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One kept check. ``id`` grows with time. ``deep``: it asked more, and may find what others do not."""

    id: int
    at: datetime
    level: str
    code: str
    policy_version: str
    deep: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What holders know of a token, fields as the columns of accounts.bag_verdict."""

    level: str
    code: str
    policy_version: str
    seen_id: int
    next_level: str | None = None
    next_at: datetime | None = None
    told_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Turned:
    """A verdict has changed: what it was, and the check that shows what it is, with the level that holds and
    without a code where that is not the check's own."""

    then_level: str
    then_code: str
    now: Seen


def begun(seen: Seen) -> Standing | None:
    """What holders are taken to know when a token is first looked at; None: that check found nothing out."""
    if seen.level not in _RANK:
        return None
    return Standing(seen.level, seen.code, seen.policy_version, seen.id)


def after(standing: Standing, checks: Iterable[Seen], guard: Guard = GUARD) -> tuple[Standing, list[Turned]]:
    """What stands after ``checks``, the oldest first, and what is to be told of them."""
    turned = []
    for seen in checks:
        standing, change = _after(standing, seen, guard)
        if change is not None:
            turned.append(change)
    return standing, turned


def _after(standing: Standing, seen: Seen, guard: Guard) -> tuple[Standing, Turned | None]:
    standing = replace(standing, seen_id=max(standing.seen_id, seen.id))
    if seen.level not in _RANK:
        return standing, None
    if seen.policy_version != standing.policy_version:
        # We judge otherwise: the token has not changed.
        return replace(begun(seen) or standing, told_at=standing.told_at), None
    rank, was = _RANK[seen.level], _RANK[standing.level]
    if rank < was and not seen.deep:
        # A check that asks less finds less: it takes back nothing.
        return standing, None
    if rank == was:
        return replace(standing, code=seen.code, next_level=None, next_at=None), None
    agreed = _agreed(standing, seen, guard)
    if agreed is None:
        again = standing.next_level is not None and (_RANK[standing.next_level] > was) == (rank > was)
        if again:
            # The first of them: time runs from there.
            return standing, None
        return replace(standing, next_level=seen.level, next_at=seen.at), None
    told_at = standing.told_at
    if rank < was and told_at is not None and seen.at < told_at + timedelta(seconds=guard.again_s):
        # Later, if it still stands. What is worse never waits: nobody is to rest on what was said before.
        return standing, None
    # Of a level that it has only together with another check, its code tells no more.
    now = seen if agreed == seen.level else replace(seen, level=agreed, code="")
    change = Turned(standing.level, standing.code, now)
    known = replace(standing, level=agreed, code=now.code, next_level=None, next_at=None, told_at=seen.at)
    return known, change


def _agreed(standing: Standing, seen: Seen, guard: Guard) -> str | None:
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
