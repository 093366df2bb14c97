"""One token with a spring: what checks say of it, and whether real wallets meet what its label says."""

import hashlib
from dataclasses import dataclass, replace
from functools import cache

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ETH_PRICE_USDG, ContractDeployer, put_token
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT, context_for, no_database
from support.gathering import gather_evidence
from truth.paused_chain import PausedChain
from truth.reality import BPS, DAY_S, ZERO
from truth.spring_wallets import NotTraded, brought_back_bps
from truth.springs import SpringCase

_MIN_BACK_BPS = BPS // 2
"""A try to sell that brings less has failed."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check's verdict."""

    code: str
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class SpringTrial:
    """A case, one verdict for each check, and where real wallets met something else than the label says."""

    case: SpringCase
    results: tuple[CheckResult, ...]
    otherwise: str

    def caught(self) -> list[bool]:
        """By check: the level is not ok."""
        return [result.level != "ok" for result in self.results]

    def caught_of_three(self) -> list[bool]:
        """By three checks that follow each other: at least one of them caught it."""
        caught = self.caught()
        return [any(caught[n : n + 3]) for n in range(0, len(caught) - 2, 3)]

    def false_traps(self) -> int:
        label = self.case.row().label
        return 0 if label == "trap" else sum(result.code == "cannot_sell" for result in self.results)


@cache
def _code(stem: str) -> str:
    return compile_contract(PROJECT / "contracts" / "truth" / f"{stem}.vy")


async def tried(rpc: SyncRpc, built: Built, case: SpringCase, checks: int, first: int = 0) -> SpringTrial:
    """Deploys the token once, checks it so often, each time with other entropy, trades it with real wallets,
    and takes everything back. ``first``: the number of the first check."""
    snapshot = rpc.call("evm_snapshot")
    try:
        token = deploy_spring(rpc, built, case)
        results = await _checked(rpc, built, token, case, range(first, first + checks))
        chain = PausedChain(rpc, built.contracts, token, ETH_PRICE_USDG * 10**6, built.hooks, ZERO)
        with chain.by_hand():
            otherwise = _otherwise(chain, case)
    finally:
        # anvil has lost a transaction sent right after a revert that made its nonce free again.
        rpc.call("evm_mine")
        rpc.call("evm_revert", snapshot)
    return SpringTrial(case, results, otherwise)


def deploy_spring(rpc: SyncRpc, built: Built, case: SpringCase) -> str:
    """The token, on a chain whose clock shows the case's time, two days after the world's end."""
    day = built.head_s // DAY_S + 2
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    story = case.story(built, day)
    token = put_token(deployer, built.contracts, story, _code(story.key), built.hooks)
    deployer.check_receipts()
    rpc.call("evm_mine", hex(day * DAY_S + case.at_s))
    return token


async def _checked(
    rpc: SyncRpc, built: Built, token: str, case: SpringCase, numbers: range
) -> tuple[CheckResult, ...]:
    drawn = [hashlib.sha256(f"{case.text()} {number}".encode()).digest() for number in numbers]
    async with context_for(rpc.url, built, no_database()) as ctx:
        await ctx.heads.refresh()
        return tuple([await _checked_once(ctx, token, entropy) for entropy in drawn])


async def _checked_once(ctx: Context, token: str, entropy: bytes) -> CheckResult:
    # Nothing follows the head here, and many checks take longer than a head lasts.
    await ctx.heads.refresh()
    own = replace(ctx, entropy=lambda: entropy)
    verdict = judge(await gather_evidence(own, Address(token), Meter()), POLICY).verdict
    return CheckResult(verdict.code, verdict.level, verdict.text)


def _otherwise(chain: PausedChain, case: SpringCase) -> str:
    """What wallets met that the label does not say; empty: nothing."""
    row = case.row()
    caught = [] if row.caught is None else [row.caught(case)]
    if row.label == "trap":
        # Half of it is a choice, too, and does not help.
        caught += [replace(manner, share_bps=BPS // 2) for manner in caught]
    for manner, fails in ((row.free(case), False), *((manner, True) for manner in caught)):
        try:
            backs_bps = brought_back_bps(chain, case.pool, manner)
        except NotTraded as reason:
            return f"{manner.text()}: {reason}"
        if any((back_bps < _MIN_BACK_BPS) != fails for back_bps in backs_bps):
            return f"{manner.text()} got {backs_bps} bps back"
    return ""
