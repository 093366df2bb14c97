"""The code and level of one venue by its costs, and the ranking of venues."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import TRAITS, PoolFacts

from .evidence import MarketRates, Missing, RefusedCall, VenueEvidence
from .price import quote_in_wei
from .sales import Sale, SellResult
from .venue_reading import VenueReading

Level = Literal["ok", "warn", "danger", "unknown"]
Rank = tuple[int, int, bool]
"""As ``rank_of``; the smaller one is better."""


def enough(result: SellResult, policy: Policy) -> bool:
    """True for a sell of at least the policy's sellable share."""
    return isinstance(result, Sale) and result.share_bps >= policy.sellable_share_bps


def takes_sells(reading: VenueReading, policy: Policy) -> bool:
    """True when some probe sold enough within a day, equal blocks gave equal results, and sales do not end
    within the hour."""
    return (
        reading.inconsistent is not True
        and not stops_selling(reading, policy)
        and any(enough(sell, policy) for sell in reading.sells())
    )


def stops_selling(reading: VenueReading, policy: Policy) -> bool:
    """True where enough of it sells at once, and not enough after an hour nor after a day: what is held is
    lost. A result that is missing, or was not tried, is no refusal."""
    soon, *laters = zip(reading.whole_sells(), reading.nearly_sells(), strict=True)
    return (
        any(enough(sell, policy) for sell in soon)
        and all(
            isinstance(whole, Sale | RefusedCall)
            and not isinstance(nearly, Missing)
            and not (enough(whole, policy) or enough(nearly, policy))
            for whole, nearly in laters
        )
        and not enough(reading.pieces, policy)
    )


def has_stopped(reading: VenueReading, held_s: int, policy: Policy) -> bool:
    """True where ``stops_selling`` holds for what was bought so long ago: from the first later sell on that
    was tried and refused. Before that, it is not known when it stops."""
    return held_s >= policy.hour_s and stops_selling(reading, policy)


def sells_nearly_all(sell: SellResult, policy: Policy) -> bool:
    """True for a sell of at least the smallest share that counts as nearly all."""
    return isinstance(sell, Sale) and sell.share_bps >= policy.nearly_bps[-1]


def needs_pieces(reading: VenueReading, policy: Policy) -> bool:
    """True where the venue refuses, or cuts, the sales that are known, and none of them sold enough: then a
    larger number of smaller sales decides whether it takes sells."""
    tried = any(isinstance(sell, Sale | RefusedCall) for sell in reading.single_sells())
    return (
        reading.status == "bought" and tried and reading.inconsistent is not True
        and not any(enough(sell, policy) for sell in reading.single_sells())
    )  # fmt: skip


def sells_in_pieces_only(reading: VenueReading, policy: Policy) -> bool:
    """True where the pieces sold enough and no single sale did, nor one at any hour more than they."""
    return (
        enough(reading.pieces, policy)
        and needs_pieces(reading, policy)
        and not sells_at_some_hours_only(reading, policy)
    )


def sells_at_some_hours_only(reading: VenueReading, policy: Policy) -> bool:
    """True where one sale sold enough at some moment of the day, and more than the pieces, and a sale now,
    after an hour and after a day did not."""
    in_pieces_bps = reading.pieces.share_bps if isinstance(reading.pieces, Sale) else 0
    return (
        isinstance(reading.any_hour, Sale)
        and enough(reading.any_hour, policy)
        and reading.any_hour.share_bps > in_pieces_bps
        and not any(enough(sell, policy) for sell in reading.single_sells())
    )


def sells_by_second_route_only(reading: VenueReading, policy: Policy) -> bool:
    """True where the second route sold enough and nothing else did."""
    others = (*reading.single_sells(), reading.pieces, reading.any_hour)
    return enough(reading.route, policy) and not any(enough(sell, policy) for sell in others)


