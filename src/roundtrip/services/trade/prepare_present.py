"""The answer of a prepared trade, read from its final run."""

from datetime import UTC, datetime

from roundtrip.domain.base import names
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import verdict_text
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.trade import text as trade_text
from roundtrip.domain.trade.judge import TradeOutcome, code_of_loss, level_of, refusal
from roundtrip.services.check.schema import at
from roundtrip.services.support.money import AssetAmount, amount

from .final_run import FinalRun
from .prepare_schema import ExpectedAmount, PreparedTrade, TokenOf, TradeStep, TradeVenue
from .simulate_schema import ShortCheck, TradeVerdict, sell_back, short_check
from .trade_builder import TradeBuilder, pays

_ADVISORY = (
    "A curve knows no deadline: validUntil is advice. Near its end it may fill a part only, at no worse "
    "price than the minimum's; the rest comes back."
)


def present(desk: TradeBuilder, final: FinalRun) -> PreparedTrade:
    """Every field of the answer."""
    ctx, venue, done = desk.ctx, final.done.written.place.venue, final.done
    now_s = ctx.now_s()
    checked = short_check(final.evidence, final.judgement, ctx.policy)
    code = _code(desk, final)
    refused = refusal(code, final.judgement.verdict) if desk.side == "buy" else None
    name = pays(venue)
    assert name is not None
    return PreparedTrade(
        chain_id=ctx.chain_id,
        side=desk.side,
        sender=desk.wallet,
        block=desk.head.block.number,
        token=TokenOf(desk.token(), symbol(desk), desk.decimals),
        venue=TradeVenue(venue.kind, venue.pool or venue.pool_id, name),
        spend=_amount(desk, desk.paid_in(venue), done.written.amount_raw),
        expect=_expected_amount(desk, final),
        slippage_bps=final.slippage_bps,
        valid_until=datetime.fromtimestamp(desk.deadline_s, UTC),
        refused=refused is not None,
        steps=[] if refused is not None else _steps(desk, final),
        already_done=list(done.written.already),
        sell_back=sell_back(final.exit, final.evidence, ctx.contracts) if final.exit is not None else None,
        verdict=_verdict(desk, final, checked, refused),
        check=checked,
        prepared_at=at(now_s),
    )


def _code(desk: TradeBuilder, final: FinalRun) -> str:
    """Of a buy what selling it straight back comes to; of a sell what its own size costs it."""
    if final.exit is not None:
        return final.exit.code
    return code_of_loss(final.impact_bps or 0, desk.ctx.policy)


def symbol(desk: TradeBuilder) -> str | None:
    """The token's, fit to show."""
    data = desk.opened.data.facts.symbol_data
    return names.symbol(names.text_in(bytes.fromhex(data[2:])) or "") if isinstance(data, str) else None


def _amount(desk: TradeBuilder, asset: Address, raw: int) -> AssetAmount:
    return amount(raw, asset, desk.decimals, symbol(desk), desk.ctx.contracts)


def _expected_amount(desk: TradeBuilder, final: FinalRun) -> ExpectedAmount:
    asset = desk.comes_in(final.done.written.place.venue)
    came, least = _amount(desk, asset, final.done.came_raw), _amount(desk, asset, final.min_raw)
    return ExpectedAmount(came.amount, came.raw, came.asset, came.symbol, least.amount, least.raw)


def _steps(desk: TradeBuilder, final: FinalRun) -> list[TradeStep]:
    """Exactly what was run, gas limits included."""
    written = final.done.written
    rows = zip(written.does, written.calls, final.gas_limits, strict=True)
    return [
        TradeStep(n, does, call.to, call.data, str(call.value_wei), gas)
        for n, (does, call, gas) in enumerate(rows, start=1)
    ]


def _verdict(desk: TradeBuilder, final: FinalRun, checked: ShortCheck, refused: str | None) -> TradeVerdict:
    code = refused or _code(desk, final)
    text = sentence(desk, final, checked, refused)
    said = [text if refused is None else f"Refused. {text}"]
    venue, written = final.done.written.place.venue, final.done.written
    if refused is None:
        if final.cut:
            most = _amount(desk, desk.paid_in(venue), written.amount_raw)
            said.append(f"The venue takes no more than {most.amount} {most.asset} now; no more is spent.")
        if desk.side == "sell" and desk.holdings.eth_wei < _gas_wei(final):
            said.append("The wallet holds too little eth to pay for the gas.")
        if venue.is_curve:
            said.append(_ADVISORY)
        if checked.verdict.level == "danger":
            said.append(f"A check of the token says: {checked.verdict.text}")
    return TradeVerdict(code, level_of(code, final.exit), " ".join(said))  # type: ignore[arg-type]


def _gas_wei(final: FinalRun) -> int:
    ran = final.done.ran
    return sum(call.gas_used for call in ran.calls) * ran.gas_price_wei


def sentence(desk: TradeBuilder, final: FinalRun, checked: ShortCheck, refused: str | None) -> str:
    """What it comes to. ``refused``: the code that a buy is refused with, where it is."""
    found, ran, policy = final.exit, final.done.ran, desk.ctx.policy
    if found is None:
        venue = final.done.written.place.venue
        brings = _amount(desk, desk.comes_in(venue), final.done.came_raw)
        impact = "" if final.impact_bps is None else trade_text.impact(final.impact_bps, "sell")
        return f"It goes through; it brings {brings.amount} {brings.asset}{impact}."
    own = refused in (None, found.code)
    if own:
        text = trade_text.sentence(TradeOutcome(found.code, found, found.missing), ran, None, policy)
    elif checked.verdict.level in ("danger", "unknown"):
        text = f"A check of the token says: {checked.verdict.text}"
    else:
        text = verdict_text.unproven(found.missing or Missing("token", "no sell of what it buys was proven"))
    return text
