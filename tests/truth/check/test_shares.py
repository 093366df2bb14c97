"""A share behind a beacon: who can replace its logic, and what a deep check says its roles may do, against
role holders who really do it and wallets who really sell then."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from eth_abi.packed import encode_packed
from eth_utils.crypto import keccak

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, RpcNode
from roundtrip.chain.simulate.token_facts import BEACON_SLOT, PROXY_ADMIN_SLOT
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BURN_ADDRESS, Address
from roundtrip.domain.check.evidence import AccountRights, Evidence, Missing
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.verdict import judge
from roundtrip.services.engine.account_rights import MAX_CONTRACTS
from roundtrip.services.engine.buy_round import run_buy_round
from roundtrip.services.engine.token_check import prepare_inputs
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.gathering import gather_evidence
from truth.check.test_owner_calls import really_is

POOL = PoolPlan()
NUMBERS = PROJECT / "contracts" / "numbers"


def role_holder(role: str, granter: str) -> str:
    """Who has a role of ``share_roles.vy``."""
    packed = encode_packed(["bytes32", "bytes20"], [keccak(text=role), bytes.fromhex(granter[2:])])
    return "0x" + keccak(packed)[:20].hex()


class Share:
    """A share of the local chain. ``beacon_owner``: who can replace its logic."""

    def __init__(self, rpc: SyncRpc, built: Built) -> None:
        self.rpc, self.built = rpc, built
        accounts = rpc.call("eth_accounts")
        deployer, owner = ContractDeployer(rpc, accounts[0]), ContractDeployer(rpc, accounts[2])
        logic = deployer.create(compile_contract(NUMBERS / "share_roles.vy"))
        self.beacon = owner.create(compile_contract(NUMBERS / "beacon.vy"), ["address"], [logic]).lower()
        story = Story("share", "", "", "Share", "SHR", 18, ("uint256",), (int(self.beacon, 16),), (POOL,))
        code = compile_contract(NUMBERS / "beacon_proxy.vy")
        self.token = Address(put_token(deployer, built.contracts, story, code).lower())
        deployer.check_receipts()
        owner.check_receipts()
        # Vyper keeps the beacon as an immutable; EIP-1967 keeps it in this slot.
        self.store(BEACON_SLOT, self.beacon)
        rpc.call("evm_mine")
        self.granter, self.beacon_owner = accounts[0].lower(), accounts[2].lower()

    def act_as(self, account: str) -> ContractDeployer:
        """Sends transactions of an account whose key nobody has."""
        self.rpc.call("anvil_impersonateAccount", account)
        self.rpc.call("anvil_setBalance", account, hex(10**19))
        return ContractDeployer(self.rpc, account)

    def store(self, slot: str, address: str) -> None:
        """Writes an address into a slot of the token, as its author could have."""
        self.rpc.call("anvil_setStorageAt", self.token, slot, "0x" + address[2:].rjust(64, "0"))

    async def evidence(self, ctx: Context, deep: bool) -> Evidence:
        await ctx.heads.refresh()
        return await gather_evidence(ctx, self.token, Meter(), deep=deep)


async def test_who_can_replace_the_logic_of_all_shares_is_the_owners_side(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    share = Share(rpc, built)
    evidence = await share.evidence(ctx, deep=False)
    judgement = judge(evidence, POLICY)
    assert (judgement.verdict.code, judgement.verdict.level) == ("ok", "ok"), judgement.verdict
    assert (evidence.facts.owner, evidence.facts.proxy_admin) == (None, share.beacon_owner)
    assert "owner_active" in raised_flags(JudgedCheck(evidence, judgement, POLICY))
    share.act_as(share.beacon_owner).send(share.beacon, calldata("upgradeTo(address)", share.beacon))
    assert judge(await share.evidence(ctx, deep=False), POLICY).verdict.code == "not_a_token"


async def test_what_its_roles_may_do_is_named_and_really_stops_sales(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    share = Share(rpc, built)
    evidence = await share.evidence(ctx, deep=True)
    rights = evidence.account_rights
    assert isinstance(rights, AccountRights)
    text = judge(evidence, POLICY).verdict.text
    pauser, blocker, burner = (
        role_holder(f"{role}_ROLE", share.granter) for role in ("PAUSER", "BLOCKER", "BURNER")
    )
    assert (
        f"an account that its events gave a right, {pauser}, can stop you from selling (function pause())"
        in text
    )
    assert f"function setBlocked(address,bool) by an account that its events gave a right, {blocker}" in text
    assert {call.sender for call in rights.tried if call.outcome is not None} >= {pauser, blocker, burner}
    assert f"function upgradeTo(address), of {share.beacon} by the owner of a contract that it names" in text
    for call in rights.tried:
        really_is(rpc, built, share.act_as(call.sender), share.token, POOL, call)


@pytest.mark.parametrize("admin", ["beacon", "nobody"])
async def test_other_slots_do_not_keep_the_beacon_from_being_tried(
    ctx: Context, rpc: SyncRpc, built: Built, admin: str
) -> None:
    share = Share(rpc, built)
    for number in range(MAX_CONTRACTS):
        share.store(hex(number + 28), "0x" + f"{number + 1}dec0" * 8)
    share.store(PROXY_ADMIN_SLOT, share.beacon if admin == "beacon" else BURN_ADDRESS)
    rpc.call("evm_mine")
    rights = (await share.evidence(ctx, deep=True)).account_rights
    assert isinstance(rights, AccountRights)
    tried = {(call.function, call.target, call.sender) for call in rights.tried}
    assert ("upgradeTo(address)", share.beacon, share.beacon_owner) in tried


@dataclass(frozen=True)
class NoOtherCode:
    """A node whose eth_call takes no code in place of an account's."""

    node: RpcNode

    async def batch(self, calls: Sequence[RpcCall], *options: Any, **more: Any) -> Any:
        return self._without(calls, await self.node.batch(calls, *options, **more))

    async def batches(self, groups: Sequence[Sequence[RpcCall]], meter: Meter) -> Any:
        every = await self.node.batches(groups, meter)
        return [self._without(calls, answers) for calls, answers in zip(groups, every, strict=True)]

    def _without(self, calls: Sequence[RpcCall], answers: Any) -> Any:
        refused = RpcError(-32602, "too many arguments")
        return [
            refused if call.method == "eth_call" and len(call.params) > 2 else answer
            for call, answer in zip(calls, answers, strict=True)
        ]


@pytest.mark.parametrize("is_beacon", [True, False])
async def test_a_node_that_runs_no_other_code_still_reads_the_slots(
    ctx: Context, rpc: SyncRpc, built: Built, is_beacon: bool
) -> None:
    share = Share(rpc, built)
    share.store(PROXY_ADMIN_SLOT, share.granter)
    if not is_beacon:
        share.store(BEACON_SLOT, "0x0")
    rpc.call("evm_mine")
    await ctx.heads.refresh()
    inputs = await prepare_inputs(ctx, share.token)
    bought = await run_buy_round(ctx.means(NoOtherCode(ctx.node)), inputs, Meter())
    admin = bought.data.facts.proxy_admin
    assert isinstance(admin, Missing) if is_beacon else admin == share.granter
