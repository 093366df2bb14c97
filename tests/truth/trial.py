"""One case tried: the check's verdict beside what wallets meet on the same chain."""

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import asyncpg

from conftest import PROJECT, context_for
from roundtrip.chain.rpc import Meter
from roundtrip.devnet.compile import compile_contract
from roundtrip.devnet.deploy import Deployer, put_token
from roundtrip.devnet.stories import PoolPlan
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.evidence import Evidence, Missing, Refused, Sold, VenueEvidence
from roundtrip.domain.policy import POLICY
from roundtrip.domain.types import Address
from roundtrip.domain.verdict import judge
from roundtrip.services.gather import gather
from truth import rules
from truth.cases import SETTLED_S, Case
from truth.reality import BPS, Chain, Met, Trader


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one case. ``best`` is the pool that the verdict speaks of; ``cells`` says where a
    simulated sell differs from the real one."""

    case: Case
    said: rules.Verdict
    text: str
    best: PoolPlan | None
    allowed: frozenset[rules.Verdict]
    met: tuple[Met, ...]
    cells: tuple[str, ...]

    def agrees(self) -> bool:
        return self.said in self.allowed

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
        allowed = " or ".join("/".join(one) for one in sorted(self.allowed))
        lines = [f"said {'/'.join(self.said)} ({self.text}), wallets met {allowed}"]
        lines += [f"  {met}" for met in self.met]
        lines += [f"  simulated otherwise: {cell}" for cell in self.cells]
        return "\n".join([*lines, f"  again: make truth CASE='{self.case.text()}'"])


@cache
def _code() -> str:
    return compile_contract(PROJECT / "contracts" / "truth" / "composed.vy")


async def tried(rpc: SyncRpc, built: Built, case: Case) -> Trial:
    """Deploys the token, checks it, trades it, and takes everything back."""
    snapshot = rpc.call("evm_snapshot")
    try:
        token = _deployed(rpc, built, case)
        evidence = await _evidence(rpc, built, Address(token), case)
        price = evidence.market.usdg_per_eth_raw
        assert not isinstance(price, Missing)
        chain = Chain(rpc, built.contracts, token, price)
        with chain.by_hand():
            met = tuple(Trader(chain, pool, evidence.environments).met() for pool in case.pools)
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
        next((pool for pool in case.pools if best and _is(best, pool)), None),
        frozenset(rules.verdicts(list(met))),
        met,
        tuple(line for one in met for line in _otherwise(evidence, one)),
    )


def _deployed(rpc: SyncRpc, built: Built, case: Case) -> str:
    deployer = Deployer(rpc, rpc.call("eth_accounts")[0])
    token = put_token(deployer, built.contracts, case.story(), _code())
    deployer.settle()
    now_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    rpc.call("evm_mine", hex(now_s + SETTLED_S))
    return token


async def _evidence(rpc: SyncRpc, built: Built, token: Address, case: Case) -> Evidence:
    """What a check gathers; its wallets are drawn anew for every case, and for one always the same."""
    entropy = hashlib.sha256(case.text().encode()).digest()
    # Nothing is kept: the database is not asked.
    async with context_for(rpc.url, built, cast(asyncpg.Pool, None)) as ctx:
        await ctx.heads.refresh()
        return await gather(replace(ctx, entropy=lambda: entropy), token, Meter())


# --- to the wei -------------------------------------------------------------------------------------


def _is(found: VenueEvidence, pool: PoolPlan) -> bool:
    key = (f"amm_v{pool.version}", pool.quote, pool.fee_pips)
    return (found.venue.kind, found.venue.quote, found.venue.fee_pips) == key


def _otherwise(evidence: Evidence, met: Met) -> list[str]:
    """Where the simulated sells of all of it came to something else than the real ones."""
    venue = next((venue for venue in evidence.venues if _is(venue, met.pool)), None)
    if venue is None:
        return [f"{met.pool} was not looked at"]
    found = []
    for cell in venue.cells:
        probe, outcome = cell.probe, cell.outcome
        at = (probe.environment, probe.delay_s)
        if (probe.size, probe.share_bps, probe.seller) != (met.size, BPS, "buyer") or at not in met.sells:
            continue
        sale = met.sells[at]
        if isinstance(outcome, Sold):
            came_to = (outcome.paid_raw, outcome.sold_raw, outcome.back_raw)
            same = sale is not None and came_to == (sale.paid_raw, sale.sold_raw, sale.back_raw)
            same = same or (sale is None and outcome.sold_raw == 0)
        else:
            same = isinstance(outcome, Refused) and sale is None
        if not same:
            found.append(f"wallet {at[0]} after {at[1]} s: {outcome}")
    return found
