"""Which codes are still possible while pieces of the evidence are missing.

A missing piece makes a verdict unproven only if some value of it would change the code. So each venue
is read into every outcome it could still come to, with losses taken from both sides of every line of
the policy, and the outcomes of the venues are put together: a code is possible if one venue can come to
it while no other venue has to win. That is exact for the outcomes, and takes no product over venues.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from .evidence import Evidence, Missing, Refused
from .policy import Policy
from .readings import Sale, VenueReading, fee_like_bps, split, takes_sells
from .types import BPS
from .venue_code import code_of_parts, rank

Kind = Literal["absent", "dry", "refused", "trap", "sells"]
Rank = tuple[int, int]

_NO_RANK: Rank = (9, 0)
_REFUSED = Refused("sell", None, 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a venue may come to: ``code`` and ``rank`` only where it takes the sell."""

    kind: Kind
    rank: Rank = _NO_RANK
    code: str = ""


def first_gap(evidence: Evidence, readings: tuple[VenueReading, ...]) -> Missing | None:
    """The first piece that is missing and that a verdict reads."""
    facts = evidence.facts
    gaps: list[object] = [facts.code_bytes, facts.balance_answers, facts.total_supply_raw]
    for reading in readings:
        gaps += [reading.status, *reading.sells(), reading.fees_bps, reading.impact_bps]
    return next((gap for gap in gaps if isinstance(gap, Missing)), None)


def possible_codes(evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy) -> frozenset[str]:
    """Every code that some value of the missing pieces leads to."""
    facts = evidence.facts
    codes = set()
    if isinstance(facts.code_bytes, Missing) or facts.code_bytes == 0:
        codes.add("no_contract")
    if facts.code_bytes == 0:
        return frozenset(codes)
    answers = (facts.balance_answers, facts.total_supply_raw)
    if any(isinstance(answer, Missing) or answer in (None, False) for answer in answers):
        codes.add("not_a_token")
    if not facts.balance_answers or facts.total_supply_raw is None:
        return frozenset(codes)
    if evidence.role != "token":
        return frozenset(codes | {"quote_asset"})
    lines = _lines(readings, policy)
    outcomes = [frozenset(_outcomes(reading, lines, policy)) for reading in readings]
    return frozenset(codes | _together(outcomes))


def _together(outcomes: list[frozenset[Outcome]]) -> set[str]:
    codes = {
        outcome.code
        for index, own in enumerate(outcomes)
        for outcome in own
        if outcome.kind == "sells" and _may_win(index, outcome.rank, outcomes)
    }
    kinds: list[set[str]] = [{o.kind for o in own if o.kind != "sells"} for own in outcomes]
    order = (("trap", "cannot_sell"), ("refused", "cannot_buy"), ("dry", "empty_pool"))
    for kind, code in order:
        # This code needs some venue of this kind while every other may be of it or of a lesser one.
        if all(kinds) and any(kind in own for own in kinds):
            codes.add(code)
        kinds = [own - {kind} for own in kinds]
    if all(kinds):
        codes.add("no_pool")
    return codes


def _may_win(index: int, own: Rank, outcomes: list[frozenset[Outcome]]) -> bool:
    """True when every other venue can come to something that does not beat ``own``."""
    return all(
        any(other.kind != "sells" or (own, index) < (other.rank, at) for other in others)
        for at, others in enumerate(outcomes)
        if at != index
    )


def _lines(readings: tuple[VenueReading, ...], policy: Policy) -> set[int]:
    """Losses on each side of every line that a loss may have to be told apart by."""
    lines = {0, policy.warn_loss_bps, policy.danger_loss_bps}
    for reading in readings:
        lines |= {reading.keep_bps, 2 * reading.keep_bps, fee_like_bps(reading)}
        lines |= {s.loss_bps for s in reading.sells() if isinstance(s, Sale)}
        if isinstance(reading.impact_bps, int):
            lines |= {reading.impact_bps, reading.impact_bps + reading.keep_bps}
    near = {line + step for line in lines for step in (-1, 0, 1)}
    return {loss for loss in near if loss < BPS} | {BPS}


def _outcomes(reading: VenueReading, lines: set[int], policy: Policy) -> Iterator[Outcome]:
    if isinstance(reading.status, Missing):
        yield from (Outcome("absent"), Outcome("dry"), Outcome("refused"), Outcome("trap"))
        blank = replace(reading, status="bought", fees_bps=0, impact_bps=0, size="probe")
        unknown = reading.status
        yield from _bought(
            replace(blank, full=unknown, hour=unknown, impact_bps=unknown), sorted(lines), policy
        )
        return
    if reading.status == "bought":
        yield from _bought(reading, sorted(lines), policy)
    else:
        yield Outcome(reading.status)


def _bought(reading: VenueReading, lines: list[int], policy: Policy) -> Iterator[Outcome]:
    if not isinstance(reading.full, Missing):
        yield from _with_full(reading, lines, policy)
        return
    yield from _with_full(replace(reading, full=_REFUSED), lines, policy)
    for loss in lines:
        yield from _with_full(replace(reading, full=Sale(loss, BPS, True)), lines, policy)
        yield from _with_full(replace(reading, full=Sale(loss, policy.half_bps, False)), lines, policy)


def _with_full(reading: VenueReading, lines: list[int], policy: Policy) -> Iterator[Outcome]:
    """Outcomes of a venue whose full sell is known. The other missing sells are told apart only by
    whether one of them sells, and by the largest loss among them: nothing else of them is read."""
    settled = _without_missing(reading)
    others_missing = any(isinstance(s, Missing) for s in reading.sells())
    if not takes_sells(settled, policy):
        yield Outcome("trap")
        if not others_missing:
            return
    least = fee_like_bps(settled)
    losses = [least, *(loss for loss in lines if loss > least and _loss_may_grow(reading))]
    impacts = lines if isinstance(reading.impact_bps, Missing) else [_int(settled.impact_bps)]
    codes = {
        code_of_parts(split(loss, impact, reading.keep_bps), policy)[0]
        for loss in losses
        for impact in impacts
    }
    for place in _ranks(settled, others_missing, lines):
        yield from (Outcome("sells", place, code) for code in codes)


def _without_missing(reading: VenueReading) -> VenueReading:
    """The reading with every missing sell refused and every missing figure zero: one of its completions."""
    sells = {
        name: _REFUSED
        for name in ("full", "hour", "day", "half", "sliver", "handed_on")
        if isinstance(getattr(reading, name), Missing)
    }
    figures = {name: 0 for name in ("fees_bps", "impact_bps") if isinstance(getattr(reading, name), Missing)}
    return replace(reading, **sells, **figures)  # type: ignore[arg-type]


def _loss_may_grow(reading: VenueReading) -> bool:
    pieces: list[object] = [reading.hour, reading.day, reading.fees_bps]
    if not isinstance(reading.full, Sale):
        pieces += [reading.half, reading.handed_on]
    return any(isinstance(piece, Missing) for piece in pieces)


def _ranks(settled: VenueReading, others_missing: bool, lines: list[int]) -> list[Rank]:
    if isinstance(settled.full, Sale):
        return [rank(settled)]
    known = [s.loss_bps for s in settled.sells() if isinstance(s, Sale)]
    ranks: list[Rank] = [(2, min(known))] if known else []
    return ranks + [(2, loss) for loss in lines if others_missing and (not known or loss < min(known))]


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
