"""The judge: (Evidence, Policy) -> code, level, text. Check, simulate, prepare and practice share it.

A missing piece makes the verdict ``unproven`` only if some value of it would change the code (see
``missing_pieces``).
"""

from dataclasses import dataclass, replace

from roundtrip.domain.base.policy import Policy

from . import holder_sells, verdict_text
from .account_rights import rights_sentence
from .cross_exit import with_exits
from .evidence import Evidence, Missing
from .missing_pieces import gaps, possible_codes
from .owner_calls import owner_sentence
from .sales import Sale
from .venue_code import Level, best_venue, code_of, is_lost_between_pools, tie_order
from .venue_reading import VenueReading, read_venue

CODES = (
    "ok", "cannot_sell", "cannot_buy", "toll_pool", "thin_pool", "high_fees", "heavy_fees", "no_pool",
    "empty_pool", "no_contract", "not_a_token", "quote_asset", "unproven",
)  # fmt: skip
"""Every code of a check, as in the specification."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Code, level and one plain sentence."""

    code: str
    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict with its sources. ``best`` indexes ``readings``; None: no venue decided.

    ``missing``: the piece without which the verdict is unproven.
    """

    verdict: Verdict
    readings: tuple[VenueReading, ...]
    best: int | None
    missing: Missing | None = None

    def depends_on_size(self) -> bool:
        """True where the price impact of the check's own size decides: a smaller trade loses less."""
        if self.verdict.code != "thin_pool" or self.best is None:
            return False
        return not is_lost_between_pools(self.readings[self.best])


@dataclass(frozen=True, slots=True)
class _VerdictFinding:
    """A verdict before its sentence."""

    code: str
    level: Level
    venue: int | None = None


def judge(evidence: Evidence, policy: Policy, read: tuple[VenueReading, ...] | None = None) -> Judgement:
    """The verdict that ``evidence`` proves under ``policy``. ``read``: its venues, each alone, where they
    were read before."""
    if read is None:
        read = tuple(read_venue(venue, policy, evidence.launch) for venue in evidence.venues)
    readings = with_exits(evidence, read, policy)
    missing = gaps(evidence, readings)
    if missing and len(possible_codes(evidence, readings, policy)) > 1:
        verdict = Verdict("unproven", "unknown", verdict_text.unproven(missing[0]))
        best = best_venue(readings, tie_order(evidence.venues, evidence.market), policy)
        return Judgement(verdict, readings, best, missing[0])
    finding = _find(evidence, readings, policy)
    if evidence.left_out and finding.code == "ok":
        # A pool that was left out may be the one that a wallet would trade on.
        finding = replace(finding, level="warn")
    text = verdict_text.sentence(finding.code, finding.venue, evidence, readings, policy)
    held = evidence.holder_sells
    if True in holder_sells.traps(held, policy):
        # The fresh wallet's result would mislead: every buyer becomes a holder.
        finding, text = replace(finding, code="cannot_sell", level="danger"), ""
    elif holder_sells.warns(held, policy) and finding.level == "ok":
        finding = replace(finding, level="warn")
    sentences = (
        text,
        holder_sells.holder_sentence(held, policy),
        owner_sentence(evidence.owner_calls, policy),
        verdict_text.code_signs_sentence(finding.code, evidence.code_signs),
        rights_sentence(evidence, policy),
    )
    text = " ".join(filter(None, sentences))
    return Judgement(Verdict(finding.code, finding.level, text), readings, finding.venue)


def shown_index(judgement: Judgement) -> int | None:
    """The venue that an answer shows: the one that decided, else the first that is known to exist."""
    if judgement.best is not None:
        return judgement.best
    shown = (i for i, r in enumerate(judgement.readings) if r.status in _EXISTING)
    return next(shown, None)


_EXISTING = ("dry", "refused", "rounds", "keeps", "bought")


def _find(evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy) -> _VerdictFinding:
    """The code that the evidence proves, with its level and the venue that decided.

    A missing piece is read as absent, which is one of its values: every value gives the same code.
    """
    facts = evidence.facts
    if facts.code_bytes == 0:
        return _VerdictFinding("no_contract", "warn")
    if not facts.balance_answers or facts.total_supply_raw is None:
        return _VerdictFinding("not_a_token", "warn")
    if evidence.role != "token":
        return _VerdictFinding("quote_asset", "ok")
    statuses = [reading.status for reading in readings]
    if "bought" in statuses:
        order = tie_order(evidence.venues, evidence.market)
        best = best_venue(readings, order, policy)
        if best is None:
            bought = [i for i, status in enumerate(statuses) if status == "bought"]
            most_sold = max(bought, key=lambda i: (*_sale_rank(readings[i]), -order[i]))
            return _VerdictFinding("cannot_sell", "danger", most_sold)
        return _VerdictFinding(*code_of(readings[best], policy), best)
    if "keeps" in statuses:
        return _VerdictFinding("heavy_fees", "danger")
    if "rounds" in statuses:
        # What a unit sells for is not known: no buy that a check makes brings one.
        return _VerdictFinding("unproven", "unknown")
    if "refused" in statuses:
        return _VerdictFinding("cannot_buy", "warn")
    if "dry" not in statuses and evidence.other_pools and not verdict_text.is_between_venues(evidence):
        # It has pools, and no check trades in them.
        return _VerdictFinding("unproven", "unknown")
    return _VerdictFinding("empty_pool" if "dry" in statuses else "no_pool", "warn")


def _sale_rank(reading: VenueReading) -> tuple[bool, int]:
    shares = [sell.share_bps for sell in reading.sells() if isinstance(sell, Sale)]
    return reading.inconsistent is True, max(shares, default=0)
