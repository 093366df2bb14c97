"""The published rules (docs/verdicts.md) applied to what wallets met. Nothing here is shared with the judge.

Launches do not come up. A pool's hook, where it has one, is a stranger's.
"""

import re
from dataclasses import replace
from itertools import product

from roundtrip_development.devnet.stories import PoolPlan
from truth.reality import BPS, DAY_S, DELAYS_S, HOUR_S, SOON_S, CrowdOutcome, Met, Sale, Way

WARN_BPS, DANGER_BPS, HALF_BPS, TOLL_BPS, HOOK_MARGIN_BPS = 1500, 5000, 5000, 1000, 100
CROWD_GAS = 3_000_000
CROWD_MARGIN_BPS, SHORT_BPS = 500, 1000
"""A wallet met something else where it loses so much more, or so much of what it asked is not sold."""
ROUNDING_BPS = 1
"""A figure this near to a line may lie on either side of it: simulated and real balances are rounded at
different moments. Nothing else is tolerated."""

Verdict = tuple[str, str]
Finding = tuple[Verdict, PoolPlan | None]
"""A verdict and the pool it speaks of; None where nothing sells."""


def findings(found: list[Met]) -> set[Finding]:
    """Every verdict and pool that the rules allow; more than one only where a figure lies on a line."""
    if all(met.size is None for met in found):
        if any(met.keeps and met.pool.quote_milli for met in found):
            return {(("heavy_fees", "danger"), None)}
        empty = all(met.pool.quote_milli == 0 for met in found)
        return {(("empty_pool" if empty else "cannot_buy", "warn"), None)}
    accepted: set[Finding] = set()
    steps = (-ROUNDING_BPS, 0, ROUNDING_BPS)
    for slack_bps, near_bps, keep_slack_bps, later in product(steps, (0, ROUNDING_BPS), steps, (False, True)):
        answer = [replace(met, sells=met.sells | met.day_after) for met in found] if later else found
        judged = _with_exits(answer, slack_bps)
        selling = [met for met in judged if met.size and sells(met, slack_bps)]
        best = min((_rank(met, slack_bps) for met in selling), default=None)
        if best is None:
            accepted.add((("cannot_sell", "danger"), None))
            continue
        for met in selling:
            group, had, _ = _rank(met, slack_bps)
            if (group, had) <= (best[0], best[1] + near_bps * met.brought_raw) and group == best[0]:
                accepted |= {(verdict, met.pool) for verdict in _costs(met, slack_bps, keep_slack_bps)}
    return accepted


def _with_exits(found: list[Met], slack_bps: int) -> list[Met]:
    """What is lost on the way out counts where the cheapest pool does not take the sell. Then no pool is
    level ok, nor where the token takes much more there. Where much is lost there, the way out counts, too, if
    it loses much."""
    cheapest = found[cheapest_of(found, slack_bps)]
    if sells(cheapest, slack_bps):
        lost_bps = _tax_bps(cheapest, slack_bps) + slack_bps
        is_dear = lost_bps >= WARN_BPS
        return [
            replace(
                _with_beside(met, cheapest, slack_bps),
                exit_bps=0,
                beside_trap=is_dear
                and met.size is not None
                and lost_bps > _tax_bps(met, slack_bps) + CROWD_MARGIN_BPS,
            )
            for met in found
        ]
    return [replace(met, beside_trap=met is not cheapest) for met in found]


def _with_beside(met: Met, cheapest: Met, slack_bps: int) -> Met:
    """With what the pool or the token takes where it is cheapest, if who bought there loses much here."""
    lost_bps, tax_bps = _fees_bps(cheapest, slack_bps), _tax_bps(cheapest, slack_bps)
    if met is cheapest or met.size is None or min(lost_bps, met.exit_bps) + slack_bps < WARN_BPS:
        return met
    counted_bps = min(lost_bps, met.exit_bps)
    if tax_bps >= lost_bps - tax_bps:
        return replace(met, tax_beside_bps=counted_bps)
    return replace(met, toll_beside_bps=counted_bps)


