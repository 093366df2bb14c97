"""Reads the crowd's trades (``crowd_plans``) from balances and from the venue's own logs. Pure."""

from dataclasses import dataclass
from typing import Literal

import msgspec

from roundtrip.chain.rpc.node_logs import UnverifiedLog
from roundtrip.domain.base.events import CurveTraded, Swapped
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.buy_math import PIPS
from roundtrip.domain.check.evidence import CellOutcome, CrowdSale, CrowdWallet, Missing, RefusedCall, Sold
from roundtrip.venues import abi

from .crowd_plans import Attempt, CrowdTrader
from .legs import Setting, VenuePlace
from .outcomes import NO_ROUTE
from .request import Results, StepResult

_DECODER = msgspec.json.Decoder(list[UnverifiedLog])


class VenueAmounts(msgspec.Struct, frozen=True):
    """What the venue itself says of a trade: ``token_raw`` and ``quote_raw`` that it gave or took.
    ``fee_pips``: of this swap, where the pool's fee is dynamic; else 0."""

    token_raw: int
    quote_raw: int
    fee_pips: int = 0


def venue_amounts(result: StepResult, place: VenuePlace, setting: Setting) -> VenueAmounts | None:
    """The amounts of the last trade on this venue in the call's logs; None: its logs have none."""
    venue = place.venue
    at = venue.at()
    last = None
    for raw in _DECODER.decode(result.logs):
        reader = place.file.SWAPS.get(raw.topics[0]) if raw.topics else None
        if reader is None:
            continue
        if venue.pool_id is not None and raw.address != setting.contracts.v4_pool_manager:
            continue
        event = reader(raw.decode())
        if event is None or event.at != at:
            continue
        if isinstance(event, CurveTraded):
            last = VenueAmounts(event.token_raw, event.quote_raw)
        elif isinstance(event, Swapped):
            amounts = abs(event.amount0), abs(event.amount1)
            token, quote = amounts if setting.token < venue.quote_address else amounts[::-1]
            last = VenueAmounts(token, quote, (event.fee_pips or 0) if venue.dynamic_fee() else 0)
    return last


class MemberBuys(msgspec.Struct, frozen=True):
    """What a wallet's buys bring: the venue gives ``given_raw`` of the token, and ``received_raw`` arrive.
    ``gas``: the most that one buy used."""

    given_raw: int
    received_raw: int
    gas: int


@dataclass(frozen=True, slots=True)
class CrowdBuys:
    """A crowd before it sells: each wallet and what its buys bring, by the venue's formula or measured."""

    wallets: tuple[CrowdWallet, ...]
    buys: tuple[MemberBuys | RefusedCall | Missing, ...]


def read_buys(results: Results, trader: CrowdTrader) -> MemberBuys | RefusedCall | Missing:
    """The measured buys of a wallet."""
    refused = _first_refusal(results, trader)
    if refused is not None:
        return Missing("node", NO_ROUTE) if refused.step == "fund" else refused
    buys = _buys(results, trader)
    received = _uint(results[f"{trader.label}-token"])
    if received is None:
        return Missing("token", "the token does not return balances")
    gas = max(buy.gas_used for buy in buys)
    if received <= 0:
        return RefusedCall("arrive", "nothing arrived for what was paid", gas)
    return MemberBuys(_given_raw(buys, trader), received, gas)


def _buys(results: Results, trader: CrowdTrader) -> list[StepResult]:
    names = (f"{trader.label}-{name}" for name in ("buy", "again"))
    return [results[name] for name in names if name in results]


def _given_raw(buys: list[StepResult], trader: CrowdTrader) -> int:
    return sum(amount.token_raw for amount in _amounts(buys, trader))


def _amounts(trades: list[StepResult], trader: CrowdTrader) -> list[VenueAmounts]:
    amounts = (venue_amounts(trade, trader.place, trader.setting) for trade in trades)
    return [amount for amount in amounts if amount is not None]


def _pool_bps(buys: list[VenueAmounts], sells: list[VenueAmounts]) -> int:
    """What a round trip pays to the pool, in bps, at the highest fee of its buys and of its sells."""
    left_pips = [PIPS - max((trade.fee_pips for trade in side), default=0) for side in (buys, sells)]
    return BPS - left_pips[0] * left_pips[1] * BPS // PIPS**2


_ROUNDING_DIVISOR = 100
"""A wallet that lacks less than one part in so many of its planned sells lacks it by rounding."""


def read_trade(
    results: Results, trader: CrowdTrader, buys: MemberBuys, amounts_raw: list[int], measured: bool = False
) -> CrowdSale | RefusedCall | Missing | None:
    """A wallet's buys, and its sells of these amounts in company; pieces are added up. None where it had less
    than was planned with, so that its sell says nothing. ``measured``: the amounts are those that the same
    buys brought, so only the venue, or rounding, may have given less."""
    refused = _first_refusal(results, trader)
    if refused is not None:
        return Missing("node", NO_ROUTE) if refused.step == "fund" else refused
    before, after = (_uint(results[f"{trader.label}-{moment}-quote"]) for moment in ("before", "after"))
    left = _uint(results[f"{trader.label}-token"])
    if before is None or after is None:
        return Missing("node", "a balance of the money side could not be read")
    if left is None:
        return Missing("token", "the token does not return balances")
    bought = _amounts(_buys(results, trader), trader)
    given = sum(amount.token_raw for amount in bought)
    sells = [results[f"{trader.label}-sell-{number}"] for number in range(len(amounts_raw))]
    sold = [raw for raw, sell in zip(amounts_raw, sells, strict=True) if sell.ok]
    failed = next((sell for sell in sells if not sell.ok), None)
    if failed is not None and left + sum(sold) < sum(amounts_raw):
        is_rounding = (left + sum(sold)) * _ROUNDING_DIVISOR >= sum(amounts_raw) * (_ROUNDING_DIVISOR - 1)
        if given < buys.given_raw or is_rounding or not measured:
            return None
        return CrowdSale(given, left + sum(sold), sum(amounts_raw), 0, 0, 0)
    if failed is not None:
        return _refused_approval(results, trader) or RefusedCall("sell", failed.reason(), failed.gas_used)
    known = _amounts(sells, trader)
    gas_wei = sum(sell.gas_used for sell in sells) * _gas_price_wei(trader)
    return CrowdSale(
        given_raw=given,
        received_raw=left + sum(sold),
        planned_raw=sum(sold),
        taken_raw=sum(amount.token_raw for amount in known),
        paid_raw=sum(amount.quote_raw for amount in known),
        back_raw=after - before + (gas_wei if trader.place.pays_eth() else 0),
        pool_bps=_pool_bps(bought, known),
    )


