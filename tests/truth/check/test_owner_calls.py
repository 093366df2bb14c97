"""What a deep check says an owner could change, against owners who really do it and wallets who really sell
then."""

from dataclasses import dataclass, replace

import pytest

from roundtrip.chain.owner import owner_setters
from roundtrip.chain.owner.owner_plans import STAND_IN_CODE
from roundtrip.chain.owner.selectors import UnreadableCode
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.token_facts import IMPLEMENTATION_SLOT
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence, OwnerCall, OwnerCalls, RefusedCall
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.owner_calls import change, lost_bps
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token, v3_pool
from roundtrip_development.devnet.stories import SUPPLY_TOKENS, PoolPlan
from roundtrip_development.devnet.sync_rpc import RpcFailure, SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.gathering import gather_evidence
from support.wallet import Fill, PoolSpec, Wallet
from truth.animals import V4, Animal

PROBE_WEI = 10**17
RENOUNCED = (("renounceOwnership()", ()),)


@dataclass(frozen=True)
class OwnerCallCase:
    """A token, what one may read of it, and the end of the text of its deep check."""

    line: str
    animal: Animal
    says: str


CASES = (
    OwnerCallCase(
        "a switch for sales", Animal("pausable_owner"),
        "Its owner can stop you from selling (function setSelling(bool)).",
    ),
    OwnerCallCase("a pause of everything", Animal("../tokens/paused"),
         "Its owner can stop you from selling (function pause())."),
    OwnerCallCase(
        "an end of trading, for ever", Animal("owner_close"),
        "Its owner can stop you from selling (function closeTrading()).",
    ),
    OwnerCallCase(
        "a list of wallets that cannot sell", Animal("blacklist_admin"),
        "Its owner can stop you from selling (function setBlacklist(address,bool)).",
    ),
    OwnerCallCase(
        "a fee without a bound", Animal("fee_admin"),
        "Its owner can stop you from selling (function setFee(uint256)).",
    ),
    OwnerCallCase(
        "a fee without a bound", Animal("fee_admin", pools=V4),
        "Its owner can stop you from selling (function setFee(uint256)).",
    ),
    OwnerCallCase(
        "a tax on sales, at most 99 %", Animal("owner_sell_tax"),
        "Its owner can stop you from selling (function setSellTax(uint256)).",
    ),
    OwnerCallCase(
        "a tax on sales, at most 99 %", Animal("owner_sell_tax", pools=V4),
        "Its owner can raise your loss to 99.01 % (function setSellTax(uint256)).",
    ),
    OwnerCallCase(
        "taxes on purchases and sales without a bound", Animal("tax_by_direction", (500, 0)),
        "Its owner can stop you from selling (function setTaxes(uint256,uint256)).",
    ),
    OwnerCallCase(
        "taxes on purchases and sales without a bound", Animal("tax_by_direction", (300, 700), V4),
        "Its owner can stop you from selling (function setTaxes(uint256,uint256)).",
    ),
    OwnerCallCase(
        "a ceiling on what sells at once", Animal("owner_max_tx"),
        "Its owner can stop you from selling (function setMaxTx(uint256)).",
    ),
    OwnerCallCase(
        "a wait before the sale", Animal("owner_cooldown"),
        "Its owner can stop you from selling (function setCooldown(uint256)).",
    ),
    OwnerCallCase(
        "taking anybody's tokens", Animal("pull_owner"),
        "Its owner can stop you from selling (function seize(address,uint256)).",
    ),
    OwnerCallCase(
        "a function whose name says nothing", Animal("owner_unguessable"),
        "Its owner can stop you from selling (a function whose name is not known, 0xd7b492fb).",
    ),
    OwnerCallCase(
        "a stop that takes a secret number", Animal("owner_password"),
        "We could not tell what its owner can change. We also called 1 function as 1 other account and as a "
        "new wallet: no call was accepted.",
    ),
    OwnerCallCase(
        "no harm: makes tokens, sets wallets and a small fee", Animal("owner_harmless"),
        "We tried 5 functions of its owner: none stopped the sell.",
    ),
    OwnerCallCase(
        "no harm: makes tokens, sets wallets and a small fee", Animal("owner_harmless", pools=V4),
        "We tried 5 functions of its owner: none stopped the sell.",
    ),
    OwnerCallCase(
        "no harm: makes tokens", Animal("mintable"),
        "We tried 1 function of its owner: it did not stop the sell.",
    ),
    OwnerCallCase(
        "an owner without functions", Animal("max_wallet", (100,)),
        "Its owner has no function that we could test.",
    ),
    OwnerCallCase(
        "an end of trading, and the owner has renounced", Animal("owner_close", calls=RENOUNCED),
        "Its owner is a burn address; we called 2 functions as 1 other account and as a new wallet: no call "
        "was accepted.",
    ),
    OwnerCallCase(
        "no owner", Animal("../tokens/plain"),
        "It names no owner, and it has no function that we could test.",
    ),
    OwnerCallCase(
        "no owner", Animal("../tokens/plain", pools=V4),
        "It names no owner, and it has no function that we could test.",
    ),
    OwnerCallCase("cannot be sold as it is", Animal("whitelist_sell"), ""),
)  # fmt: skip


