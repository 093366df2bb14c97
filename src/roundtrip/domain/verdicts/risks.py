"""The risks of a token beside its verdict: who holds it, who can withdraw its liquidity, what its owner may
do, its taxes, its age. Each has a level of its own; none changes the verdict's word or colour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.figures import format_duration, format_percent
from roundtrip.domain.base.policy import POLICY, Policy
from roundtrip.domain.check.cost import cost_of
from roundtrip.domain.check.evidence import Curve, Evidence, LaunchRecord
from roundtrip.domain.check.outlook import prospects
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import Judgement
from roundtrip.domain.market.exposure import INSIDERS_HIGH_BPS, INSIDERS_MINDED_BPS, LeavingLiquidity

from .deciding import deciding_figure
from .words import level_word

Topic = Literal["insiders", "liquidity", "owner", "tax", "age"]
"""In the order in which every door lists them."""
MARKED_LOSS_BPS = 500
"""A tax or a loss from here on is never marked as good, though the verdict allows more."""
MUCH_FREE_BPS, YOUNG_S = 5000, 86_400
"""Liquidity of which so much can be withdrawn is a danger; a younger token is a warning."""


@dataclass(frozen=True, slots=True)
class Risk:
    """One risk, in a few words. Level ``unknown``: not read, which is no pass."""

    topic: Topic
    level: Level
    text: str


def _format_share(bps: int) -> str:
    """As ``format_percent``; a whole percentage without decimals."""
    return format_percent(bps).replace(".00", "")


def rate_insiders(bps: int | None) -> Risk:
    """What insiders hold of the supply (``holders/purses.py``)."""
    if bps is None:
        return Risk("insiders", "unknown", "insiders not read")
    level: Level = "danger" if bps >= INSIDERS_HIGH_BPS else "warn" if bps >= INSIDERS_MINDED_BPS else "ok"
    return Risk("insiders", level, f"insiders hold {_format_share(bps)}")


def find_insider_warning(verdict: Level, bps: int | None) -> Risk | None:
    """What insiders hold, where it is to be known beside the verdict of a buy: much, or not read. None: the
    verdict itself says no, or they hold little."""
    risk = rate_insiders(bps)
    return risk if verdict in ("ok", "warn") and risk.level in ("danger", "unknown") else None


def rate_liquidity(leaving: LeavingLiquidity | None) -> Risk:
    """Who can withdraw the liquidity."""
    if leaving is None:
        return Risk("liquidity", "unknown", "liquidity not read")
    if leaving.free_bps:
        level: Level = "danger" if leaving.free_bps >= MUCH_FREE_BPS else "warn"
        return Risk("liquidity", level, f"{_format_share(leaving.free_bps)} of liquidity can be withdrawn")
    if leaving.unproven_bps:
        text = f"who can withdraw {_format_share(leaving.unproven_bps)} of liquidity is not known"
        return Risk("liquidity", "unknown", text)
    return Risk("liquidity", "ok", "liquidity is locked, burned or kept")


def rate_owner(evidence: Evidence, judgement: Judgement, policy: Policy) -> Risk:
    """What an owner, a proxy admin or another account may do to sells."""
    standings = {
        prospect.standing
        for prospect in prospects(evidence, judgement, policy)
        if prospect.topic in ("owner", "code")
    }
    if "can" in standings:
        return Risk("owner", "danger", "its owner can stop sells")
    if "may" in standings:
        return Risk("owner", "warn", "its owner can act")
    if "not_known" in standings or not standings:
        return Risk("owner", "unknown", "owner not known")
    return Risk("owner", "ok", "no owner found")


def rate_tax(evidence: Evidence, judgement: Judgement, policy: Policy) -> Risk:
    """The token's taxes on a buy and a sell, or the figure that decided the verdict, if it is of later sells,
    of other wallets or of all fees, and the taxes alone would not have caused the verdict."""
    best = judgement.best
    cost = None if best is None else cost_of(evidence, best, judgement.readings[best])
    taxes = () if cost is None else (cost.tax_bps, cost.buy_tax_bps, cost.sell_tax_bps)
    known = [tax for tax in taxes if tax is not None]
    figure = deciding_figure(judgement, policy)
    if figure is not None and figure.replaces_tax() and max(known, default=0) < policy.warn_loss_bps:
        return Risk("tax", rate_loss(figure.bps), f"costs {figure.short}")
    if cost is None or not known:
        return Risk("tax", "unknown", "tax not measured")
    worst_bps = max(known)
    if worst_bps <= 0:
        return Risk("tax", "ok", "no tax")
    level: Level = "ok" if worst_bps < MARKED_LOSS_BPS else "warn"
    if worst_bps >= policy.warn_loss_bps:
        level = "danger"
    return Risk("tax", level, f"tax {format_tax(cost.tax_bps, cost.buy_tax_bps, cost.sell_tax_bps)}")


def format_tax(together_bps: int | None, buy_bps: int | None, sell_bps: int | None) -> str:
    """The tax on a buy and on a sell, each of its own way; where one is not known, or both round to nothing,
    that of a round trip. None: not known."""
    ways = ((buy_bps, "to buy"), (sell_bps, "to sell"))
    taken = ", ".join(f"{format_percent(bps)} {way}" for bps, way in ways if bps)
    if taken and None not in (buy_bps, sell_bps):
        return taken
    return "not known" if together_bps is None else format_percent(together_bps)


def rate_age(age_s: int | None) -> Risk:
    """The time since its launch; None: not known."""
    if age_s is None or age_s < 0:
        return Risk("age", "unknown", "age not known")
    return Risk("age", "warn" if age_s < YOUNG_S else "ok", f"launched {format_duration(age_s)} ago")


def list_risks(
    evidence: Evidence,
    judgement: Judgement,
    policy: Policy,
    insiders_bps: int | None = None,
    leaving: LeavingLiquidity | None = None,
    age_s: int | None = None,
) -> tuple[Risk, ...]:
    """The five risks in their order. What a check alone does not read is unknown: who holds the token, who
    can withdraw its liquidity, and, off a curve, when it was launched."""
    curve = evidence.launch.curve_state if isinstance(evidence.launch, LaunchRecord) else None
    if age_s is None and isinstance(curve, Curve):
        age_s = evidence.block.timestamp_s - curve.launched_at_s
    return (
        rate_insiders(insiders_bps),
        rate_liquidity(leaving),
        rate_owner(evidence, judgement, policy),
        rate_tax(evidence, judgement, policy),
        rate_age(age_s),
    )


def combine_risks(
    of_check: Sequence[Risk], insiders_bps: int | None, leaving: LeavingLiquidity | None, age_s: int | None
) -> list[Risk]:
    """The risks of a check with what is known beside it, in their order. ``of_check``: as ``list_risks``;
    empty: not known, and only the first two are listed. ``age_s`` None: the check's own."""
    age = rate_age(age_s)
    return [
        rate_insiders(insiders_bps),
        rate_liquidity(leaving),
        *(age if risk.topic == "age" and age.level != "unknown" else risk for risk in of_check[2:]),
    ]


