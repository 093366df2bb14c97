"""One case tried: the check's verdict beside what wallets meet on the same chain."""

import hashlib
from dataclasses import dataclass, replace
from functools import cache

from roundtrip.chain.rpc.client import Meter
from roundtrip.devnet.compile import compile_contract
from roundtrip.devnet.deploy import ContractDeployer, put_token
from roundtrip.devnet.stories import PoolPlan
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall, Sold, VenueEvidence
from roundtrip.domain.check.verdict import judge
from roundtrip.services.check.pipeline import gather_evidence
from support.fixtures import PROJECT, context_for, no_database
from truth import rules
from truth.cases import SETTLED_S, Case
from truth.reality import BPS, ZERO, Chain, Met, met_everywhere


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one case. ``best`` is the pool that the verdict speaks of; ``cells`` says where a
    simulated sell differs from the real one."""

    case: Case
    said: rules.Verdict
    text: str
    best: PoolPlan | None
    allowed: frozenset[rules.Finding]
    met: tuple[Met, ...]
    cells: tuple[str, ...]

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
        """Cannot_sell, and in some pool half of it sells; what sells for one wallet and is refused to
        another at the same time does not count, as the rules say."""
        return self.said[0] == "cannot_sell" and any(met.size and rules.sells(met) for met in self.met)

    def two_faced(self) -> bool:
        """Cannot_sell as the rules say, though one wallet sold half."""
        return self.said[0] == "cannot_sell" and any(map(rules.sold_half_somehow, self.met))

    def story(self) -> str:
        """For a reader: what was said, what was met, and how to try it again."""
        allowed = " or ".join(sorted({f"{'/'.join(said)} in {_named(pool)}" for said, pool in self.allowed}))
        said = f"{'/'.join(self.said)} in {_named(self.best)}"
        lines = [f"said {said} ({self.text}), wallets met {allowed}"]
        lines += [f"  wrong words: {words}" for words in (self.wrong_words() or self.overlooked(),) if words]
        lines += [f"  {met}" for met in self.met]
        lines += [f"  simulated otherwise: {cell}" for cell in self.cells]
        return "\n".join([*lines, f"  again: make long NAME=truth CASE='{self.case.text()}'"])


def _named(pool: PoolPlan | None) -> str:
    return f"v{pool.version} {pool.quote} {pool.key_fee()} {pool.hook}".strip() if pool else "none"


@cache
def _code(stem: str) -> str:
    return compile_contract(PROJECT / "contracts" / "truth" / f"{stem}.vy")


async def tried(rpc: SyncRpc, built: Built, case: Case) -> Trial:
    """Deploys the token, checks it, trades it, and takes everything back."""
    snapshot = rpc.call("evm_snapshot")
    try:
        token, bypass = _deployed(rpc, built, case)
        evidence = await _evidence(rpc, built, Address(token), case)
        price = evidence.market.usdg_per_eth_raw
        assert not isinstance(price, Missing)
        chain = Chain(rpc, built.contracts, token, price, built.hooks, bypass)
        with chain.by_hand():
            met = tuple(met_everywhere(chain, case.pools, evidence.environments))
    finally:
        # anvil has lost a transaction sent right after a revert that made its nonce free again.
        rpc.call("evm_mine")
        rpc.call("evm_revert", snapshot)
    judgement = judge(evidence, POLICY)
    verdict = judgement.verdict
    best = None if judgement.best is None else evidence.venues[judgement.best]
    return Trial(
        case,
        (verdict.code, verdict.level),
        verdict.text,
        next((pool for pool in case.pools if best and _is(best, pool, built.hooks)), None),
        frozenset(rules.findings(list(met))),
        met,
        tuple(line for one in met for line in _otherwise(evidence, one, built.hooks)),
    )


def _deployed(rpc: SyncRpc, built: Built, case: Case) -> tuple[str, str]:
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
    """Where the simulated sells of all of it came to something else than the real ones."""
    venue = next((venue for venue in evidence.venues if _is(venue, met.pool, hooks)), None)
    if venue is None:
        return [f"{met.pool} was not looked at"]
    found = []
    for cell in venue.cells:
        probe, outcome = cell.probe, cell.outcome
        at = (probe.environment, probe.delay_s)
        if (probe.size, probe.share_bps) != (met.size, BPS) or probe.seller == "receiver":
            continue
        if probe.seller == "buyer" and at not in met.sells:
            continue
        sale = met.pieces if probe.seller == "pieces" else met.sells[at]
        if isinstance(outcome, Sold):
            came_to = (outcome.paid_raw, outcome.sold_raw, outcome.back_raw)
            same = sale is not None and came_to == (sale.paid_raw, sale.sold_raw, sale.back_raw)
            same = same or (sale is None and outcome.sold_raw == 0)
        else:
            same = isinstance(outcome, RefusedCall) and sale is None
        if not same:
            found.append(f"wallet {at[0]} ({probe.seller}) after {at[1]} s: {outcome}")
    return found
