"""What a check says of its crowd, tried by real wallets of the same manners, each alone."""

from collections.abc import Iterator
from dataclasses import replace

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.crowd_reading import Cause, CrowdFinding, CrowdReading
from roundtrip.domain.check.evidence import (
    Crowd,
    CrowdSale,
    CrowdTrade,
    CrowdWallet,
    Environment,
    RefusedCall,
)
from truth.reality import BPS, DELAYS_S, PROBE_WEI, SOON_S, CrowdOutcome, Met, PoolTrader

_NEAR_BPS = 2
"""A loss of two legs is rounded twice."""
_MAX_GAPS_S = 5 * POLICY.crowd_gaps_s[1]
"""Alone the main wallet waits as long as the crowd's buys take."""


_DEARER_BPS = 8000
"""Among others a size brings up to a fifth less: they buy for up to a tenth of the depth."""


def representatives(crowd: Crowd) -> list[CrowdWallet]:
    """Some of the wallets that traded: those that sell least and most at once, the least also with what it
    has among others, the one with the largest tip, one of each way, share and manner of approval, and the
    one with code."""
    wallets = [trade.wallet for trade in crowd.trades if _has_sold(trade.outcome)]
    if not wallets:
        return []
    # Without what a route adds: a refusal is to be another cause's.
    usual = [replace(wallet, way="usual") for wallet in wallets]
    by_amount = sorted(usual, key=lambda wallet: (wallet.size_wei + wallet.again_wei) * wallet.share_bps)
    by_tip = sorted(usual, key=lambda wallet: wallet.tip_wei)
    kinds = {
        (wallet.way, wallet.share_bps, wallet.approves_all, wallet.delegates): wallet for wallet in wallets
    }
    dearer = [replace(w, share_bps=w.share_bps * _DEARER_BPS // BPS) for w in by_amount[:1]]
    return list(dict.fromkeys([*by_amount[:1], *dearer, *by_amount[-1:], *by_tip[-1:], *kinds.values()]))


def _has_sold(outcome: object) -> bool:
    return isinstance(outcome, CrowdSale) or (
        isinstance(outcome, RefusedCall) and outcome.step not in ("fund", "buy", "arrive")
    )


def confirmed(
    crowd: CrowdReading | None, trader: PoolTrader, met: Met, environment: Environment
) -> tuple[str, ...]:
    """What the check says of its crowd and no real wallet of the same manner meets."""
    if crowd is None:
        return ()
    return tuple(line for finding in crowd.findings for line in _unmet(finding, trader, met, environment))


def _unmet(finding: CrowdFinding, trader: PoolTrader, met: Met, environment: Environment) -> Iterator[str]:
    if finding.cause == "not alone" and (met.is_crowded_out or trader.is_crowded_out()):
        return
    soon = _isolated(finding.trade, finding.cause, environment)
    # Where no sale goes through soon after the buy, the difference shows later.
    wallets = [*soon, *(replace(one, after_s=finding.trade.wallet.after_s) for one in soon)]
    drawn = [one for one in map(trader.as_drawn, dict.fromkeys(wallets)) if one is not None]
    if not drawn:
        # Such as where no wallet can buy for as much as a check does.
        drawn = [one for one in [trader.as_drawn(finding.trade.wallet)] if one is not None]
    text = "refused" if finding.refused else f"loses {finding.loss_bps} bps"
    claim = f"{finding.cause}: {text} ({finding.refusal}); {finding.trade}"
    if not drawn:
        yield f"{claim} was not traded alone"
    elif not any(_is_so(finding, one) for one in drawn):
        yield f"{claim} met {[one.sale for one in drawn]}"


def _is_so(finding: CrowdFinding, drawn: CrowdOutcome) -> bool:
    sale = drawn.sale
    if finding.refused:
        return sale is None or 2 * sale.sold_raw < sale.asked_raw
    return sale is not None and abs(sale.loss_bps() - finding.loss_bps) <= _NEAR_BPS


def _isolated(trade: CrowdTrade, cause: Cause, environment: Environment) -> list[CrowdWallet]:
    """The wallets whose trades show this cause; none where no wallet alone can."""
    wallet, late_s = trade.wallet, trade.late_s
    plain = replace(
        wallet, size_wei=PROBE_WEI, again_wei=0, purse_wei=environment.gas_float_wei, weth_wei=0, usdg_raw=0,
        tip_wei=0, approves_all=False, after_s=SOON_S, share_bps=BPS, way="usual", delegates=False,
    )  # fmt: skip
    if cause == "size":
        sized = replace(plain, size_wei=wallet.size_wei, again_wei=wallet.again_wei)
        return [replace(sized, share_bps=share_bps) for share_bps in (BPS, _DEARER_BPS)]
    if cause == "time":
        return [replace(plain, after_s=wallet.after_s + more_s) for more_s in (0, late_s)]
    if cause == "blocks":
        return [replace(plain, after_s=SOON_S + more_s) for more_s in (late_s, _MAX_GAPS_S)]
    if cause == "share":
        return [replace(plain, share_bps=wallet.share_bps)]
    if cause in ("pieces", "route"):
        return [replace(plain, way="pieces" if cause == "pieces" else "second route")]
    if cause == "approval":
        return [replace(plain, approves_all=True)]
    if cause == "code":
        return [replace(plain, delegates=True)]
    if cause == "tip":
        return [replace(plain, tip_wei=wallet.tip_wei)]
    if cause in ("together", "not alone"):
        dearer = replace(wallet, share_bps=wallet.share_bps * _DEARER_BPS // BPS)
        return [dearer, *(replace(wallet, after_s=wallet.after_s + more_s) for more_s in (0, late_s))]
    if cause == "wallet":
        return [replace(plain, purse_wei=wallet.purse_wei, after_s=delay_s) for delay_s in DELAYS_S]
    return []
