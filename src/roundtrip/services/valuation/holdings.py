"""The worth of holdings if they were sold now: many of them in one batch to the node. The result of an
ordinary buy of a token now, and of selling it straight back."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from roundtrip.chain.blocks import environments
from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import REVERTED, Meter, RpcError
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.simulate import outcomes, probe_plans
from roundtrip.chain.simulate.balance_slots import BalanceSlot, guess_calls, read_guesses
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall
from roundtrip.domain.check.refusals import PULL_REASONS, first_reason
from roundtrip.domain.check.sales import Sale
from roundtrip.domain.trade.judge import FEW_UNITS, SALE_PARTS_BPS
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.candidates import KnownVenues, list_candidates
from roundtrip.services.engine.inputs import role_of
from roundtrip.services.engine.token_check import check_token, known_venues, read_index, start_check
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import pays
from roundtrip.services.valuation.holding_sells import (
    NO_PLACE,
    HoldingCase,
    HoldingSells,
    build_requests,
    estimate_wei,
    find_deeper_places,
    find_waiting_places,
    read_sells,
    value_holding,
)
from roundtrip.services.valuation.token_batches import BatchRequest, send_round
from roundtrip.venues import BY_KIND
from roundtrip.venues.abi import keccak


@dataclass(frozen=True, slots=True)
class HoldingToSell:
    """``amount_raw`` of a token, to be sold whole. ``seller``: a wallet that really holds that much. None: a
    wallet of ours sells; its balance is overridden at ``slot``, and the token's own view must confirm it.
    Without a slot, a wallet sells that holds that much by the index. ``before_raw``: what the same seller
    sold just before this sell, so that many partial sells bring no more than one. ``held_s``: minimum time
    since the buy; a token may make buyers wait. ``at``: the pool, curve or pool id that is the only place to
    sell it, while any of it sells there; None: the place with the highest proceeds. ``oldest_s``: maximum
    time since a buy of it."""

    token: Address
    amount_raw: int
    seller: Address | None = None
    slot: BalanceSlot | None = None
    before_raw: int = 0
    held_s: int = 0
    at: str | None = None
    oldest_s: int = 0


@dataclass(frozen=True, slots=True)
class SellValue:
    """Proceeds of selling the whole holding, in wei, and the venue."""

    wei: int
    venue: Venue


Valued = SellValue | RefusedCall | Missing
"""RefusedCall: it cannot be sold, and why. Missing: not found out."""


@dataclass(frozen=True, slots=True)
class PartValue:
    """Where all of a holding is refused in one sale, and why: the largest part tried that sells at once, and
    its proceeds."""

    part_raw: int
    proceeds: SellValue
    refused: RefusedCall


_MAX_IN_PARTS = 8
"""Refused holdings of which parts are tried, the first ones."""

_MAX_COUNTING = 4
"""Tokens for which block numbers are made to pass, see ``worth``."""
_MAX_KNOWN = 8
"""Limit of candidate places of each sort."""


async def worth(
    ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
) -> list[Valued]:
    """Values each holding at the block of ``head``, all in one batch. What the node does not answer is
    Missing. A second batch follows if a place is deeper than those that were tried, or if a holding no longer
    sells at its only place. Where NUMBER stands still in simulations, the buy round of a check lets block
    numbers pass for up to ``_MAX_COUNTING`` tokens that may count them, those of the largest holdings, and
    these are sold again."""
    try:
        head.known_dialect()
    except NodeFault as fault:
        return [Missing("node", fault.message) for _ in holdings]
    cases = await _build_cases(ctx, head, holdings)
    answers = await send_round(
        ctx,
        head,
        {number: build_requests(case, case.first_places()) for number, case in enumerate(cases)},
        meter,
    )
    sells = [read_sells(case, case.first_places(), answers[number]) for number, case in enumerate(cases)]
    waiting = {
        number: places
        for number, case in enumerate(cases)
        if (places := find_waiting_places(case, case.first_places(), answers[number]))
    }
    by_worth = sorted(
        waiting,
        key=lambda number: estimate_wei(cases[number], waiting[number], answers[number]),
        reverse=True,
    )
    passed = await _pass_numbers(ctx, head, {number: cases[number] for number in by_worth}, meter)
    for number, case in passed.items():
        cases[number] = case
    again = {number: build_requests(case, waiting[number]) for number, case in passed.items()}
    answers = await send_round(ctx, head, again, meter)
    for number, case in passed.items():
        sells[number] = sells[number].with_more(read_sells(case, waiting[number], answers[number]))
    more_places = {number: find_deeper_places(case, sells[number]) for number, case in enumerate(cases)}
    retries = {
        number: build_requests(cases[number], places) for number, places in more_places.items() if places
    }
    if retries:
        answers = await send_round(ctx, head, retries, meter)
        for number in retries:
            sells[number] = sells[number].with_more(
                read_sells(cases[number], more_places[number], answers[number])
            )
    return [_value_of(case, holding_sells) for case, holding_sells in zip(cases, sells, strict=True)]


async def worth_in_parts(
    ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
) -> list[Valued | PartValue]:
    """Values each holding as ``worth`` does; where all of it is refused, the largest part that sells: all but
    a few base units, or a share. A hundredth goes first: most of what is refused sells in no part."""
    values: list[Valued | PartValue] = list(await worth(ctx, head, holdings, meter))
    refused = [n for n, value in enumerate(values) if isinstance(value, RefusedCall) and value != NO_PLACE]
    refused = refused[:_MAX_IN_PARTS]

    async def find_parts(parts_raw: Mapping[int, Sequence[int]]) -> dict[int, PartValue]:
        tried = [(n, raw) for n, parts in parts_raw.items() for raw in parts if raw > 0]
        sold = await worth(ctx, head, [replace(holdings[n], amount_raw=raw) for n, raw in tried], meter)
        largest: dict[int, PartValue] = {}
        for (n, raw), value in sorted(zip(tried, sold, strict=True), key=lambda part: part[0]):
            whole = values[n]
            if isinstance(value, SellValue) and isinstance(whole, RefusedCall):
                largest[n] = PartValue(raw, value, whole)
        return largest

    withheld = {n: holdings[n] for n in refused if _is_withheld(values[n])}
    for n, reason in (await _ask_tokens(ctx, head, withheld, meter)).items():
        values[n] = RefusedCall("sell", reason, 0)
    held_raw = {n: holdings[n].amount_raw for n in refused}
    found = (
        await find_parts(
            {n: (raw * SALE_PARTS_BPS[-1] // BPS, raw - FEW_UNITS) for n, raw in held_raw.items()}
        )
        if refused
        else {}
    )
    more = {
        n: [held_raw[n] * share_bps // BPS for share_bps in SALE_PARTS_BPS[:-1]]
        for n, part in found.items()
        if part.part_raw < held_raw[n] - FEW_UNITS
    }
    if more:
        found |= await find_parts(more)
    for n, part in found.items():
        values[n] = part
    return values


def _is_withheld(value: object) -> bool:
    """Whether a router says only that it could not take the token from the wallet."""
    return isinstance(value, RefusedCall) and value.reason in PULL_REASONS


async def _ask_tokens(
    ctx: Context, head: ChainHead, holdings: Mapping[int, HoldingToSell], meter: Meter
) -> dict[int, str]:
    """The tokens' own reasons, where they refuse a venue's pull of one unit from a real seller with one. One
    batch, or none."""
    if not holdings:
        return {}
    cases = dict(zip(holdings, await _build_cases(ctx, head, list(holdings.values())), strict=True))
    pulls = {number: _plan_pulls(case) for number, case in cases.items()}
    answers = await send_round(ctx, head, pulls, meter)
    reasons = {}
    for number, by_place in answers.items():
        results = (answer for answer in by_place.values() if isinstance(answer, dict))
        if reason := first_reason(outcomes.read_holder_pull(result) for result in results):
            reasons[number] = reason
    return reasons


def _plan_pulls(case: HoldingCase) -> list[BatchRequest]:
    if case.seller is None:
        return []
    env, setting = replace(case.environment, buyer=case.seller), case.build_setting()
    return [
        BatchRequest(place, probe_plans.holder_pull_plan(place, setting, env), place=place)
        for place in case.first_places()
    ]


async def _pass_numbers(
    ctx: Context, head: ChainHead, waiting: Mapping[int, HoldingCase], meter: Meter
) -> dict[int, HoldingCase]:
    """The cases, of the first ``_MAX_COUNTING`` tokens, for which block numbers can be made to pass as in a
    check; each with the venues where they pass."""
    tokens = list(dict.fromkeys(case.token for case in waiting.values()))[:_MAX_COUNTING]
    meters = [Meter() for _ in tokens]
    sessions = await at_once(
        *(_buy_round(ctx, head, token, used) for token, used in zip(tokens, meters, strict=True))
    )
    meter.add(*meters)
    found = dict(zip(tokens, sessions, strict=True))
    passed = {}
    for number, case in waiting.items():
        bought = found.get(case.token)
        if bought is None:
            continue
        gaps = bought.run.block_gaps
        venues = (trial.place.venue for trial in bought.data.venues if trial.main_size() is not None)
        passing = frozenset(venue for venue in venues if venue not in gaps)
        if passing:
            passed[number] = replace(case, passing=passing, copies=bought.run.copies)
    return passed


async def _buy_round(ctx: Context, head: ChainHead, token: Address, meter: Meter) -> BuyRoundResult | None:
    """The buy round of a check; None: the node did not answer, or the service has no room for it."""
    try:
        return await start_check(ctx, head, token, meter)
    except (NodeFault, ServiceFull):
        return None


def _value_of(case: HoldingCase, sells: HoldingSells) -> Valued:
    value = value_holding(case, sells)
    return SellValue(*value) if isinstance(value, tuple) else value


async def _build_cases(ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell]) -> list[HoldingCase]:
    seed = ctx.entropy()
    tokens = list(dict.fromkeys(holding.token for holding in holdings))
    without_slot = {holding.token for holding in holdings if holding.seller is None and holding.slot is None}
    reads = (read_index(ctx, token, seed, holders=token in without_slot) for token in tokens)
    indexes = dict(zip(tokens, await at_once(*reads), strict=True))
    holders = {token: index.facts.holders for token, index in indexes.items() if index is not None}
    for token, index in indexes.items():
        if index is not None and role_of(token, ctx.contracts) != "token":
            # Nobody sells money for money.
            indexes[token] = replace(index, pools=())
    known = {token: known_venues(ctx, token, index) for token, index in indexes.items()}
    places_by_holding = {
        (holding.token, holding.at): _list_places(ctx, known[holding.token], holding) for holding in holdings
    }
    cases = []
    for number, holding in enumerate(holdings):
        environment, other = environments.draw(keccak(seed + number.to_bytes(4, "big")), head, ctx.policy)
        known_holders = (
            holders.get(holding.token, ()) if holding.seller is None and holding.slot is None else ()
        )
        cases.append(
            HoldingCase(
                check_context=ctx.means(),
                head=head,
                token=holding.token,
                amount_raw=holding.amount_raw,
                before_raw=holding.before_raw,
                held_s=holding.held_s,
                at=holding.at,
                seller=holding.seller,
                slot=None if holding.seller is not None else holding.slot,
                holders=known_holders,
                environment=environment,
                other=other,
                **places_by_holding[holding.token, holding.at],
            )
        )
    return cases


class _KnownPlaces(TypedDict):
    places: tuple[VenuePlace, ...]
    listed: int
    complete: bool


def _list_places(ctx: Context, known: KnownVenues, holding: HoldingToSell) -> _KnownPlaces:
    """Places where it may be sold for eth or usdg: known ones first, those with third-party hooks last of
    these. Anyone can open any number of pools, so its only place is always included."""
    candidates = list_candidates(known, ctx.contracts, holding.token, _MAX_KNOWN)
    at, listed = holding.at, set(known.venues)
    missing = [
        venue for venue in listed if at is not None and venue.at() == at and venue not in candidates.venues
    ]
    payable = [venue for venue in (*missing, *candidates.venues) if pays(venue) is not None]
    ranked = sorted(payable, key=lambda venue: (venue not in listed, venue.rival_hook()))
    is_paid_otherwise = candidates.others or any(pays(venue) is None for venue in listed)
    complete = candidates.complete and not candidates.left_out and not is_paid_otherwise
    places = tuple(VenuePlace(venue, BY_KIND[venue.kind]) for venue in ranked)
    return {"places": places, "listed": sum(venue in listed for venue in payable), "complete": complete}


async def slot_of(ctx: Context, head: ChainHead, token: Address, meter: Meter) -> BalanceSlot | None:
    """The storage slot of the token's balances; None: not known. Raises NodeFault."""
    wallet = environments.draw(ctx.entropy(), head, ctx.policy)[0].reader
    answers = await ctx.node.batch(guess_calls(token, wallet, head.block), meter)
    slot = read_guesses(token, answers)
    if slot is None:
        # A revert is the token's own answer; any other error means that the node did not answer.
        for answer in answers:
            if isinstance(answer, RpcError) and answer.code != REVERTED:
                raise NodeFault(f"it returned no balance ({describe_error(answer)})")
    return slot


