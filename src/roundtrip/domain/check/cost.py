"""The cost of a round trip: the pool's fees, the token's taxes, price impact. In bps; None: not known."""

from dataclasses import dataclass

from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.base.venue import PoolFacts

from .buy_math import outputs_of_buys
from .curve import MAX_TAKEN_BPS
from .evidence import (
    AnyLaunch,
    CompletedBuy,
    Curve,
    Evidence,
    HookCarry,
    LaunchRecord,
    Missing,
    Size,
    VenueEvidence,
)
from .sales import Sale
from .venue_reading import VenueReading

ROUNDING_BPS = 3
"""The most that rounding adds: losses are rounded up, leg by leg."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost on the venue that an answer shows. ``round_trip_bps``: the loss of buying at ``size`` and
    selling all at once. ``taken_bps``: the loss of a trip too small to move the price; it is the sum of
    ``pool_bps``, which the pool or the launchpad keeps, and ``tax_bps``. ``buy_tax_bps`` and ``sell_tax_bps``
    are shares of one way alone, from the launchpad's contract or computed from what arrived. ``impact_bps``:
    how many fewer tokens a buy of this size gets than a small one; an immediate sell gets that back."""

    size: Size | None
    round_trip_bps: int | None
    taken_bps: int | None
    pool_bps: int | None
    tax_bps: int | None
    buy_tax_bps: int | None
    sell_tax_bps: int | None
    impact_bps: int | None


def cost_of(evidence: Evidence, number: int, reading: VenueReading) -> Cost | None:
    """The cost on venue ``number``; None where nothing was bought there."""
    if reading.status != "bought":
        return None
    venue = evidence.venues[number]
    taken = reading.fees_bps if isinstance(reading.fees_bps, int) else None
    if venue.venue.traits.is_launchpad:
        pool, tax, buy, sell = _by_launchpad(evidence.launch, taken)
    else:
        pool = _pool_bps(venue, reading)
        tax = None if pool is None or taken is None else _beyond(taken, pool)
        buy, sell = _each_way(venue, evidence.token, taken, pool, tax)
    return Cost(
        size=reading.size,
        round_trip_bps=reading.full.loss_bps if isinstance(reading.full, Sale) else None,
        taken_bps=taken,
        pool_bps=pool,
        tax_bps=tax,
        buy_tax_bps=buy,
        sell_tax_bps=sell,
        impact_bps=reading.impact_bps if isinstance(reading.impact_bps, int) else None,
    )


def _beyond(taken_bps: int, stated_bps: int) -> int:
    """What was taken beyond the stated share; 0 where that is only rounding."""
    rest = taken_bps - stated_bps
    return 0 if rest <= ROUNDING_BPS else rest


def _both_ways(buy_bps: int, sell_bps: int) -> int:
    """The share of a round trip that one share of each way takes together, rounded up."""
    return -(-(BPS * BPS - (BPS - buy_bps) * (BPS - sell_bps)) // BPS)


def _by_launchpad(
    launch: AnyLaunch | Missing | None, taken_bps: int | None
) -> tuple[int | None, int | None, int | None, int | None]:
    """The launchpad's fees, the tax of a round trip, of the buy and of the sell, as its contract states them.
    Where more was taken than stated, the taxes of the single ways are None."""
    if not isinstance(launch, LaunchRecord):
        return None, None, None, None
    state, creator_bps = launch.curve_state, launch.creator_tax_bps
    fee_bps = state.fee_bps if isinstance(state, Curve) else launch.hook_fee_bps
    if fee_bps is None or (launch.phase == "curve" and not isinstance(state, Curve)):
        return None, None, None, None
    snipe_bps = state.snipe_bps if isinstance(state, Curve) and not state.closed else 0
    buy_bps = min(MAX_TAKEN_BPS - fee_bps, creator_bps + snipe_bps)
    pool_bps = _both_ways(fee_bps, fee_bps)
    stated_bps = max(0, _both_ways(fee_bps + buy_bps, fee_bps + creator_bps) - pool_bps)
    if taken_bps is None:
        # The token's own tax was not measured.
        return pool_bps, None, buy_bps, creator_bps
    measured_bps = _beyond(taken_bps, pool_bps)
    if measured_bps > stated_bps + ROUNDING_BPS:
        return pool_bps, measured_bps, None, None
    return pool_bps, stated_bps, buy_bps, creator_bps


def _pool_bps(venue: VenueEvidence, reading: VenueReading) -> int | None:
    """The pool's share of a round trip. For a pool with a hook it can be separated from the token's taxes
    only where the tax on the token's own transfers was measured."""
    is_measured = isinstance(venue.carried, HookCarry) and isinstance(reading.fees_bps, int)
    if venue.venue.keeps_by_hook() and not is_measured:
        return None
    return reading.pool_fee_bps if isinstance(reading.pool_fee_bps, int) else None


def _each_way(
    venue: VenueEvidence, token: Address, taken_bps: int | None, pool_bps: int | None, tax_bps: int | None
) -> tuple[int | None, int | None]:
    """The tax of the buy and of the sell."""
    if tax_bps is None or taken_bps is None or pool_bps is None:
        return None, None
    if tax_bps == 0:
        return 0, 0
    if isinstance(venue.carried, HookCarry):
        moved = max(1, venue.carried.moved_raw)
        moved_raws = (venue.carried.received_raw, venue.carried.arrived_raw)
        buy, sell = (_round_share(BPS - way * BPS // moved) for way in moved_raws)
        return buy, sell
    buy = _bought_less(venue, token)
    share_after_buy = (BPS - pool_bps) * (BPS - (buy or 0))
    if buy is None or share_after_buy <= 0:
        return None, None
    sell = _round_share(BPS - (BPS - taken_bps) * BPS * BPS // share_after_buy)
    return (None, None) if sell is None else (buy, sell)


def _round_share(share_bps: int) -> int | None:
    """The share; None where it is below zero by more than rounding: then the computation does not apply."""
    if share_bps < -ROUNDING_BPS:
        return None
    return 0 if share_bps <= ROUNDING_BPS else share_bps


def _bought_less(venue: VenueEvidence, token: Address) -> int | None:
    """How much less a small buy brought than the pool's formula gives, as a share of the latter."""
    outcomes = (b.outcome for b in venue.buys if b.size == "thousandth" and b.environment == 0)
    bought = next(outcomes, None)
    if not isinstance(bought, CompletedBuy) or not isinstance(venue.facts, PoolFacts):
        return None
    given = outputs_of_buys(venue.venue, venue.facts, None, token, [bought.paid_raw])
    given_raw = given[0] if given else 0
    return None if given_raw <= 0 else _round_share(BPS - bought.received_raw * BPS // given_raw)
