"""Real holders of a token: read beside the sell round, sold as in the deep round."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from roundtrip.chain.holders import sell_plans
from roundtrip.chain.holders.sell_plans import PinnedHolder, PlannedSell
from roundtrip.chain.owner.owner_plans import OwnerProbeSell
from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.chain.simulate import token_facts
from roundtrip.chain.simulate.request import Plan, Results
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

from .buy_round import BuyRoundResult

NOT_TOLD = "the balances of its holders could not be read"
UNREAD = "its holders could not be read"
_BALANCES = "holders' balances"


@dataclass(frozen=True, slots=True)
class HolderWallets:
    """The holders that are wallets. ``unread``: holders with unknown code or balance."""

    wallets: tuple[PinnedHolder, ...]
    unread: tuple[Address, ...] = ()


def reads(bought: BuyRoundResult) -> dict[str, RpcCall]:
    """The reads of the holders' code, by address, and balances, before their sells are simulated. Empty where
    no holder is known."""
    holders, run = bought.indexed.holders, bought.run
    if not holders:
        return {}
    codes: dict[str, RpcCall] = {holder: token_facts.code_call(holder, run.head.block) for holder in holders}
    look = sell_plans.balance_plan(run.setting, run.environments[0], holders)
    return codes | {_BALANCES: run.request(look)}


def read(
    bought: BuyRoundResult, answers: Mapping[str, msgspec.Raw | RpcError]
) -> HolderWallets | Missing | None:
    """Reads the answers to ``reads``. Addresses with code, also by delegation (EIP-7702), are left out: with
    code that refuses the payment of a sell, anybody could make an honest token look like a trap."""
    holders, run = bought.indexed.holders, bought.run
    if bought.indexed.unread:
        return Missing("node", UNREAD)
    if not holders:
        return None
    look = sell_plans.balance_plan(run.setting, run.environments[0], holders)
    results = run.results(look, answers[_BALANCES])
    if isinstance(results, Missing):
        return results
    wallets, unread = [], []
    for holder in sell_plans.read_balances(results, holders, run.means.policy):
        code = token_facts.read_code(answers[holder.address])
        if isinstance(code, Missing):
            unread.append(holder.address)
        elif not code:
            wallets.append(holder)
    return HolderWallets(tuple(wallets), tuple(unread))


def insiders(evidence: Evidence) -> frozenset[Address]:
    """The owner, the deployer, and the token's venues: the token may treat them differently from holders."""
    facts, launch = evidence.facts, evidence.launch
    addresses: set[object] = {facts.owner, facts.proxy_admin, evidence.token}
    if isinstance(launch, LaunchRecord | PoolLaunch):
        addresses.add(launch.deployer)
    if isinstance(launch, LaunchRecord):
        addresses.add(launch.curve)
    for venue in evidence.venues:
        addresses |= {venue.venue.pool, venue.venue.hook}
    return frozenset(Address(address) for address in addresses if isinstance(address, str))


@dataclass(frozen=True, slots=True)
class HolderSellPlan:
    """Holders' sells that the deep round simulates. ``control``: the sell of the check's own wallet.
    ``known``: the number of holders from the index."""

    best: int
    sell: OwnerProbeSell
    control: Sold
    known: int
    planned: tuple[PlannedSell, ...]
    unread: tuple[Address, ...]

    def plans(self) -> dict[tuple[str, int], Plan]:
        """The simulations by name; a holder with too small a balance has none."""
        return {
            ("holder sell", number): planned.plan
            for number, planned in enumerate(self.planned)
            if planned.plan is not None
        }

    def read(self, results: Mapping[tuple[str, int], Results | Missing]) -> HolderSells:
        """Reads the result of each holder's sell."""
        sells = []
        for number, planned in enumerate(self.planned):
            result = results.get(("holder sell", number), Missing("token", ""))
            outcome = sell_plans.read_sell(planned, self.sell, result)
            sells.append(HolderSell(planned.holder, planned.held_raw(), *outcome))
        sells += [HolderSell(holder, None, Missing("node", NOT_TOLD)) for holder in self.unread]
        return HolderSells(self.best, self.control, self.known, tuple(sells))


def plan_holder_sells(
    bought: BuyRoundResult,
    evidence: Evidence,
    best: int,
    sell: OwnerProbeSell | Missing,
    holders: HolderWallets | Missing | None,
) -> HolderSellPlan | Missing | None:
    """Plans the holders' sells. None where no holder is known, or where the check's own wallet sold nothing
    to compare them with: then the level is not ok in any case."""
    if holders is None or isinstance(sell, Missing):
        return None
    if isinstance(holders, Missing):
        return holders
    control = next(cell.outcome for cell in evidence.venues[best].cells if cell.probe == sell.probe)
    assert isinstance(control, Sold)
    left_out = insiders(evidence)
    wallets = [wallet for wallet in holders.wallets if wallet.address not in left_out]
    unread = tuple(address for address in holders.unread if address not in left_out)
    drawn = bought.indexed.holders
    planned = sell_plans.plan_sells(sell, wallets, drawn)
    # No more than could have been tried.
    unread = unread[: bought.run.means.policy.most_holders - len(planned)]
    return HolderSellPlan(best, sell, control, len(drawn), planned, unread)
