"""Random evidence with gaps, and gaps filled at random: what a verdict under doubt is held against.

Nothing here knows how the judge tries values. Pieces are filled where the node would have filled them:
buys, cells, pool states, token facts, what was carried past a hook, a curve's state. A buy that turns out
to go through brings the cells that would have been asked then.
"""

from dataclasses import dataclass, replace
from random import Random

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    BuyOutcome,
    CellOutcome,
    CompletedBuy,
    EnvironmentBuy,
    Evidence,
    HookCarry,
    LaunchRecord,
    Missing,
    ProbeCell,
    RefusedCall,
    Size,
    Sold,
    TokenFacts,
    VenueEvidence,
)
from roundtrip.domain.check.venue_reading import main_size

from .builders import (
    ABSENT,
    DRY,
    ITS_OWN,
    LIQUID,
    MAIN_CELLS,
    NO_MONEY,
    NODE,
    TOKEN_FACTS,
    bought,
    evidence,
    fee_cell,
    keep_of,
    main_cell,
    pieces_cell,
    small_buy,
    sold,
    venue,
)
from .launches import CURVE, IDLE, LAUNCHPAD_POOL, SWAPPING, at, gone, launch, state, v4

FEES_PIPS = (100, 500, 3000, 10_000, 60_000, 300_000)
_LOSSES = (0, 5, 60, 61, 400, 1499, 1500, 2500, 4000, 4999, 5000, 7000, 9990, BPS)
_IMPACTS = (0, 0, 30, 1499, 1500, 2000, 5000, 8000, 9990)
FULL: dict[str, object] = {"delay_s": POLICY.later_s, "share_bps": BPS, "seller": "buyer"}
_HOOKED = (v4(), v4(IDLE), v4(SWAPPING, 500), v4(IDLE, 0x800000), LAUNCHPAD_POOL)
GAIN_BPS = -300
"""A gain that beats every loss, by more than the margin too."""
_SNIPES = (0, 0, 19, 618, 1499, 1500, 4999, 5000, 9900, BPS)
_KEEPS = (0, 60, 749, 999, 1000, 1001, 1500, 2500, 4999, 5000, BPS)
_SIZES: tuple[Size, ...] = ("probe", "tenth", "hundredth")


@dataclass(frozen=True, slots=True)
class World:
    """What can happen. ``hostile``: sells that gain, or take more from the wallet than was asked.

    Otherwise nobody escapes the pool's own fee and nothing is sold beyond what was planned.
    """

    hostile: bool = False
    extra_losses: tuple[int, ...] = ()
    """Losses to try beside the usual ones: those of the other venues and their neighbours."""


