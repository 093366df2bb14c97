"""The judge: (Evidence, Policy) -> code, level, text. Check, simulate, prepare and practice share it.

A missing piece makes the verdict ``unproven`` only if some value of it would change the code (see
``missing_pieces``).

Whether tokens bought on the cheapest venue can be sold on any venue.

A token whose cheapest pool refuses sells may have another pool that takes back only what was bought in
it, at any price, out of the buyer's own money. That is no exit. So where the cheapest venue refuses the
sell, tokens bought there are sold on the other venues, and the loss counts as theirs."""

from dataclasses import dataclass, replace

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check import holder_sells, verdict_text
from roundtrip.domain.check.account_rights import rights_sentence
from roundtrip.domain.check.evidence import CellOutcome, Evidence, Missing, Sold
from roundtrip.domain.check.missing_pieces import gaps, possible_codes
from roundtrip.domain.check.owner_calls import owner_sentence
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.domain.check.sales import Sale, loss_bps
from roundtrip.domain.check.venue_code import Level, best_venue, code_of, takes_sells, tie_order
from roundtrip.domain.check.venue_reading import VenueReading, read_venue

_UNSURE = Missing("node", "it is unknown whether it sells on the cheapest pool")


def with_exits(
    evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy
) -> tuple[VenueReading, ...]:
    """The readings, each with the loss of selling on its venue what was bought on the cheapest."""
    bought = [number for number, reading in enumerate(readings) if reading.status == "bought"]
    if len(bought) < 2:
        return readings
    order = tie_order(evidence)
    cheapest = max(bought, key=lambda number: (readings[number].brought_raw, -order[number]))
    sells = _sells(readings[cheapest], policy)
    if sells is True:
        return readings
    judged = list(readings)
    for number in bought:
        if number != cheapest:
            lost = _loss_bps(evidence, cheapest, number, policy)
            cross_venue_loss_bps = lost if sells is False or lost == 0 else _UNSURE
            judged[number] = replace(
                readings[number],
                cross_venue_loss_bps=cross_venue_loss_bps,
                trap_beside=cheapest if sells is False else None,
            )
    return tuple(judged)


def _sells(reading: VenueReading, policy: Policy) -> bool | Missing:
    """Whether a venue takes the sell; Missing where a missing piece could change that."""
    unknown = next(
        (piece for piece in (reading.inconsistent, *reading.sells()) if isinstance(piece, Missing)), None
    )
    if reading.inconsistent is True:
        return False
    if takes_sells(reading, policy):
        return True if reading.inconsistent is False else _UNSURE
    return False if unknown is None else unknown


def _loss_bps(evidence: Evidence, cheapest: int, number: int, policy: Policy) -> int | Missing:
    outcome: CellOutcome | None = evidence.venues[number].crossed
    if isinstance(outcome, Missing):
        return outcome
    if not isinstance(outcome, Sold):
        # The buy was refused this time: that proves nothing for or against an exit.
        return BPS if outcome is not None and outcome.step not in ("fund", "buy", "arrive") else 0
    paid, back = (evidence.venues[index].venue.quote for index in (cheapest, number))
    paid_wei = quote_in_wei(outcome.paid_raw, paid, evidence.market)
    back_wei = quote_in_wei(outcome.back_raw, back, evidence.market)
    if paid_wei is None or back_wei is None or paid_wei <= 0:
        return _UNSURE
    sold_bps = outcome.sold_raw * BPS // max(1, outcome.held_raw)
    return BPS if sold_bps < policy.sellable_share_bps else max(0, loss_bps(paid_wei, back_wei))


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


@dataclass(frozen=True, slots=True)
class _VerdictFinding:
    """A verdict before its sentence."""

    code: str
    level: Level
    venue: int | None = None


def judge(evidence: Evidence, policy: Policy) -> Judgement:
    """The verdict that ``evidence`` proves under ``policy``."""
    alone = tuple(read_venue(venue, policy, evidence.launch) for venue in evidence.venues)
    readings = with_exits(evidence, alone, policy)
    missing = gaps(evidence, readings)
    if missing and len(possible_codes(evidence, readings, policy)) > 1:
        verdict = Verdict("unproven", "unknown", verdict_text.unproven(missing[0]))
        best = best_venue(readings, tie_order(evidence), policy)
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
        verdict_text.code_sentence(finding.code, evidence.code_signs),
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
    """The first code, in the policy's order, that the evidence proves.

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
        order = tie_order(evidence)
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