@dataclass(frozen=True, slots=True)
class ProbeBuy:
    """``token_raw``: what the probe (0.1 eth) buys, in base units. ``pays_wei``: proceeds of selling that."""

    token_raw: int
    pays_wei: int


Probed = ProbeBuy | RefusedCall | Missing
"""RefusedCall: the probe cannot buy it, or cannot sell it again. Missing: not found out."""


async def probe_buy(
    ctx: Context, head: ChainHead, token: Address, meter: Meter, at: str | None = None
) -> Probed:
    """Runs a check's buy and sell rounds. ``at``: the place (an address, or a v4 pool's id); None: the place
    where the round trip loses least. Raises NodeFault."""
    run = await check_token(ctx, token, meter, head=head, crowd=False)
    evidence, judgement = run.evidence, run.judgement
    if judgement.missing is not None:
        return judgement.missing
    number = judgement.best if at is None else _find_venue(evidence, at)
    if judgement.best is None:
        return RefusedCall("buy", None, 0)
    if number is None:
        return Missing("node", "the pool that trades it most was not among those that were tested")
    reading = judgement.readings[number]
    if reading.bought is None or reading.size != "probe":
        return RefusedCall("buy", None, 0)
    match reading.full:
        case Sale(loss_bps=loss_bps, whole=True):
            pays_wei = max(0, ctx.policy.probe_wei * (BPS - loss_bps) // BPS)
            return ProbeBuy(reading.bought.received_raw, pays_wei)
        case Missing() as missing:
            return missing
    return RefusedCall("sell", None, 0)


def _find_venue(evidence: Evidence, at: str) -> int | None:
    ids = [venue.venue.pool or venue.venue.pool_id for venue in evidence.venues]
    return ids.index(at) if at in ids else None


@dataclass(frozen=True, slots=True)
class TokenPricing:
    """The functions that price tokens; tests pass their own. Each field has the signature of its default."""

    probe_buy: Callable[[Context, ChainHead, Address, Meter, str | None], Awaitable[Probed]] = probe_buy
    slot_of: Callable[[Context, ChainHead, Address, Meter], Awaitable[BalanceSlot | None]] = slot_of
    worth: Callable[[Context, ChainHead, Sequence[HoldingToSell], Meter], Awaitable[list[Valued]]] = worth


PRICES = TokenPricing()
