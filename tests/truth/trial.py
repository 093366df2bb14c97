"""One case tried: the check's verdict beside what wallets meet on the same chain."""

import hashlib
from dataclasses import dataclass, replace
from functools import cache

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Crowd, Evidence, Missing, Probe, RefusedCall, Sold, VenueEvidence
from roundtrip.domain.check.verdict import judge
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.stories import PoolPlan
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT, context_for, no_database
from support.gathering import gather_evidence
from truth import rules
from truth.cases import SETTLED_S, Case
from truth.crowd import confirmed, representatives
from truth.paused_chain import PausedChain
from truth.reality import BPS, LADDER, ZERO, Met, PoolTrader, Sale, Way, met_everywhere


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one case. ``best`` is the pool that the verdict speaks of; ``cells`` says where a
    simulated sell differs from the real one, ``unmet`` what the check says of its crowd that no real wallet
    of the same manner met."""

    case: Case
    said: rules.Verdict
    text: str
    best: PoolPlan | None
    allowed: frozenset[rules.Finding]
    met: tuple[Met, ...]
    cells: tuple[str, ...]
    unmet: tuple[str, ...]

    def agrees(self) -> bool:
        """The verdict is one that the rules allow, and of the pool that they choose."""
        return (self.said, self.best) in self.allowed or (self.said, None) in self.allowed

    def wrong_words(self) -> str:
        """What the sentence says of parts, and wallets did not meet."""
        spoken_of = next((met for met in self.met if met.pool == self.best), None)
        return rules.wrong_words(self.text, spoken_of)

    def overlooked(self) -> str:
        """The sentence says of the token that no more of it sells, and in another pool more does."""
        return rules.overlooked(self.text, list(self.met))

    def unknown(self) -> bool:
        return self.said[1] == "unknown"

    def false_ok(self) -> bool:
        """Level ok, and in the pool it speaks of some wallet did not sell all of it for a small loss."""
        return self.said[1] == "ok" and not any(
            met.pool == self.best and met.size and rules.all_is_well(met) for met in self.met
        )

    def false_trap(self) -> bool:
        """Cannot_sell, and in some pool half of it sells; not where a figure lies on that line."""
        sells = any(met.size and rules.sells(met) for met in self.met)
        return self.said[0] == "cannot_sell" and sells and not self.agrees()

    def story(self) -> str:
        """For a reader: what was said, what was met, and how to try it again."""
        allowed = " or ".join(sorted({f"{'/'.join(text)} in {_named(pool)}" for text, pool in self.allowed}))
        text = f"{'/'.join(self.said)} in {_named(self.best)}"
        lines = [f"said {text} ({self.text}), wallets met {allowed}"]
        lines += [f"  wrong words: {words}" for words in (self.wrong_words() or self.overlooked(),) if words]
        lines += [f"  {met}" for met in self.met]
        lines += [f"  not met: {claim}" for claim in self.unmet]
        lines += [f"  simulated otherwise: {cell}" for cell in self.cells]
        return "\n".join([*lines, f"  again: make long NAME=truth CASE='{self.case.text()}'"])


def _named(pool: PoolPlan | None) -> str:
    return f"v{pool.version} {pool.quote} {pool.key_fee()} {pool.hook}".strip() if pool else "none"


_OF_A_CROWD = ("ok", "cannot_sell")
"""The codes whose sentences say what a crowd met."""


@cache
def _code(stem: str) -> str:
    return compile_contract(PROJECT / "contracts" / "truth" / f"{stem}.vy")


async def tried(rpc: SyncRpc, built: Built, case: Case) -> Trial:
    """Deploys the token, checks it, trades it, and takes everything back."""
    snapshot = rpc.call("evm_snapshot")
    try:
        token, bypass = deploy_case(rpc, built, case)
        evidence = await _evidence(rpc, built, Address(token), case)
        price = evidence.market.usdg_per_eth_raw
        assert not isinstance(price, Missing)
        counted = case.counted_blocks()
        chain = PausedChain(rpc, built.contracts, token, price, built.hooks, bypass, counted)
        judgement = judge(evidence, POLICY)
        best = None if judgement.best is None else evidence.venues[judgement.best]
        pool = next((pool for pool in case.pools if best and _is(best, pool, built.hooks)), None)
        with chain.by_hand():
            ladder = LADDER if dict(case.on).get("most_gas_left") else ()
            traders = {plan: PoolTrader(chain, plan, evidence.environments, ladder) for plan in case.pools}
            found = met_everywhere(list(traders.values()), rules.cheapest_of)
            met = _with_others(found, traders, evidence, built.hooks)
            unmet: tuple[str, ...] = ()
            if pool is not None and judgement.best is not None and judgement.verdict.code in _OF_A_CROWD:
                crowd = judgement.readings[judgement.best].crowd
                at_pool = next(one for one in met if one.pool == pool)
                unmet = confirmed(crowd, traders[pool], at_pool, evidence.environments[0])
    finally:
        # anvil has lost a transaction sent right after a revert that made its nonce free again.
        rpc.call("evm_mine")
        rpc.call("evm_revert", snapshot)
    verdict = judgement.verdict
    return Trial(
        case,
        (verdict.code, verdict.level),
        verdict.text,
        pool,
        frozenset(rules.findings(met)),
        tuple(met),
        tuple(line for one in met for line in _otherwise(evidence, one, built.hooks)),
        unmet,
    )


def _with_others(
    found: list[Met], traders: dict[PoolPlan, PoolTrader], evidence: Evidence, hooks: dict[str, str]
) -> list[Met]:
    """Where level ok is at stake also what the second wallet and some of the crowd meet."""
    at_stake = {pool for text, pool in rules.findings(found) if text == ("ok", "ok")}
    met = []
    for one in found:
        venue = next((venue for venue in evidence.venues if _is(venue, one.pool, hooks)), None)
        if one.pool in at_stake and venue is not None:
            trader, crowd = traders[one.pool], venue.crowd
            wallets = representatives(crowd) if isinstance(crowd, Crowd) else []
            drawn = (trader.as_drawn(wallet) for wallet in wallets)
            one = replace(one, second=trader.second(), drawn=tuple(d for d in drawn if d is not None))
            one = replace(one, is_crowded_out=trader.is_crowded_out())
        met.append(one)
    return met


def deploy_case(rpc: SyncRpc, built: Built, case: Case) -> tuple[str, str]:
    """The token, and what moves it past its pools where one has a hook."""
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    token = put_token(deployer, built.contracts, case.story(), _code("composed"), built.hooks)
    bypass = ZERO
    if any(pool.hook for pool in case.pools):
        manager = built.contracts["v4PoolManager"]
        bypass = deployer.create(_code("past_the_pool"), ["address"], [manager]).lower()
    deployer.check_receipts()
    now_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    rpc.call("evm_mine", hex(now_s + SETTLED_S))
    return token, bypass


async def _evidence(rpc: SyncRpc, built: Built, token: Address, case: Case) -> Evidence:
    """What a check gathers; its wallets are drawn anew for every case, and for one always the same."""
    entropy = hashlib.sha256(case.text().encode()).digest()
    async with context_for(rpc.url, built, no_database()) as ctx:
        await ctx.heads.refresh()
        return await gather_evidence(replace(ctx, entropy=lambda: entropy), token, Meter())


# --- to the wei -------------------------------------------------------------------------------------


def _is(found: VenueEvidence, pool: PoolPlan, hooks: dict[str, str]) -> bool:
    venue = found.venue
    hook = hooks[f"{pool.hook}_{pool.quote}"] if pool.hook else None
    key = (f"amm_v{pool.version}", pool.quote, pool.key_fee(), hook)
    if (venue.kind, venue.quote, venue.fee_pips, venue.hook) != key:
        return False
    return pool.tick_spacing in (None, venue.tick_spacing)


def _otherwise(evidence: Evidence, met: Met, hooks: dict[str, str]) -> list[str]:
    """Where the main wallet's simulated sells came to something else than the real ones."""
    venue = next((venue for venue in evidence.venues if _is(venue, met.pool, hooks)), None)
    if venue is None:
        return [f"{met.pool} was not looked at"]
    found = []
    for cell in venue.cells:
        probe, outcome = cell.probe, cell.outcome
        if probe.size != met.size or not _was_traded(probe, met):
            continue
        sale = _real_sale(probe, met)
        if isinstance(outcome, Sold):
            came_to = (outcome.paid_raw, outcome.sold_raw, outcome.back_raw)
            same = sale is not None and came_to == (sale.paid_raw, sale.sold_raw, sale.back_raw)
            same = same or (sale is None and outcome.sold_raw == 0)
        else:
            same = isinstance(outcome, RefusedCall) and sale is None
        if not same:
            found.append(f"{probe.seller}, {probe.share_bps} bps after {probe.delay_s} s: {outcome}")
    return found


def _way(probe: Probe) -> Way | None:
    """Of a probe in another way than all at once; None: all at once, or not compared."""
    ways: dict[tuple[str, int], Way] = {
        ("pieces", BPS): "pieces",
        ("second route", BPS): "route",
        ("buyer", POLICY.half_bps): "half",
        ("buyer", POLICY.sliver_bps): "sliver",
    }
    return ways.get((probe.seller, probe.share_bps))


def _was_traded(probe: Probe, met: Met) -> bool:
    return (probe.seller, probe.share_bps) == ("buyer", BPS) or _way(probe) in met.parts


def _real_sale(probe: Probe, met: Met) -> Sale | None:
    way = _way(probe)
    return met.sells[probe.delay_s] if way is None else met.parts[way]