def cheapest_of(found: list[Met], slack_bps: int = 0) -> int:
    """Where a buy brings most; of pools that bring the same, one that refuses sells, or keeps much."""
    most_raw = max(met.brought_raw for met in found)
    if not most_raw:
        return 0
    equal = [number for number, met in enumerate(found) if met.brought_raw * BPS >= most_raw * (BPS - 1)]

    def key(number: int) -> tuple[bool, int, int]:
        met = found[number]
        takes = sells(met, slack_bps)
        losses = _tax_bps(met, slack_bps), _fees_bps(met, slack_bps)
        cheap = sum(loss_bps + slack_bps < WARN_BPS for loss_bps in losses) if takes else 0
        return takes, cheap, -met.brought_raw

    return min(equal, key=key)


def sells(met: Met, slack_bps: int = 0) -> bool:
    """The main wallet sells half of it within a day: in one sale, in ten, or by the other route. A token that
    sells all or nearly all at once, and neither after an hour nor after a day, does not."""
    soon, *later = (_enough(met.sells[delay_s], slack_bps) for delay_s in DELAYS_S)
    nearly, nearly_later = (met.parts.get(way) for way in _NEARLY)
    if (soon or nearly) and not (any(later) or nearly_later):
        return False
    parts = (sale for way, sale in met.parts.items() if way != "handed")
    return any(_enough(sale, slack_bps) for sale in (*met.sells.values(), *parts))


_NEARLY: tuple[Way, Way] = ("nearly", "nearly later")


def all_is_well(met: Met) -> bool:
    """Every wallet got all of it sold, at once and later, and lost less than the line for a warning. As near
    to a line as rounding reaches, either is true."""
    sales = [*met.sells.values(), *met.second.values()]
    losses = [sale.loss_bps() for sale in sales if sale is not None]
    worst = max([*losses, met.small_loss_bps or 0, met.impact_bps or 0])
    whole = all(sale is not None and sale.whole() for sale in met.sells.values())
    # What the token gives its holders back in a sale looks like a part that was not sold.
    whole = whole and all(sale is not None and not _is_short(sale) for sale in met.second.values())
    whole = whole and not (met.kept_to_buyer or met.little_gas_only or met.sell_gas > CROWD_GAS)
    whole = whole and not met.is_crowded_out and met.handed_more_bps <= CROWD_MARGIN_BPS + ROUNDING_BPS
    return whole and worst < WARN_BPS + ROUNDING_BPS and differing(met) != {True}


def differing(met: Met) -> set[bool]:
    """Whether a wallet of the crowd met something else than the main one: both where a loss lies near the
    line between them."""
    found = [_differs(drawn, met) for drawn in met.drawn]
    if {True} in found:
        return {True}
    return set().union({False}, *found)


