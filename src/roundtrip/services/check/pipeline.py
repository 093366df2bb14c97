"""Evidence of one token, in two trips to the node."""

from dataclasses import dataclass, replace
from typing import Literal

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.blocks.venue_index import COMMON_MONEY
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate import outcomes
from roundtrip.chain.simulate.balance_slots import guess_calls, read_guesses
from roundtrip.chain.simulate.legs import Setting, VenuePlace
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import DeployerRecord, Evidence, LaunchRecord, Missing
from roundtrip.domain.check.proof_input import NOTHING, IndexInputs
from roundtrip.services.runtime.context import CheckContext, Context
from roundtrip.venues import BY_KIND
from roundtrip.venues.base import Contracts

from . import environments
from .buy_round import BuyRoundData, ask_buy_round, choose_places
from .candidates import Candidates, list_candidates, unseen_venues
from .index_facts import load_known_venues, read_index_facts
from .sell_round import ask_sell_round, choose_venues
from .session import CheckSession, VenueTrial

EVIDENCE_SCHEMA = 4

Role = Literal["token", "weth", "usdg"]


@dataclass(frozen=True, slots=True)
class BuyRoundResult:
    """A token after trip 1: what trip 2 is made from."""

    run: CheckSession
    role: Role
    candidates: Candidates
    passed_over: int
    data: BuyRoundData
    new_venues: tuple[Venue, ...]
    """Where the launchpad says that it trades, which was not known before."""
    indexed: IndexInputs = NOTHING

    def venues_to_sell_on(self) -> list[VenueTrial]:
        """The venues that trip 2 asks."""
        return choose_venues(self.data.venues, self.run.means.policy)


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """What a check begins with: the same beginning, with the same means, asks the same again.

    ``seed``: 32 bytes that its wallets are drawn from. ``known``: where the token may trade. ``deep``: it is
    also asked what could change it, and whether those who hold it can sell. ``indexed``: what the index told.
    """

    head: ChainHead
    token: Address
    seed: bytes
    candidates: Candidates
    deep: bool = False
    indexed: IndexInputs = NOTHING


async def prepare_inputs(ctx: Context, head: ChainHead, token: Address, deep: bool = False) -> CheckInputs:
    """A new check's."""
    known, told, seed = Candidates((), 0, 0, True), NOTHING, ctx.entropy()
    if role_of(token, ctx.contracts) == "token":
        await load_known_venues(ctx.heads.book, ctx.pool, ctx.contracts, token)
        known = list_candidates(ctx.heads.book, ctx.contracts, token, ctx.policy.most_scouted)
        told = await read_index_facts(
            ctx.pool, ctx.contracts, token, seed, ctx.policy.most_holders if deep else 0
        )
    return CheckInputs(head, token, seed, known, deep, told)


async def gather_evidence(ctx: Context, token: Address, meter: Meter) -> Evidence:
    """Everything the verdict is read from. Raises NodeFault when trip 1 gave nothing usable."""
    return await run_sell_round(await start_check(ctx, ctx.heads.current(), token, meter), meter)


async def start_check(
    ctx: Context, head: ChainHead, token: Address, meter: Meter, deep: bool = False
) -> BuyRoundResult:
    """Trip 1 of a new check. Raises NodeFault when it gave nothing usable."""
    found = await run_buy_round(ctx.means(), await prepare_inputs(ctx, head, token, deep), meter)
    remember_launch(ctx, found)
    return found


def remember_launch(ctx: Context, found: BuyRoundResult) -> None:
    """What trip 1 told of a launch, for the checks to come."""
    if found.new_venues and ctx.heads.book is not None:
        ctx.heads.book.add(found.run.token, found.new_venues)


