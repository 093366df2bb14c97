"""The bag guard: which events of a token alert its holders, and when its verdict has changed. Pure."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

    ``sold_ppm``: of the supply; each time the deployer's total sales pass another multiple of it, holders are
    alerted, so that many small sales alert as often as one large one. ``drained_ppm``: of a pool's liquidity;
    each time what a wallet took out of it within a day passes another multiple of it; ``drained_wei``: the
    same of the value, where the share is unknown; ``least_drained_wei``: a lower value never alerts, whatever
    its share. ``pool_money_ppm``: of the money in a token's pools; a pool with this share matters even if it
    is not traded in. ``given_ppm``: of the supply; a wallet that never bought a token counts as a holder only
    from this share on, because anyone can send tokens to anyone. ``most_held``, ``most_given``: tokens of one
    wallet that are guarded by checks: the newest that it bought, and the newest that it was given.

    ``confirmed_s``: the least time between two checks that agree. ``recovery_wait_s``: after an alert about a
    token's verdict, the wait before an alert that it is better. ``newcomer_s``: a holder whose last trade is
    older than this when the guard first sees the token is assumed to know the checks until then.
    ``checked_every_s``: the greatest age of a held token's newest check; ``event_every_s``: the least time
    between two checks for events. ``most_waiting``: checks that may wait or run when more are enqueued;
    ``most_of_events``: in addition, checks for events.
    """

    sold_ppm: int = 1_000
    drained_ppm: int = 50_000
    drained_wei: int = 10**18
    least_drained_wei: int = 5 * 10**16
    pool_money_ppm: int = 200_000
    given_ppm: int = 1_000
    confirmed_s: int = 10
    recovery_wait_s: int = 3_600
    newcomer_s: int = 300
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
    threshold. With an unknown supply any sale counts."""
    if not supply_raw:
        return sold_raw > 0
    part = max(1, supply_raw * guard.sold_ppm // _PPM)
    return (before_raw + sold_raw) // part > before_raw // part


def drains_enough(draining: Happening, before_raw: int = 0, guard: Guard = GUARD) -> bool:
    """Whether the money that left a pool can alert its token's holders, whatever its share: True where it is
    not known. ``before_raw`` as in ``drains_much``."""
    total_wei = _total_wei(draining, before_raw)
    return total_wei is None or total_wei >= guard.least_drained_wei


def drains_much(
    draining: Happening, before_raw: int = 0, pool_wei: int | None = None, guard: Guard = GUARD
) -> bool:
    """Whether enough left a pool to alert its token's holders, if the pool matters. ``before_raw``: how far
    the same wallet's part had fallen already within a day before, in units of the part: many small removals
    alert as one large one. One that is large by itself alerts in any case. ``pool_wei``: the pool's money
    just before; None: not known. Its share counts beside the liquidity's: anybody can make that small by
    liquidity that is out of range and costs nothing."""
    if before_raw and drains_much(draining, 0, pool_wei, guard):
        return True
    part_raw, whole_raw, drained_wei = draining.part_raw, draining.whole_raw, draining.eth_wei
    total_wei = _total_wei(draining, before_raw)
    if total_wei is not None and total_wei < guard.least_drained_wei:
        return False
    before_wei = 0 if total_wei is None or drained_wei is None else total_wei - drained_wei
    if (
        pool_wei is not None
        and drained_wei is not None
        # Some changes have no known amount, so the pool's money can be counted too low.
        and _passes_part(before_wei, drained_wei, max(pool_wei, drained_wei), guard)
    ):
        return True
    if draining.share_ppm() is not None and part_raw is not None and whole_raw is not None:
        return _passes_part(before_raw, part_raw, whole_raw, guard)
    if drained_wei is None:
        return False
    return (before_wei + drained_wei) // guard.drained_wei > before_wei // guard.drained_wei


def _total_wei(draining: Happening, before_raw: int) -> int | None:
    """What the wallet took out in all, at the price of this removal."""
    if draining.eth_wei is None or not draining.part_raw:
        return draining.eth_wei
    return draining.eth_wei * (before_raw + draining.part_raw) // draining.part_raw


def _passes_part(before: int, part: int, whole: int, guard: Guard) -> bool:
    """Whether ``part`` of ``whole`` passes another multiple of the threshold, after ``before``."""
    step = max(1, -(-(whole + before) * guard.drained_ppm // _PPM))
    return (before + part) // step > before // step


def fold_drained(changes: Iterable[tuple[int, bool, int]], within_s: int) -> Iterator[int]:
    """For each change of one wallet's part of one pool, in order, how far that part had fallen before the
    change's transaction below the most that it was within ``within_s`` before. A change: its time in seconds,
    whether a transaction begins with it, and by how much the part changes. O(n)."""
    part_raw = fallen_raw = 0
    # Falling parts, each with the last time at which the wallet had it.
    most = deque[tuple[int, int]]()
    for at_s, begins, raw in changes:
        if begins:
            while most and most[-1][1] <= part_raw:
                most.pop()
            most.append((at_s, part_raw))
            while most[0][0] < at_s - within_s:
                most.popleft()
            fallen_raw = most[0][1] - part_raw
        yield fallen_raw
        part_raw += raw


class PoolMoney(NamedTuple):
    """One of a token's pools: what was traded in it within a day, and the money in it, in wei; None:
    unknown."""

    traded: Turnover
    wei: int | None


def pool_matters(pool: PoolMoney, everywhere: Collection[PoolMoney], guard: Guard = GUARD) -> bool:
    """Whether a pool is one in which its token can be sold: a good part of the day's trade was in it, or it
    has a good part of the money. ``everywhere``: all pools, this one included. Where the money of this pool,
    or of one that is traded in, is unknown, only the trade decides; and where nothing was traded, a pool with
    unknown money may be the only one."""
    turnovers = [other.traded for other in everywhere]
    if is_traded_in(pool.traded, turnovers):
        return True
    if pool.wei is None:
        return not any(turnover.trades for turnover in turnovers)
    if any(other.wei is None and is_traded_in(other.traded, turnovers) for other in everywhere):
        return False
    return pool.wei * _PPM >= guard.pool_money_ppm * sum(other.wei or 0 for other in everywhere)


# --- what is counted and checked -------------------------------------------------------------------


def guard_source_id(token_number: int, verb: str) -> int:
    """The id under which a token's events count for an account: the token's number in facts.address. Negative
    for liquidity that leaves, so that it does not crowd out a sale of the deployer's."""
    return -token_number if verb == "draining" else token_number


