"""THE judge: (Evidence, Policy) -> code, level, text. Check, simulate, prepare and practice share it.

A piece that could not be found out makes the verdict ``unproven`` only if some value of it would
change the code. That is decided by trying: every Missing reading is replaced by values from each side
of every line of the policy, and if two different codes come out, nothing is proven.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Literal

from . import sentences
from .evidence import Evidence, Missing, Refused, TokenFacts
from .policy import Policy
from .readings import (
    Sale,
    SellResult,
    VenueReading,
    parts,
    read_venue,
    sells_whole_and_later,
    takes_sells,
)
from .types import BPS

Level = Literal["ok", "warn", "danger", "unknown"]

CODES = (
    "ok", "cannot_sell", "cannot_buy", "toll_pool", "thin_pool", "high_fees", "heavy_fees", "no_pool",
    "empty_pool", "no_contract", "not_a_token", "quote_asset", "unproven",
)  # fmt: skip
"""Every code a check can answer, as the specification lists them."""

_COMPLETIONS_TRIED = 20_000
"""Beyond this many combinations of unknown values the answer is unproven: the safe side."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Code, level and one plain sentence."""

    code: str
    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict with what it was read from. ``best`` indexes ``readings``; None: no venue decided.

    ``missing`` is the piece that kept the verdict from being proven.
    """

    verdict: Verdict
    readings: tuple[VenueReading, ...]
    best: int | None
    missing: Missing | None = None


@dataclass(frozen=True, slots=True)
class _Finding:
    """A verdict before its sentence."""

    code: str
    level: Level
    venue: int | None = None


def judge(evidence: Evidence, policy: Policy) -> Judgement:
    """The verdict that ``evidence`` proves under ``policy``."""
    readings = tuple(read_venue(venue, policy) for venue in evidence.venues)
    missing = _what_is_missing(evidence, readings, policy)
    if missing is not None:
        best = _best(readings, policy)
        text = sentences.unproven(missing)
        return Judgement(Verdict("unproven", "unknown", text), readings, best, missing)
    facts, settled = next(_completions(evidence, readings, policy))
    finding = _find(evidence, facts, settled, policy)
    # The figures shown are those that were read: a completion serves only to reach the code.
    text = sentences.sentence(finding.code, finding.venue, evidence, readings, policy)
    return Judgement(Verdict(finding.code, finding.level, text), readings, finding.venue)


def _find(
    evidence: Evidence, facts: TokenFacts, readings: tuple[VenueReading, ...], policy: Policy
) -> _Finding:
    """The first code, in the policy's order, that complete evidence proves."""
    if facts.code_bytes == 0:
        return _Finding("no_contract", "warn")
    if not facts.balance_answers or facts.total_supply_raw is None:
        return _Finding("not_a_token", "warn")
    if evidence.role != "token":
        return _Finding("quote_asset", "ok")
    present = [reading for reading in readings if reading.status != "absent"]
    if not present:
        return _Finding("no_pool", "warn")
    if not any(reading.status == "bought" for reading in present):
        refused = any(reading.status == "refused" for reading in present)
        return _Finding("cannot_buy" if refused else "empty_pool", "warn")
    best = _best(readings, policy)
    if best is None:
        bought = next(i for i, reading in enumerate(readings) if reading.status == "bought")
        return _Finding("cannot_sell", "danger", bought)
    return _price_of_trading(best, readings[best], policy)


def _best(readings: tuple[VenueReading, ...], policy: Policy) -> int | None:
    """The venue with the smallest round-trip loss among those that take the sell."""
    selling = [i for i, r in enumerate(readings) if r.status == "bought" and takes_sells(r, policy)]
    return min(selling, key=lambda i: _rank(readings[i]), default=None)


def _rank(reading: VenueReading) -> tuple[int, int]:
    if isinstance(reading.full, Sale):
        return (0 if reading.full.whole else 1), reading.full.loss_bps
    sales = [s.loss_bps for s in reading.sells() if isinstance(s, Sale)]
    return 2, min(sales)


def _price_of_trading(index: int, reading: VenueReading, policy: Policy) -> _Finding:
    found = parts(reading)
    if found.worst_bps >= policy.warn_loss_bps:
        code = found.largest()
        danger = found.worst_bps >= policy.danger_loss_bps
        if code == "high_fees" and danger:
            code = "heavy_fees"
        return _Finding(code, "danger" if danger else "warn", index)
    if reading.keep_bps >= policy.toll_warn_bps:
        return _Finding("toll_pool", "warn", index)
    return _Finding("ok", "ok" if sells_whole_and_later(reading) else "warn", index)


