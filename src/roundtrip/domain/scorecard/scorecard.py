"""Whether a verdict was right, by what plain wallets really did later. A reading of stored evidence.

Strangers tell by this whether we are honest, so every doubt goes against us or is counted apart:

- A real sell speaks for or against a verdict only if it was of a size that was tried, in the time that the
  verdict spoke of, by a wallet that is nobody's behind the token and bought what it sold in the market.
- Undecided is a count of its own. It is never added to what was right.
- What was true for its block and changed within the time that it spoke of was wrong, and is listed as that.

``docs/scorecard.md`` says the same for people.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Address, TxHash
from roundtrip.domain.check.evidence import CompletedBuy, Evidence, Sold
from roundtrip.domain.check.venue_code import enough, takes_sells
from roundtrip.domain.check.venue_reading import VenueReading, main_size
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.check.verdict_text import percent

Claim = Literal["sells", "costs", "stuck", "held", "no_buy", "no_market", "nothing"]
"""What a verdict said. ``sells``: it can be sold. ``costs``: it can, at a cost that is the verdict.
``stuck``: whoever buys cannot sell. ``held``: who holds it cannot, though a fresh wallet can. ``no_buy``: it
cannot be bought. ``no_market``: there is nowhere to trade it. ``nothing``: nothing that a sell could speak
for or against."""

Outcome = Literal["right", "wrong", "undecided"]
Cause = Literal[
    "sold", "changed", "cost", "failed", "bought", "traded", "turned",
    "no_sell", "not_told", "one_leg", "sometimes", "silent", "not_followed", "unreadable",
]  # fmt: skip
"""Why. The first line is of what is decided: a real sell went through, or did though it had changed by then;
it cost far more than was said; a real sell is known to have failed; it was bought; it was traded; a later
check found that it could not be sold any more. The second is of what is not: no such sell was seen; what one
came to cannot be told; one sell does not show what a round trip costs; it was said to sell only sometimes; it
said nothing; the index does not have those blocks; the evidence is of an older form."""

SIZE = 2
"""A size that was tried is spoken of by sells of half of it to twice as much."""
SETTLED_S = 600
"""Sells count that are so old: newer ones may be taken away by a reorganisation."""
HOUR_S = 3600
"""Of a token and a code one verdict an hour is scored, the first: what is asked most does not count most."""
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
CODES = (*_CLAIMS, "unproven")
"""What is scored: every code but ``quote_asset``, of which there is nothing to prove."""
PROVABLE = ("ok",)
"""Codes that a real trade can show to be right; of all others it can only show that they were wrong."""


@dataclass(frozen=True, slots=True)
class VerdictClaim:
    """What a verdict said, as far as trades can speak to it. ``sizes_raw``: amounts of the token that were
    tried; of ``no_buy`` and ``no_market`` ``sizes_wei``, what was offered for it. ``until_s``: the last
    second of the chain that it spoke of. ``places``: where it was tried, or where it sells best. ``paid``: so
    much wei bought so much of the token. ``line_bps``: a sell that loses as much was no part of it; None:
    there is no such line. ``waits``: it was said to sell later, and not at once."""

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

    def is_way_out(self, real: "RealTrade") -> bool:
        """Whether a sell shows a way out to whoever is stuck: where it was tried any sell does; elsewhere, as
        in a pool that takes it back for next to nothing, one that brings half of what buying it had cost."""
        if real.at in self.places:
            return True
        wei, raw = self.paid
        return real.worth_wei is not None and 2 * real.worth_wei * raw >= wei * real.token_raw > 0

    def fits(self, size: int) -> bool:
        """Whether a trade was of a size that was tried."""
        return any(one <= size * SIZE and size <= one * SIZE for one in self.sizes_raw or self.sizes_wei)


def claim_of(evidence: Evidence, code: str, level: str, policy: Policy) -> VerdictClaim | None:
    """What the verdict said that was stored as ``code`` and ``level``, which stands also where a newer policy
    judges the evidence otherwise: what was wrong stays wrong. None: of the evidence nothing can be told."""
    at_s = evidence.block.timestamp_s
    claim = _CLAIMS.get(code, "nothing")
    if claim in ("no_buy", "no_market"):
        sizes = tuple(policy.probe_wei // part for part in (1, *policy.smaller_divisors))
        # No later time was tried. Whoever is told so does not ask again in a minute: it is held to a day.
        return VerdictClaim(code, claim, (), sizes, at_s, at_s + policy.day_s)
    if claim == "nothing":
        return VerdictClaim(code, claim, (), (), at_s, at_s)
    judged = judge(evidence, policy)
    best = judged.best
    if best is None:
        return None
    if claim == "stuck":
        fickle = any(one.fickle is True for one in judged.readings)
        takes = judged.verdict.code == code and any(takes_sells(one, policy) for one in judged.readings)
        bought = {_bought_raw(evidence, number) for number in range(len(evidence.venues))} - {0}
        whole = [one.brought_raw for one in judged.readings if one.brought_raw]
        return VerdictClaim(
            code,
            "held" if takes else "stuck",
            tuple(sorted(bought)),
            (),
            at_s,
            at_s + policy.day_s,
            sometimes=fickle,
            places=_places(evidence),
            # Where it is cheapest: what brings half of that is a way out.
            paid=(policy.probe_wei, max(whole, default=0)),
        )
    line_bps = policy.warn_loss_bps if code == "ok" else policy.danger_loss_bps
    until_s = at_s + _longest_s(judged.readings[best], policy)
    waits = _waits(judged.readings[best], policy)
    line = None if level == "danger" else line_bps
    sizes, place = _sold_sizes(evidence, best), evidence.venues[best].venue.at()
    places = () if place is None else (place,)
    return VerdictClaim(code, claim, sizes, (), at_s, until_s, line, waits=waits, places=places)


def _places(evidence: Evidence) -> tuple[str, ...]:
    """Every place that was tried."""
    found = (one.venue.at() for one in evidence.venues)
    return tuple(at for at in found if at is not None)


def _bought_raw(evidence: Evidence, number: int) -> int:
    """What the judged buy brought on a venue; 0: nothing."""
    venue = evidence.venues[number]
    size = main_size(venue)
    found = (
        buy.outcome.received_raw
        for buy in venue.buys
        if buy.size == size and isinstance(buy.outcome, CompletedBuy)
    )
    return next(found, 0)


def _sold_sizes(evidence: Evidence, best: int) -> tuple[int, ...]:
    """The amounts that were sold where it sells best. Of the large ones the text speaks, not the code."""
    sizes = {
        cell.outcome.planned_raw
        for cell in evidence.venues[best].cells
        if isinstance(cell.outcome, Sold) and cell.probe.size != "large"
    }
    return tuple(sorted(one for one in sizes if one > 0))


def _longest_s(reading: VenueReading, policy: Policy) -> int:
    """The longest delay after which enough of it sold."""
    delays = ((policy.day_s, reading.day), (policy.hour_s, reading.hour))
    return next((delay_s for delay_s, sell in delays if enough(sell, policy)), policy.later_s)


def _waits(reading: VenueReading, policy: Policy) -> bool:
    """Whether too little of it sold before the longest delay after which enough did."""
    by_delay = [enough(sell, policy) for sell in (reading.full, reading.hour, reading.day)]
    return True in by_delay and False in by_delay[: len(by_delay) - by_delay[::-1].index(True)]


# --- what happened ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RealTrade:
    """One plain wallet's real trade. ``at``: in which pool or curve. ``token_raw``: of the token out of the
    wallet, or into it (a buy). ``worth_wei``: what was paid or got for it; None: not known. ``cost_bps``:
    what the sell lost against the price before it, tax and fees in it; None: that cannot be told.
    ``held_before``: it bought before the verdict's block. ``new_place``: where it traded was opened, or
    filled, after the verdict."""

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
    """A later check of the same token that says otherwise, and of which block. ``stuck``: that it cannot be
    sold."""

    block_number: int
    at_s: int
    code: str
    stuck: bool


@dataclass(frozen=True, slots=True)
class FailedSell:
    """A plain wallet's sell that is known to have failed, for no reason of its own: so much of the token."""

    block_number: int
    at_s: int
    tx_hash: TxHash
    wallet: Address
    token_raw: int