def read_measured_buys(results: Results, trader: CrowdTrader, amounts_raw: list[int]) -> MemberBuys | None:
    """What a wallet's buys brought in the simulation in which it also sells these amounts. None where a buy
    failed, or its balance is not known."""
    left = _uint(results[f"{trader.label}-token"])
    if left is None or _first_refusal(results, trader) is not None:
        return None
    buys = _buys(results, trader)
    sells = [results[f"{trader.label}-sell-{number}"] for number in range(len(amounts_raw))]
    sold_raw = sum(raw for raw, sell in zip(amounts_raw, sells, strict=True) if sell.ok)
    return MemberBuys(_given_raw(buys, trader), left + sold_raw, max(buy.gas_used for buy in buys))


def _gas_price_wei(trader: CrowdTrader) -> int:
    environment, tip_wei = trader.environment, trader.wallet.tip_wei
    most_wei = environment.max_fee_wei - environment.tip_wei + tip_wei
    return min(most_wei, environment.base_fee_wei + tip_wei)


def read_attempts(
    results: Results, trader: CrowdTrader, attempts: tuple[Attempt, ...], main: MemberBuys, held_raw: int
) -> CellOutcome:
    """The first sell of a wallet that succeeded (``isolated_plan``, ``company_plan``); the last refusal where
    none did. ``main``: what the main wallet's buy brought; ``held_raw``: what this one's buys bring where the
    venue's logs do not say."""
    refused = _first_refusal(results, trader)
    if refused is not None:
        return Missing("node", NO_ROUTE) if refused.step == "fund" else refused
    label, buys = trader.label, _buys(results, trader)
    made = [number for number in range(len(attempts)) if results[f"{label}-sell-{number}"].ok]
    if not made:
        sell = results[f"{label}-sell-{len(attempts) - 1}"]
        return _refused_approval(results, trader) or RefusedCall("sell", sell.reason(), sell.gas_used)
    number, left = made[0], _uint(results[f"{label}-token"])
    before, after = (_uint(results[f"{label}-{when}-{number}-quote"]) for when in ("before", "after"))
    if before is None or after is None:
        return Missing("node", "a balance of the money side could not be read")
    if left is None:
        return Missing("token", "the token does not return balances")
    given_raw, sell, raw = _given_raw(buys, trader), results[f"{label}-sell-{number}"], attempts[number].raw
    if given_raw and main.given_raw:
        held_raw = given_raw * main.received_raw // main.given_raw
    # What the token gives back in the sale itself, as reflection does, was sold: it came to the venue.
    came = venue_amounts(sell, trader.place, trader.setting)
    came_raw = 0 if came is None else min(raw, came.token_raw)
    if not main.given_raw and len(made) == 1:
        # Alone, a wallet's buys bring more than among others.
        held_raw = max(held_raw, left + came_raw)
    sold = max(held_raw - left, came_raw)
    # What later attempts sold does not count.
    sold = min(raw, sold) if len(made) > 1 else sold
    wallet = trader.wallet
    paid = trader.spent_raw(wallet.size_wei) + trader.spent_raw(wallet.again_wei)
    gas_wei = _gas_price_wei(trader) * sell.gas_used if trader.place.pays_eth() else 0
    buy_gas = max(buy.gas_used for buy in buys)
    return Sold(paid, held_raw, raw, sold, after - before + gas_wei, buy_gas, sell.gas_used)


_Step = Literal["fund", "buy", "approve"]
_STEP_OF: dict[str, _Step] = {
    "buy-fund": "fund",
    "again-fund": "fund",
    "buy-allow-0": "approve",
    "again-allow-0": "approve",
    "buy": "buy",
    "again": "buy",
}


def _first_refusal(results: Results, trader: CrowdTrader) -> RefusedCall | None:
    """The first step before the sell's approvals that failed."""
    for name, step in _STEP_OF.items():
        result = results.get(f"{trader.label}-{name}")
        if result is not None and not result.ok:
            return RefusedCall(step, result.reason(), result.gas_used)
    return None


def _refused_approval(results: Results, trader: CrowdTrader) -> RefusedCall | None:
    """The approval of the sell, where it failed: it says why a sell that needs it is refused. Some tokens
    refuse an approval of Permit2 that they give by themselves, and then the sell goes through."""
    result = results.get(f"{trader.label}-approve-0")
    if result is None or result.ok:
        return None
    return RefusedCall("approve", result.reason(), result.gas_used)


def _uint(result: StepResult) -> int | None:
    return abi.uint_at(result.data, 0) if result.ok else None