class BagHolding(NamedTuple):
    """An account's wallet holds a token. ``is_given``: it bought none of it. ``since``: the block time of
    its last trade in the token, or when the account began to watch it; None: it has neither."""

    account_id: int
    token: Address
    is_given: bool
    since: datetime | None = None


def find_bought(holdings: Iterable[BagHolding], now: datetime, guard: Guard = GUARD) -> set[Address]:
    """The tokens that an account traded, or began to watch, within ``newcomer_s``."""
    start = now - timedelta(seconds=guard.newcomer_s)
    return {one.token for one in holdings if one.since is not None and one.since >= start}


def known_until(
    holdings: Iterable[BagHolding], now: datetime, guard: Guard = GUARD
) -> dict[Address, datetime]:
    """For each token, the time until which its holders are assumed to know its checks when the guard first
    sees the token: the earliest of their last trades, so that what turned between a buy and the guard's first
    run alerts, but not before ``newcomer_s`` ago."""
    start = now - timedelta(seconds=guard.newcomer_s)
    until: dict[Address, datetime] = {}
    for holding in holdings:
        until[holding.token] = max(start, min(holding.since or now, until.get(holding.token, now)))
    return until


def choose_checks(ordered: Sequence[Address], unconfirmed: Collection[Address], room: int) -> list[Address]:
    """The first ``room`` of the ordered checks; where others are due, those of ``unconfirmed`` take at most
    half, so that tokens whose verdict keeps changing do not delay the checks of others."""
    waiting = [token for token in ordered if token in unconfirmed]
    others = [token for token in ordered if token not in unconfirmed]
    share = max((room + 1) // 2, room - len(others))
    return [*waiting[:share], *others][:room]


def order_checks(
    holdings: Iterable[BagHolding],
    due: Collection[Address],
    checked: Mapping[Address, datetime],
    unconfirmed: Collection[Address],
) -> list[Address]:
    """The order in which ``due`` are checked: first those of ``unconfirmed``, where a change waits for
    another check; then what an account bought; then what was only given. Within each group accounts take
    turns, each with its token that was checked longest ago, or never: an account that holds many delays no
    other."""

    def checked_s(token: Address) -> float:
        at = checked.get(token)
        return at.timestamp() if at else 0.0

    by_account: dict[int, list[tuple[bool, bool, float, Address]]] = {}
    given = dict.fromkeys(due, True)
    for holding in holdings:
        if holding.token in given:
            token = holding.token
            priority = (token not in unconfirmed, holding.is_given, checked_s(token), token)
            by_account.setdefault(holding.account_id, []).append(priority)
            given[token] &= holding.is_given
    turns: dict[Address, int] = {}
    for tokens in by_account.values():
        for turn, (*_, token) in enumerate(sorted(tokens)):
            turns[token] = min(turn, turns.get(token, turn))
    return sorted(
        given,
        key=lambda token: (
            token not in unconfirmed,
            given[token],
            turns.get(token, 0),
            checked_s(token),
            token,
        ),
    )


# --- verdicts --------------------------------------------------------------------------------------

_RANK = {"ok": 0, "warn": 1, "danger": 2}
"""Worse is higher. ``unknown`` has no rank: an inconclusive check is neither a change nor a pass."""


@dataclass(frozen=True, slots=True)
class StoredLevel:
    """One stored check. ``id`` grows with time. ``deep``: it tested more, and may find what other checks do
    not."""

    id: int
    at: datetime
    level: str
    code: str
    policy_version: str
    deep: bool


@dataclass(frozen=True, slots=True)
class BagStanding:
    """What a token's holders know, fields as the columns of accounts.bag_verdict. ``seen_id``: the newest
    check that was looked at. ``next_level``, ``next_at``: of the first check that found another level, while
    it waits for a second one; None: none waits. ``told_at``: the time of the check whose change was reported
    last; None: none was reported."""

    level: str
    code: str
    policy_version: str
    seen_id: int
    next_level: str | None = None
    next_at: datetime | None = None
    told_at: datetime | None = None

    def awaits_worse(self) -> bool:
        """Whether a worse finding waits for the check that confirms it. A better one has time."""
        return self.next_level is not None and _RANK[self.next_level] > _RANK[self.level]


@dataclass(frozen=True, slots=True)
class VerdictTurn:
    """A changed verdict: its old level and code, and the check that shows the new one. Where the new level is
    not the check's own, the check has the level that holds, and no code."""

    then_level: str
    then_code: str
    now: StoredLevel


UNCHECKED = "unchecked"
"""The code of a standing whose holders bought before the token's first check: that one is news to them."""


def initial_standing(check: StoredLevel, is_news: bool = False) -> BagStanding | None:
    """What holders are assumed to know at a token's first check; None: that check was inconclusive.
    ``is_news``: a holder bought before it, and lately. Then a danger is still to be reported."""
    if check.level not in _RANK:
        return None
    if is_news and check.level == "danger":
        return BagStanding("ok", UNCHECKED, check.policy_version, 0)
    return BagStanding(check.level, check.code, check.policy_version, check.id)


def apply_checks(
    standing: BagStanding, checks: Iterable[StoredLevel], guard: Guard = GUARD
) -> tuple[BagStanding, list[VerdictTurn]]:
    """The standing after ``checks``, the oldest first, and the changes to report."""
    changes = []
    for check in checks:
        standing, change = _apply_check(standing, check, guard)
        if change is not None:
            changes.append(change)
    return standing, changes


def _apply_check(
    standing: BagStanding, check: StoredLevel, guard: Guard
) -> tuple[BagStanding, VerdictTurn | None]:
    """The standing after one more check, and the change to report; None: there is none."""
    standing = replace(standing, seen_id=max(standing.seen_id, check.id))
    if check.level not in _RANK:
        return standing, None
    if check.policy_version != standing.policy_version:
        # The policy has changed, not the token.
        return replace(initial_standing(check) or standing, told_at=standing.told_at), None
    rank, old_rank = _RANK[check.level], _RANK[standing.level]
    if rank < old_rank and not check.deep:
        # A check that tests less finds less: it revokes nothing.
        return standing, None
    if rank == old_rank:
        if standing.next_level is not None and _RANK[standing.next_level] > rank and not check.deep:
            # A check that tests less does not withdraw a worse finding, which waits for another deep check.
            return standing, None
        return replace(standing, code=check.code, next_level=None, next_at=None), None
    agreed = _agreed_level(standing, check, guard)
    if agreed is None:
        is_repeated = standing.next_level is not None and (_RANK[standing.next_level] > old_rank) == (
            rank > old_rank
        )
        if is_repeated and not _was_put_back(standing.next_at, check.at):
            # The wait started at the first check of this change.
            return standing, None
        return replace(standing, next_level=check.level, next_at=check.at), None
    told_at = standing.told_at
    if (
        rank < old_rank
        and told_at is not None
        and check.at < told_at + timedelta(seconds=guard.recovery_wait_s)
    ):
        # Reported later, if it still holds. A worse verdict never waits: no holder may rely on the old one.
        return standing, None
    # Where two checks only agree on a milder level, the check's own code does not apply.
    shown = check if agreed == check.level else replace(check, level=agreed, code="")
    change = VerdictTurn(standing.level, standing.code, shown)
    changed = replace(
        standing, level=agreed, code=shown.code, next_level=None, next_at=None, told_at=check.at
    )
    return changed, change


def _was_put_back(first_at: datetime | None, at: datetime) -> bool:
    """Whether this machine's clock was set back between two checks: the wait would last that much longer."""
    return first_at is not None and age_s(first_at.timestamp(), at.timestamp()) is None


def _agreed_level(standing: BagStanding, check: StoredLevel, guard: Guard) -> str | None:
    """The level that this check and the waiting one (``next_level``) both reach; None: none waits that
    changed the level in the same direction, or it is too recent."""
    first, first_at = standing.next_level, standing.next_at
    old_rank, rank = _RANK[standing.level], _RANK[check.level]
    if first is None or first_at is None or (_RANK[first] > old_rank) != (rank > old_rank):
        return None
    if check.at < first_at + timedelta(seconds=guard.confirmed_s):
        return None
    # The milder change: a token that is danger in one check and warn in the next is at least warn.
    return min(first, check.level, key=lambda level: abs(_RANK[level] - old_rank))


# --- who came since ---------------------------------------------------------------------------------


def find_newcomers(
    holdings: Iterable[BagHolding],
    standings: Mapping[Address, BagStanding],
    now: datetime,
    guard: Guard = GUARD,
) -> list[BagHolding]:
    """The newest holding of each account that traded a token, or began to watch it, within
    ``recovery_wait_s`` or since the last alert about it, while its standing is worse than ok. The standing is
    what earlier holders were told. It stays for a while after the token sells again, and those who buy then
    may know an ok check."""
    hour = now - timedelta(seconds=guard.recovery_wait_s)
    newest: dict[tuple[int, Address], BagHolding] = {}
    for holding in holdings:
        standing, key = standings.get(holding.token), (holding.account_id, holding.token)
        if standing is None or not _RANK[standing.level] or holding.since is None:
            continue
        known = newest.get(key)
        start = hour if standing.told_at is None else min(hour, standing.told_at)
        if holding.since >= start and (known is None or known.since is None or holding.since > known.since):
            newest[key] = holding
    return list(newest.values())


class KnownVerdict(NamedTuple):
    """What a newcomer knows at a moment. ``level``: that of the last alert of the token's verdict, at its
    check's time; None: there was none, and the last check before ``at`` counts."""

    at: datetime
    level: str | None = None


def judge_newcomer(known: KnownVerdict, checks: Iterable[StoredLevel]) -> VerdictTurn | None:
    """The worse verdict to report to a newcomer. None: there is none. ``checks``: the oldest first."""
    ranked = [check for check in checks if check.level in _RANK]
    later = [check for check in ranked if check.at > known.at]
    earlier = ranked[: len(ranked) - len(later)]
    if known.level is None:
        first = [*earlier[-1:], *later][:1]
        standing = initial_standing(first[0], is_news=not earlier) if first else None
    else:
        standing = BagStanding(known.level, "", later[0].policy_version, 0) if later else None
    if standing is None:
        return None
    _, changes = apply_checks(standing, later)
    if not changes or _RANK[changes[-1].now.level] <= _RANK[standing.level]:
        return None
    return VerdictTurn(standing.level, standing.code, changes[-1].now)
