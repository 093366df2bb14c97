"""The check's answer: a reading of evidence for people and programs."""

from datetime import datetime
from fractions import Fraction
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, BURN_ADDRESSES, plain_decimal
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.buy_math import PIPS
from roundtrip.domain.check.curve import MAX_TAKEN_BPS, fill_bps, round_trip_loss_bps
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    Curve,
    DeployerRecord,
    Evidence,
    LaunchRecord,
    MarketRates,
    Missing,
    PoolLaunch,
    VenueEvidence,
)
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.price import market_cap_usd, quote_decimals, quote_raw, token_usd
from roundtrip.domain.check.sales import Sale
from roundtrip.domain.check.venue_reading import VenueReading
from roundtrip.domain.check.verdict import Judgement, shown_index
from roundtrip.domain.check.verdict_text import buy_reason_text, sell_reason_text

from .answer_fields import Flags, Name, Reverts, Symbol, VerdictAnswer, at, says


class TokenAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What the token says of itself. Symbol and name were written by strangers."""

    symbol: Symbol
    name: Name
    decimals: Annotated[
        int | None,
        says("Decimals of a whole token. null: the contract gives none, or they could not be read."),
    ]
    total_supply: Annotated[str | None, says("Supply in whole tokens, a decimal number. null: not known.")]
    owner: Annotated[
        str | None, says("Owner that the contract names. null: it names none, or it could not be read.")
    ]
    owner_renounced: Annotated[bool | None, says("Whether the owner is a burn address. null: owner is null.")]


class VenueAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Where the judged trade went."""

    kind: Annotated[VenueKind, says("Kind of venue.")]
    quote: Annotated[str, says("What the token is traded against: eth, weth, usdg or a token's address.")]
    pool_fee_bps: Annotated[
        float | None,
        says(
            "Share that the pool keeps of each swap, in hundredths of a percent, without what a "
            "hook takes beyond it (feesBps has both). null: a hook sets it swap by swap, or it is not known."
        ),
    ]
    dynamic_fee: Annotated[bool, says("Whether a hook may set the fee swap by swap.")]
    hook: Annotated[str | None, says("Address of the pool's hook. null: it has none.")]
    pool: Annotated[str | None, says("Address of the pool or curve. null: a v4 pool, see poolId.")]
    pool_id: Annotated[str | None, says("Id of a v4 pool. null: not a v4 pool.")]
    pools_found: Annotated[int, says("Pools of the token that were found.")]


class PaidAnswer(msgspec.Struct, frozen=True):
    """What the simulated buy paid."""

    amount: Annotated[str, says("Amount in whole units of the asset, a decimal number.")]
    asset: Annotated[str, says("eth, usdg or a token's address.")]


class TradeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The simulated round trip."""

    method: Annotated[
        Literal["simulated_trade", "curve_math", "pool_quote"],
        says(
            "simulated_trade: a simulated buy and sell. curve_math: a simulated buy, and the curve's "
            "verified formula for the sell. pool_quote: never used."
        ),
    ]
    paid: Annotated[PaidAnswer, says("What the buy paid.")]
    tokens_out: Annotated[
        str | None,
        says(
            "Whole tokens that the buy brought, a decimal number. null: it brought none, "
            "or the decimals are not known."
        ),
    ]
    round_trip_loss_bps: Annotated[
        int | None,
        says(
            "Loss of buying and selling straight back, in hundredths of a percent of what was paid. null: "
            "not measured, for example because the sell did not go through."
        ),
    ]
    fees_bps: Annotated[
        int | None,
        says(
            "Measured fees and taxes, in hundredths of a percent; the snipe tax if that is "
            "higher. null: not measured."
        ),
    ]
    price_impact_bps: Annotated[
        int | None,
        says(
            "How much worse the price is than for a small trade, in hundredths of a "
            "percent. null: not measured."
        ),
    ]
    buy_reverts: Reverts
    sell_reverts: Reverts


class PriceAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Dollars, where a price is known."""

    usd: Annotated[float | None, says("Dollars for a whole token. null: not known.")]
    market_cap_usd: Annotated[float | None, says("Price times total supply, in dollars. null: not known.")]


class DeployerAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Who launched it and how earlier launches went."""

    address: Annotated[str, says("The deployer's wallet.")]
    launches: Annotated[int, says("Launches of that wallet; counted up to the newest 200.")]
    graduated: Annotated[int, says("Launches of those that became a pool.")]
    sold_own: Annotated[int, says("Launches of those where it sold half or more of what it had bought.")]


class LaunchpadAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Only for tokens launched on the launchpad."""

    phase: Annotated[
        Literal["curve", "graduated"],
        says("curve: on its bonding curve, or between curve and pool. graduated: trades in its pool."),
    ]
    curve_fill_bps: Annotated[
        int | None,
        says("How full the curve is, in hundredths of a percent. null: it graduated, or not known."),
    ]
    buy_tax_bps: Annotated[
        int,
        says(
            "Everything taken of a buy, in hundredths of a percent: the launchpad's fee, "
            "the creator's tax, the snipe tax."
        ),
    ]
    sell_tax_bps: Annotated[
        int,
        says(
            "Everything taken of a sell, in hundredths of a percent: the launchpad's fee "
            "and the creator's tax."
        ),
    ]
    creator_tax_bps: Annotated[int, says("The creator's tax alone, in hundredths of a percent.")]
    deployer: Annotated[
        DeployerAnswer | None, says("The wallet that launched it, with its record. null: not known.")
    ]


