"""Whether a verdict was right, by what plain wallets did later. Computed from stored evidence.

The scorecard shows strangers whether this service is honest, so every doubt counts against it or is counted
apart:

- A real sell counts for or against a verdict only if its size was tried, within the time that the verdict
  covers, by a wallet that is not behind the token and bought what it sold in the market.
- Undecided is a count of its own. It is never added to the right verdicts.
- A verdict that was true for its block and changed within the time it covers was wrong, and is listed as
  changed.

``docs/scorecard.md`` explains the same for people.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from roundtrip.domain.base.figures import format_percent
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Address, Numeric, TxHash
from roundtrip.domain.check.evidence import CompletedBuy, Evidence, Sold
from roundtrip.domain.check.venue_code import enough, stops_selling, takes_sells
from roundtrip.domain.check.venue_reading import VenueReading, main_size
from roundtrip.domain.check.verdict import judge

Claim = Literal["sells", "costs", "stuck", "held", "no_buy", "no_market", "nothing"]
"""What a verdict claims. ``sells``: it can be sold. ``costs``: it can, at a cost that is the verdict.
``stuck``: a buyer cannot sell. ``held``: its holders cannot sell, though a fresh wallet can. ``no_buy``: it
cannot be bought. ``no_market``: there is nowhere to trade it. ``nothing``: no sell could confirm or refute
it."""

SELLABLE: frozenset[Claim] = frozenset({"sells", "costs"})
"""The claims that a failed sell contradicts."""

Outcome = Literal["right", "wrong", "undecided"]
Cause = Literal[
    "sold", "changed", "cost", "failed", "bought", "traded", "turned",
    "no_sell", "not_told", "one_leg", "sometimes", "silent", "not_followed", "unreadable",
]  # fmt: skip
"""Why. The first line is of decided verdicts: a real sell went through; it did, though the token had changed
by then; it cost far more than claimed; a real sell is known to have failed; it was bought; it was traded; a
later check found that it could no longer be sold. The second line is of undecided ones: no such sell was
seen; the result of one is unknown; one sell does not show the cost of a round trip; the claim was that it
sells only sometimes; there was no claim; the index does not have those blocks; the evidence has an older
format."""

SIZE = 2
"""Sells of half to twice a tried size speak about that size."""
SETTLED_S = 600
"""The age from which sells count: newer ones may be reorged out."""
HOUR_S = 3600
"""Of a token and a code only the first verdict an hour is scored, so that frequent requests carry no extra
weight."""
_CLAIMS: dict[str, Claim] = {
    "ok": "sells",
    "toll_pool": "costs",
    "thin_pool": "costs",
    "high_fees": "costs",
    "heavy_fees": "costs",
    "cannot_sell": "stuck",
    "cannot_buy": "no_buy",
    "no_pool": "no_market",
    "empty_pool": "no_market",
    "not_a_token": "no_market",
    "no_contract": "no_market",
}
SELLABLE_CODES = tuple(code for code, claim in _CLAIMS.items() if claim in SELLABLE)
CODES = (*_CLAIMS, "unproven")
"""The scored codes: all but ``quote_asset``, which claims nothing to prove."""
PROVABLE = ("ok",)
"""Codes that a real trade can prove right; all others it can only prove wrong."""


@dataclass(frozen=True, slots=True)
class VerdictClaim:
    """What a verdict claims, as far as trades can test it. ``sizes_raw``: amounts of the token that were
    tried; for ``no_buy`` and ``no_market`` ``sizes_wei``, the amounts offered for it. ``until_s``: the last
    second of the chain that it covers. ``places``: where it was tried, or where it sells best. ``paid``: wei,
    and the amount of the token that they bought. ``line_bps``: a loss from which a sell contradicts the
    claim; None: there is no such limit. ``sometimes``: equal sells were tried with different results.
    ``waits``: the verdict says that it sells later, not at once."""

    code: str
    claim: Claim
    sizes_raw: tuple[int, ...]
    sizes_wei: tuple[int, ...]
    from_s: int
    until_s: int
    line_bps: int | None = None
    sometimes: bool = False
    waits: bool = False
    places: tuple[str, ...] = ()
    paid: tuple[int, int] = (1, 0)

    def is_way_out(self, trade: "RealTrade") -> bool:
        """Whether a sell shows a way out of a stuck token: at a tried place any sell does; elsewhere, for
        example in a pool that takes it back for next to nothing, one that brings half of what buying it had
        cost."""
        if trade.at in self.places:
            return True
        wei, raw = self.paid
        return trade.worth_wei is not None and 2 * trade.worth_wei * raw >= wei * trade.token_raw > 0

    def fits(self, size: int) -> bool:
        """Whether a trade's size was tried."""
        return any(
            tried <= size * SIZE and size <= tried * SIZE for tried in self.sizes_raw or self.sizes_wei
        )


