"""A deep check of tokens without an owner: who else has rights is found, tried and named."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from roundtrip.chain.owner import named_accounts
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, RpcNode
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import AccountRights, Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.services.engine.check_run import run_check
from roundtrip.services.engine.token_check import prepare_inputs
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip_development.devnet.stories import Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.dialects import DialectNode, Kind
from support.fixtures import PROJECT, context_for
from support.gathering import gather_evidence

CONTRACTS = PROJECT / "contracts"
SOMEBODY = "0x" + "c0ffee5eed" * 4
"""An account without code, money or transactions."""


@dataclass(frozen=True)
class RightsCase:
    """A token, what its constructor takes more, and the end of the text of its deep check."""

    source: str
    extra: tuple[int, ...]
    says: str


STOPS = "can stop you from selling"
HIDDEN = int(SOMEBODY, 16)
RENOUNCED, UNNAMED = "Its owner is a burn address, but", "It names no owner, but"
CASES = (
    RightsCase(
        "role_holder", (HIDDEN,),
        f"{RENOUNCED} an account that its events gave a right, {SOMEBODY}, {STOPS} "
        "(function setBlacklist(address,bool)).",
    ),
    RightsCase(
        "ward", (HIDDEN,),
        f"{UNNAMED} an account that its events gave a right, {SOMEBODY}, {STOPS} (function pause()).",
    ),
    RightsCase(
        "hidden_account", (HIDDEN, 0),
        f"{RENOUNCED} an account in its storage, {SOMEBODY}, {STOPS} "
        "(a function whose name is not known, 0x91477e31).",
    ),
    RightsCase(
        "hidden_account", (HIDDEN, 0x5B << 152),
        "We tried 1 function of its owner: it did not stop the sell. "
        f"Beside its owner, an account in its storage, {SOMEBODY}, {STOPS} "
        "(a function whose name is not known, 0x91477e31).",
    ),
    RightsCase(
        "handed_on", (HIDDEN,),
        f"{RENOUNCED} an account in its storage, {SOMEBODY}, {STOPS} "
        "(a function whose name is not known, 0xc70cad8e).",
    ),
    RightsCase(
        "constant_account", (HIDDEN,),
        f"{UNNAMED} an account in its code, {SOMEBODY}, {STOPS} (function setSellTax(uint256)).",
    ),
    RightsCase("anybody", (), f"{UNNAMED} anybody {STOPS} (function stop())."),
    RightsCase(
        "first_supply", (), f"{UNNAMED} an account with supply, {{deployer}}, {STOPS} (function stop())."
    ),
)  # fmt: skip


def put(rpc: SyncRpc, built: Built, source: str, *extra: int) -> str:
    """A token of ``contracts`` with one pool."""
    story = Story(source, "", f"{source}.vy", "Rights", "RGT", 18, ("uint256",) * len(extra), extra)
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    token = put_token(deployer, built.contracts, story, compile_contract(CONTRACTS / story.source))
    deployer.check_receipts()
    return token


async def deep(ctx: Context, token: str) -> tuple[Evidence, Meter]:
    await ctx.heads.refresh()
    meter = Meter()
    return await gather_evidence(ctx, Address(token), meter, deep=True), meter


def says(evidence: Evidence) -> str:
    return judge(evidence, POLICY).verdict.text


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.source}{len(case.says)}")
async def test_who_has_a_right_that_stops_sales_is_named(
    ctx: Context, rpc: SyncRpc, built: Built, case: RightsCase
) -> None:
    evidence, meter = await deep(ctx, put(rpc, built, f"rights/{case.source}", *case.extra))
    verdict = judge(evidence, POLICY).verdict
    assert (verdict.code, verdict.level) == ("ok", "ok")
    assert verdict.text.endswith(case.says.format(deployer=rpc.call("eth_accounts")[0].lower())), verdict.text
    assert meter.trips == 4
    assert canonical_json.load(Evidence, canonical_json.dump(evidence)) == evidence


def put_controller(rpc: SyncRpc) -> tuple[str, str]:
    """A controller and its owner."""
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[1])
    controller = deployer.create(compile_contract(CONTRACTS / "rights" / "controller.vy")).lower()
    deployer.check_receipts()
    return controller, deployer.account.lower()


async def test_the_owner_of_a_contract_that_decides_on_transfers_is_named(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    controller, owner = put_controller(rpc)
    evidence, _ = await deep(ctx, put(rpc, built, "rights/controlled", int(controller, 16)))
    assert says(evidence).endswith(
        f"{RENOUNCED} the owner of a contract that it names, {owner}, {STOPS} "
        f"(function block(address), of {controller})."
    ), says(evidence)


async def test_a_contract_that_has_a_right_is_named(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    controller, _ = put_controller(rpc)
    evidence, _ = await deep(ctx, put(rpc, built, "rights/hidden_account", int(controller, 16), 0))
    assert f"{RENOUNCED} a contract that it names, {controller}, {STOPS}" in says(evidence)


async def test_a_contract_that_a_sale_may_call_and_nobody_names_is_not_passed_over(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    evidence, _ = await deep(ctx, put(rpc, built, "zoo/transfer_callback"))
    assert says(evidence).endswith("; a sale may call a contract that we could not try."), says(evidence)


def renounced(rpc: SyncRpc, built: Built, source: str) -> str:
    token, deployer = put(rpc, built, source), ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    deployer.send(token, calldata("renounceOwnership()"))
    deployer.check_receipts()
    return token


async def test_a_renounced_owner_without_hidden_rights_is_no_alarm(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    evidence, meter = await deep(ctx, renounced(rpc, built, "zoo/owner_close"))
    assert isinstance(evidence.account_rights, AccountRights)
    assert says(evidence).endswith(
        "Its owner is a burn address; we called 2 functions as 1 other account and as a new wallet: no call "
        "was accepted."
    ), says(evidence)
    assert meter.trips == 3


@dataclass
class NoLogs:
    """A node that serves no logs of wide ranges (``wide``), or none."""

    node: RpcNode
    wide: bool

    async def batch(self, calls: Sequence[RpcCall], *options: Any, **more: Any) -> Any:
        return self._without(calls, await self.node.batch(calls, *options, **more))

    async def batches(self, groups: Sequence[Sequence[RpcCall]], meter: Meter) -> Any:
        return [
            self._without(calls, answers)
            for calls, answers in zip(groups, await self.node.batches(groups, meter), strict=True)
        ]

    def _without(self, calls: Sequence[RpcCall], answers: Any) -> Any:
        refused = RpcError(-32600, "block range is too wide")
        return [
            refused if call.method == "eth_getLogs" and self._refuses(call.params[0]) else answer
            for call, answer in zip(calls, answers, strict=True)
        ]

    def _refuses(self, wanted: Any) -> bool:
        return not self.wide or int(wanted["toBlock"], 16) - int(wanted["fromBlock"], 16) > 100


@pytest.mark.parametrize("wide", [True, False])
async def test_events_that_could_not_be_read_are_never_silence(
    ctx: Context, rpc: SyncRpc, built: Built, monkeypatch: pytest.MonkeyPatch, wide: bool
) -> None:
    monkeypatch.setattr(named_accounts, "_RECENT_BLOCKS", 100)
    token = put(rpc, built, "rights/ward", HIDDEN)
    await ctx.heads.refresh()
    inputs = await prepare_inputs(ctx, Address(token), deep=True)
    text = says((await run_check(ctx.means(NoLogs(ctx.node, wide)), inputs, Meter())).evidence)
    if wide:
        assert f"an account that its events gave a right, {SOMEBODY}, {STOPS}" in text
    else:
        assert text.endswith("no call was accepted; we could not read all of its events."), text


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_they_are_found_on_nodes_that_count_otherwise_too(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    token, node = put(rpc, built, "rights/hidden_account", HIDDEN, 0), DialectNode(rpc.url, kind)
    async with node.running(), context_for(node.url, built, pool, dialect=None) as ctx:
        evidence, _ = await deep(ctx, token)
        assert f"{RENOUNCED} an account in its storage, {SOMEBODY}, {STOPS}" in says(evidence)


async def test_beside_a_renounced_owner_there_is_never_silence(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """Nothing is sold of it: its owner closed trading, and renounced then."""
    token, deployer = put(rpc, built, "zoo/owner_close"), ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    deployer.send(token, calldata("closeTrading()"))
    deployer.send(token, calldata("renounceOwnership()"))
    deployer.check_receipts()
    evidence, _ = await deep(ctx, token)
    assert says(evidence).endswith(
        "Its owner is a burn address; we could not find out whether other accounts have rights over it: no "
        "sell of it succeeded."
    ), says(evidence)
