"""What tokens that somebody holds would bring if they were sold now: many of them in one trip to the node."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import REVERTED, Meter, RpcError
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.simulate.balance_slots import BalanceSlot, guess_calls, read_guesses
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.services.check import environments
from roundtrip.services.check.candidates import list_candidates
from roundtrip.services.check.index_facts import known_venues, read_index_facts, read_known_venues
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.trade.trade_builder import pays
from roundtrip.venues import BY_KIND
from roundtrip.venues.abi import keccak

from .holding_sells import HoldingCase, HoldingSells, deeper, read_sells, sell_requests, settle
from .token_batches import one_round


@dataclass(frozen=True, slots=True)
class HoldingToSell:
    """``amount_raw`` of a token, to be sold whole. ``seller``: a wallet that really holds as much; None: a
    wallet of ours that is given them where ``slot`` says, which the token itself has to confirm; without a
    slot a wallet sells that the index knows to hold as much. ``before_raw``: what the same seller sold of it
    just before, and what is asked for comes after it: so many sells bring no more than one. ``held_s``: for
    how long it has been held, at least; a token may have its buyers wait. ``at``: the pool, the curve or the
    pool's id where alone it is sold, while anything of it sells there; None: wherever that brings most."""

    token: Address
    amount_raw: int
    seller: Address | None = None
    slot: BalanceSlot | None = None
    before_raw: int = 0
    held_s: int = 0
    at: str | None = None


@dataclass(frozen=True, slots=True)
class SellValue:
    """What a sell of all of it brings its seller, in wei, and where."""

    wei: int
    venue: Venue


Valued = SellValue | RefusedCall | Missing
"""Refused: it cannot be sold for real, and why. Missing: it could not be found out."""

_MOST_KNOWN = 8
"""So many places of either sort are looked at."""


async def worth(
    ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
) -> list[Valued]:
    """Each holding's, at the block of ``head``, all in one trip. What the node does not answer is Missing. A
    second trip is made where a place turned out to be deeper than those that were tried, and where a holding
    does not sell any more where alone it was to be sold."""
    try:
        head.known_dialect()
    except NodeFault as fault:
        return [Missing("node", fault.message) for _ in holdings]
    cases = await _cases(ctx, head, holdings)
    told = await one_round(
        ctx, head, {n: sell_requests(case, case.first()) for n, case in enumerate(cases)}, meter
    )
    first = [read_sells(case, case.first(), told[n]) for n, case in enumerate(cases)]
    more = {n: deeper(case, first[n]) for n, case in enumerate(cases)}
    again = {n: sell_requests(cases[n], places) for n, places in more.items() if places}
    if again:
        told = await one_round(ctx, head, again, meter)
        for n in again:
            first[n] = first[n].with_more(read_sells(cases[n], more[n], told[n]))
    return [_value_of(case, one) for case, one in zip(cases, first, strict=True)]


def _value_of(case: HoldingCase, one: HoldingSells) -> Valued:
    value = settle(case, one)
    return SellValue(*value) if isinstance(value, tuple) else value


async def _cases(ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell]) -> list[HoldingCase]:
    seed, book = ctx.entropy(), ctx.heads.book
    tokens = list(dict.fromkeys(one.token for one in holdings))
    await at_once(*(read_known_venues(book, ctx.pool, ctx.contracts, token) for token in tokens))
    short = list(dict.fromkeys(one.token for one in holdings if one.seller is None and one.slot is None))
    waits = (
        read_index_facts(ctx.pool, ctx.contracts, token, seed, ctx.policy.most_holders) for token in short
    )
    holders = dict(zip(short, [told.holders for told in await at_once(*waits)], strict=True))
    known = {(one.token, one.at): _read_places(ctx, one.token, one.at) for one in holdings}
    cases = []
    for number, one in enumerate(holdings):
        drawn = environments.draw(keccak(seed + number.to_bytes(4, "big")), head, ctx.policy)
        real = holders.get(one.token, ()) if one.seller is None and one.slot is None else ()
        cases.append(
            HoldingCase(
                means=ctx.means(),
                head=head,
                token=one.token,
                amount_raw=one.amount_raw,
                before_raw=one.before_raw,
                held_s=one.held_s,
                at=one.at,
                seller=one.seller,
                slot=None if one.seller is not None else one.slot,
                holders=real,
                environment=drawn[0],
                other=drawn[1],
                **known[one.token, one.at],
            )
        )
    return cases


class _KnownPlaces(TypedDict):
    places: tuple[VenuePlace, ...]
    listed: int
    complete: bool


def _read_places(ctx: Context, token: Address, at: str | None) -> _KnownPlaces:
    """Where it may be sold for eth or usdg: what is known to be first, strangers' hooks last of that. Others
    can open pools beyond every bound: ``at`` is among them all the same."""
    book = ctx.heads.book
    found = list_candidates(known_venues(book, token), ctx.contracts, token, _MOST_KNOWN)
    listed = set(book.venues_of(token)) if book is not None else set()
    own = [venue for venue in listed if at is not None and venue.at() == at and venue not in found.venues]
    paid = [venue for venue in (*own, *found.venues) if pays(venue) is not None]
    ranked = sorted(paid, key=lambda venue: (venue not in listed, venue.rival_hook()))
    complete = found.complete and not found.left_out
    places = tuple(VenuePlace(venue, BY_KIND[venue.kind]) for venue in ranked)
    return {"places": places, "listed": sum(venue in listed for venue in paid), "complete": complete}


async def slot_of(ctx: Context, head: ChainHead, token: Address, meter: Meter) -> BalanceSlot | None:
    """Where the token keeps its balances; None: it is not known. Raises NodeFault."""
    wallet = environments.draw(ctx.entropy(), head, ctx.policy)[0].reader
    answers = await ctx.node.batch(guess_calls(token, wallet, head.block), meter)
    slot = read_guesses(token, answers)
    if slot is None:
        # What the token refuses to say is known; what the node did not is not.
        for answer in answers:
            if isinstance(answer, RpcError) and answer.code != REVERTED:
                raise NodeFault(f"it told no balance ({describe_error(answer)})")
    return slot