def a_sale(rng: Random, world: World, planned_bps: int, keep_bps: int) -> CellOutcome:
    """One outcome of a sell: refused, in part, or whole, at some loss."""
    draw = rng.random()
    if draw < 0.25:
        return NO_MONEY
    losses = _LOSSES + world.extra_losses
    if world.hostile:
        loss = rng.choice((*losses, GAIN_BPS, -20))
        if draw < 0.3:
            return sold(loss, BPS, planned_bps)
    else:
        loss = max(keep_bps, rng.choice(losses))
    if draw < 0.4:
        return sold(loss, planned_bps * rng.choice((100, 4000, 5000, 9000)) // BPS or 1, planned_bps)
    return sold(loss, planned_bps)


NOTHING = RefusedCall("arrive", "nothing arrived for what was paid", 90_000)
"""A buy that is paid for and brings nothing."""


def a_buy(rng: Random, size: Size) -> BuyOutcome:
    """One outcome of a buy."""
    draw = rng.random()
    if size == "thousandth":
        # Below zero: more tokens for the money, so that the judged buy looks worse beside it.
        better = rng.choice((0, 0, 1000, 5000, 9990, -1000, -5000, -30_000, -90_000, -(10**9)))
        return NO_MONEY if draw < 0.15 else bought(better, size)
    if draw < 0.2:
        return NOTHING if draw < 0.05 else RefusedCall("buy", "paused", 50_000)
    return bought(rng.choice(_IMPACTS), size, 5000 if draw < 0.3 else BPS)


def kept_for_sure(where: Venue) -> int:
    """What no sell there escapes: the fee of a pool without a hook. A hook may give as well as take."""
    return keep_of(where.fee_pips) if where.hook is None else 0


def carried_past(rng: Random, one: VenueEvidence) -> HookCarry | RefusedCall | Missing | None:
    """What became of tokens moved past a pool: often just what makes its hook keep a certain share."""
    if not one.venue.keeps_by_hook():
        return None
    if rng.random() < 0.15:
        return rng.choice((NO_MONEY, ITS_OWN, None))
    at_once = [c.outcome for c in one.cells if c.probe.delay_s == POLICY.later_s and c.probe.share_bps == BPS]
    sales = [sale for sale in at_once if isinstance(sale, Sold) and sale.sold_raw == sale.held_raw]
    left = min((BPS * sale.back_raw // sale.paid_raw for sale in sales), default=rng.randint(0, BPS))
    keep = min(BPS - 1, rng.choice((*_KEEPS, rng.randint(0, BPS))))
    return HookCarry(10**12, min(10**12, max(0, left) * 10**12 // (BPS - keep)), 10**12)


def at_a_price(outcome: BuyOutcome, price: int) -> BuyOutcome:
    """The same buy where tokens are so many times cheaper: pools need not agree on the price."""
    if not isinstance(outcome, CompletedBuy):
        return outcome
    return replace(outcome, received_raw=outcome.received_raw * price)


def a_pool(rng: Random) -> PoolFacts:
    """One state of a pool."""
    return rng.choice((LIQUID, LIQUID, LIQUID, DRY, ABSENT))


def asked_cells(rng: Random, world: World, size: Size, fees: bool, keep_bps: int) -> tuple[ProbeCell, ...]:
    """Every cell that is asked of a venue that bought at this size."""
    mood = rng.random()
    usual = max(keep_bps, rng.choice((60, 60, 400, 2500, 7000)))
    if world.hostile and rng.random() < 0.2:
        usual = GAIN_BPS
    found = []
    for name, (_, share_bps, _, _) in MAIN_CELLS.items():
        outcome = sold(usual, share_bps)
        if mood < 0.25:
            outcome_or = NO_MONEY if rng.random() < 0.8 else a_sale(rng, world, share_bps, keep_bps)
        elif mood < 0.7:
            outcome_or = a_sale(rng, world, share_bps, keep_bps)
        else:
            outcome_or = outcome
        found.append(main_cell(size, name, outcome_or))
    if fees:
        found.append(fee_cell(sold(keep_bps) if rng.random() < 0.7 else a_sale(rng, world, BPS, keep_bps)))
    if not any(_sold_half(cell) for cell in found):
        found.append(pieces_cell(a_sale(rng, world, BPS, keep_bps), size))
    return tuple(found)


def _sold_half(cell: ProbeCell) -> bool:
    """The buyer sold half of it or more in one sale."""
    one, sale = cell.probe, cell.outcome
    counts = one.seller == "buyer" and one.size != "thousandth" and isinstance(sale, Sold)
    return counts and isinstance(sale, Sold) and 2 * min(sale.sold_raw, sale.planned_raw) >= sale.held_raw


def a_venue(rng: Random, world: World) -> VenueEvidence:
    """A venue without gaps: a v3 pool, or one with a hook."""
    where = rng.choice(_HOOKED) if rng.random() < 0.25 else None
    fee_pips = rng.choice(FEES_PIPS) if rng.random() < 0.7 else 3000
    kind = rng.random()
    if kind < 0.08:
        return venue((), all_buys=(), facts=ABSENT, fee_pips=fee_pips)
    sizes: tuple[Size, ...] = (*_SIZES, "thousandth")
    if kind < 0.2:
        no: BuyOutcome = RefusedCall("buy", "paused", 50_000) if kind < 0.15 else bought(0, "probe", 5000)
        no = NOTHING if kind < 0.11 else no
        found = venue(
            (), all_buys=tuple(EnvironmentBuy(s, 0, no) for s in sizes), facts=rng.choice((LIQUID, DRY))
        )
        return found if where is None else at(where, found)
    if kind < 0.3:
        all_buys = tuple(EnvironmentBuy(size, 0, a_buy(rng, size)) for size in sizes)
    else:
        impact = rng.choice(_IMPACTS)
        all_buys = (
            *(EnvironmentBuy(s, 0, bought(impact, s)) for s in _SIZES),
            EnvironmentBuy("thousandth", 0, small_buy()),
        )
    found = venue((), all_buys=all_buys, fee_pips=fee_pips)
    return _with_cells(rng, world, found if where is None else at(where, found))


def _with_cells(rng: Random, world: World, found: VenueEvidence) -> VenueEvidence:
    """The cells that the buys call for, where none were asked."""
    size = main_size(found)
    if not isinstance(size, str):
        return replace(found, cells=(), carried=None)
    keep = kept_for_sure(found.venue)
    small = any(b.size == "thousandth" and isinstance(b.outcome, CompletedBuy) for b in found.buys)
    if not found.cells:
        asked = replace(found, cells=asked_cells(rng, world, size, small, keep))
        return replace(asked, carried=carried_past(rng, asked))
    if small and all(cell.probe.size != "thousandth" for cell in found.cells):
        return replace(found, cells=(*found.cells, fee_cell(a_sale(rng, world, BPS, keep))))
    return found


def with_gaps(rng: Random, whole: Evidence, most: int) -> Evidence:
    """The same evidence with up to ``most`` pieces Missing; cells that a lost buy called for are gone."""
    found = whole
    for _ in range(rng.randint(1, most)):
        found = _one_gap(rng, found)
    return replace(found, venues=tuple(_with_lost_pieces(rng, one) for one in found.venues))


def _with_lost_pieces(rng: Random, one: VenueEvidence) -> VenueEvidence:
    """Where the only sells of half are lost, pieces were asked, too, and are sometimes lost as well."""
    size = main_size(one)
    known = any(not isinstance(cell.outcome, Missing) for cell in one.cells)
    asked = any(cell.probe.seller == "pieces" for cell in one.cells)
    if not isinstance(size, str) or not known or asked or any(map(_sold_half, one.cells)):
        return one
    return replace(one, cells=(*one.cells, pieces_cell(NODE if rng.random() < 0.5 else NO_MONEY, size)))


def _one_gap(rng: Random, found: Evidence) -> Evidence:
    draw = rng.random()
    if draw < 0.06 or not found.venues:
        name = rng.choice(("code_bytes", "balance_answers", "total_supply_raw"))
        return replace(found, facts=replace(found.facts, **{name: NODE}))
    if draw > 0.85 and isinstance(found.launch, LaunchRecord) and found.launch.phase == "curve":
        return replace(found, launch=replace(found.launch, curve_state=NODE))
    index = rng.randrange(len(found.venues))
    one = found.venues[index]
    if draw < 0.14:
        one = replace(one, facts=NODE)
    elif draw < 0.24 and one.buys:
        lost = rng.randrange(len(one.buys))
        one = replace(one, buys=tuple(_lose(b, n == lost) for n, b in enumerate(one.buys)))
        if one.buys[lost].size == "thousandth":
            one = replace(one, cells=tuple(c for c in one.cells if c.probe.size != "thousandth"))
        if not isinstance(main_size(one), str):
            one = replace(one, cells=(), carried=None)
    elif one.cells and one.venue.keeps_by_hook() and draw < 0.45:
        one = replace(one, carried=NODE)
    elif one.cells:
        lost = rng.randrange(len(one.cells))
        gone = {one.cells[lost].probe}
        if draw > 0.8:  # the full sell, in both environments
            gone = {c.probe for c in one.cells if c.probe == replace(c.probe, **FULL)}  # type: ignore[arg-type]
        one = replace(one, cells=tuple(ProbeCell(c.probe, NODE) if c.probe in gone else c for c in one.cells))
    return replace(found, venues=(*found.venues[:index], one, *found.venues[index + 1 :]))


def _lose(buy: EnvironmentBuy, lost: bool) -> EnvironmentBuy:
    return replace(buy, outcome=NODE) if lost else buy


def some_evidence(rng: Random, most_venues: int, most_gaps: int, world: World) -> Evidence:
    """A check with gaps."""
    facts = TOKEN_FACTS
    if rng.random() < 0.06:
        facts = replace(facts, **rng.choice(({"code_bytes": 0}, {"balance_answers": False})))
    count = rng.randint(1, most_venues)
    whole = evidence(*(a_venue(rng, world) for _ in range(count)), facts=facts)
    return with_gaps(rng, _perhaps_launched(rng, whole), most_gaps)


def _perhaps_launched(rng: Random, whole: Evidence) -> Evidence:
    """Sometimes the first venue is the curve of a launch, and sometimes a launch has none any more."""
    draw = rng.random()
    if draw > 0.35:
        return whole
    if draw > 0.3:
        return replace(whole, launch=gone(rng.choice(("swept", "pooled", "rescued"))))
    curve = at(CURVE, whole.venues[0], carried=None)
    known = launch(state(snipe_bps=rng.choice(_SNIPES)))
    return replace(whole, venues=(curve, *whole.venues[1:]), launch=known)


def filled(rng: Random, gappy: Evidence, world: World) -> Evidence:
    """The same evidence with a concrete value for every Missing piece."""
    return replace(
        gappy,
        facts=_filled_facts(rng, gappy.facts),
        venues=tuple(_filled_venue(rng, one, world) for one in gappy.venues),
        launch=_filled_launch(rng, gappy.launch),
    )


def _filled_launch(rng: Random, known: AnyLaunch | Missing | None) -> AnyLaunch | Missing | None:
    if not isinstance(known, LaunchRecord) or not isinstance(known.curve_state, Missing):
        return known
    return replace(known, curve_state=state(snipe_bps=rng.choice(_SNIPES)))


def _filled_facts(rng: Random, facts: TokenFacts) -> TokenFacts:
    values = {"code_bytes": (0, 1), "balance_answers": (False, True), "total_supply_raw": (None, 0, 10**27)}
    chosen = {n: rng.choice(v) for n, v in values.items() if isinstance(getattr(facts, n), Missing)}
    return replace(facts, **chosen)  # type: ignore[arg-type]


def _filled_venue(rng: Random, one: VenueEvidence, world: World) -> VenueEvidence:
    keep = kept_for_sure(one.venue)
    bias, price = rng.random(), rng.choice((1, 1, 10, 1000))

    def outcome_of(cell: ProbeCell) -> CellOutcome:
        if not isinstance(cell.outcome, Missing):
            return cell.outcome
        planned = cell.probe.share_bps
        if bias < 0.15:
            return NO_MONEY
        if bias < 0.3:
            return sold(keep, planned)
        if bias < 0.45 and world.hostile and cell.probe.size != "thousandth":
            return sold(GAIN_BPS, planned)
        if bias > 0.9:
            return sold(BPS, planned)
        return a_sale(rng, world, planned, keep)

    all_buys = tuple(
        replace(b, outcome=at_a_price(a_buy(rng, b.size), price)) if isinstance(b.outcome, Missing) else b
        for b in one.buys
    )
    pool = a_pool(rng) if isinstance(one.facts, Missing) else one.facts
    if not pool.exists and any(isinstance(b.outcome, CompletedBuy) for b in all_buys):
        pool = LIQUID
    all_cells = tuple(replace(cell, outcome=outcome_of(cell)) for cell in one.cells)
    full = _with_cells(rng, world, replace(one, buys=all_buys, facts=pool, cells=all_cells))
    return replace(full, carried=carried_past(rng, full)) if one.carried == NODE else full


def losses_seen(gappy: Evidence) -> tuple[int, ...]:
    """Every loss among the cells, and its neighbours: where a choice of venue may turn."""
    found: set[int] = set()
    for one in gappy.venues:
        keep = kept_for_sure(one.venue)
        found |= {keep, 2 * keep}
        for cell in one.cells:
            if isinstance(cell.outcome, Sold):
                cost_raw = cell.outcome.paid_raw * cell.outcome.sold_raw // cell.outcome.held_raw
                found.add(BPS - cell.outcome.back_raw * BPS // cost_raw)
    margin = POLICY.rival_hook_margin_bps
    if any(one.venue.rival_hook() for one in gappy.venues):
        found |= {loss + step for loss in found for step in (-margin, margin)}
    return tuple(sorted({n + step for n in found for step in (-1, 0, 1) if 0 <= n + step <= BPS}))