def refuses_others(reading: VenueReading) -> bool:
    """True where a wallet cannot sell what the buyer sent it. A token that cannot be sent at all is none of
    these: it sells where it is."""
    handed = reading.handed_on
    return isinstance(handed, RefusedCall) and handed.step in ("approve", "sell")


def refuses_again(reading: VenueReading, policy: Policy) -> bool:
    """True where a wallet that traded it before cannot sell what it buys again, not even an hour later. Where
    it cannot buy again, it loses nothing, and where a sell needs more gas than it has, it says nothing."""
    again = reading.traded_before
    if reading.most_gas > policy.piece_gas_limit:
        return False
    return isinstance(again, RefusedCall) and again.step in ("approve", "sell")


def loses_more(sell: SellResult, reading: VenueReading, policy: Policy) -> bool:
    """True for a sell beside the main wallet's that went through and lost much more than it. What was sent to
    another wallet moved once more: a tax on that counts from the line for a warning."""
    if not isinstance(sell, Sale) or not isinstance(reading.full, Sale):
        return False
    if sell is reading.handed_on and sell.loss_bps < policy.warn_loss_bps:
        return False
    # A wallet that traded before got its first tokens a day earlier.
    alike = reading.whole_sells() if sell is reading.traded_before else (reading.full,)
    known_bps = [other.loss_bps for other in alike if isinstance(other, Sale)]
    return sell.loss_bps > max(0, *known_bps) + policy.crowd_margin_bps


def fee_like_bps(reading: VenueReading, policy: Policy) -> int:
    """The largest loss that is not price impact: of the small round trip, a launch's first tax, and the sells
    that count.

    These are the sells of all and of nearly all at once, after an hour and after a day, and of half where not
    enough sells at once. Pieces, a sale at any hour and the second route count where none of these sells
    enough. What a wallet of the crowd loses for what it is, or for what others do, counts always.
    """
    counted: list[SellResult] = [*reading.whole_sells(), *reading.nearly_sells()]
    if not (enough(reading.full, policy) or enough(reading.nearly, policy)):
        counted.append(reading.half)
    if not any(enough(sell, policy) for sell in counted):
        counted += [reading.pieces, reading.any_hour, reading.route]
    losses = [s.loss_bps for s in counted if isinstance(s, Sale) and enough(s, policy)]
    losses.append(0 if reading.crowd is None else reading.crowd.loss_bps)
    return max([bps_or_zero(reading.fees_bps), bps_or_zero(reading.first_tax_bps), *losses])


def at_once_bps(reading: VenueReading) -> int:
    """The most that is lost at once: of all or nearly all of it, of the small round trip, and by a launch's
    first tax."""
    sold_bps = [sell.loss_bps for sell in (reading.full, reading.nearly) if isinstance(sell, Sale)]
    return max([*sold_bps, bps_or_zero(reading.fees_bps), bps_or_zero(reading.first_tax_bps), 0])


def find_later_loss(reading: VenueReading, loss_bps: int) -> Literal["an hour", "a day"] | None:
    """After how long a sell of all or nearly all of it loses that much, where nothing does at once; None:
    after none."""
    if loss_bps > at_once_bps(reading):
        if any(isinstance(s, Sale) and s.loss_bps == loss_bps for s in (reading.hour, reading.nearly_hour)):
            return "an hour"
        if any(isinstance(s, Sale) and s.loss_bps == loss_bps for s in (reading.day, reading.nearly_day)):
            return "a day"
    return None


def bps_or_zero(figure: int | Missing | None) -> int:
    """The figure; 0 where it is not known."""
    return figure if isinstance(figure, int) else 0


def is_lost_between_pools(reading: VenueReading) -> bool:
    """True where what is bought on the cheapest venue loses more here than the price impact."""
    return bps_or_zero(reading.cross_venue_loss_bps) > bps_or_zero(reading.impact_bps)


