"""Which codes are still possible while pieces of the evidence are missing.

A missing piece makes a verdict unproven only if some value of it would change the code. So each venue
is read into every outcome it could still come to, with losses taken from both sides of every line that
can tell two codes or two venues apart, and the outcomes of the venues are put together: a code is
possible if one venue can come to it while no other venue has to win. No product over venues is taken.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .evidence import Evidence, Missing, Refused
from .policy import Policy
from .readings import Sale, Status, VenueReading
from .types import BPS
from .venue_code import Rank, code_of_parts, enough, fee_like_bps, kept, rank, ranked, split, takes_sells

_REFUSED = Refused("sell", None, 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a venue may come to. ``rank`` and ``code`` are set where it takes the sell; a venue that
    bought and has none is a trap."""

    status: Status
    rank: Rank | None = None
    code: str = ""


def gaps(evidence: Evidence, readings: tuple[VenueReading, ...]) -> list[Missing]:
    """Every missing piece that a code is read from, the weightiest first."""
    facts = evidence.facts
    found: list[object] = [facts.code_bytes, facts.balance_answers, facts.total_supply_raw]
    for reading in readings:
        found += [reading.status, reading.full, reading.hour, reading.day]
    for reading in readings:
        found += [reading.fickle, reading.fees_bps, reading.impact_bps, reading.half, reading.handed_on]
        found += [reading.keep_bps, reading.first_tax_bps]
    return [gap for gap in found if isinstance(gap, Missing)]


def possible_codes(evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy) -> frozenset[str]:
    """Every code that some value of the missing pieces leads to."""
    facts = evidence.facts
    codes: set[str] = set()
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
    ranks = _rank_lines(readings, policy)
    return frozenset(codes | _together([_outcomes(reading, ranks, policy) for reading in readings]))


# --- venues together ------------------------------------------------------------------------------


def _together(outcomes: list[frozenset[Outcome]]) -> set[str]:
    # How badly a venue can be forced to rank: None when it need not sell at all.
    weakest = [None if any(o.rank is None for o in own) else max(o.rank for o in own) for own in outcomes]  # type: ignore[type-var]
    codes = {
        outcome.code
        for index, own in enumerate(outcomes)
        for outcome in own
        if outcome.rank is not None
        and all(
            worst is None or (outcome.rank, index) < (worst, other)
            for other, worst in enumerate(weakest)
            if other != index
        )
    }
    quiet = [{o.status for o in own if o.rank is None} for own in outcomes]
    for status, code in (("bought", "cannot_sell"), ("refused", "cannot_buy"), ("dry", "empty_pool")):
        if all(quiet) and any(status in own for own in quiet):
            codes.add(code)
        quiet = [{s for s in own if s != status} for own in quiet]
    if all(quiet):
        codes.add("no_pool")
    return codes


def _around(lines: Iterable[int]) -> list[int]:
    """Each line with its neighbours, within what a loss can be."""
    near = {line + step for line in lines for step in (-1, 0, 1)}
    return sorted({loss for loss in near if loss < BPS} | {BPS})


def _rank_lines(readings: tuple[VenueReading, ...], policy: Policy) -> list[int]:
    """Losses that tell which of two venues is the better one."""
    lines = {0}
    for reading in readings:
        for result in (reading.full, reading.full_at_best):
            if isinstance(result, Sale):
                lines.add(result.loss_bps)
        lines.add(fee_like_bps(_settled(reading), policy))
    if any(reading.rival_hook for reading in readings):
        margin = policy.rival_hook_margin_bps
        lines |= {line + step for line in lines for step in (-margin, margin)}
    return _around(lines)


# --- one venue ------------------------------------------------------------------------------------


def _outcomes(reading: VenueReading, ranks: list[int], policy: Policy) -> frozenset[Outcome]:
    if isinstance(reading.status, Missing):
        found = {Outcome(status) for status in reading.may_be}
        if "bought" in reading.may_be:
            gap = reading.status
            blank = replace(reading, status="bought", full=gap, fickle=gap, hour=gap, impact_bps=gap)
            found |= set(_Venue(blank, ranks, policy).outcomes())
        return frozenset(found)
    if reading.status != "bought":
        return frozenset({Outcome(reading.status)})
    return frozenset(_Venue(reading, ranks, policy).outcomes())


def _settled(reading: VenueReading) -> VenueReading:
    """One completion: every missing sell refused, every missing figure zero."""
    sells = ("full", "hour", "day", "half", "handed_on")
    changes: dict[str, object] = {n: _REFUSED for n in sells if isinstance(getattr(reading, n), Missing)}
    figures = ("fees_bps", "impact_bps", "keep_bps", "first_tax_bps")
    changes |= {n: 0 for n in figures if isinstance(getattr(reading, n), Missing)}
    if isinstance(reading.fickle, Missing):
        changes["fickle"] = False
    return replace(reading, **changes)  # type: ignore[arg-type]