@dataclass(frozen=True, slots=True)
class VerdictScore:
    """What became of a verdict. The rest is of the trade, or the check, that decided it."""

    outcome: Outcome
    cause: Cause
    block_number: int | None = None
    at_s: int | None = None
    tx_hash: TxHash | None = None
    wallet: Address | None = None
    cost_bps: int | None = None


def cost_bps(sold_raw: int, quote_raw: int, price: Fraction | None) -> int | None:
    """What a sell lost against the price before it, rounded up: ``price`` in the quote's base units for one
    of the token. Below zero: it got more; twice as much and whatever is above that are one. None: the price
    is not known."""
    if price is None or sold_raw <= 0 or price <= 0:
        return None
    fair = sold_raw * price
    # A price that ran through an empty pool is off by any factor: no column holds that.
    return -min(BPS, int((quote_raw - fair) * BPS // fair))


def tax_bps(left_raw: int, reached_raw: int) -> int:
    """What of ``left_raw``, above zero, did not reach the pool, rounded up."""
    return -((reached_raw - left_raw) * BPS // left_raw)


def weigh(
    said: VerdictClaim,
    reals: Sequence[RealTrade],
    turned: Sequence[LaterCheck] = (),
    failed: Sequence[FailedSell] = (),
) -> VerdictScore:
    """What a verdict comes to. ``reals``: in the order of the chain, of plain wallets only. What does not fit
    its size or its time is left out here. Pure, and the same whenever it is asked."""
    spoken = [one for one in reals if said.from_s <= one.at_s <= said.until_s and _fits(said, one)]
    if said.claim == "nothing":
        return VerdictScore("undecided", "silent")
    failures = [one for one in failed if said.from_s <= one.at_s <= said.until_s and said.fits(one.token_raw)]
    if said.claim in ("sells", "costs"):
        return _of_sells(said, [one for one in spoken if not one.buys], turned, failures)
    if said.claim in ("stuck", "held"):
        return _of_stuck(said, [one for one in spoken if not one.buys], turned)
    if said.claim == "no_buy":
        spoken = [one for one in spoken if one.buys]
    # What was opened or filled later is no word against it.
    against = next((one for one in spoken if not one.new_place), None)
    if against is None:
        return VerdictScore("undecided", "no_sell")
    return _by("wrong", "bought" if said.claim == "no_buy" else "traded", against)


def _fits(said: VerdictClaim, real: RealTrade) -> bool:
    if said.sizes_raw:
        return said.fits(real.token_raw)
    return real.worth_wei is not None and said.fits(real.worth_wei)


def _of_sells(
    said: VerdictClaim, sells: Sequence[RealTrade], turned: Sequence[LaterCheck], failed: Sequence[FailedSell]
) -> VerdictScore:
    """Of a verdict that it can be sold: whatever speaks against it comes first."""
    # Who sells too early meets what was said; how long a wallet had waited is not looked at.
    if failed and not said.waits:
        one = failed[0]
        return VerdictScore("wrong", "failed", one.block_number, one.at_s, one.tx_hash, one.wallet)
    # What it costs elsewhere anybody can arrange, in a pool of his own. Who sells more than was tried has
    # himself to thank for it.
    own = [one for one in sells if one.at in said.places]
    most_raw = max(said.sizes_raw, default=0)
    dear = [one for one in own if _is_dear(said, one) and one.token_raw <= most_raw]
    if dear:
        return _by("wrong", "cost", dear[0])
    good = [one for one in own if one.cost_bps is not None and not _is_dear(said, one)]
    stuck = next((one for one in turned if one.stuck and one.at_s <= said.until_s), None)
    if stuck is not None and not any(one.block_number >= stuck.block_number for one in good):
        return VerdictScore("wrong", "turned", stuck.block_number, stuck.at_s)
    if said.claim == "costs":
        return VerdictScore("undecided", "one_leg" if sells else "no_sell")
    if good:
        return _by("right", "sold", good[0])
    return VerdictScore("undecided", "not_told" if sells else "no_sell")


def _is_dear(said: VerdictClaim, sell: RealTrade) -> bool:
    return said.line_bps is not None and sell.cost_bps is not None and sell.cost_bps >= said.line_bps


def _of_stuck(said: VerdictClaim, sells: Sequence[RealTrade], turned: Sequence[LaterCheck]) -> VerdictScore:
    """Of a verdict that it cannot be sold. What was said of those who hold it is spoken of by them alone."""
    against = [one for one in sells if said.is_way_out(one) and (said.claim == "stuck" or one.held_before)]
    if said.sometimes and against:
        return VerdictScore("undecided", "sometimes")
    if against:
        first = against[0]
        changed = first.new_place or any(
            not one.stuck and one.block_number <= first.block_number for one in turned
        )
        return _by("wrong", "changed" if changed else "sold", first)
    # That nobody sold proves nothing, and who failed to sell what cannot be sold is told of by nobody.
    return VerdictScore("undecided", "no_sell")


def _by(outcome: Outcome, cause: Cause, real: RealTrade) -> VerdictScore:
    return VerdictScore(
        outcome, cause, real.block_number, real.at_s, real.tx_hash, real.wallet, real.cost_bps
    )  # fmt: skip


# --- in words --------------------------------------------------------------------------------------

WHY: dict[tuple[Outcome, Cause], str] = {
    ("right", "sold"): "A plain wallet really sold so much of it, and lost no more than the verdict allows.",
    ("wrong", "sold"): "A plain wallet really sold what was said to be stuck. Either it was wrong "
    "at its block, or something changed within the day; both count.",
    ("wrong", "changed"): "It held for its block and changed within the day: a plain wallet really sold it.",
    ("wrong", "cost"): "A plain wallet really sold it, and lost far more than was said.",
    ("wrong", "failed"): "A plain wallet's real sell of so much failed, for no reason of its own.",
    ("wrong", "bought"): "A plain wallet really bought what was said to refuse every buy.",
    ("wrong", "traded"): "A plain wallet really traded it where it was said that nobody could.",
    ("wrong", "turned"): "Within the time that it spoke of, a later check of ours found that it could not be "
    "sold, and no plain wallet's sell was seen after that.",
    ("undecided", "no_sell"): "No plain wallet was seen trading such an amount in that time.",
    ("undecided", "not_told"): "There were such sells, elsewhere or at a cost that cannot be told.",
    ("undecided", "one_leg"): "There were such sells; one sell alone does not show what a round trip costs.",
    ("undecided", "sometimes"): "It was said to sell only sometimes: one sell does not speak against that.",
    ("undecided", "silent"): "It said that nothing was proven: nothing can speak for or against it.",
    ("undecided", "not_followed"): "The index does not have all blocks of that time.",
    ("undecided", "unreadable"): "Its evidence is of an older form, or no longer tells what was tried.",
}  # fmt: skip
"""What is said of each outcome and cause that can be together."""


def sentence(score: VerdictScore) -> str:
    """Why it came to that, with the figure that decided."""
    text = WHY[score.outcome, score.cause]
    if score.cost_bps is None or score.cause not in ("sold", "cost"):
        return text
    if score.cost_bps < 0:
        return f"{text} That sell brought more than the price before it."
    return f"{text} That sell lost {percent(score.cost_bps)} against the price before it."
