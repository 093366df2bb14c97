"""The trades of the sell round and of the isolation round, and what they met, read into evidence."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from roundtrip.chain.simulate import outcomes
from roundtrip.chain.simulate.code_signs import code_signs
from roundtrip.chain.simulate.crowd_plans import Member
from roundtrip.chain.simulate.request import Plan
from roundtrip.domain.check.evidence import (
    Crowd,
    DeployerRecord,
    Evidence,
    HookCarry,
    IsolatedTrade,
    LaunchRecord,
    Missing,
    Probe,
    RefusedCall,
    Size,
    VenueEvidence,
)

from .buy_round import BuyRoundResult
from .crowd import WHOLE_CROWD, CrowdPart
from .crowd_sells import CrowdSells, Isolation, read_company, read_crowd_sells, read_isolation
from .main_trips import pieces_probe, read_cell, read_crossed
from .session import CheckSession, PlanResult, VenueTrial

EVIDENCE_SCHEMA = 8


@dataclass(frozen=True, slots=True)
class ProbeSell:
    """A probe of a venue: it sells a share of the bought amount after a delay."""

    venue: int
    probe: Probe


@dataclass(frozen=True, slots=True)
class HandOver:
    """A transfer of the bought amount to another wallet, to measure how much arrives."""

    venue: int


@dataclass(frozen=True, slots=True)
class DirectTransfer:
    """A direct transfer into the venue, to read the revert reason that routers hide, and to measure a hook's
    fee (``HookCarry``). ``size`` "thousandth": only for the latter, where a larger sell is refused."""

    venue: int
    size: Size | None = None


@dataclass(frozen=True, slots=True)
class CrossSell:
    """A buy on the cheapest venue, sold on this one. ``size`` None: the judged one."""

    venue: int
    cheapest: int
    size: Size | None = None


CrowdOf = Literal["crowd", "recalled", "largest"]


@dataclass(frozen=True, slots=True)
class PartSell:
    """The buys and sells of a part of the crowd, of the wallets of earlier checks, or of the wallet with the
    largest size."""

    venue: int
    of: CrowdOf = "crowd"
    part: CrowdPart = WHOLE_CROWD


@dataclass(frozen=True, slots=True)
class CompanySell:
    """The crowd's buys, and sells of the wallets that met something else, by the number of their trade."""

    venue: int
    sellers: tuple[tuple[int, Member], ...]


@dataclass(frozen=True, slots=True)
class IsolatedSell:
    """One trade of the isolation round."""

    venue: int
    isolation: Isolation


Sell = ProbeSell | HandOver | DirectTransfer | CrossSell | PartSell | CompanySell | IsolatedSell
"""One trade, or one crowd, of the sell round; ``venue``: the number of its venue."""
SellPlans = dict[Sell, Plan]
SellResults = dict[Sell, PlanResult]
Crowds = dict[PartSell, CrowdSells | Missing]
Sellers = dict[PartSell, CrowdSells]


@dataclass(frozen=True, slots=True)
class SellRoundResult:
    """The trades on each venue and their results. ``crowds``: who of each crowd traded. ``few``: the venues
    on which only few of the crowd traded. ``read``: the evidence, where it was read already."""

    run: CheckSession
    trials: list[VenueTrial]
    crowds: Crowds
    results: SellResults
    few: Collection[int] = ()
    read: tuple[VenueEvidence, ...] | None = None

    def with_results(self, results: SellResults) -> "SellRoundResult":
        """The same trades with other results, such as those of the isolation round, too."""
        return replace(self, results=results, read=None)

    def venues(self) -> tuple[VenueEvidence, ...]:
        """The evidence of each venue."""
        if self.read is not None:
            return self.read
        return tuple(
            _read_venue(self.run, self.trials, number, self.results, self.crowds)
            for number in range(len(self.trials))
        )


def read_evidence(bought: BuyRoundResult, venues: tuple[VenueEvidence, ...]) -> Evidence:
    """The evidence of the buy round, and of the rounds after it: ``venues``."""
    run, data, candidates = bought.run, bought.data, bought.candidates
    existing = sum(venue.exists() for venue in data.venues)
    return Evidence(
        schema=EVIDENCE_SCHEMA,
        policy_version=run.means.policy.version,
        chain_id=run.means.chain_id,
        block=run.head.block,
        block_base_fee_wei=run.head.base_fee_wei,
        token=run.token,
        role=bought.role,
        facts=data.facts,
        market=run.setting.market,
        environments=run.environments,
        venues=venues,
        candidates_complete=candidates.complete,
        pools_found=existing + candidates.others + candidates.left_out + bought.passed_over,
        left_out=candidates.left_out,
        launch=data.launch,
        given=tuple(slot.asset for slot in run.setting.slots),
        deployer=_deployer_record(bought),
        code_signs=code_signs(data.code) if isinstance(data.code, bytes) else (),
        numbers=data.numbers,
        other_pools=candidates.other_pools,
    )


