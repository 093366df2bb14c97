"""Which codes are still possible while pieces of the evidence are missing.

A missing piece makes a verdict unproven only if some value of it would change the code. So each venue is read
into every outcome it could still have, with losses from both sides of every line that separates two codes or
two venues. Then the outcomes of the venues are combined: a code is possible if one venue can have it while no
other venue must win. No product over venues is taken.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from . import holder_sells
from .evidence import Evidence, Missing, RefusedCall
from .sales import Sale, SellResult
from .venue_code import (
    Rank,
    add_beside,
    beside_bps,
    code_of_parts,
    enough,
    fee_like_bps,
    group_of,
    parts,
    pool_fee_of,
    rank_of,
    split,
    takes_sells,
    tie_order,
)
from .venue_reading import Status, VenueReading

_REFUSED = RefusedCall("sell", None, 0)
_MIN_LOSS = -BPS * BPS
"""A loss below every line: a sell whose result is missing may have brought any gain."""
_NEARLY = ("nearly", "nearly_hour", "nearly_day")
_SELLS = ("full", "hour", "day", "half", "pieces", "any_hour", "route", *_NEARLY)
"""The fields of the sells that a code depends on."""
_FIRST: Rank = (-1, 0, False)
_LAST: Rank = (9, 0, True)
"""Before and behind every rank that a venue can have."""


@dataclass(frozen=True, slots=True)
class VenueOutlook:
    """A possible outcome of a venue. ``rank`` and ``code`` are set where it takes the sell; a venue that
    bought and has no rank is a trap."""

    status: Status
    rank: Rank | None = None
    code: str = ""


def gaps(evidence: Evidence, readings: tuple[VenueReading, ...]) -> list[Missing]:
    """Every missing piece that a code may depend on, the most important first. Holders come first: they are
    tried only where all else is proven, so their missing results decide."""
    facts = evidence.facts
    pieces: list[object] = [*holder_sells.gaps(evidence.holder_sells)]
    pieces += [facts.code_bytes, facts.balance_answers, facts.total_supply_raw]
    for reading in readings:
        pieces += [reading.status, reading.full, reading.hour, reading.day]
    for reading in readings:
        pieces += [reading.inconsistent, reading.fees_bps, reading.impact_bps]
        pieces += [*reading.nearly_sells(), reading.half, reading.pieces, reading.any_hour, reading.route]
        pieces += [reading.pool_fee_bps, reading.first_tax_bps, reading.cross_venue_loss_bps]
    return [gap for gap in pieces if isinstance(gap, Missing)]


def possible_codes(evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy) -> frozenset[str]:
    """Every code that some value of the missing pieces leads to."""
    facts = evidence.facts
    codes: set[str] = set()
    if isinstance(facts.code_bytes, Missing) or facts.code_bytes == 0:
        codes.add("no_contract")
    if facts.code_bytes == 0:
        return frozenset(codes)
    answers = (facts.balance_answers, facts.total_supply_raw)
    # Not ``in (None, False)``: a supply of 0 is an answer, and equals False.
    if any(isinstance(answer, Missing) or answer is None or answer is False for answer in answers):
        codes.add("not_a_token")
    if not facts.balance_answers or facts.total_supply_raw is None:
        return frozenset(codes)
    if evidence.role != "token":
        return frozenset(codes | {"quote_asset"})
    codes |= _combine(
        [_outcomes(reading, readings, policy) for reading in readings],
        tie_order(evidence.venues, evidence.market),
    )
    caught = holder_sells.traps(evidence.holder_sells, policy)
    return frozenset((codes if False in caught else set()) | ({"cannot_sell"} if True in caught else set()))


# --- venues together -------------------------------------------------------------------------------


def _combine(outcomes: list[frozenset[VenueOutlook]], order: tuple[int, ...]) -> set[str]:
    """The codes of the outcomes that decide: a venue that takes the sell, where every other one may refuse it
    or rank behind; and where none needs to take it, the first status that one of them may have."""
    weakest = [_weakest_rank(outlooks) for outlooks in outcomes]
    codes = {
        outcome.code
        for index, outlooks in enumerate(outcomes)
        for outcome in outlooks
        if outcome.rank is not None
        and all(
            worst is None or (outcome.rank, order[index]) < (worst, order[other])
            for other, worst in enumerate(weakest)
            if other != index
        )
    }
    without_sell = [{outlook.status for outlook in outlooks if outlook.rank is None} for outlooks in outcomes]
    for status, code in (
        ("bought", "cannot_sell"), ("keeps", "heavy_fees"), ("rounds", "unproven"), ("refused", "cannot_buy"),
        ("dry", "empty_pool"),
    ):  # fmt: skip
        if all(without_sell) and any(status in statuses for statuses in without_sell):
            codes.add(code)
        without_sell = [statuses - {status} for statuses in without_sell]
    if all(without_sell):
        codes.add("no_pool")
    return codes


def _weakest_rank(outlooks: frozenset[VenueOutlook]) -> Rank | None:
    """The worst rank that the venue may have; None: it may refuse the sell, or the buy."""
    ranks = [outlook.rank for outlook in outlooks]
    return None if None in ranks else max(rank for rank in ranks if rank is not None)


def _around(lines: Iterable[int]) -> list[int]:
    """Each line with its neighbours, up to a loss of everything."""
    near = {line + step for line in lines for step in (-1, 0, 1)}
    return sorted({loss for loss in near if loss < BPS} | {BPS})


def _where_ranks_meet(
    reading: VenueReading, all_readings: tuple[VenueReading, ...], policy: Policy
) -> set[int]:
    """Losses at which this venue's rank equals that of another venue with its known loss."""
    weight = reading.brought_raw
    if weight <= 0:
        return set()
    lines = set()
    for other in all_readings:
        if other is reading or other.status != "bought":
            continue
        for full in {other.full_at_best, None}:
            completed = _complete_badly(other if full is None else replace(other, full=full))
            _, score, _ = rank_of(0, parts(completed, policy).worst_bps, other, policy)
            margin = policy.rival_hook_margin_bps if reading.rival_hook else 0
            lines |= {BPS - margin + score // weight, BPS - margin - (-score // weight)}
    return lines


# --- one venue -------------------------------------------------------------------------------------


def _outcomes(
    reading: VenueReading, all_readings: tuple[VenueReading, ...], policy: Policy
) -> frozenset[VenueOutlook]:
    """Every outcome that the venue could still have."""
    if isinstance(reading.status, Missing):
        outlooks = {VenueOutlook(status) for status in reading.may_be}
        if "bought" in reading.may_be:
            gap = reading.status
            # Any full sell and any price impact lead to every possible code; the rank is replaced below.
            blank = replace(
                reading, status="bought", full=gap, inconsistent=gap, hour=gap, impact_bps=gap, brought_raw=1
            )
            # The amount bought is not known either: the venue may rank before or behind every other one.
            for outcome in _Venue(blank, (), policy).outcomes():
                places = (None,) if outcome.rank is None else (_FIRST, _LAST)
                outlooks |= {replace(outcome, rank=place) for place in places}
        return frozenset(outlooks)
    if reading.status != "bought":
        return frozenset({VenueOutlook(reading.status)})
    return frozenset(_Venue(reading, all_readings, policy).outcomes())


def _complete_badly(reading: VenueReading) -> VenueReading:
    """One completion: every missing sell refused, every missing figure zero."""
    changes: dict[str, object] = {n: _REFUSED for n in _SELLS if isinstance(getattr(reading, n), Missing)}
    figures = ("fees_bps", "impact_bps", "pool_fee_bps", "first_tax_bps", "cross_venue_loss_bps")
    changes |= {n: 0 for n in figures if isinstance(getattr(reading, n), Missing)}
    if isinstance(reading.inconsistent, Missing):
        changes["inconsistent"] = False
    return replace(reading, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _State:
    """A possible result of the sells: the ranking group, the least loss apart from price impact, and whether
    the loss may be larger."""

    group: int
    least_bps: int
    grows: bool


class _Venue:
    """The outcomes of one venue that bought."""

    def __init__(self, reading: VenueReading, all_readings: tuple[VenueReading, ...], policy: Policy) -> None:
        self._reading = reading
        self._policy = policy
        pool_fee = pool_fee_of(reading)
        is_open = isinstance(reading.pool_fee_bps, Missing)
        # A pool that keeps half ranks last.
        self._readings_by_fee = (reading, replace(reading, pool_fee_bps=BPS)) if is_open else (reading,)
        lines = {policy.toll_warn_bps} if is_open else set()
        # At twice the pool's fee, the fee and the token's taxes are equal.
        lines |= {policy.warn_loss_bps, policy.danger_loss_bps, pool_fee, 2 * pool_fee}
        impact = parts(_complete_badly(reading), policy).impact_bps
        lines |= {impact, impact + pool_fee}
        completed = fee_like_bps(_complete_badly(reading), policy)
        beside = beside_bps(reading)
        lines |= {beside, beside + pool_fee}
        lines |= {completed, completed - pool_fee} | _where_ranks_meet(reading, all_readings, policy)
        self._lines = _around(lines)
        self._codes: dict[int, frozenset[tuple[int, str]]] = {}

    def outcomes(self) -> Iterator[VenueOutlook]:
        """Every outcome, possibly with duplicates."""
        reading = self._reading
        if reading.inconsistent is not False:
            yield VenueOutlook("bought")
            if reading.inconsistent is True:
                return
        for state in {self._state(*sells) for sells in self._sells()}:
            if state is None:
                yield VenueOutlook("bought")
                continue
            larger_losses = [loss for loss in self._lines if loss > state.least_bps] if state.grows else []
            for loss in (state.least_bps, *larger_losses):
                for worst, code in self._codes_at(loss):
                    for fees in self._readings_by_fee:
                        yield VenueOutlook("bought", rank_of(state.group, worst, fees, self._policy), code)

    # --- the sells ---------------------------------------------------------------------------------

    def _sells(self) -> Iterator[tuple[SellResult, ...]]:
        """Every combination of results of the missing sells. An unknown loss takes the least value."""
        reading = self._reading
        half_sold = Sale(_MIN_LOSS, self._policy.half_bps, True)
        laters = (Sale(_MIN_LOSS, BPS, True), Sale(_MIN_LOSS, BPS, False), _REFUSED)
        hours, days = (_choices(sell, laters) for sell in (reading.hour, reading.day))
        halves = _choices(reading.half, (half_sold, _REFUSED))
        others = (
            _choices(sell, (Sale(_MIN_LOSS, BPS, True), _REFUSED))
            for sell in (reading.pieces, reading.any_hour, reading.route)
        )
        shares = (Sale(_MIN_LOSS, BPS, True), Sale(_MIN_LOSS, self._policy.half_bps, True), _REFUSED)
        nearly = (_choices(sell, shares) for sell in reading.nearly_sells())
        return product(self._full_sells(), hours, days, halves, *others, *nearly)

    def _full_sells(self) -> list[SellResult]:
        reading = self._reading
        if not isinstance(reading.full, Missing):
            return [reading.full]
        best = reading.full_at_best
        if best is None:
            # All of it, nearly all, a sliver, nothing.
            return [Sale(_MIN_LOSS, BPS, True), Sale(_MIN_LOSS, BPS, False), Sale(0, 1, False), _REFUSED]
        fulls: list[SellResult] = [best, replace(best, whole=False)]
        if best.share_bps >= self._policy.sellable_share_bps:
            # The unknown environment may have sold too small a part.
            fulls.append(Sale(max(best.loss_bps, 0), 1, False))
        if reading.inconsistent is False:
            # The first environment is the unknown one: its refusal would count as a refusal.
            fulls.append(_REFUSED)
        return fulls

    def _state(self, *sells: SellResult) -> _State | None:
        """The state for these results of ``_SELLS``; None: the venue takes no sell."""
        reading = replace(self._reading, **dict(zip(_SELLS, sells, strict=True)))  # type: ignore[arg-type]
        completed = _complete_badly(reading)
        if not takes_sells(completed, self._policy):
            return None
        figures = (reading.fees_bps, reading.first_tax_bps)
        open_sells = (isinstance(getattr(self._reading, name), Missing) for name in self._counting(completed))
        grows = any(open_sells) or any(isinstance(figure, Missing) for figure in figures)
        return _State(group_of(completed, self._policy), max(fee_like_bps(completed, self._policy), 0), grows)

    def _counting(self, completed: VenueReading) -> list[str]:
        """The sells that ``fee_like_bps`` counts."""
        names = ["full", "hour", "day", *_NEARLY]
        if not (enough(completed.full, self._policy) or enough(completed.nearly, self._policy)):
            names.append("half")
        if not any(enough(getattr(completed, name), self._policy) for name in names):
            names += ["pieces", "any_hour", "route"]
        return [name for name in names if enough(getattr(completed, name), self._policy)]

    # --- codes -------------------------------------------------------------------------------------

    def _codes_at(self, loss: int) -> frozenset[tuple[int, str]]:
        """The worst losses and codes for this loss apart from price impact, over all possible impacts."""
        known = self._codes.get(loss)
        if known is not None:
            return known
        reading = self._reading
        impacts = [parts(_complete_badly(reading), self._policy).impact_bps]
        pool_fees = self._pool_fees(loss, impacts[0])
        if isinstance(reading.impact_bps, Missing) or isinstance(reading.cross_venue_loss_bps, Missing):
            impact_lines = _around({*self._lines, loss, *(loss - pool_fee for pool_fee in pool_fees)})
            impacts += [impact for impact in impact_lines if impact > impacts[0]]
        splits = (split(loss, impact, pool_fee) for impact in impacts for pool_fee in pool_fees)
        with_beside = (add_beside(losses, reading) for losses in splits)
        codes = frozenset(
            (losses.worst_bps, code_of_parts(losses, self._policy)[0]) for losses in with_beside
        )
        self._codes[loss] = codes
        return codes

    def _pool_fees(self, loss: int, impact: int) -> list[int]:
        """Possible pool fees within a loss: never more than the immediate loss."""
        pool_fee, fees, full = self._reading.pool_fee_bps, self._reading.fees_bps, self._reading.full
        if isinstance(pool_fee, int):
            return [pool_fee]
        max_fee = loss
        if not isinstance(fees, Missing) and not isinstance(full, Missing):
            max_fee = min(loss, max(fees or 0, full.loss_bps if isinstance(full, Sale) else 0))
        # At half the loss, the fee and the token's taxes are equal.
        lines = {0, self._policy.toll_warn_bps, impact, loss - impact, loss // 2, max_fee}
        return [line for line in _around(lines) if 0 <= line <= max_fee] or [0]


def _choices(known: SellResult, otherwise: tuple[SellResult, ...]) -> tuple[SellResult, ...]:
    return otherwise if isinstance(known, Missing) else (known,)