@dataclass(frozen=True, slots=True)
class LossParts:
    """The parts of a round trip's loss: the pool's fee, price impact, and the token's taxes."""

    worst_bps: int
    pool_fee_bps: int
    impact_bps: int
    tax_bps: int

    def largest(self) -> str:
        """The code of the largest part, below the danger line."""
        named = {"toll_pool": self.pool_fee_bps, "thin_pool": self.impact_bps, "high_fees": self.tax_bps}
        return max(named, key=lambda code: named[code])


def pool_fee_of(reading: VenueReading) -> int:
    """The pool's fee; 0 where it is not known."""
    return bps_or_zero(reading.pool_fee_bps)


def split(fee_like: int, impact_bps: int, pool_fee_bps: int) -> LossParts:
    """Splits a loss: apart from price impact, the pool keeps its fee and taxes are the rest."""
    return LossParts(max(fee_like, impact_bps), pool_fee_bps, impact_bps, max(0, fee_like - pool_fee_bps))


def parts(reading: VenueReading, policy: Policy) -> LossParts:
    """The worst loss of a venue that takes the sell, in parts. A cross-venue loss counts as price impact."""
    impact = max(bps_or_zero(reading.impact_bps), bps_or_zero(reading.cross_venue_loss_bps))
    return add_beside(split(fee_like_bps(reading, policy), impact, pool_fee_of(reading)), reading)


def add_beside(losses: LossParts, reading: VenueReading) -> LossParts:
    """The parts, with ``beside_bps``."""
    return replace(
        losses,
        worst_bps=max(losses.worst_bps, beside_bps(reading)),
        pool_fee_bps=max(losses.pool_fee_bps, reading.toll_beside_bps),
        tax_bps=max(losses.tax_bps, reading.tax_beside_bps),
    )


def beside_bps(reading: VenueReading) -> int:
    """What buyers on the venue that sells cheapest lose at least, whether they sell there or here; 0: less
    than is warned of."""
    return max(reading.toll_beside_bps, reading.tax_beside_bps)


def is_lost_beside(reading: VenueReading, policy: Policy) -> bool:
    """True where ``beside_bps`` is the venue's worst loss, and so decides."""
    return 0 < beside_bps(reading) == parts(reading, policy).worst_bps


def code_of(reading: VenueReading, policy: Policy) -> tuple[str, Level]:
    """Code and level of a venue that takes the sell. Level ok requires a buy of the usual size, that all of
    it sells at once and later, also at ten times that size, with much gas, by another wallet and after a
    round trip, that none of these loses much more, and that the venue on which a buy brings most takes
    sells, too, and loses no more."""
    code, level = code_of_parts(parts(reading, policy), policy)
    # A missing result is no pass either.
    other_sells = (reading.half, reading.sliver, reading.large, reading.much_gas)
    is_unsure = (
        any(isinstance(sell, RefusedCall | Missing) for sell in other_sells) or reading.size != "probe"
    )
    is_unsure = is_unsure or refuses_others(reading) or refuses_again(reading, policy)
    beside = (reading.handed_on, reading.much_gas, reading.little_gas, reading.traded_before)
    is_unsure = is_unsure or any(isinstance(sell, Missing) for sell in beside)
    is_unsure = is_unsure or any(loses_more(sell, reading, policy) for sell in beside)
    is_unsure = is_unsure or reading.refused_elsewhere is not None or reading.closing
    # A wallet that buys where it gets most may not get out whole with more than the probe.
    is_unsure = is_unsure or reading.trap_beside is not None
    is_unsure = is_unsure or (reading.crowd is not None and reading.crowd.warns())
    is_unsure = is_unsure or isinstance(reading.inconsistent, Missing)
    if code == "ok" and (is_unsure or group_of(reading, policy) != 0):
        return code, "warn"
    return code, level


def code_of_parts(parts: LossParts, policy: Policy) -> tuple[str, Level]:
    """Code and level from the losses alone."""
    if parts.worst_bps >= policy.warn_loss_bps:
        code = parts.largest()
        danger = parts.worst_bps >= policy.danger_loss_bps
        if code == "high_fees" and danger:
            code = "heavy_fees"
        return code, "danger" if danger else "warn"
    if parts.pool_fee_bps >= policy.toll_warn_bps:
        return "toll_pool", "warn"
    return "ok", "ok"