def test_every_published_sentence_is_one_of_these() -> None:
    page = (PROJECT / "docs" / "verdicts.md").read_text()
    table = page.partition("| the owner has | the text says |\n|---|---|\n")[2].partition("\n\n")[0]
    published = {row.split(" | ")[1].removesuffix(" |") for row in table.splitlines()}
    assert len(published) > 8
    assert published <= {case.says for case in CASES}


def test_every_trap_of_an_owner_but_the_secret_one_is_named() -> None:
    named = [case for case in CASES if case.says.startswith("Its owner can ")]
    assert len(named) == 14


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.animal.source}v{c.animal.pools[0].version}")
async def test_what_is_named_really_happens_and_what_is_not_does_not(
    ctx: Context, rpc: SyncRpc, built: Built, case: OwnerCallCase
) -> None:
    animal, deployer = case.animal, ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    story = animal.story()
    code = compile_contract(PROJECT / "contracts" / story.source)
    token = put_token(deployer, built.contracts, story, code)
    for signature, values in animal.calls:
        deployer.send(token, calldata(signature, *values))
    deployer.check_receipts()
    await ctx.heads.refresh()
    meter = Meter()
    evidence = await gather_evidence(ctx, Address(token), meter, deep=True)
    plain = replace(evidence, owner_calls=None, account_rights=None)
    before, after = judge(plain, POLICY).verdict, judge(evidence, POLICY).verdict
    assert (after.code, after.level) == (before.code, before.level)
    assert after.text == f"{before.text} {case.says}".rstrip()
    assert (evidence.owner_calls is None) == (case.says == "" or case.says.startswith(_NO_OWNER))
    deep = case.says != "" and not case.says.endswith(_NO_FUNCTION)
    renounced = bool(animal.calls)
    assert meter.trips == 2 + deep * (1 if renounced else 2) + (before.code == "cannot_sell")
    if isinstance(evidence.owner_calls, OwnerCalls):
        assert "owner_active" in raised_flags(JudgedCheck(evidence, judge(evidence, POLICY), POLICY))
        for call in evidence.owner_calls.tried:
            _as_it_really_is(rpc, built, deployer, token, animal.pools[0], call)


_NO_FUNCTION = "has no function that we could test."
_NO_OWNER = ("Its owner is a burn address", "It names no owner")


def _as_it_really_is(
    rpc: SyncRpc, built: Built, deployer: ContractDeployer, token: str, pool: PoolPlan, call: OwnerCall
) -> None:
    """The same buy, the owner's calls, and the sell, each a real transaction."""
    assert call.sender == deployer.account.lower()
    really_is(rpc, built, deployer, token, pool, call)


def really_is(
    rpc: SyncRpc, built: Built, deployer: ContractDeployer, token: str, pool: PoolPlan, call: OwnerCall
) -> None:
    """The same, whoever ``deployer`` is."""
    if call.outcome is None:
        return
    snapshot = rpc.call("evm_snapshot")
    fill = _sold_after(rpc, built, deployer, token, pool, call)
    assert rpc.call("evm_revert", snapshot)
    text = lost_bps(call.outcome)
    if text is None:
        refused = isinstance(call.outcome, RefusedCall)
        assert fill.ok is not refused or fill.back_raw == 0, call
        return
    assert isinstance(text, int)
    assert fill.ok, call
    met = round(10_000 * (PROBE_WEI - fill.back_raw) / PROBE_WEI)
    assert abs(met - text) <= 1, (call, met, text)