class Check(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a token can be bought and sold, and what a round trip costs."""

    address: Annotated[str, says("The token's address.")]
    chain_id: Annotated[int, says("Id of the chain; Robinhood Chain is 4663.")]
    verdict: Annotated[VerdictAnswer, says("What the check found.")]
    flags: Flags
    token: Annotated[TokenAnswer, says("What the token's contract says of itself.")]
    venue: Annotated[
        VenueAnswer | None,
        says(
            "The pool or curve of the trade that decided. null: none was found, or, with code "
            "unproven, the check could not find out."
        ),
    ]
    trade: Annotated[
        TradeAnswer | None,
        says("The simulated buy and sell. null: venue is null, or its price in eth is not known."),
    ]
    price: Annotated[PriceAnswer | None, says("The token's price. null: venue is null.")]
    launchpad: Annotated[
        LaunchpadAnswer | None,
        says("The token's launch. null: not launched on the launchpad, or that could not be read."),
    ]
    checked_at: Annotated[datetime, says("When the check was made.")]


def present(evidence: Evidence, judgement: Judgement, policy: Policy, now_s: float) -> Check:
    """The answer, read from the evidence and its judgement."""
    verdict = judgement.verdict
    venue, reading = _shown_venue(evidence, judgement)
    return Check(
        address=evidence.token,
        chain_id=evidence.chain_id,
        verdict=VerdictAnswer(verdict.code, verdict.level, verdict.text),  # type: ignore[arg-type]
        flags=list(raised_flags(JudgedCheck(evidence, judgement, policy))),
        token=_token(evidence),
        venue=_venue(venue, evidence) if venue else None,
        trade=_trade(evidence, venue, reading, policy) if venue and reading else None,
        price=_price(venue, evidence, policy) if venue else None,
        launchpad=_launchpad(evidence),
        checked_at=at(now_s),
    )


def _shown_venue(
    evidence: Evidence, judgement: Judgement
) -> tuple[VenueEvidence | None, VenueReading | None]:
    """The venue that decided, else the first that exists."""
    index = shown_index(judgement)
    if index is None:
        return None, None
    return evidence.venues[index], judgement.readings[index]


def _token(evidence: Evidence) -> TokenAnswer:
    facts = evidence.facts
    decimals = facts.decimals if isinstance(facts.decimals, int) else None
    supply = facts.total_supply_raw
    # Not who can replace the code: a contract can put anybody's address into a proxy's slots.
    owner = facts.owner if isinstance(facts.owner, str) else None
    whole = None
    if isinstance(supply, int) and decimals is not None:
        whole = plain_decimal(supply, decimals)
    return TokenAnswer(
        symbol=names.symbol(_text(facts.symbol_data)),
        name=names.name(_text(facts.name_data)),
        decimals=decimals,
        total_supply=whole,
        owner=owner,
        owner_renounced=None if owner is None else owner in BURN_ADDRESSES,
    )


def _text(data: str | Missing | None) -> str:
    """The text in a hex answer of the token; empty: there is none, or it could not be read."""
    return names.text_in(bytes.fromhex(data[2:])) or "" if isinstance(data, str) else ""


def _venue(venue: VenueEvidence, evidence: Evidence) -> VenueAnswer:
    fee_bps = _pool_fee_bps(venue, evidence.launch)
    pools_found = evidence.pools_found
    whole = fee_bps is not None and fee_bps.denominator == 1
    return VenueAnswer(
        kind=venue.venue.kind,
        quote=venue.venue.quote,
        pool_fee_bps=fee_bps if fee_bps is None else int(fee_bps) if whole else float(fee_bps),
        dynamic_fee=venue.venue.dynamic_fee(),
        hook=venue.venue.hook,
        pool=venue.venue.pool,
        pool_id=venue.venue.pool_id,
        pools_found=pools_found,
    )


def _pool_fee_bps(venue: VenueEvidence, launch: AnyLaunch | Missing | None) -> Fraction | None:
    """The pool's fee on every swap; None where a hook sets it per swap, or it is not known."""
    if venue.venue.dynamic_fee():
        return None
    if venue.venue.traits.is_launchpad:
        fee = _launch_fee_bps(launch) if isinstance(launch, LaunchRecord) else None
        return None if fee is None else Fraction(fee)
    return Fraction(venue.venue.fee_pips * BPS, PIPS)


def _launch_fee_bps(launch: LaunchRecord) -> int | None:
    """The launchpad's own fee and the creator's tax on every trade, where the token trades now."""
    state = launch.curve_state
    if launch.phase == "curve":
        return state.fee_bps + state.creator_tax_bps if isinstance(state, Curve) else None
    return None if launch.hook_fee_bps is None else launch.hook_fee_bps + launch.creator_tax_bps


def _launchpad(evidence: Evidence) -> LaunchpadAnswer | None:
    """The launchpad's part of the answer. Taxes are everything that is taken of a buy and a sell where the
    token trades now: the launchpad's fee, the creator's tax, and on buys the snipe tax. The deployer's record
    requires an index."""
    launch = evidence.launch
    if isinstance(launch, PoolLaunch):
        return _pool_launch(launch, evidence.deployer)
    if not isinstance(launch, LaunchRecord):
        return None
    state = launch.curve_state
    fee_bps = _launch_fee_bps(launch)
    creator_bps = launch.creator_tax_bps if fee_bps is None else fee_bps
    snipe = state.snipe_bps if isinstance(state, Curve) and not state.closed else 0
    fill = fill_bps(state, launch.threshold_raw) if isinstance(state, Curve) else None
    return LaunchpadAnswer(
        phase="graduated" if launch.phase == "pooled" else "curve",
        curve_fill_bps=BPS if launch.phase == "swept" else fill,
        buy_tax_bps=min(MAX_TAKEN_BPS, creator_bps + snipe),
        sell_tax_bps=creator_bps,
        creator_tax_bps=launch.creator_tax_bps,
        deployer=_deployer(launch, evidence.deployer),
    )


def _pool_launch(launch: PoolLaunch, known: DeployerRecord | None) -> LaunchpadAnswer:
    """The launchpad's part for a launch into a pool: only the pool's own fee, also after it graduates."""
    fill = launch.fill_bps()
    return LaunchpadAnswer(
        phase="graduated" if fill == BPS else "curve",
        curve_fill_bps=None if fill == BPS else fill,
        buy_tax_bps=0,
        sell_tax_bps=0,
        creator_tax_bps=0,
        deployer=_deployer(launch, known),
    )


def _deployer(launch: AnyLaunch, known: DeployerRecord | None) -> DeployerAnswer | None:
    if known is None:
        return None
    return DeployerAnswer(launch.deployer, known.launches, known.graduated, known.sold_own)


def _trade(
    evidence: Evidence, venue: VenueEvidence, reading: VenueReading, policy: Policy
) -> TradeAnswer | None:
    decimals = evidence.facts.decimals
    tokens_out = None
    paid_raw = quote_raw(policy.probe_wei, venue.venue.quote, evidence.market)
    if paid_raw is None:
        return None
    if reading.bought is not None:
        paid_raw = reading.bought.paid_raw
        if isinstance(decimals, int):
            tokens_out = plain_decimal(reading.bought.received_raw, decimals)
    simulated = reading.full.loss_bps if isinstance(reading.full, Sale) else None
    by_formula = _by_formula(evidence, venue, reading)
    return TradeAnswer(
        method="simulated_trade" if by_formula is None else "curve_math",
        paid=_present_paid(venue, paid_raw, evidence.market),
        tokens_out=tokens_out,
        round_trip_loss_bps=simulated if by_formula is None else by_formula,
        fees_bps=_fees_bps(reading),
        price_impact_bps=reading.impact_bps if isinstance(reading.impact_bps, int) else None,
        buy_reverts=buy_reason_text(venue, reading),
        sell_reverts=sell_reason_text(venue, reading),
    )


def _fees_bps(reading: VenueReading) -> int | None:
    """The measured fees, or the snipe tax where that is more."""
    figures = [reading.fees_bps, reading.first_tax_bps or None]
    return max((figure for figure in figures if isinstance(figure, int)), default=None)


def _by_formula(evidence: Evidence, venue: VenueEvidence, reading: VenueReading) -> int | None:
    """The loss by the curve's formula, where the sell could not be simulated and the buy agrees with the
    formula. The verdict ignores it: a sell that did not run proves nothing."""
    state = evidence.launch.curve_state if isinstance(evidence.launch, LaunchRecord) else None
    if not venue.venue.is_curve or not isinstance(reading.full, Missing):
        return None
    if reading.bought is None or not isinstance(state, Curve):
        return None
    return round_trip_loss_bps(state, reading.bought)


def _present_paid(venue: VenueEvidence, paid_raw: int, market: MarketRates) -> PaidAnswer:
    quote = venue.venue.quote
    decimals = quote_decimals(quote, market)
    assert decimals is not None
    return PaidAnswer(plain_decimal(paid_raw, decimals), "eth" if quote == "weth" else quote)


def _price(venue: VenueEvidence, evidence: Evidence, policy: Policy) -> PriceAnswer | None:
    usd = token_usd(venue, evidence, policy)
    if usd is None:
        return PriceAnswer(None, None)
    cap = market_cap_usd(usd, evidence)
    return PriceAnswer(float(usd), None if cap is None else float(cap))


def read_sold_bps(judgement: Judgement) -> int | None:
    """How much of what was bought the shown venue's round trip sold; None: no sell, or not known."""
    index = shown_index(judgement)
    full = None if index is None else judgement.readings[index].full
    if not isinstance(full, Sale):
        return None
    return BPS if full.whole else full.share_bps
