"""Real holders of a token: looked at beside trip 2, sold as in trip 3."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from roundtrip.chain.holders import sell_plans
from roundtrip.chain.holders.sell_plans import PinnedHolder, PlannedSell
from roundtrip.chain.owner.owner_plans import OwnerProbeSell
from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.chain.simulate import token_facts
from roundtrip.chain.simulate.request import Results
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import (
    Evidence,
    HolderSell,
    HolderSells,
    LaunchRecord,
    Missing,
    PoolLaunch,
    Sold,
)

from .pipeline import BuyRoundResult

NOT_TOLD = "what its holders have could not be read"
UNREAD = "who holds it could not be read"


@dataclass(frozen=True, slots=True)
class HolderWallets:
    """Who was looked at. ``unread``: of whom it is not known whether they are wallets."""

    wallets: tuple[PinnedHolder, ...]
    unread: tuple[Address, ...] = ()


def calls(first: BuyRoundResult) -> list[RpcCall]:
    """What has to be asked before they are sold as; nothing where none is known."""
    holders, run = first.indexed.holders, first.run
    if not holders:
        return []
    look = sell_plans.look_plan(run.setting, run.environments[0], holders)
    return [*(token_facts.code_call(one, run.head.block) for one in holders), run.request(look)]


def read(first: BuyRoundResult, answers: Sequence[msgspec.Raw | RpcError]) -> HolderWallets | Missing | None:
    """What ``calls`` were answered. Who has code is left out, also by delegation (EIP-7702): with code that
    refuses what a sale pays, anybody could make an honest token look like a trap."""
    holders, run = first.indexed.holders, first.run
    if first.indexed.unread:
        return Missing("node", UNREAD)
    if not holders:
        return None
    results = run.results(sell_plans.look_plan(run.setting, run.environments[0], holders), answers[-1])
    if isinstance(results, Missing):
        return results
    found = sell_plans.read_look(results, holders, run.means.policy)
    codes = [token_facts.read_code(answer) for answer in answers[:-1]]
    wallets, unread = [], []
    for holder, code in zip(found, codes, strict=True):
        if isinstance(code, Missing):
            unread.append(holder.address)
        elif not code:
            wallets.append(holder)
    return HolderWallets(tuple(wallets), tuple(unread))


def insiders(evidence: Evidence) -> frozenset[Address]:
    """Those behind the token, and where it trades: what holds for them holds for nobody else."""
    told, launch = evidence.facts, evidence.launch
    found: set[object] = {told.owner, told.proxy_admin, evidence.token}
    if isinstance(launch, LaunchRecord | PoolLaunch):
        found.add(launch.deployer)
    if isinstance(launch, LaunchRecord):
        found.add(launch.curve)
    for venue in evidence.venues:
        found |= {venue.venue.pool, venue.venue.hook}
    return frozenset(Address(one) for one in found if isinstance(one, str))


@dataclass(frozen=True, slots=True)
class HolderSellPlan:
    """Sells that go into trip 3. ``control``: what the check's own wallet sold for."""

    best: int
    sell: OwnerProbeSell
    control: Sold
    known: int
    planned: tuple[PlannedSell, ...]
    unread: tuple[Address, ...]

    def read_results(self, results: Sequence[Results | Missing]) -> HolderSells:
        """What came of them: of each that has a plan, in their order."""
        left = iter(results)
        tried = []
        for one in self.planned:
            own = Missing("token", "") if one.plan is None else next(left)
            tried.append(HolderSell(one.holder, one.held_raw(), *sell_plans.read_sell(one, self.sell, own)))
        tried += [HolderSell(one, None, Missing("node", NOT_TOLD)) for one in self.unread]
        return HolderSells(self.best, self.control, self.known, tuple(tried))


def plan_holder_sells(
    first: BuyRoundResult,
    evidence: Evidence,
    best: int,
    sell: OwnerProbeSell | Missing,
    looked: HolderWallets | Missing | None,
) -> HolderSellPlan | Missing | None:
    """None where no holder is known, or the check's own wallet sold nothing that theirs could be held
    against: then no level is ok in any case."""
    if looked is None or isinstance(sell, Missing):
        return None
    if isinstance(looked, Missing):
        return looked
    control = next(cell.outcome for cell in evidence.venues[best].cells if cell.probe == sell.probe)
    assert isinstance(control, Sold)
    out = insiders(evidence)
    wallets = [holder for holder in looked.wallets if holder.address not in out]
    unread = tuple(one for one in looked.unread if one not in out)
    known = len(first.indexed.holders)
    return HolderSellPlan(best, sell, control, known, sell_plans.plan_sells(sell, wallets), unread)