def _deployer_record(bought: BuyRoundResult) -> DeployerRecord | None:
    """The index's record, where it is of the wallet that the launchpad names as the deployer."""
    launch, indexed = bought.data.launch, bought.indexed
    is_same = isinstance(launch, LaunchRecord) and launch.deployer == indexed.deployer
    return indexed.record if is_same else None


def _read_venue(
    run: CheckSession, venues: list[VenueTrial], number: int, results: SellResults, crowds: Crowds
) -> VenueEvidence:
    venue = venues[number]
    evidence = VenueEvidence(venue.place.venue, venue.facts, venue.buys, (), venue.transfer_refusal)
    if venue.main_size() is None:
        return evidence
    handed = results.get(HandOver(number))
    arrived_raw = None if handed is None or isinstance(handed, RefusedCall) else outcomes.read_handed(handed)
    cells = tuple(
        read_cell(run, venue, sell.probe, result, arrived_raw)
        for sell, result in results.items()
        if isinstance(sell, ProbeSell) and sell.venue == number
    )
    pulled = results.get(DirectTransfer(number))
    carried = None if pulled is None else _read_carried(venue, pulled)
    small = results.get(DirectTransfer(number, "thousandth"))
    if small is not None and isinstance(carried, RefusedCall):
        carried = _read_carried(venue, small, "thousandth")
    crossed = {
        sell.size: read_crossed(run, venues[sell.cheapest], venue, result, sell.size)
        for sell, result in results.items()
        if isinstance(sell, CrossSell) and sell.venue == number
    }
    is_pulled = pulled is not None and not isinstance(pulled, RefusedCall)
    return replace(
        evidence,
        cells=cells,
        told_on_sell=outcomes.read_told(pulled, "pull") if is_pulled else pulled,  # type: ignore[arg-type]
        carried=carried,
        crossed=crossed.get(None),
        crossed_large=crossed.get("large"),
        crowd=_read_crowd(run, venue, number, results, crowds),
        short_raw=_read_short(venue, handed, pulled),
    )


def _read_crowd(
    run: CheckSession, venue: VenueTrial, number: int, results: SellResults, crowds: Crowds
) -> Crowd | Missing | None:
    # Recalled wallets come first: of trades that differ alike, the first are isolated.
    own = sorted((sell for sell in crowds if sell.venue == number), key=lambda sell: sell.of != "recalled")
    if not any(sell.of == "crowd" for sell in own):
        return Crowd(()) if venue.crowd_wallets else None
    crowd = Crowd(())
    for crowd_sell in own:
        part = _read_trades(run, venue, crowd_sell, results, crowds)
        if isinstance(part, Missing):
            return part
        crowd = replace(crowd, trades=crowd.trades + part.trades)
    isolated = [
        _read_isolated(run, venue, sell.isolation, result)
        for sell, result in results.items()
        if isinstance(sell, IsolatedSell) and sell.venue == number
    ]
    for sell, result in results.items():
        if isinstance(sell, CompanySell) and sell.venue == number:
            isolated += read_company(run, venue, dict(sell.sellers), result)
    return replace(crowd, isolated=tuple(isolated))


def _read_trades(
    run: CheckSession, venue: VenueTrial, sell: PartSell, results: SellResults, crowds: Crowds
) -> Crowd | Missing:
    """What a part of the crowd met."""
    sells = crowds[sell]
    if isinstance(sells, Missing):
        return sells
    if not sells.members:
        return Crowd(sells.others)
    return read_crowd_sells(run, venue.place, sells, results[sell])


def _read_isolated(
    run: CheckSession, venue: VenueTrial, isolation: Isolation, result: PlanResult
) -> IsolatedTrade:
    if isolation.attempts:
        return read_isolation(run, venue, isolation, result)
    size = venue.main_size()
    assert size is not None
    outcome = read_cell(run, venue, pieces_probe(run.means.policy, size), result, None).outcome
    return IsolatedTrade(isolation.of, isolation.difference, outcome)


def _read_short(venue: VenueTrial, handed: PlanResult | None, pulled: PlanResult | None) -> int | None:
    """How much less than was sent arrives at a v3 pool; None: not measured."""
    size = venue.main_size()
    bought = venue.completed_buy(size) if size is not None else None
    if bought is None or not isinstance(handed, dict) or not isinstance(pulled, dict):
        return None
    return outcomes.read_short(handed, pulled, max(1, bought.received_raw))


def _read_carried(
    venue: VenueTrial, result: PlanResult, size: Size | None = None
) -> HookCarry | RefusedCall | Missing | None:
    """The measured hook fee; None: the venue's hook keeps nothing of a swap."""
    if not venue.place.venue.keeps_by_hook():
        return None
    if isinstance(result, RefusedCall):
        return result
    size = size or venue.main_size()
    bought = venue.completed_buy(size) if size is not None else None
    return outcomes.read_carried(result, 0 if bought is None else max(1, bought.received_raw))
