"""Reads what the crowd met (``crowd_plans``) from balances and from the venue's own logs. Pure."""

from dataclasses import dataclass
from typing import Literal

import msgspec

from roundtrip.chain.rpc.node_logs import UnverifiedLog
from roundtrip.domain.base.events import CurveTraded, Swapped
from roundtrip.domain.check.evidence import CellOutcome, CrowdSale, CrowdWallet, Missing, RefusedCall, Sold
from roundtrip.venues import abi

from .crowd_plans import Attempt, CrowdTrader
from .legs import Setting, VenuePlace
from .outcomes import NO_ROUTE
from .request import Results, StepResult

_DECODER = msgspec.json.Decoder(list[UnverifiedLog])


@dataclass(frozen=True, slots=True)
class VenueAmounts:
    """What the venue itself says of a trade: ``token_raw`` and ``quote_raw`` that it gave or took."""

    token_raw: int
    quote_raw: int


def venue_amounts(result: StepResult, place: VenuePlace, setting: Setting) -> VenueAmounts | None:
    """The amounts of the last trade on this venue in the call's logs; None: its logs have none."""
    venue = place.venue
    at = venue.at()
    found = None
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
            found = VenueAmounts(event.token_raw, event.quote_raw)
        elif isinstance(event, Swapped):
            amounts = abs(event.amount0), abs(event.amount1)
            token, quote = amounts if setting.token < venue.quote_address else amounts[::-1]
            found = VenueAmounts(token, quote)
    return found


@dataclass(frozen=True, slots=True)
class MemberBuys:
    """What a wallet's buys bring: ``given_raw`` by the venue, of which ``received_raw`` arrive. ``gas``: the
    most of one buy."""

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
    amounts = [venue_amounts(buy, trader.place, trader.setting) for buy in buys]
    return sum(amount.token_raw for amount in amounts if amount is not None)


_ROUNDING_DIVISOR = 100
"""A wallet that lacks less than this part of a planned sell lacks it by rounding."""