def _sold_after(
    rpc: SyncRpc, built: Built, deployer: ContractDeployer, token: str, pool: PoolPlan, call: OwnerCall
) -> Fill:
    """What a real wallet's sell comes to when the owner has made the calls that were taken."""
    wallet = Wallet(rpc, built.contracts, f"owned {token}")
    bought = wallet.buy(token, pool.quote, pool.fee_pips, PROBE_WEI, pool.version)
    assert bought
    meant = {call.buyer: wallet.address}
    if call.stand_in is not None:
        meant[call.stand_in] = deployer.create(_creation(STAND_IN_CODE[2:]))
    for data in call.calls:
        for simulated, real in meant.items():
            data = data.replace(simulated[2:], real[2:].lower())
        deployer.receipt(deployer.send(call.target or token, data))
    now_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    rpc.call("evm_setNextBlockTimestamp", now_s + 13)
    rpc.call("evm_mine")
    place = PoolSpec(pool.quote, pool.fee_pips, pool.version)
    *approvals, swap = wallet.sell_steps(token, place, bought)
    for step in approvals:
        wallet.send(step.to, step.data)
    before_wei = wallet.eth()
    done = wallet.send(swap.to, swap.data)
    return Fill(done.ok, back_raw=wallet.eth() - before_wei + done.gas_wei)


@pytest.mark.parametrize("whose", ["itself", "v4PoolManager", "weth", "swapRouter02"])
async def test_an_owner_that_nobody_can_act_as_is_none(
    ctx: Context, rpc: SyncRpc, built: Built, whose: str
) -> None:
    """Nor may it be given eth for gas: what the manager holds is what its pools pay out."""
    deployer, story = (
        ContractDeployer(rpc, rpc.call("eth_accounts")[0]),
        Animal("owner_harmless", pools=V4).story(),
    )
    token = put_token(
        deployer, built.contracts, story, compile_contract(PROJECT / "contracts" / story.source)
    )
    owner = built.contracts.get(whose, token)
    deployer.send(token, calldata("transferOwnership(address)", owner))
    deployer.check_receipts()
    await ctx.heads.refresh()
    evidence = await gather_evidence(ctx, Address(token), Meter(), deep=True)
    assert evidence.facts.owner == owner
    assert evidence.owner_calls is None