_GROUPS = 3
"""The number of groups of ``group_of``."""


def group_of(reading: VenueReading, policy: Policy) -> int:
    """The ranking group. 0: all of it sold at once, after an hour and after a day. 1: most of it at once. 2:
    only a part, or only later."""
    if not (enough(reading.full, policy) or sells_nearly_all(reading.nearly, policy)):
        return 2
    later = (reading.full, reading.hour, reading.day)
    return 0 if all(isinstance(sell, Sale) and sell.whole for sell in later) else 1


def rank(reading: VenueReading, policy: Policy) -> Rank:
    """The rank, smaller is better: first the group, then the value after a round trip. A pool that keeps half
    comes last."""
    return rank_of(group_of(reading, policy), parts(reading, policy).worst_bps, reading, policy)


def rank_of(group: int, worst_bps: int, reading: VenueReading, policy: Policy) -> Rank:
    """The rank of a venue that loses ``worst_bps``: the amount bought times the share left after the loss.

    By the loss alone a pool at an absurd price would win: tokens bought there at a thousand times the price
    sell back there for nearly as much. A pool with a rival hook must win by more than a margin. One that
    keeps half for itself comes after every other: any stranger can open it, and it sells all of the little
    that it brings. Who buys there because it brings most is warned by ``with_exits``.
    """
    margin = policy.rival_hook_margin_bps if reading.rival_hook else 0
    if pool_fee_of(reading) >= policy.danger_loss_bps:
        group += _GROUPS
    return group, -reading.brought_raw * (BPS - worst_bps - margin), reading.rival_hook


_LEVELS: tuple[Level, ...] = ("ok", "warn", "danger", "unknown")
_KINDS = tuple(TRAITS)


def tie_order(venues: Sequence[VenueEvidence], market: MarketRates) -> tuple[int, ...]:
    """The place of each venue where their results are equal, whatever their order in the evidence: the one
    with more money first, then by kind, then by its address or id."""

    def key(number: int) -> tuple[int, int, str, int]:
        venue, facts = venues[number].venue, venues[number].facts
        reserve_raw = facts.quote_reserve_raw if isinstance(facts, PoolFacts) else 0
        money_wei = quote_in_wei(reserve_raw, venue.quote, market) or 0
        return -money_wei, _KINDS.index(venue.kind), venue.at() or "", venue.fee_pips

    ranked = sorted(range(len(venues)), key=key)
    return tuple(ranked.index(number) for number in range(len(ranked)))


def best_venue(readings: Sequence[VenueReading], order: Sequence[int], policy: Policy) -> int | None:
    """The best-ranked venue among those that take the sell; None: there is none. ``order``: ``tie_order``.

    Results that differ by no more than 0.01 % are equal, since rounding can turn them. Of equal ones of one
    code, a venue without a stranger's hook is first, then the milder level, the smaller loss, and the order.
    """
    ranks = {
        number: rank(reading, policy)
        for number, reading in enumerate(readings)
        if reading.status == "bought" and takes_sells(reading, policy)
    }
    if not ranks:
        return None
    first = min(ranks, key=lambda number: (ranks[number], order[number]))
    group, score, _ = ranks[first]
    code, _ = code_of(readings[first], policy)

    def key(number: int) -> tuple[bool, int, int, int]:
        reading = readings[number]
        level = _LEVELS.index(code_of(reading, policy)[1])
        return reading.rival_hook, level, parts(reading, policy).worst_bps, order[number]

    equal = [
        number
        for number, (its_group, its_score, _) in ranks.items()
        if its_group == group
        and its_score <= score + abs(score) // BPS
        and code_of(readings[number], policy)[0] == code
    ]
    return min(equal, key=key)