def read_trade(
    results: Results, trader: CrowdTrader, buys: MemberBuys, amounts_raw: list[int]
) -> CrowdSale | RefusedCall | Missing | None:
    """A wallet's buys and sells in company, of these amounts; of pieces all together. None where the venue
    gave less than was planned with, so that there was too little to sell."""
    refused = _first_refusal(results, trader)
    if refused is not None:
        return Missing("node", NO_ROUTE) if refused.step == "fund" else refused
    before, after = (_uint(results[f"{trader.label}-{moment}-quote"]) for moment in ("before", "after"))
    left = _uint(results[f"{trader.label}-token"])
    if before is None or after is None:
        return Missing("node", "a balance of the money side could not be read")
    if left is None:
        return Missing("token", "the token does not return balances")
    given = _given_raw(_buys(results, trader), trader)
    sells = [results[f"{trader.label}-sell-{number}"] for number in range(len(amounts_raw))]
    sold = [raw for raw, sell in zip(amounts_raw, sells, strict=True) if sell.ok]
    failed = next((sell for sell in sells if not sell.ok), None)
    if failed is not None and left + sum(sold) < sum(amounts_raw):
        is_rounding = (left + sum(sold)) * _ROUNDING_DIVISOR >= sum(amounts_raw) * (_ROUNDING_DIVISOR - 1)
        if given < buys.given_raw or is_rounding:
            return None
        return CrowdSale(given, left + sum(sold), sum(amounts_raw), 0, 0, 0)
    if failed is not None:
        return RefusedCall("sell", failed.reason(), failed.gas_used)
    amounts = [venue_amounts(sell, trader.place, trader.setting) for sell in sells]
    known = [amount for amount in amounts if amount is not None]
    gas_wei = sum(sell.gas_used for sell in sells) * _gas_price_wei(trader)
    return CrowdSale(
        given_raw=given,
        received_raw=left + sum(sold),
        planned_raw=sum(sold),
        taken_raw=sum(amount.token_raw for amount in known),
        paid_raw=sum(amount.quote_raw for amount in known),
        back_raw=after - before + (gas_wei if trader.place.pays_eth() else 0),
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


def read_isolated(results: Results, trader: CrowdTrader, attempts: tuple[Attempt, ...]) -> CellOutcome:
    """The first sell of a wallet alone that succeeded; the last refusal where none did."""
    refused = _first_refusal(results, trader)
    if refused is not None:
        return Missing("node", NO_ROUTE) if refused.step == "fund" else refused
    start, bought = (_uint(results[f"alone-{moment}-quote"]) for moment in ("start", "bought"))
    held = _uint(results["alone-token"])
    if start is None or bought is None:
        return Missing("node", "a balance of the money side could not be read")
    if held is None:
        return Missing("token", "the token does not return balances")
    paid = _planned_paid_raw(trader)
    if trader.place.pays_eth():
        gas = sum(buy.gas_used for buy in _buys(results, trader))
        paid = start - bought - _gas_price_wei(trader) * gas
    return _read_attempts(results, trader, attempts, paid, held)


def read_company(results: Results, trader: CrowdTrader, attempts: tuple[Attempt, ...]) -> CellOutcome:
    """The same for a wallet of the crowd that sells after the crowd's buys (``company_plan``)."""
    refused = _first_refusal(results, trader)
    if refused is not None:
        return Missing("node", NO_ROUTE) if refused.step == "fund" else refused
    held = _uint(results[f"{trader.label}-held"])
    if held is None:
        return Missing("token", "the token does not return balances")
    return _read_attempts(results, trader, attempts, _planned_paid_raw(trader), held)


def _planned_paid_raw(trader: CrowdTrader) -> int:
    return trader.spent_raw(trader.wallet.size_wei) + trader.spent_raw(trader.wallet.again_wei)


def _read_attempts(
    results: Results, trader: CrowdTrader, attempts: tuple[Attempt, ...], paid: int, held: int
) -> CellOutcome:
    label, refused = trader.label, None
    buy_gas = max(buy.gas_used for buy in _buys(results, trader))
    for number, attempt in enumerate(attempts):
        sell = results[f"{label}-sell-{number}"]
        if not sell.ok:
            refused = RefusedCall("sell", sell.reason(), sell.gas_used)
            continue
        before, after = (_uint(results[f"{label}-{when}-{number}-quote"]) for when in ("before", "after"))
        had, left = (_uint(results[f"{label}-{name}-{number}"]) for name in ("had", "left"))
        if before is None or after is None:
            return Missing("node", "a balance of the money side could not be read")
        if had is None or left is None:
            return Missing("token", "the token does not return balances")
        gas_wei = _gas_price_wei(trader) * sell.gas_used if trader.place.pays_eth() else 0
        # A balance that grew by itself is not what the sale left. One that shrank was lost, as if sold. What
        # the token gives back in the sale itself, as reflection does, was sold: it came to the venue.
        came = venue_amounts(sell, trader.place, trader.setting)
        sold = max(max(had, held) - left, 0 if came is None else min(attempt.raw, came.token_raw))
        return Sold(paid, held, attempt.raw, sold, after - before + gas_wei, buy_gas, sell.gas_used)
    assert refused is not None
    return refused


_Step = Literal["fund", "buy", "approve"]
_STEP_OF: dict[str, _Step] = {
    "buy-fund": "fund",
    "again-fund": "fund",
    "buy-allow-0": "approve",
    "again-allow-0": "approve",
    "buy": "buy",
    "again": "buy",
    "approve-0": "approve",
}


def _first_refusal(results: Results, trader: CrowdTrader) -> RefusedCall | None:
    """The first step before the sell that failed."""
    for name, step in _STEP_OF.items():
        result = results.get(f"{trader.label}-{name}")
        if result is not None and not result.ok:
            return RefusedCall(step, result.reason(), result.gas_used)
    return None


def _uint(result: StepResult) -> int | None:
    return abi.uint_at(result.data, 0) if result.ok else None