class _Venue:
    """The outcomes of one venue that bought."""

    def __init__(self, reading: VenueReading, ranks: list[int], policy: Policy) -> None:
        self._reading = reading
        self._policy = policy
        keep = kept(reading)
        lines = {policy.toll_warn_bps} if isinstance(reading.keep_bps, Missing) else set()
        lines |= {policy.warn_loss_bps, policy.danger_loss_bps, keep, 2 * keep}
        impact = reading.impact_bps
        self._impact_is_missing = isinstance(impact, Missing)
        if isinstance(impact, int):
            lines |= {impact, impact + keep}
        settled = fee_like_bps(_settled(reading), policy)
        lines |= {settled, settled - keep}
        self._code_lines = _around(lines)
        self._rank_lines = sorted({*ranks, *self._code_lines})
        self._codes: dict[int, str | frozenset[str]] = {}

    def outcomes(self) -> Iterator[Outcome]:
        """Every outcome, some of them more than once."""
        reading = self._reading
        if reading.fickle is not False:
            yield Outcome("bought")
            if reading.fickle is True:
                return
        if not isinstance(reading.full, Missing):
            yield from self._with_full(reading)
            return
        at_best = reading.full_at_best
        if at_best is None:
            yield from self._with_full(replace(reading, full=_REFUSED))
            wholes, least, share = (True, False), -BPS * BPS, BPS
        else:
            wholes, least, share = (at_best.whole, False), at_best.loss_bps, at_best.share_bps
            if reading.fickle is False:
                # The first environment is the unknown one: its refusal would be a plain refusal.
                yield from self._with_full(replace(reading, full=_REFUSED))
        if share < self._policy.sellable_share_bps:
            yield from self._with_full(replace(reading, full=at_best))
            return
        for loss in (line for line in self._rank_lines if line >= least):
            for whole in wholes:
                yield from self._with_full(replace(reading, full=Sale(loss, share, whole)))
        # The environment that is unknown may have sold too small a part.
        yield from self._with_full(replace(reading, full=Sale(max(least, 0), 1, False)))

    def _with_full(self, reading: VenueReading) -> Iterator[Outcome]:
        if not enough(reading.full, self._policy):
            yield from self._in_part(reading)
            return
        settled = _settled(reading)
        least = fee_like_bps(settled, self._policy)
        pieces = (reading.hour, reading.day, reading.fees_bps, reading.first_tax_bps)
        grows = any(isinstance(piece, Missing) for piece in pieces)
        losses = [least, *(loss for loss in self._code_lines if loss > least)] if grows else [least]
        place = rank(settled, self._policy)
        for code in self._codes_of(losses):
            yield Outcome("bought", place, code)

    def _in_part(self, reading: VenueReading) -> Iterator[Outcome]:
        """Where not enough sells at once: what half of it, another wallet, or a later sell come to."""
        for part in self._choices(reading, "half"):
            for settled_part in self._choices(part, "handed_on"):
                yield from self._later(settled_part)

    def _choices(self, reading: VenueReading, name: str) -> Iterator[VenueReading]:
        if not isinstance(getattr(reading, name), Missing):
            yield reading
            return
        yield replace(reading, **{name: _REFUSED})  # type: ignore[arg-type]
        if name == "handed_on" and enough(reading.half, self._policy):
            return
        for loss in self._rank_lines:
            yield replace(reading, **{name: Sale(loss, self._policy.half_bps, True)})  # type: ignore[arg-type]

    def _later(self, reading: VenueReading) -> Iterator[Outcome]:
        settled = _settled(reading)
        least = fee_like_bps(settled, self._policy)
        sells = takes_sells(settled, self._policy)
        if not sells:
            yield Outcome("bought")
        later = any(isinstance(s, Missing) for s in (reading.hour, reading.day))
        losses = [least] if sells or later else []
        fees = (reading.fees_bps, reading.first_tax_bps)
        if later or (sells and any(isinstance(fee, Missing) for fee in fees)):
            losses += [loss for loss in self._rank_lines if loss > least]
        for loss in losses:
            for code in self._codes_of([loss]):
                yield Outcome("bought", ranked(2, loss, self._reading, self._policy), code)

    def _codes_of(self, losses: list[int]) -> set[str]:
        """Codes for these losses, whatever the price impact is."""
        return {code for loss in losses for code in self._codes_at(loss)}

    def _codes_at(self, loss: int) -> frozenset[str]:
        known = self._codes.get(loss)
        if isinstance(known, frozenset):
            return known
        impact = self._reading.impact_bps
        impacts = [impact if isinstance(impact, int) else 0]
        keeps = self._keeps(loss, impacts[0])
        if self._impact_is_missing:
            impacts = _around({*self._code_lines, loss, *(loss - keep for keep in keeps)})
        parted = (split(loss, i, keep) for i in impacts if i >= 0 for keep in keeps)
        found = frozenset(code_of_parts(one, self._policy)[0] for one in parted)
        self._codes[loss] = found
        return found

    def _keeps(self, loss: int, impact: int) -> list[int]:
        """What the pool may keep of a loss: no more than a small round trip loses."""
        keep, fees = self._reading.keep_bps, self._reading.fees_bps
        if isinstance(keep, int):
            return [keep]
        full = self._reading.full
        bound = full.loss_bps if fees is None and isinstance(full, Sale) else fees
        most = min(loss, bound) if isinstance(bound, int) else loss
        lines = {0, self._policy.toll_warn_bps, impact, loss - impact, loss // 2, most}
        return [line for line in _around(lines) if 0 <= line <= most] or [0]