def _differs(drawn: CrowdOutcome, met: Met) -> set[bool]:
    around = [met.sells[delay_s] for delay_s in _around(drawn)]
    losses = [sale.loss_bps() for sale in around if sale is not None and sale.whole()]
    if len(losses) < len(around):
        return {False}
    sale = drawn.sale
    if sale is None and (drawn.wallet.way, met.pool.version) == ("second route", 4):
        # A swap that is settled with less than it sold fails in every pool of v4: that is said as a tax.
        return {False}
    if sale is None:
        return {True}
    if drawn.wallet.way != "pieces" and _is_short(sale):
        return {True}
    more_bps = sale.loss_bps() - max(0, *losses) - CROWD_MARGIN_BPS
    # Among others a wallet's loss is read without the pool's own fee.
    return {more_bps > 0, more_bps > met.pool.fee_pips // 50} if more_bps > -TOLL_BPS else {False}


def _is_short(sale: Sale) -> bool:
    return (sale.asked_raw - sale.sold_raw) * BPS > sale.asked_raw * SHORT_BPS


def _around(drawn: CrowdOutcome) -> list[int]:
    """The main wallet's sells before and after this one."""
    after_s = drawn.wallet.after_s
    if drawn.wallet.way == "pieces":
        return list(DELAYS_S)
    if after_s in DELAYS_S:
        return [after_s]
    return [SOON_S, HOUR_S] if after_s < HOUR_S else [HOUR_S, DAY_S] if after_s < DAY_S else [DAY_S]


def _enough(sale: Sale | None, slack_bps: int) -> bool:
    return sale is not None and sale.share_bps() + slack_bps >= HALF_BPS


def _fees_bps(met: Met, slack_bps: int) -> int:
    """The largest loss that is no price impact."""
    counted = [*met.sells.values()]
    if not _enough(met.sells[SOON_S], slack_bps):
        counted.append(met.parts.get("nearly") or met.parts.get("half"))
    if not any(_enough(sale, slack_bps) for sale in counted):
        ways: tuple[Way, ...] = ("pieces", "small pieces", "any hour", "route")
        counted += _best_pieces([met.parts.get(way) for way in ways])
    losses = [sale.loss_bps() for sale in counted if sale is not None and _enough(sale, slack_bps)]
    return max([met.small_loss_bps or 0, *losses])


def _tax_bps(met: Met, slack_bps: int) -> int:
    """What the token takes of it, apart from what the pool keeps."""
    keep = _kept_by_hook(met, 0) if met.pool.hook else keep_bps(met.pool.fee_pips)
    return max(0, _fees_bps(met, slack_bps) - keep)


def _best_pieces(ways: list[Sale | None]) -> list[Sale | None]:
    """The ways without the pieces that sold less: the first two are pieces."""
    tenths, fiftieths, *others = ways
    if tenths is None or fiftieths is None:
        return ways
    return [max(tenths, fiftieths, key=lambda sale: sale.share_bps()), *others]


def _group(met: Met, slack_bps: int) -> int:
    """0: all of it sold, at once and later. 1: half of it at once, or nearly all where all is refused. 2:
    only in part or later."""
    if not _enough(met.sells[SOON_S], slack_bps):
        return 1 if met.parts.get("nearly") else 2
    return 0 if all(sale is not None and sale.whole() for sale in met.sells.values()) else 1


def _rank(met: Met, slack_bps: int) -> tuple[int, int, bool]:
    """What sells in whole and lasts comes first, then where most is had in the end; a hooked pool has to be
    better by more than the margin. A pool that keeps half comes last."""
    margin_bps = HOOK_MARGIN_BPS if met.pool.hook else 0
    beside_bps = max(met.toll_beside_bps, met.tax_beside_bps)
    worst_bps = max(_fees_bps(met, slack_bps), met.impact_bps or 0, met.exit_bps, beside_bps)
    keep = _kept_by_hook(met, 0) if met.pool.hook else keep_bps(met.pool.fee_pips)
    group = _group(met, slack_bps) + (3 if keep >= DANGER_BPS else 0)
    return group, -met.brought_raw * (BPS - worst_bps - margin_bps), bool(met.pool.hook)


def _costs(met: Met, slack_bps: int, keep_slack_bps: int) -> set[Verdict]:
    fees, impact = _fees_bps(met, slack_bps), max(met.impact_bps or 0, met.exit_bps)
    keep = _kept_by_hook(met, keep_slack_bps) if met.pool.hook else keep_bps(met.pool.fee_pips)
    worst = max(fees, impact, met.toll_beside_bps, met.tax_beside_bps) + slack_bps
    if worst >= WARN_BPS:
        level = "danger" if worst >= DANGER_BPS else "warn"
        taxes = "heavy_fees" if level == "danger" else "high_fees"
        tolls_bps, taxes_bps = max(keep, met.toll_beside_bps), max(fees - keep, met.tax_beside_bps)
        parts = {"toll_pool": tolls_bps, "thin_pool": impact + slack_bps, taxes: taxes_bps}
        return {(max(parts, key=lambda code: parts[code]), level)}
    if keep >= TOLL_BPS:
        return {("toll_pool", "warn")}
    # With sales that use more gas, fewer than half of the crowd fit into what a node simulates.
    is_kept = met.kept_to_buyer or met.little_gas_only or met.sell_gas > CROWD_GAS
    more_bps = met.handed_more_bps - CROWD_MARGIN_BPS
    is_kept = is_kept or more_bps > ROUNDING_BPS
    if met.size != "probe" or met.large_refused or met.beside_trap or is_kept or _group(met, slack_bps) != 0:
        return {("ok", "warn")}
    levels = {True} if met.is_crowded_out else differing(met)
    levels |= {True} if more_bps >= -ROUNDING_BPS else set()
    return {("ok", "warn" if differs else "ok") for differs in levels}


def _kept_by_hook(met: Met, slack_bps: int) -> int:
    """What a small round trip loses beyond what the token takes of the same two moves without the swaps; all
    of it where the token would not be moved so. Where all that was bought loses more, that counts."""
    soon = met.sells[SOON_S]
    lost = min(BPS, max(0, met.small_loss_bps or 0, soon.loss_bps() if soon else 0))
    if met.passed_raw is None:
        return lost
    arrived_raw, left_raw = met.passed_raw
    if arrived_raw == 0:
        return 0
    return max(0, BPS - (BPS - lost) * left_raw // arrived_raw + slack_bps)


def keep_bps(fee_pips: int) -> int:
    """What a pool's own fee keeps of a round trip, rounded up."""
    return BPS + -((10**6 - fee_pips) ** 2 * BPS // 10**12)


# --- what a sentence says of parts ---------------------------------------------------------------

_NO_MORE = re.compile(r"this check could sell at most ([0-9.]+) % of it")
_NOT_SOLD = "buy it but not sell it"
_IN_TEN, _IN_FIFTY = "ten sales of a tenth", "fifty sales of a fiftieth"
_AT_SOME_HOURS = "It sells at some hours of the day only"
_BY_ROUTE = "The usual sell is refused"
_STRAIGHT_BACK = re.compile(r"Only ([0-9.]+) % of what was bought sold straight back")


def wrong_words(text: str, met: Met | None) -> str:
    """What a sentence about parts says that wallets did not meet in the pool it speaks of; empty: nothing."""
    if met is None or not met.size:
        return ""
    rows = _NO_MORE.search(text)
    if rows and abs(_bps(rows[1]) - _most_bps(met)) > ROUNDING_BPS:
        return f"as much as {_most_bps(met)} bps sells"
    if _NOT_SOLD in text and _most_bps(met) > 0:
        return f"{_most_bps(met)} bps of it sells"
    soon, half, pieces = met.sells[SOON_S], met.parts.get("half"), met.parts.get("pieces")
    if ("a wallet that you send it to can sell it" in text) and not _enough(
        met.parts.get("handed"), ROUNDING_BPS
    ):
        return "no other wallet sells it"
    if _IN_TEN in text and not _enough(pieces, ROUNDING_BPS):
        return f"in ten sales: {pieces}"
    if _IN_TEN in text and any(_enough(sale, -ROUNDING_BPS) for sale in (soon, half)):
        return "one sale is enough"
    if _IN_FIFTY in text and not _enough(met.parts.get("small pieces"), ROUNDING_BPS):
        return f"in fifty sales: {met.parts.get('small pieces')}"
    if _AT_SOME_HOURS in text and not _enough(met.parts.get("any hour"), ROUNDING_BPS):
        return "it does not sell at any hour"
    if _BY_ROUTE in text and not _enough(met.parts.get("route"), ROUNDING_BPS):
        return "the other route does not sell it"
    if "Half of it" in text and not _enough(half, ROUNDING_BPS):
        return "half of it does not sell"
    rows = _STRAIGHT_BACK.search(text)
    if rows and (soon is None or abs(_bps(rows[1]) - soon.share_bps()) > ROUNDING_BPS):
        return f"sold straight back: {soon}"
    return ""


def overlooked(text: str, found: list[Met]) -> str:
    """Which pool sells more than a sentence says that can be sold; empty: none."""
    rows = _NO_MORE.search(text)
    if not rows and _NOT_SOLD not in text:
        return ""
    bound_bps = _bps(rows[1]) + ROUNDING_BPS if rows else 0
    more = (f"{_most_bps(met)} bps of it sells in {met.pool}" for met in found if _most_bps(met) > bound_bps)
    return next(more, "")


def _most_bps(met: Met) -> int:
    """The largest share that the main wallet sold in one of the ways a check tries."""
    if not met.size:
        return 0
    parts = (sale for way, sale in met.parts.items() if way != "handed")
    return max((sale.share_bps() for sale in (*met.sells.values(), *parts) if sale is not None), default=0)


def _bps(percent: str) -> int:
    return round(float(percent) * 100)