async def run_buy_round(means: CheckContext, begin: CheckInputs, meter: Meter) -> BuyRoundResult:
    """Trip 1. Raises NodeFault when it gave nothing usable.

    A launch that the book has not seen is learned of in trip 1 only, and costs another one.
    """
    head, token, known = begin.head, begin.token, begin.candidates
    role = role_of(token, means.contracts)
    run = CheckSession(
        means=means,
        head=head,
        token=token,
        setting=Setting(token, means.contracts, head.market, means.policy),
        environments=environments.draw(begin.seed, head, means.policy),
        meter=meter,
        deep=begin.deep,
    )
    run = await _with_rates(run, known.venues)
    places, passed = await choose_places(run, _places(known.venues))
    first = await ask_buy_round(run, places)
    new = unseen_venues(means.contracts, token, first.launch, known.venues) if role == "token" else ()
    if new:
        run = await _with_rates(run, new)
        first = await ask_buy_round(run, (*places, *_places(new)))
    run, first = await _with_given(run, first)
    return BuyRoundResult(
        replace(run, block_dependent=first.block_dependent), role, known, passed, first, new, begin.indexed
    )


async def run_sell_round(token: BuyRoundResult, meter: Meter) -> Evidence:
    """Trip 2, and the whole of it as evidence."""
    run, first, known = replace(token.run, meter=meter), token.data, token.candidates
    tried = await ask_sell_round(run, token.venues_to_sell_on())
    return Evidence(
        schema=EVIDENCE_SCHEMA,
        policy_version=run.means.policy.version,
        chain_id=run.means.chain_id,
        block=run.head.block,
        block_base_fee_wei=run.head.base_fee_wei,
        token=run.token,
        role=token.role,
        facts=first.facts,
        market=run.setting.market,
        environments=run.environments,
        venues=tried,
        candidates_complete=known.complete,
        pools_found=sum(venue.exists() for venue in first.venues)
        + known.others
        + known.left_out
        + token.passed_over,
        left_out=known.left_out,
        launch=first.launch,
        given=tuple(slot.asset for slot in run.setting.slots),
        deployer=_deployer(token),
    )


def _deployer(token: BuyRoundResult) -> DeployerRecord | None:
    """The index's word, where it speaks of whom the launchpad itself names."""
    launch, told = token.data.launch, token.indexed
    return told.record if isinstance(launch, LaunchRecord) and launch.deployer == told.deployer else None


def role_of(token: Address, contracts: Contracts) -> Role:
    """Whether it is a token to be judged, or money."""
    roles: dict[Address, Role] = {contracts.weth: "weth", contracts.usdg: "usdg"}
    return roles.get(token, "token")


def _places(venues: tuple[Venue, ...]) -> tuple[VenuePlace, ...]:
    return tuple(VenuePlace(venue, BY_KIND[venue.kind]) for venue in venues)


async def _with_rates(run: CheckSession, venues: tuple[Venue, ...]) -> CheckSession:
    """The run with the rates of what these venues are paid in. No trip for eth, weth and usdg."""
    others = {v.quote_address for v in venues if v.quote not in COMMON_MONEY}
    if not others:
        return run
    known = {rate.asset for rate in run.setting.market.rates}
    market = await run.means.rates.join(run.setting.market, others | known, run.head.block, run.meter)
    return replace(run, setting=replace(run.setting, market=market))


async def _with_given(run: CheckSession, first: BuyRoundData) -> tuple[CheckSession, BuyRoundData]:
    """Where no real swap brought the money of a venue, what was looked for: where that money keeps its
    balances, and trip 1 once more with it given. Two trips more, and only then."""
    short = {v.place.venue.quote_address for v in first.venues if _is_unfunded(v)}
    if not short:
        return run, first
    wallet, slots = run.environments[0].reader, []
    for asset in sorted(short):
        try:
            answers = await run.means.node.batch(guess_calls(asset, wallet, run.head.block), run.meter)
        except NodeFault:
            continue
        slots.append(read_guesses(asset, answers))
    found = tuple(slot for slot in slots if slot is not None)
    if not found:
        return run, first
    run = replace(run, setting=replace(run.setting, slots=found))
    return run, await ask_buy_round(run, tuple(venue.place for venue in first.venues))


def _is_unfunded(venue: VenueTrial) -> bool:
    """True for a pool that is there and whose money could not be had in the judged size."""
    outcome = next((buy.outcome for buy in venue.buys if buy.size == "probe"), None)
    return venue.exists() and isinstance(outcome, Missing) and outcome.why == outcomes.NO_ROUTE
