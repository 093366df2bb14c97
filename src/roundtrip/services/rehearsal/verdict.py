"""The verdict of a trade, as every answer about one shows it, and its sentence."""

from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_about, format_amount, format_eth, format_percent
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check import verdict_text
from roundtrip.domain.check.evidence import Evidence, Missing
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import Judgement
from roundtrip.domain.trade import text as trade_text
from roundtrip.domain.trade.judge import TradeOutcome, code_of_loss
from roundtrip.services.support.answer_fields import Flags, Sentence, TokenAddress, VerdictAnswer, says
from roundtrip.services.support.money import USDG_DECIMALS
from roundtrip.venues.base import quote_name

from .final_run import FinalRun
from .trade_builder import TradeBuilder

TradeCode = Literal[
    "ok", "tx_reverts", "cannot_sell", "heavy_loss", "high_loss", "no_route", "nothing_received", "unproven",
]  # fmt: skip


class TradeVerdict(msgspec.Struct, frozen=True):
    """Code, level and a plain sentence."""

    code: Annotated[TradeCode, says("What decided. unproven means that the run could not find out.")]
    level: Annotated[Level, says("How good that is. unknown is not a pass; treat it as a no.")]
    text: Sentence


class ShortCheck(msgspec.Struct, frozen=True):
    """What a check of the token says."""

    address: TokenAddress
    verdict: Annotated[VerdictAnswer, says("What the check found.")]
    flags: Flags


def short_check(evidence: Evidence, judgement: Judgement, policy: Policy) -> ShortCheck:
    """The check's verdict and flags."""
    verdict = judgement.verdict
    answer = VerdictAnswer(verdict.code, verdict.level, verdict.text)  # type: ignore[arg-type]
    return ShortCheck(evidence.token, answer, list(raised_flags(JudgedCheck(evidence, judgement, policy))))


def symbol(builder: TradeBuilder) -> str | None:
    """The token's symbol, cleaned for display."""
    data = builder.buy_round.data.facts.symbol_data
    return names.symbol(names.text_in(bytes.fromhex(data[2:])) or "") if isinstance(data, str) else None


def money_text(builder: TradeBuilder, asset: Address, raw: int) -> str:
    """An amount of an asset in a sentence: ``0.1234 eth``, ``1,234 usdg``, ``1,234 tokens``."""
    asset_name = quote_name(asset, builder.ctx.contracts)
    if asset_name in ("eth", "weth"):
        return format_eth(raw)
    if asset_name == "usdg":
        return f"{format_amount(raw, USDG_DECIMALS)} usdg"
    return f"{format_about(raw, builder.decimals)} tokens"


def check_sentence(checked: ShortCheck, level: str) -> str:
    """What a check of the token says where that is worse than a buy of this level (empty: a sell, so that
    only danger is worse). Empty: it is not worse."""
    is_worse = checked.verdict.level == "danger" or (level == "ok" and checked.verdict.level == "warn")
    return f"A check of the token says: {checked.verdict.text}" if is_worse else ""


def sells_elsewhere(final: FinalRun) -> Venue | None:
    """The other venue on which what the buy brings sells back; None: it is the same, or none is known."""
    sold_on = None if final.exit is None or final.exit.venue is None else final.exit.venue.venue
    is_other = sold_on is not None and sold_on.at() != final.done.written.place.venue.at()
    return sold_on if is_other else None


def sentence(builder: TradeBuilder, final: FinalRun, checked: ShortCheck, refused: str | None) -> str:
    """The verdict's sentence. ``refused``: the code with which a buy is refused; None: it is not."""
    finding, ran, policy = final.exit, final.done.ran, builder.ctx.policy
    if finding is None:
        venue = final.done.written.place.venue
        arrived = money_text(builder, builder.comes_in(venue), final.done.came_raw)
        impact = "" if final.impact_bps is None else trade_text.impact(final.impact_bps, "sell")
        is_lossy = final.lost_bps is not None and code_of_loss(final.lost_bps, policy) != "ok"
        less = f", worth {format_percent(final.lost_bps or 0)} less than what it spends" if is_lossy else ""
        way = f" {trade_text.by_second_route(venue.traits.second_route)}" if builder.second_route else ""
        unknown = " What it sells has no known price, so we do not know what it loses."
        unknown = unknown if final.lost_bps is None else ""
        shrinks = ""
        if builder.shrinks:
            left_bps = final.done.written.amount_raw * BPS // builder.holdings.asset_raw
            shrinks = (
                " Balances of this token shrink by themselves: it sells what your wallet still holds in "
                f"twenty minutes, {format_percent(left_bps)} of what it holds now."
            )
        return f"It goes through and brings {arrived}{less}{impact}.{way}{unknown}{shrinks}"
    is_same = refused in (None, finding.code)
    if is_same:
        text = trade_text.sentence(TradeOutcome(finding.code, finding, finding.missing), ran, None, policy)
        if (sold_on := sells_elsewhere(final)) is not None:
            text = f"{text} It sells back on another venue, {sold_on.traits.described} {sold_on.at()}."
    elif checked.verdict.level in ("danger", "unknown"):
        text = f"A check of the token says: {checked.verdict.text}"
    else:
        text = verdict_text.unproven(
            finding.missing or Missing("token", "we could not prove a sell of what it buys")
        )
    return text
