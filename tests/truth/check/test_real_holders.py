"""What a deep check says of those who hold a token, against what real holders' real sells come to: the
wallets buy, an index follows it, the owner catches them or does not, and then each of them sells."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence, HolderSells, Missing
from roundtrip.domain.check.holder_sells import lost_bps
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip.store.server.migrate import migrate
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip_development.devnet.stories import PoolPlan
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.databases import connected, database
from support.fixtures import PROJECT
from support.gathering import gather_evidence
from support.indexing import at, follow
from support.wallet import Wallet
from truth.animals import V4, Animal

PROBE_WEI = 10**17
Calls = list[tuple[str, tuple[object, ...]]]


def listed(count: int) -> Callable[[list[str]], Calls]:
    return lambda wallets: [("sync(address[])", (wallets[:count],))]


def taxed(count: int, tax_bps: int) -> Callable[[list[str]], Calls]:
    return lambda wallets: [("setTax(address,uint256)", (wallet, tax_bps)) for wallet in wallets[:count]]


def nothing(_: list[str]) -> Calls:
    return []


@dataclass(frozen=True)
class HolderCase:
    """A token, what its owner does to those who hold it, and what the deep check says. ``wei``: what each
    holder paid; ``sells_first``: a tenth of what he got, at once; ``names`` it in tests."""

    names: str
    animal: Animal
    does: Callable[[list[str]], Calls]
    verdict: tuple[str, str]
    says: str
    wei: tuple[int, ...] = (10**17, 3 * 10**17, 2 * 10**16, 10**17)
    sells_first: bool = False


CAUGHT = ("cannot_sell", "danger")
CASES = (
    HolderCase(
        "all are listed", Animal("caught_after_buy"), listed(4), CAUGHT,
        "4 of 4 real holders cannot sell it, though a new wallet can.",
    ),
    HolderCase(
        "half are listed, v4", Animal("caught_after_buy", pools=V4), listed(2), CAUGHT,
        "2 of 4 real holders cannot sell it, though a new wallet can.",
    ),
    HolderCase(
        "one is listed", Animal("caught_after_buy"), listed(1), ("ok", "warn"),
        "1 of 4 real holders cannot sell it, though a new wallet can.",
    ),
    HolderCase(
        "nobody is listed", Animal("caught_after_buy"), nothing, ("ok", "ok"),
        "4 real holders can sell it as a new wallet can.",
    ),
    HolderCase(
        "a new epoch", Animal("epochs"), lambda _: [("begin()", ())], CAUGHT,
        "4 of 4 real holders cannot sell it, though a new wallet can.",
    ),
    HolderCase(
        "a tax of 90 % each, v4", Animal("taxed_holders", pools=V4), taxed(4, 9000), CAUGHT,
        "4 of 4 real holders get up to ",
    ),
    HolderCase(
        "a tax of 20 % on some, v4", Animal("taxed_holders", pools=V4), taxed(3, 2000), ("ok", "warn"),
        "Some of 4 real holders get up to ",
    ),
    HolderCase(
        "one sale a day, and all have sold", Animal("holders_wait"), nothing, ("ok", "warn"),
        "4 of 4 real holders can sell it only after a day.", sells_first=True,
    ),
    HolderCase(
        "no trap", Animal("../tokens/plain"), nothing, ("ok", "ok"),
        "4 real holders can sell it as a new wallet can.",
    ),
    HolderCase(
        "a pool so thin that a sale moves it by half", Animal(
            "../tokens/plain", pools=(PoolPlan("weth", quote_milli=150),)
        ), nothing, ("thin_pool", "warn"), "3 real holders can sell it as a new wallet can.",
        wei=(10**16, 10**16, 5 * 10**15),
    ),
    HolderCase(
        "a ceiling on what sells at once", Animal("owner_max_tx"), nothing, ("ok", "ok"),
        "4 real holders can sell it as a new wallet can.",
    ),
    HolderCase(
        "a fee on every sale", Animal("../tokens/transfer_tax", (500,), V4), nothing, ("ok", "ok"),
        "4 real holders can sell it as a new wallet can.",
    ),
    HolderCase(
        "balances that shrink", Animal("rebase_down", (100, 3600), V4), nothing, ("ok", "ok"),
        "4 real holders can sell it as a new wallet can.",
    ),
    HolderCase(
        "a share of every sale for holders", Animal("reflection", (200,), V4), nothing, ("ok", "ok"),
        "4 real holders can sell it as a new wallet can.",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class StagedToken:
    """A token on the chain, and who holds it. ``since``: the block before it."""

    token: str
    pool: PoolPlan
    deployer: ContractDeployer
    wallets: list[Wallet]
    since: int


def staged(rpc: SyncRpc, built: Built, case: HolderCase) -> StagedToken:
    """Puts the token out, has the wallets buy, and the owner do what he does."""
    since = int(rpc.call("eth_blockNumber"), 16)
    story, deployer = case.animal.story(), ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    code = compile_contract(PROJECT / "contracts" / story.source)
    token = put_token(deployer, built.contracts, story, code)
    deployer.check_receipts()
    (pool,) = story.pools
    wallets = []
    for number, wei in enumerate(case.wei):
        wallet = Wallet(rpc, built.contracts, f"holder {number} of {token}")
        assert wallet.buy(token, pool.quote, pool.fee_pips, wei, pool.version)
        if case.sells_first:
            tenth = wallet.tokens(token) // 10
            assert wallet.sell(token, pool.quote, pool.fee_pips, tenth, pool.version).ok
        wallets.append(wallet)
    for signature, values in case.does([wallet.address for wallet in wallets]):
        deployer.send(token, calldata(signature, *values))
    deployer.check_receipts()
    return StagedToken(token, pool, deployer, wallets, since)


async def deep(
    ctx: Context, rpc: SyncRpc, built: Built, server_url: str, stage: StagedToken, trips: int
) -> Evidence:
    """The evidence of a deep check over an index that followed the trades; in ``trips``, no more."""
    newest, meter = int(rpc.call("eth_blockNumber"), 16), Meter()
    async with database(server_url, "holders") as url:
        async with connected(url) as connection:
            await migrate(connection)
        await follow(rpc.url, built, url, stage.since, at(newest))
        async with connections.create_pool(url, min_size=1, max_size=2) as pool:
            await ctx.heads.refresh()
            evidence = await gather_evidence(replace(ctx, pool=pool), Address(stage.token), meter, deep=True)
    # One more where other accounts might call a function of the token.
    assert meter.trips in (trips, trips + 1)
    return evidence


def really(rpc: SyncRpc, built: Built, stage: StagedToken, holder: str, after_s: int) -> int | None:
    """What a holder really loses, so long after the fresh wallet's purchase, of what that wallet really gets
    for as many, in hundredths of a percent; None where the sale is refused."""
    pool, token = stage.pool, stage.token
    before = rpc.call("evm_snapshot")
    fresh = Wallet(rpc, built.contracts, f"fresh {token}")
    bought = fresh.buy(token, pool.quote, pool.fee_pips, PROBE_WEI, pool.version)
    assert bought
    now_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    own = next(wallet for wallet in stage.wallets if wallet.address == holder)
    per_token = []
    for wallet, wait_s in ((fresh, 13), (own, after_s)):
        bought_moment = rpc.call("evm_snapshot")
        rpc.call("evm_setNextBlockTimestamp", now_s + wait_s)
        rpc.call("evm_mine")
        amount = min(bought, wallet.tokens(token))
        fill = wallet.sell(token, pool.quote, pool.fee_pips, amount, pool.version)
        per_token.append(fill.back_raw / amount if fill.ok else None)
        assert rpc.call("evm_revert", bought_moment)
    assert rpc.call("evm_revert", before)
    fair, got = per_token
    assert fair is not None
    return None if got is None else round(10_000 * (fair - got) / fair)


def _as_it_really_is(said: int | Missing | None, met: int | None) -> None:
    assert (said is None) == (met is None)
    assert said is None or (isinstance(said, int) and met is not None and abs(said - met) <= 2)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.names)
async def test_what_a_deep_check_says_of_holders_is_what_they_really_meet(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str, case: HolderCase
) -> None:
    stage = staged(rpc, built, case)
    # Nobody sells in ten pieces where one sale a day is all: that takes an isolation round.
    trips = 4 if case.sells_first else 3
    evidence = await deep(ctx, rpc, built, database_url, stage, trips)
    known = evidence.holder_sells
    assert isinstance(known, HolderSells)
    assert {one.holder for one in known.tried} == {wallet.address for wallet in stage.wallets}
    for one in known.tried:
        _as_it_really_is(lost_bps(known.control, one.outcome), really(rpc, built, stage, one.holder, 13))
        if one.later is not None:
            day = really(rpc, built, stage, one.holder, POLICY.day_s)
            _as_it_really_is(lost_bps(known.control, one.later), day)
    plain = judge(replace(evidence, holder_sells=None, owner_calls=None, account_rights=None), POLICY).verdict
    alone = judge(replace(evidence, owner_calls=None, account_rights=None), POLICY).verdict
    assert plain.level in ("ok", "warn"), "a fresh wallet meets nothing of it"
    assert (alone.code, alone.level) == case.verdict
    assert case.says in alone.text
    assert (plain.text in alone.text) is (alone.code != "cannot_sell")
    whole = judge(evidence, POLICY)
    assert (whole.verdict.code, whole.verdict.level) == case.verdict
    assert whole.missing is None