async def test_functions_beyond_what_is_tried_are_counted(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    deployer, story = ContractDeployer(rpc, rpc.call("eth_accounts")[0]), Animal("owner_harmless").story()
    token = put_token(
        deployer, built.contracts, story, compile_contract(PROJECT / "contracts" / story.source)
    )
    deployer.check_receipts()
    await ctx.heads.refresh()
    two = replace(ctx, policy=replace(POLICY, most_owner_calls=2))
    evidence = await gather_evidence(two, Address(token), Meter(), deep=True)
    assert isinstance(evidence.owner_calls, OwnerCalls)
    assert len(evidence.owner_calls.tried) == 2
    assert judge(evidence, POLICY).verdict.text.endswith(
        "We tried 1 function of its owner: it did not stop the sell; 1 function refused all values "
        "that we tried; 3 functions were not tried."
    )


async def test_code_that_cannot_be_read_makes_no_owner_harmless(
    ctx: Context, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*codes: bytes) -> owner_setters.OwnerSetters:
        raise UnreadableCode

    monkeypatch.setattr(owner_setters, "find", unreadable)
    evidence = await gather_evidence(ctx, Address(built.tokens["max_transaction"]), Meter(), deep=True)
    text = judge(evidence, POLICY).verdict.text
    assert text.endswith("We could not find out what its owner can change: its functions could not be read.")


def test_what_upgrades_are_made_to_passes_for_an_implementation_and_answers_nothing(rpc: SyncRpc) -> None:
    """Contracts that upgrade themselves ask proxiableUUID() first (EIP-1822)."""
    at = "0x" + "5a" * 20
    rpc.call("anvil_setCode", at, STAND_IN_CODE)
    answer = rpc.call("eth_call", {"to": at, "data": calldata("proxiableUUID()")}, "latest")
    assert answer == IMPLEMENTATION_SLOT
    for asked in ("0x", calldata("balanceOf(address)", at), calldata("totalSupply()")):
        with pytest.raises(RpcFailure, match="revert"):
            rpc.call("eth_call", {"to": at, "data": asked}, "latest")


@dataclass(frozen=True)
class _Behind:
    """A token whose functions lie in another contract."""

    token: str
    evidence: Evidence


async def _behind(ctx: Context, rpc: SyncRpc, built: Built, admin: bool) -> _Behind:
    """Behind an EIP-1967 proxy with an admin, or in an EIP-1167 clone."""
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    zoo, supply = PROJECT / "contracts" / "zoo", SUPPLY_TOKENS * 10**18
    logic = deployer.create(compile_contract(zoo / "owned_implementation.vy"))
    if admin:
        story = Animal("proxy", (int(logic, 16),)).story()
        token = put_token(deployer, built.contracts, story, compile_contract(zoo / "proxy.vy"))
    else:
        runtime = f"363d3d373d3d3d363d73{logic[2:]}5af43d82803e903d91602b57fd5bf3"
        token = deployer.create(_creation(runtime))
        fill = "initialize(string,string,uint256,address)"
        deployer.send(token, calldata(fill, "Clone", "CLN", supply, deployer.account))
        manager = built.contracts["v3PositionManager"]
        deployer.send(token, calldata("approve(address,uint256)", manager, 2**256 - 1))
        amounts = {token.lower(): supply // 2, built.contracts["weth"]: 20 * 10**18}
        v3_pool(deployer, built.contracts, amounts, 3000, fill=True)
    deployer.check_receipts()
    await ctx.heads.refresh()
    return _Behind(token.lower(), await gather_evidence(ctx, Address(token.lower()), Meter(), deep=True))


def _creation(runtime: str) -> str:
    """Code that returns the runtime code behind it."""
    size = f"{len(runtime) // 2:02x}"
    return f"0x60{size}600c60003960{size}6000f3{runtime}"


@pytest.mark.parametrize("admin", [True, False], ids=["proxy", "clone"])
async def test_functions_behind_a_proxy_are_called_through_it(
    ctx: Context, rpc: SyncRpc, built: Built, admin: bool
) -> None:
    made = await _behind(ctx, rpc, built, admin)
    known, deployer = made.evidence.owner_calls, ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    assert isinstance(known, OwnerCalls)
    found = change(known, POLICY)
    assert found is not None
    assert (found.call.function, found.call.by, found.loss_bps) == ("setPaused(bool)", "owner", None)
    upgrades = [call for call in known.tried if call.function == "upgradeTo(address)"]
    assert [call.by for call in upgrades] == (["proxy admin"] if admin else [])
    assert all(lost_bps(call.outcome) is None for call in upgrades if call.outcome is not None)
    for call in known.tried:
        _as_it_really_is(rpc, built, deployer, made.token, PoolPlan(), call)


async def test_a_proxy_without_an_owner_is_its_admins(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    zoo = PROJECT / "contracts" / "zoo"
    honest = deployer.create(compile_contract(zoo / "proxy_implementation.vy"))
    story = Animal("proxy", (int(honest, 16),)).story()
    token = put_token(deployer, built.contracts, story, compile_contract(zoo / "proxy.vy"))
    deployer.check_receipts()
    await ctx.heads.refresh()
    evidence = await gather_evidence(ctx, Address(token), Meter(), deep=True)
    text = judge(evidence, POLICY).verdict.text
    assert text.endswith(
        "Its proxy admin can stop you from selling (function upgradeTo(address)). It names no owner; we "
        "know no other account, and called 2 functions as a new wallet: no call was accepted; we could not "
        "read all of its events."
    )
    assert isinstance(evidence.owner_calls, OwnerCalls)
    for call in evidence.owner_calls.tried:
        _as_it_really_is(rpc, built, deployer, token, PoolPlan(), call)