# --- what is missing, and whether it matters -------------------------------------------------------


def _what_is_missing(
    evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy
) -> Missing | None:
    """The first Missing piece, if the pieces that are missing could change the code; else None."""
    gaps = [getattr(evidence.facts, name) for name in ("code_bytes", "balance_answers", "total_supply_raw")]
    for reading in readings:
        gaps += [reading.status, *reading.sells(), reading.fees_bps, reading.impact_bps]
    first = next((gap for gap in gaps if isinstance(gap, Missing)), None)
    if first is None:
        return None
    codes: set[str] = set()
    tried = 0
    for facts, settled in islice(_completions(evidence, readings, policy), _COMPLETIONS_TRIED):
        codes.add(_find(evidence, facts, settled, policy).code)
        tried += 1
        if len(codes) > 1:
            return first
    return first if tried == _COMPLETIONS_TRIED else None


def _completions(
    evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy
) -> Iterator[tuple[TokenFacts, tuple[VenueReading, ...]]]:
    """Evidence with every Missing piece replaced, once for each combination worth telling apart."""
    for facts in _complete_facts(evidence.facts):
        for settled in product(*(list(_complete_reading(r, policy)) for r in readings)):
            yield facts, settled


def _complete_facts(facts: TokenFacts) -> list[TokenFacts]:
    choices = {"code_bytes": (1, 0), "balance_answers": (True, False), "total_supply_raw": (1, None)}
    complete = [facts]
    for name, values in choices.items():
        if isinstance(getattr(facts, name), Missing):
            complete = [replace(f, **{name: value}) for f in complete for value in values]  # type: ignore[arg-type]
    return complete


def _loss_samples(reading: VenueReading, policy: Policy) -> list[int]:
    """Losses from each side of every line that a loss can cross in this venue."""
    lines = {policy.warn_loss_bps, policy.danger_loss_bps}
    lines |= {reading.keep_bps, 2 * reading.keep_bps}
    if isinstance(reading.impact_bps, int):
        lines |= {reading.impact_bps, reading.impact_bps + reading.keep_bps}
    losses = {0, BPS} | {line + step for line in lines for step in (-1, 0, 1)}
    return sorted(loss for loss in losses if 0 <= loss <= BPS)


def _complete_reading(reading: VenueReading, policy: Policy) -> Iterator[VenueReading]:
    if isinstance(reading.status, Missing):
        yield from _any_venue(reading, policy)
        return
    samples = _loss_samples(reading, policy)
    refused = Refused("sell", None, 0)
    any_sale: list[SellResult] = [Sale(loss, BPS, True) for loss in samples]
    any_part: list[SellResult] = [Sale(0, policy.half_bps, True), Sale(BPS, policy.half_bps, True)]
    choices: dict[str, list[object]] = {}
    for name in ("full", "hour", "day"):
        if isinstance(getattr(reading, name), Missing):
            choices[name] = [any_sale[0], refused, *any_sale[1:]]
    for name in ("half", "handed_on"):
        if isinstance(getattr(reading, name), Missing):
            choices[name] = [refused, *any_part]
    if isinstance(reading.sliver, Missing):
        choices["sliver"] = [refused]
    for name in ("fees_bps", "impact_bps"):
        if isinstance(getattr(reading, name), Missing):
            choices[name] = list(samples)
    for values in product(*choices.values()):
        yield replace(reading, **dict(zip(choices, values, strict=True)))  # type: ignore[arg-type]


def _any_venue(reading: VenueReading, policy: Policy) -> Iterator[VenueReading]:
    """A venue of which nothing is known: each end it might come to."""
    sale = Sale(reading.keep_bps, BPS, True)
    refused = Refused("sell", None, 0)
    blank = replace(reading, fees_bps=0, impact_bps=0)
    yield replace(blank, status="bought", full=sale, hour=sale, day=sale)
    yield replace(blank, status="bought", full=refused, hour=refused, day=refused)
    for loss in _loss_samples(reading, policy):
        yield replace(blank, status="bought", full=sale, hour=sale, day=Sale(loss, BPS, True))
        yield replace(blank, status="bought", full=sale, hour=sale, day=sale, impact_bps=loss)
    yield replace(blank, status="refused")
    yield replace(blank, status="dry")
    yield replace(blank, status="absent")
