"""Tokens that count blocks, or run other code than their own, against what real wallets meet."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip_development.devnet import world
from roundtrip_development.devnet.stories import Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT, context_for, no_database
from support.gathering import gather_evidence
from support.wallet import PoolSpec, Wallet, calldata
from truth.check.test_truth import DELAYS_S, Reality, compare_cells, expected, probe_raw
from truth.number_tokens import NUMBER_TOKENS, V4_USDG, Maker, hex40
from truth.number_wallets import small_chain, trade_all

BEHIND = {"beacon", "gate", "listing_logic", "share_logic", "waiting_logic", "watcher"}
"""Not tokens, but what stands behind them."""
BY_CHANCE = {"draws_hash"}
PROBE_USDG = 350 * 10**6
# A day in blocks is mined before the first case.
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Traded:
    """The chain, and by the tokens' names: their addresses, what a check gathers of them, and what wallets
    met in each of their pools."""

    rpc: SyncRpc
    built: Built
    tokens: dict[str, str]
    evidence: dict[str, Evidence]
    met: dict[str, list[Reality]]


@pytest.fixture(scope="module")
async def traded(places: world.DevnetFolders) -> AsyncIterator[Traded]:
    with small_chain(places) as (rpc, built):
        tokens = {name: token.put(rpc, built) for name, token in NUMBER_TOKENS.items()}
        evidence = {name: await gather(rpc, built, token) for name, token in tokens.items()}
        wanted = [
            (tokens[name], pool, probe_raw(evidence[name], pool))
            for name, token in NUMBER_TOKENS.items()
            for pool in token.pools
        ]
        met = iter(trade_all(rpc, built, wanted))
        by_name = {name: [next(met) for _ in token.pools] for name, token in NUMBER_TOKENS.items()}
        yield Traded(rpc, built, tokens, evidence, by_name)


async def gather(rpc: SyncRpc, built: Built, token: str, deep: bool = False) -> Evidence:
    """What a check gathers on the newest block."""
    async with context_for(rpc.url, built, no_database()) as ctx:
        await ctx.heads.refresh()
        return await gather_evidence(ctx, Address(token), Meter(), deep=deep)


def test_every_contract_is_here() -> None:
    sources = {path.stem for path in (PROJECT / "contracts" / "numbers").glob("*.vy")}
    made = (PROJECT / "tests" / "truth" / "number_tokens.py").read_text()
    # A share's role holders act in test_shares.py.
    assert {source for source in sources if f'"{source}"' not in made} == {*BY_CHANCE, "share_roles"}
    assert sources >= BEHIND


@pytest.mark.parametrize("name", NUMBER_TOKENS)
def test_the_verdict_is_what_a_wallet_meets(traded: Traded, name: str) -> None:
    story, evidence, met = (
        Story(name, "", "", pools=NUMBER_TOKENS[name].pools),
        traded.evidence[name],
        traded.met[name],
    )
    verdict = judge(evidence, POLICY).verdict
    assert (verdict.code, verdict.level) == expected(story, met), verdict.text
    for pool, reality in zip(story.pools, met, strict=True):
        # Where it does not sell within an hour, another wallet trades beside this one, and moves the price.
        if reality.sells and reality.sells[3600, 10_000].ok:
            compare_cells(evidence, pool, reality)


@pytest.mark.parametrize(
    ("kind", "named"), [("beacon", "upgradeTo(address)"), ("minimal", "setPaused(bool)")]
)
async def test_what_those_behind_a_share_can_do_is_named_and_stops_real_wallets(
    traded: Traded, kind: str, named: str
) -> None:
    """A wallet buys; the operator blocks it, takes it off the list, pauses the share, and ends the pause. The
    beacon's owner puts other code in its place."""
    rpc, built, (pool,) = traded.rpc, traded.built, V4_USDG
    maker = Maker(rpc, built, V4_USDG)
    logic = maker.contract("share_logic")
    beacon = hex40(maker.contract("beacon", hex40(logic)))
    token = maker.minimal_proxy(logic) if kind == "minimal" else maker.token("beacon_proxy", int(beacon, 16))
    verdict = judge(await gather(rpc, built, token, deep=True), POLICY).verdict
    assert (verdict.code, verdict.level) == ("ok", "ok")
    assert f"can stop you from selling (function {named}" in verdict.text
    wallet = Wallet(rpc, built.contracts, f"holds a share, {kind}")
    wallet.get_usdg(PROBE_USDG)
    assert wallet.buy(token, pool.quote, pool.fee_pips, PROBE_USDG, pool.version)

    def sells() -> bool:
        part_raw = wallet.tokens(token) // 10
        return wallet.sell(token, pool.quote, pool.fee_pips, part_raw, pool.version).ok

    met = [sells()]
    for signature, *values in (
        ("setBlocked(address,bool)", wallet.address, True),
        ("setBlocked(address,bool)", wallet.address, False),
        ("setPaused(bool)", True),
        ("setPaused(bool)", False),
    ):
        maker.configure(token, str(signature), *values)
        met.append(sells())
    assert met == [True, False, True, False, True]
    steps = wallet.sell_steps(token, PoolSpec(pool.quote, pool.fee_pips, pool.version), wallet.tokens(token))
    if kind == "beacon":
        maker.configure(beacon, "upgradeTo(address)", hex40(maker.contract("hostile/not_a_token")))
    *_, sold = [wallet.send(step.to, step.data, step.value_wei).ok for step in steps]
    assert sold is (kind != "beacon")


def test_the_multiplier_of_a_share_is_shown_and_moves_no_balance(traded: Traded) -> None:
    """It doubles an hour after the share was made; the wallets of the verdict sold all the same after it."""
    rpc, token = traded.rpc, traded.tokens["a share in a v4 pool"]

    def word(signature: str, at_s: int) -> int:
        call = {"to": token, "data": calldata(signature)}
        return int(rpc.call("eth_call", call, "latest", {}, {"time": hex(at_s)}), 16)

    effective_s = word("effectiveAt()", 0)
    assert [word("uiMultiplier()", effective_s + after_s) for after_s in (-1, 0)] == [10**18, 2 * 10**18]
    assert len({word("totalSupply()", effective_s + after_s) for after_s in (-1, 0)}) == 1
    (met,) = traded.met["a share in a v4 pool"]
    assert all(met.sold_all(delay_s) for delay_s in DELAYS_S)