def derive_claim(evidence: Evidence, code: str, level: str, policy: Policy) -> VerdictClaim | None:
    """The claim of a verdict stored as ``code`` and ``level``, which hold even where a newer policy judges
    the evidence otherwise: a wrong verdict stays wrong. None: the evidence does not show it."""
    at_s = evidence.block.timestamp_s
    claim = _CLAIMS.get(code, "nothing")
    if claim in ("no_buy", "no_market"):
        sizes = tuple(policy.probe_wei // part for part in (1, *policy.smaller_divisors))
        # No later time was tried. A caller who gets this verdict does not retry in a minute, so it covers a
        # day.
        return VerdictClaim(code, claim, (), sizes, at_s, at_s + policy.day_s)
    if claim == "nothing":
        return VerdictClaim(code, claim, (), (), at_s, at_s)
    judged = judge(evidence, policy)
    best = judged.best
    if best is None:
        return None
    if claim == "stuck":
        is_inconsistent = any(reading.inconsistent is True for reading in judged.readings)
        some_take = judged.verdict.code == code and any(
            takes_sells(reading, policy) for reading in judged.readings
        )
        bought = {_bought_raw(evidence, number) for number in range(len(evidence.venues))} - {0}
        received_raw = [reading.brought_raw for reading in judged.readings if reading.brought_raw]
        # Where sales end later, a sell before that is as claimed.
        stops = any(stops_selling(reading, policy) for reading in judged.readings)
        return VerdictClaim(
            code,
            "held" if some_take else "stuck",
            tuple(sorted(bought)),
            (),
            at_s + policy.hour_s if stops else at_s,
            at_s + policy.day_s,
            sometimes=is_inconsistent,
            places=_places(evidence),
            # Where it is cheapest: a way out brings half of that.
            paid=(policy.probe_wei, max(received_raw, default=0)),
        )
    line_bps = policy.warn_loss_bps if code == "ok" else policy.danger_loss_bps
    until_s = at_s + _longest_s(judged.readings[best], policy)
    waits = _waits(judged.readings[best], policy)
    line = None if level == "danger" else line_bps
    sizes, place = _sold_sizes(evidence, best), evidence.venues[best].venue.at()
    places = () if place is None else (place,)
    return VerdictClaim(code, claim, sizes, (), at_s, until_s, line, waits=waits, places=places)


def _places(evidence: Evidence) -> tuple[str, ...]:
    places = (venue.venue.at() for venue in evidence.venues)
    return tuple(place for place in places if place is not None)


def _bought_raw(evidence: Evidence, number: int) -> int:
    """What the judged buy received on a venue; 0: nothing."""
    venue = evidence.venues[number]
    size = main_size(venue)
    received_raw = (
        buy.outcome.received_raw
        for buy in venue.buys
        if buy.size == size and isinstance(buy.outcome, CompletedBuy)
    )
    return next(received_raw, 0)


def _sold_sizes(evidence: Evidence, best: int) -> tuple[int, ...]:
    """The amounts sold on the best venue, without the large ones, which decide no code."""
    sizes = {
        cell.outcome.planned_raw
        for cell in evidence.venues[best].cells
        if isinstance(cell.outcome, Sold) and cell.probe.size != "large"
    }
    return tuple(sorted(size for size in sizes if size > 0))


def _longest_s(reading: VenueReading, policy: Policy) -> int:
    """The longest delay after which enough of it sold."""
    delays = ((policy.day_s, reading.day), (policy.hour_s, reading.hour))
    return next((delay_s for delay_s, sell in delays if enough(sell, policy)), policy.later_s)


def _waits(reading: VenueReading, policy: Policy) -> bool:
    """Whether too little sold before the longest delay after which enough did."""
    by_delay = [enough(sell, policy) for sell in (reading.full, reading.hour, reading.day)]
    return True in by_delay and False in by_delay[: len(by_delay) - by_delay[::-1].index(True)]


# --- what happened ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RealTrade:
    """One plain wallet's real trade. ``at``: the pool or curve. ``token_raw``: the token out of the wallet,
    or into it (a buy). ``worth_wei``: the price paid or received; None: unknown. ``cost_bps``: the sell's
    loss against the price before it, tax and fees included; None: unknown. ``held_before``: it bought before
    the verdict's block. ``new_place``: its place was opened, or filled, after the verdict."""

    buys: bool
    at: str
    block_number: int
    at_s: int
    tx_hash: TxHash
    wallet: Address
    token_raw: int
    worth_wei: int | None
    cost_bps: int | None
    held_before: bool = True
    new_place: bool = False


@dataclass(frozen=True, slots=True)
class LaterCheck:
    """A later check of the same token that contradicts the verdict, and its block. ``stuck``: it found that
    the token cannot be sold."""

    block_number: int
    at_s: int
    code: str
    stuck: bool


@dataclass(frozen=True, slots=True)
class FailedSell:
    """A plain wallet's real sell that failed. ``token_raw``: the amount that was simulated. ``refused``: its
    sell without limits of its own was refused, too, on the state before its block; False: not found out."""

    block_number: int
    at_s: int
    tx_hash: TxHash
    wallet: Address
    token_raw: Numeric
    refused: bool = True


@dataclass(frozen=True, slots=True)
class VerdictScore:
    """The result for a verdict. The fields after ``cause`` are of the trade, or the check, that decided
    it."""

    outcome: Outcome
    cause: Cause
    block_number: int | None = None
    at_s: int | None = None
    tx_hash: TxHash | None = None
    wallet: Address | None = None
    cost_bps: int | None = None


def cost_bps(sold_raw: int, quote_raw: int, price: Fraction | None) -> int | None:
    """A sell's loss against the price before it, rounded up: ``price`` in the quote's base units for one of
    the token. Negative: it got more, capped at twice as much. None: the price is unknown."""
    if price is None or sold_raw <= 0 or price <= 0:
        return None
    fair = sold_raw * price
    # The price of an empty pool can be off by any factor, which no column could hold.
    return -min(BPS, int((quote_raw - fair) * BPS // fair))


def tax_bps(left_raw: int, reached_raw: int) -> int:
    """The part of ``left_raw``, above zero, that did not reach the pool, rounded up."""
    return -((reached_raw - left_raw) * BPS // left_raw)


def score_claim(
    claim: VerdictClaim,
    trades: Sequence[RealTrade],
    later_checks: Sequence[LaterCheck] = (),
    failed: Sequence[FailedSell] = (),
) -> VerdictScore:
    """The score of a verdict. ``trades``: in the order of the chain, of plain wallets only. Trades of another
    size or time are left out here. Pure and deterministic."""
    relevant = [
        trade for trade in trades if claim.from_s <= trade.at_s <= claim.until_s and _fits(claim, trade)
    ]
    if claim.claim == "nothing":
        return VerdictScore("undecided", "silent")
    # Sells that come too early fail as claimed; how long a wallet had waited is not examined.
    failures = [
        sell
        for sell in failed
        if claim.from_s <= sell.at_s <= claim.until_s and claim.fits(sell.token_raw) and not claim.waits
    ]
    if claim.claim in SELLABLE:
        return _score_sellable(claim, [trade for trade in relevant if not trade.buys], later_checks, failures)
    if claim.claim in ("stuck", "held"):
        return _score_stuck(claim, [trade for trade in relevant if not trade.buys], later_checks)
    if claim.claim == "no_buy":
        relevant = [trade for trade in relevant if trade.buys]
    # A place that was opened or filled later does not contradict it.
    contradicting = next((trade for trade in relevant if not trade.new_place), None)
    if contradicting is None:
        return VerdictScore("undecided", "no_sell")
    return _decided_by("wrong", "bought" if claim.claim == "no_buy" else "traded", contradicting)


def _fits(claim: VerdictClaim, trade: RealTrade) -> bool:
    if claim.sizes_raw:
        return claim.fits(trade.token_raw)
    return trade.worth_wei is not None and claim.fits(trade.worth_wei)


def _score_sellable(
    claim: VerdictClaim,
    sells: Sequence[RealTrade],
    later_checks: Sequence[LaterCheck],
    failed: Sequence[FailedSell],
) -> VerdictScore:
    """A claim that it can be sold: contradictions come first."""
    refused = [sell for sell in failed if sell.refused]
    if refused:
        first = refused[0]
        return VerdictScore("wrong", "failed", first.block_number, first.at_s, first.tx_hash, first.wallet)
    # Anyone can arrange a cost elsewhere, in a pool of their own; and the cost of selling more than was tried
    # is the seller's own doing.
    own_sells = [sell for sell in sells if sell.at in claim.places]
    largest_raw = max(claim.sizes_raw, default=0)
    costly = [sell for sell in own_sells if _is_costly(claim, sell) and sell.token_raw <= largest_raw]
    if costly:
        return _decided_by("wrong", "cost", costly[0])
    good = [sell for sell in own_sells if sell.cost_bps is not None and not _is_costly(claim, sell)]
    stuck_check = next((check for check in later_checks if check.stuck and check.at_s <= claim.until_s), None)
    if stuck_check is not None and not any(sell.block_number >= stuck_check.block_number for sell in good):
        return VerdictScore("wrong", "turned", stuck_check.block_number, stuck_check.at_s)
    if claim.claim == "costs":
        return VerdictScore("undecided", "one_leg" if sells else "no_sell")
    # What nobody found out may be the token's doing.
    if good and not failed:
        return _decided_by("right", "sold", good[0])
    return VerdictScore("undecided", "not_told" if sells or failed else "no_sell")


def _is_costly(claim: VerdictClaim, sell: RealTrade) -> bool:
    return claim.line_bps is not None and sell.cost_bps is not None and sell.cost_bps >= claim.line_bps


def _score_stuck(
    claim: VerdictClaim, sells: Sequence[RealTrade], later_checks: Sequence[LaterCheck]
) -> VerdictScore:
    """A claim that it cannot be sold. A claim about its holders is tested by their sells alone."""
    contradicting = [
        sell for sell in sells if claim.is_way_out(sell) and (claim.claim == "stuck" or sell.held_before)
    ]
    if claim.sometimes and contradicting:
        return VerdictScore("undecided", "sometimes")
    if contradicting:
        first = contradicting[0]
        has_changed = first.new_place or any(
            not check.stuck and check.block_number <= first.block_number for check in later_checks
        )
        return _decided_by("wrong", "changed" if has_changed else "sold", first)
    # The absence of sells proves nothing, and failed sells of an unsellable token are not reported.
    return VerdictScore("undecided", "no_sell")


def _decided_by(outcome: Outcome, cause: Cause, trade: RealTrade) -> VerdictScore:
    return VerdictScore(
        outcome, cause, trade.block_number, trade.at_s, trade.tx_hash, trade.wallet, trade.cost_bps
    )  # fmt: skip


# --- in words --------------------------------------------------------------------------------------

WHY: dict[tuple[Outcome, Cause], str] = {
    ("right", "sold"): "A plain wallet really sold that much, and lost no more than the verdict allows.",
    ("wrong", "sold"): "A plain wallet really sold it, although the verdict said that it cannot be sold. "
    "Either the verdict was wrong at its block, or something changed within the day; both count.",
    ("wrong", "changed"): "The verdict held at its block, and something changed within the day: a plain "
    "wallet really sold it.",
    ("wrong", "cost"): "A plain wallet really sold it, and lost far more than the verdict said.",
    ("wrong", "failed"): "A plain wallet's real sell of such an amount failed, for no reason of its own.",
    ("wrong", "bought"): "A plain wallet really bought it, although the verdict said that every buy fails.",
    ("wrong", "traded"): "A plain wallet really traded it, although the verdict said that no one could.",
    ("wrong", "turned"): "A later check of ours, within the time that the verdict covers, found that it "
    "could not be sold. We saw no sell by a plain wallet after that.",
    ("undecided", "no_sell"): "We saw no plain wallet trade such an amount in that time.",
    ("undecided", "not_told"): "There were such sells, but elsewhere, at a cost that is not known, or one "
    "failed for a reason that is not known.",
    ("undecided", "one_leg"): "There were such sells, but one sell does not show what a round trip costs.",
    ("undecided", "sometimes"): "The verdict said that it sells only sometimes: one sell does not "
    "contradict that.",
    ("undecided", "silent"): "The verdict said that nothing was proven: there is nothing to confirm or "
    "contradict.",
    ("undecided", "not_followed"): "The index does not have all blocks of that time.",
    ("undecided", "unreadable"): "Its evidence has an older format, or no longer shows what was tried.",
}  # fmt: skip
"""The sentence for each outcome and cause that occur together."""


def sentence(score: VerdictScore) -> str:
    """Why a verdict got its score, with the figure that decided."""
    text = WHY[score.outcome, score.cause]
    if score.cost_bps is None or score.cause not in ("sold", "cost"):
        return text
    if score.cost_bps < 0:
        return f"{text} That sell paid more than the price before it."
    return f"{text} That sell lost {format_percent(score.cost_bps)} against the price before it."
