"""The published rules (docs/verdicts.md) applied to what wallets met. Nothing here is shared with the judge.

Hooks do not come up, nor do launches: the pools here are keys without a hook.
"""

from itertools import product

from truth.reality import BPS, DELAYS_S, SOON_S, Met, Sale

WARN_BPS, DANGER_BPS, HALF_BPS, TOLL_BPS = 1500, 5000, 5000, 1000
ROUNDING_BPS = 1
"""A figure this near to a line may lie on either side of it: simulated and real balances are rounded at
different moments. Nothing else is tolerated."""

Verdict = tuple[str, str]


def verdicts(found: list[Met]) -> set[Verdict]:
    """Every code and level that the rules allow; more than one only where a figure lies on a line."""
    if all(met.size is None for met in found):
        empty = all(met.pool.quote_milli == 0 for met in found)
        return {("empty_pool" if empty else "cannot_buy", "warn")}
    accepted = set()
    for slack_bps, near_bps in product((-ROUNDING_BPS, 0, ROUNDING_BPS), (0, ROUNDING_BPS)):
        selling = [met for met in found if met.size and sells(met, slack_bps)]
        best = min((_rank(met, slack_bps) for met in selling), default=None)
        if best is None:
            accepted.add(("cannot_sell", "danger"))
            continue
        for met in selling:
            group, loss = _rank(met, slack_bps)
            if group == best[0] and loss <= best[1] + near_bps:
                accepted.add(_cost(met, slack_bps))
    return accepted


def sells(met: Met, slack_bps: int = 0) -> bool:
    """Half of it sells within a day, and what sells for the first wallet is not refused to the second."""
    by_two_faced = any(
        met.sells[0, delay] is not None and (1, delay) in met.sells and met.sells[1, delay] is None
        for delay in DELAYS_S
    )
    tried = [*(_worse(met, delay) for delay in DELAYS_S), met.half, met.handed]
    return not by_two_faced and any(_enough(sale, slack_bps) for sale in tried)


def sold_half_somehow(met: Met) -> bool:
    """Some wallet sold half of it in some way."""
    return any(_enough(sale, 0) for sale in (*met.sells.values(), met.half, met.handed))


def all_is_well(met: Met) -> bool:
    """Both wallets got all of it sold, at once and later, and lost less than the line for a warning.
    As near to the line as rounding reaches, either is true."""
    sales = list(met.sells.values())
    losses = [sale.loss_bps() for sale in sales if sale is not None]
    worst = max([*losses, met.small_loss_bps or 0, met.impact_bps or 0])
    whole = len(sales) == 2 * len(DELAYS_S) and all(sale is not None and sale.whole() for sale in sales)
    return whole and worst < WARN_BPS + ROUNDING_BPS


def _of(met: Met, delay_s: int) -> list[Sale | None]:
    return [met.sells[which, delay_s] for which in (0, 1) if (which, delay_s) in met.sells]


def _worse(met: Met, delay_s: int) -> Sale | None:
    """Of the wallets' sells the one of the smaller share; None when one was refused."""
    sales = [sale for sale in _of(met, delay_s) if sale is not None]
    return min(sales, key=Sale.share_bps) if len(sales) == len(_of(met, delay_s)) else None


def _worse_loss(met: Met, delay_s: int) -> int:
    return max(sale.loss_bps() for sale in _of(met, delay_s) if sale is not None)


def _enough(sale: Sale | None, slack_bps: int) -> bool:
    return sale is not None and sale.share_bps() + slack_bps >= HALF_BPS


def _fees_bps(met: Met, slack_bps: int) -> int:
    """The largest loss that is no price impact."""
    losses = [_worse_loss(met, d) for d in DELAYS_S if _enough(_worse(met, d), slack_bps)]
    if not _enough(_worse(met, SOON_S), slack_bps):
        parts = (sale for sale in (met.half, met.handed) if sale and _enough(sale, slack_bps))
        losses += [sale.loss_bps() for sale in list(parts)[:1]]
    return max([met.small_loss_bps or 0, *losses])


def _rank(met: Met, slack_bps: int) -> tuple[int, int]:
    """All of it at once is best, then half of it, then only in part or later; within each by loss."""
    soon = _worse(met, SOON_S)
    if soon is not None and _enough(soon, slack_bps):
        whole = all(sale is not None and sale.whole() for sale in _of(met, SOON_S))
        return (0 if whole else 1), _worse_loss(met, SOON_S)
    return 2, _fees_bps(met, slack_bps)


def _cost(met: Met, slack_bps: int) -> Verdict:
    fees, impact = _fees_bps(met, slack_bps), met.impact_bps or 0
    keep = keep_bps(met.pool.fee_pips)
    worst = max(fees, impact) + slack_bps
    if worst >= WARN_BPS:
        level = "danger" if worst >= DANGER_BPS else "warn"
        taxes = "heavy_fees" if level == "danger" else "high_fees"
        parts = {"toll_pool": keep, "thin_pool": impact + slack_bps, taxes: fees - keep}
        return max(parts, key=lambda code: parts[code]), level
    if keep >= TOLL_BPS:
        return "toll_pool", "warn"
    later = (sale for delay in DELAYS_S for sale in _of(met, delay))
    steady = met.second_bought and all(sale is not None and sale.whole() for sale in later)
    return "ok", "ok" if steady else "warn"


def keep_bps(fee_pips: int) -> int:
    """What a pool's own fee keeps of a round trip, rounded up."""
    return BPS + -((10**6 - fee_pips) ** 2 * BPS // 10**12)