def rate_loss(loss_bps: int) -> Level:
    """The level whose colour the loss of a round trip has."""
    if loss_bps >= POLICY.danger_loss_bps:
        return "danger"
    return "warn" if loss_bps >= MARKED_LOSS_BPS else "ok"


WORST_FIRST: tuple[Level, ...] = ("danger", "unknown", "warn")
"""Levels of warnings."""
_MUCH_SOLD_BPS, _MUCH_GONE_BPS, _MORE_FEES_BPS = 2_000, 5_000, 100
"""From which share on what the deployer sold, and what was taken out of the liquidity, is a danger; and the
rise of the fees above which they are a warning."""


def warn_of_holding(
    sells: Literal["yes", "part", "refused", "unknown"],
    newest: tuple[Level, str] | None,
    fees_bps: tuple[int | None, int | None],
    deployer_sold_bps: int,
    liquidity_left_bps: int,
) -> list[tuple[Level, str]]:
    """What went bad of a token that a wallet holds, the worst first: level and sentence. ``sells``: whether
    all of it can be sold now, at once. ``newest``: level and code of the newest check; None: there is none.
    ``fees_bps``: at the buy and now; None: not known. ``deployer_sold_bps``: of its own tokens, since the
    buy; ``liquidity_left_bps``: the part of the liquidity that was taken out since the buy."""
    warnings: list[tuple[Level, str]] = []
    if sells == "refused":
        warnings.append(("danger", "You cannot sell it now."))
    elif sells == "part":
        warnings.append(("warn", "You can sell only a part of it at once."))
    elif sells == "unknown":
        warnings.append(("unknown", "We could not find out whether you can sell it. This is not a pass."))
    if newest is not None and newest[0] != "ok":
        warnings.append((newest[0], f"Newest check: {level_word(*newest)}."))
    before_bps, now_bps = fees_bps
    if before_bps is not None and now_bps is not None and now_bps > before_bps + _MORE_FEES_BPS:
        text = f"Fees and taxes rose from {format_percent(before_bps)} to {format_percent(now_bps)}."
        warnings.append(("warn", text))
    if deployer_sold_bps > 0:
        text = f"Its deployer sold {format_percent(deployer_sold_bps)} of its tokens since you bought."
        warnings.append(("danger" if deployer_sold_bps >= _MUCH_SOLD_BPS else "warn", text))
    if liquidity_left_bps:
        text = f"{format_percent(liquidity_left_bps)} of its liquidity was taken out since you bought."
        warnings.append(("danger" if liquidity_left_bps >= _MUCH_GONE_BPS else "warn", text))
    return sorted(warnings, key=lambda warning: WORST_FIRST.index(warning[0]))


def worst_risk(risks: tuple[Risk, ...]) -> Risk | None:
    """The first risk of level danger; None: there is none."""
    return next((risk for risk in risks if risk.level == "danger"), None)
