"""The zoo: traps and harmless oddities, deployed as the test runs, against what real wallets meet."""

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip_development.devnet.stories import PoolPlan
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.gathering import gather_evidence
from support.wallet import PoolSpec, Wallet
from truth.animals import ANIMALS, BY_MANNER, Animal, put
from truth.check.test_truth import expected, probe_raw, trade

ELSEWHERE = {
    "cooldown_blocks",
    "inflated_balance",
    "odd_permit_only",
    "owned_implementation",
    "proxy",
    "proxy_implementation",
    "random_sell",
    "caught_after_buy",
    "epochs",
    "holders_wait",
    "taxed_holders",
}
"""Not traded here: blocks pass at another rate on the local chain (test_number_tokens), what is held is a
lie, a signature in place of an approval, chance decides, or those are caught who hold it already
(test_real_holders)."""


def test_every_animal_is_here() -> None:
    sources = {path.stem for path in (PROJECT / "contracts" / "zoo").glob("*.vy")}
    kept_here = {animal.source for animal in ANIMALS if not animal.source.startswith("..")}
    assert sources == kept_here | ELSEWHERE | {animal.source for animal in BY_MANNER}


@pytest.mark.parametrize(
    "animal", ANIMALS, ids=lambda a: f"{a.source}{list(a.extra)}v{a.pools[0].version}{'+' if a.calls else ''}"
)
async def test_the_verdict_is_what_a_wallet_meets(
    ctx: Context, rpc: SyncRpc, built: Built, animal: Animal
) -> None:
    story, token = animal.story(), put(rpc, built.contracts, animal)
    await ctx.heads.refresh()
    evidence = await gather_evidence(ctx, Address(token), Meter())
    verdict = judge(evidence, POLICY).verdict
    found = [trade(rpc, built, token, pool, probe_raw(evidence, pool)) for pool in story.pools]
    assert (verdict.code, verdict.level) == expected(story, found), verdict.text


def _named(animal: Animal) -> str:
    return f"{animal.source}{list(animal.extra)}{animal.pools[0].quote}"


@pytest.mark.parametrize("animal", BY_MANNER, ids=_named)
async def test_what_holds_for_some_manners_of_trading_only_is_never_ok(
    ctx: Context, rpc: SyncRpc, built: Built, animal: Animal
) -> None:
    token = put(rpc, built.contracts, animal)
    await ctx.heads.refresh()
    for _ in range(3):
        verdict = judge(await gather_evidence(ctx, Address(token), Meter()), POLICY).verdict
        assert verdict.level != "ok", verdict.text


@pytest.mark.parametrize("animal", [a for a in BY_MANNER if a.source == "others_in_between"], ids=_named)
def test_a_real_wallet_sells_until_others_have_bought(rpc: SyncRpc, built: Built, animal: Animal) -> None:
    (pool,), (others, _) = animal.pools, animal.extra
    token = put(rpc, built.contracts, animal)
    amount_raw = 350 * 10**6 if pool.quote == "usdg" else 10**17

    def buyer(seed: str, paid_raw: int) -> Wallet:
        wallet = Wallet(rpc, built.contracts, f"{seed} {token}")
        if pool.quote == "usdg":
            wallet.get_usdg(paid_raw)
        assert wallet.buy(token, pool.quote, pool.fee_pips, paid_raw)
        return wallet

    def sells() -> bool:
        return wallet.sell(token, pool.quote, pool.fee_pips, wallet.tokens(token) // 2).ok

    wallet = buyer("first", amount_raw)
    for number in range(others):
        assert sells()
        buyer(f"other {number}", amount_raw // 10)
    assert not sells()


@pytest.mark.parametrize(("after_s", "sold"), [(5, False), (6, True), (7, False)])
def test_a_real_wallet_sells_six_seconds_after_its_approval_and_at_no_other_second(
    rpc: SyncRpc, built: Built, after_s: int, sold: bool
) -> None:
    token = put(rpc, built.contracts, Animal("detect_approval_age", (6,)))
    wallet = Wallet(rpc, built.contracts, "punctual")
    assert wallet.buy(token, "weth", 3000, 10**17)
    approve, sell = wallet.sell_steps(token, PoolSpec("weth", 3000), wallet.tokens(token))
    assert wallet.send(approve.to, approve.data).ok
    approved_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    rpc.call("evm_setNextBlockTimestamp", approved_s + after_s)
    assert wallet.send(sell.to, sell.data).ok is sold


async def test_a_proxys_admin_is_named_and_what_he_puts_in_its_place_is_seen(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """The same address, before and after its admin exchanges the code with a real transaction."""
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    zoo = PROJECT / "contracts" / "zoo"
    honest = deployer.create(compile_contract(zoo / "proxy_implementation.vy"))
    story = Animal("proxy", (int(honest, 16),)).story()
    token = put_token(deployer, built.contracts, story, compile_contract(zoo / "proxy.vy"))
    deployer.check_receipts()
    await ctx.heads.refresh()
    before = await gather_evidence(ctx, Address(token), Meter())
    judged = judge(before, POLICY)
    (met,) = [trade(rpc, built, token, pool, probe_raw(before, pool)) for pool in story.pools]
    assert (judged.verdict.code, judged.verdict.level) == expected(story, [met]) == ("ok", "ok")
    assert "owner_active" in raised_flags(JudgedCheck(before, judged, POLICY))
    # Code that knows none of the token's functions: nobody can sell any more.
    other = deployer.create(compile_contract(PROJECT / "contracts" / "hostile" / "not_a_token.vy"))
    deployer.send(token, calldata("upgradeTo(address)", other))
    deployer.check_receipts()
    await ctx.heads.refresh()
    after = judge(await gather_evidence(ctx, Address(token), Meter()), POLICY).verdict
    assert after.level == "warn", after.text


async def test_a_cap_on_one_sale_hides_no_wallet_that_cannot_sell(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """The largest wallets are refused for their amount, the small ones that hold other money for what they
    are."""
    animal = Animal("detect_other_money", (7_000 * 10**18,), (PoolPlan("weth", 3000, 100_000, 2400),))
    token = put(rpc, built.contracts, animal)
    await ctx.heads.refresh()
    verdicts = [judge(await gather_evidence(ctx, Address(token), Meter()), POLICY).verdict for _ in range(4)]
    assert ("cannot_sell", "danger") in {(verdict.code, verdict.level) for verdict in verdicts}
    # Those that were refused for their amount are not counted.
    assert all(int(verdict.text.split()[0]) < 15 for verdict in verdicts if verdict.level == "danger")
