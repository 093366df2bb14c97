"""The published rules (docs/verdicts.md) applied to what wallets met. Nothing here is shared with the judge.

Launches do not come up. A pool's hook, where it has one, is a stranger's.
"""

import re
from dataclasses import replace
from itertools import product

from roundtrip.devnet.stories import PoolPlan
from truth.reality import BPS, DELAYS_S, SOON_S, Met, Sale

WARN_BPS, DANGER_BPS, HALF_BPS, TOLL_BPS, HOOK_MARGIN_BPS = 1500, 5000, 5000, 1000, 100
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
    for slack_bps, near_bps, keep_slack_bps in product(steps, (0, ROUNDING_BPS), steps):
        judged = _with_exits(found, slack_bps)
        selling = [met for met in judged if met.size and sells(met, slack_bps)]
        best = min((_rank(met, slack_bps) for met in selling), default=None)
        if best is None:
            accepted.add((("cannot_sell", "danger"), None))
            continue
        for met in selling:
            group, had, _ = _rank(met, slack_bps)
            if (group, had) <= (best[0], best[1] + near_bps * met.brought_raw) and group == best[0]:
                accepted.add((_cost(met, slack_bps, keep_slack_bps), met.pool))
    return accepted


def _with_exits(found: list[Met], slack_bps: int) -> list[Met]:
    """What is lost on the way out counts where the cheapest pool does not take the sell."""
    cheapest = max(found, key=lambda met: met.brought_raw)
    if sells(cheapest, slack_bps):
        return [replace(met, exit_bps=0) for met in found]
    return found


def sells(met: Met, slack_bps: int = 0) -> bool:
    """Half of it sells within a day, in one sale or in ten; what sells for the first wallet is not refused
    to the second."""
    by_two_faced = any(
        met.sells[0, delay] is not None and (1, delay) in met.sells and met.sells[1, delay] is None
        for delay in DELAYS_S
    )
    tried = [*(_worse(met, delay) for delay in DELAYS_S), met.half, met.pieces]
    return not by_two_faced and any(_enough(sale, slack_bps) for sale in tried)


def sold_half_somehow(met: Met) -> bool:
    """Some wallet that bought sold half of it in some way."""
    return any(_enough(sale, 0) for sale in (*met.sells.values(), met.half))


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
        losses += [met.half.loss_bps()] if met.half and _enough(met.half, slack_bps) else []
    if not losses and met.pieces and _enough(met.pieces, slack_bps):
        losses = [met.pieces.loss_bps()]
    return max([met.small_loss_bps or 0, *losses])


def _group(met: Met, slack_bps: int) -> int:
    """0: all of it sold, at once and later. 1: half of it at once. 2: only in part or later."""
    soon = _worse(met, SOON_S)
    if soon is None or not _enough(soon, slack_bps):
        return 2
    later = [sale for delay_s in DELAYS_S for sale in _of(met, delay_s)]
    return 0 if all(sale is not None and sale.whole() for sale in later) else 1


def _rank(met: Met, slack_bps: int) -> tuple[int, int, bool]:
    """What sells in whole and lasts comes first, then where most is had in the end; a hooked pool has to be
    better by more than the margin."""
    margin_bps = HOOK_MARGIN_BPS if met.pool.hook else 0
    worst_bps = max(_fees_bps(met, slack_bps), met.impact_bps or 0, met.exit_bps)
    return _group(met, slack_bps), -met.brought_raw * (BPS - worst_bps - margin_bps), bool(met.pool.hook)


def _cost(met: Met, slack_bps: int, keep_slack_bps: int) -> Verdict:
    fees, impact = _fees_bps(met, slack_bps), max(met.impact_bps or 0, met.exit_bps)
    keep = _kept_by_hook(met, keep_slack_bps) if met.pool.hook else keep_bps(met.pool.fee_pips)
    worst = max(fees, impact) + slack_bps
    if worst >= WARN_BPS:
        level = "danger" if worst >= DANGER_BPS else "warn"
        taxes = "heavy_fees" if level == "danger" else "high_fees"
        parts = {"toll_pool": keep, "thin_pool": impact + slack_bps, taxes: fees - keep}
        return max(parts, key=lambda code: parts[code]), level
    if keep >= TOLL_BPS:
        return "toll_pool", "warn"
    in_part = met.half is not None and met.sliver is not None
    usual = met.size == "probe" and not met.large_refused
    steady = usual and met.second_bought and in_part and _group(met, slack_bps) == 0
    return "ok", "ok" if steady else "warn"


def _kept_by_hook(met: Met, slack_bps: int) -> int:
    """What a small round trip loses beyond what the token takes of the same two moves without the swaps; all
    of it where the token would not be moved so. Where all that was bought loses more, that counts."""
    losses = [0, met.small_loss_bps or 0]
    if _worse(met, SOON_S) is not None:
        losses.append(_worse_loss(met, SOON_S))
    lost = min(BPS, max(losses))
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

_NO_MORE = re.compile(r"you can sell at most ([0-9.]+) % of it")
_NOT_SOLD = "buy it but not sell it"
_IN_TEN = "ten sales of a tenth"
_STRAIGHT_BACK = re.compile(r"Only ([0-9.]+) % of what was bought sold straight back")


def wrong_words(text: str, met: Met | None) -> str:
    """What a sentence about parts says that wallets did not meet in the pool it speaks of; empty: nothing."""
    if met is None or not met.size:
        return ""
    said = _NO_MORE.search(text)
    if said and abs(_bps(said[1]) - _most_bps(met)) > ROUNDING_BPS:
        return f"as much as {_most_bps(met)} bps sells"
    if _NOT_SOLD in text and _most_bps(met) > 0:
        return f"{_most_bps(met)} bps of it sells"
    if ("a wallet that you send it to can sell it" in text) and not _enough(met.handed, ROUNDING_BPS):
        return "no other wallet sells it"
    if _IN_TEN in text and not _enough(met.pieces, ROUNDING_BPS):
        return f"in ten sales: {met.pieces}"
    if _IN_TEN in text and any(_enough(sale, -ROUNDING_BPS) for sale in (_worse(met, SOON_S), met.half)):
        return "one sale is enough"
    if "Half of it" in text and not _enough(met.half, ROUNDING_BPS):
        return "half of it does not sell"
    soon, said = _worse(met, SOON_S), _STRAIGHT_BACK.search(text)
    if said and (soon is None or abs(_bps(said[1]) - soon.share_bps()) > ROUNDING_BPS):
        return f"sold straight back: {soon}"
    return ""


def overlooked(text: str, found: list[Met]) -> str:
    """Which pool sells more than a sentence says that can be sold; empty: none."""
    said = _NO_MORE.search(text)
    if not said and _NOT_SOLD not in text:
        return ""
    bound_bps = _bps(said[1]) + ROUNDING_BPS if said else 0
    more = (f"{_most_bps(met)} bps of it sells in {met.pool}" for met in found if _most_bps(met) > bound_bps)
    return next(more, "")


def _most_bps(met: Met) -> int:
    """The largest share that every wallet sold in one of the ways a check tries."""
    if not met.size:
        return 0
    tried = [*(_worse(met, delay_s) for delay_s in DELAYS_S), met.half, met.sliver, met.pieces]
    return max((sale.share_bps() for sale in tried if sale is not None), default=0)


def _bps(percent: str) -> int:
    return round(float(percent) * 100)
