"""Tokens that read block numbers, or run other code: nodes of every kind say the same of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from chain.check.test_dialect_verdicts import KINDS, speaking, waiting
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.number_copies import copy_code, read_code
from roundtrip.config.networks import contracts_from
from roundtrip.devnet.compile import compile_contract
from roundtrip.devnet.deploy import COINBASE as PRODUCER
from roundtrip.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip.devnet.stories import PoolPlan, Story
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence, NumberSubstitution
from roundtrip.domain.check.verdict import judge
from roundtrip.services.check.pipeline import gather_evidence
from roundtrip.venues.abi import keccak
from support.dialects import DialectNode, Kind, parent_number
from support.fixtures import PROJECT

V3, V4_USDG = (PoolPlan(),), (PoolPlan("usdg", 3000, 60_000_000, version=4),)
SAYS = tuple[str, str]


def code_of(name: str) -> str:
    return compile_contract(PROJECT / "contracts" / "numbers" / f"{name}.vy")


@dataclass(frozen=True)
class Maker:
    """Puts tokens and what stands behind them on the chain."""

    rpc: SyncRpc
    built: Built

    def deployer(self) -> ContractDeployer:
        return ContractDeployer(self.rpc, self.built.accounts[0])

    def contract(self, name: str, *values: object) -> int:
        """Its address as a number, as constructors take it."""
        types = ["address" if isinstance(v, str) else "uint256" for v in values]
        return int(self.deployer().create(code_of(name), types, list(values)), 16)

    def token(self, name: str, *extra: int, pools: tuple[PoolPlan, ...] = V3, code: str = "") -> str:
        story = Story(name, "", "", "Numbers", "NUM", 18, ("uint256",) * len(extra), extra, pools)
        deployer = self.deployer()
        token = put_token(deployer, self.built.contracts, story, code or code_of(name))
        deployer.check_receipts()
        return token

    def minimal_proxy(self, logic: int) -> str:
        """An EIP-1167 proxy that its creation fills."""
        runtime = f"363d3d373d3d3d363d73{logic:040x}5af43d82803e903d91602b57fd5bf3"
        filled = calldata(
            "initialize(string,string,uint256,address)", "Numbers", "NUM", 10**27, self.built.accounts[0]
        )[2:]
        size = len(filled) // 2
        fill = f"61{size:04x}61{{data:04x}}600039" + f"6000600061{size:04x}600073{logic:040x}5af450"
        give = "602d61{runtime:04x}600039602d6000f3"
        length = len(fill.format(data=0) + give.format(runtime=0)) // 2
        code = fill.format(data=length + 45) + give.format(runtime=length)
        return self.token("minimal", pools=V3, code="0x" + code + runtime + filled)

    def beacon_share(self, logic: int, pools: tuple[PoolPlan, ...] = V3) -> str:
        return self.token("beacon_proxy", self.contract("beacon", hex40(logic)), pools=pools)

    def proxy(self, logic: int) -> str:
        code = compile_contract(PROJECT / "contracts" / "zoo" / "proxy.vy")
        return self.token("proxy", logic, code=code)


def hex40(address: int) -> str:
    return f"0x{address:040x}"


SOLD, WAITS, NEVER = ("ok", "ok"), ("ok", "warn"), ("cannot_sell", "danger")
MAKERS: dict[str, tuple[Callable[[Maker], str], SAYS]] = {
    "a share behind a beacon": (lambda m: m.beacon_share(m.contract("share_logic")), SOLD),
    "a share in a v4 pool": (lambda m: m.beacon_share(m.contract("share_logic"), V4_USDG), SOLD),
    "a wait behind a proxy": (lambda m: m.proxy(m.contract("waiting_logic", 10)), WAITS),
    "a trap behind a proxy": (lambda m: m.proxy(m.contract("waiting_logic", 10**6)), NEVER),
    "a trap behind a beacon": (lambda m: m.beacon_share(m.contract("waiting_logic", 10**6)), NEVER),
    "a minimal proxy": (lambda m: m.minimal_proxy(m.contract("share_logic")), SOLD),
    "a wait behind a minimal proxy": (lambda m: m.minimal_proxy(m.contract("waiting_logic", 200)), WAITS),
    "a diamond": (lambda m: m.token("diamond", m.contract("share_logic")), SOLD),
    "a swap in the sale": (
        lambda m: m.token(
            "swaps_back",
            *(int(m.built.contracts[name], 16) for name in ("swapRouter02", "weth")),
            pools=(PoolPlan(), PoolPlan("weth", 10_000, 2000, 800)),
        ),
        SOLD,
    ),
    "the block's producer too": (lambda m: m.token("knows_producer"), WAITS),
    "a wait": (lambda m: waiting(m.rpc, m.built, 5000), WAITS),
    "a list from the next number on": (lambda m: m.built.tokens["blacklist_after_buy"], NEVER),
}


Found = tuple[Evidence, tuple[str, str, str]]


async def found_on(
    kind: Kind,
    rpc: SyncRpc,
    built: Built,
    pool: asyncpg.Pool,
    token: str,
    lists: bool = True,
    deep: bool = False,
) -> Found:
    node = DialectNode(rpc.url, kind)
    node.lists_with_overrides = lists
    async with node.running(), speaking(node, built, pool, KINDS[kind]) as ctx:
        evidence = await gather_evidence(ctx, Address(token), Meter(), deep=deep)
        verdict = judge(evidence, ctx.policy).verdict
    return evidence, (verdict.code, verdict.level, verdict.text)


@pytest.mark.parametrize("name", MAKERS)
async def test_every_kind_of_node_says_the_same(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, name: str
) -> None:
    make, says = MAKERS[name]
    token = make(Maker(rpc, built))
    came = {kind: (await found_on(kind, rpc, built, pool, token))[1] for kind in KINDS}
    assert came["anvil"][:2] == says
    assert came["geth"] == came["nitro"] == came["anvil"]


@pytest.mark.parametrize("name", ["a wait behind a proxy", "a share behind a beacon"])
async def test_every_kind_of_node_says_the_same_of_owners(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, name: str
) -> None:
    token = MAKERS[name][0](Maker(rpc, built))
    came = {kind: (await found_on(kind, rpc, built, pool, token, deep=True))[1] for kind in KINDS}
    assert came["geth"] == came["nitro"] == came["anvil"]
    assert came["anvil"][0] == "ok"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_contract_that_is_asked_only_later_is_read(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    """The node's list does not have it: it is asked ten minutes after the purchase. It says no from 250
    numbers on."""
    number = int(rpc.call("eth_blockNumber"), 16)
    start = parent_number(number) if kind == "nitro" else number
    maker = Maker(rpc, built)
    token = maker.token("asks_later", maker.contract("gate", start + 250))
    _, (code, level, text) = await found_on(kind, rpc, built, pool, token)
    assert (code, level) == WAITS
    assert "not at all after an hour" in text


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_a_contract_that_is_hidden_until_it_is_asked_leaves_it_unproven(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    maker = Maker(rpc, built)
    token = maker.token("asks_hidden", maker.contract("gate", 10**9))
    _, (code, level, text) = await found_on(kind, rpc, built, pool, token)
    assert (code, level) == ("unproven", "unknown")
    assert "not all that its sale runs is known" in text


@pytest.mark.parametrize("name", ["notices_hash", "notices_code", "watched"])
@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_code_that_could_notice_its_copy_is_unproven_and_why_is_told(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind, name: str
) -> None:
    maker = Maker(rpc, built)
    token = maker.token(name, *([maker.contract("watcher")] if name == "watched" else []))
    evidence, (code, level, text) = await found_on(kind, rpc, built, pool, token)
    assert (code, level, evidence.numbers) == ("unproven", "unknown", None)
    assert "it could notice a copy of its code" in text


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_what_draws_by_block_hashes_is_unproven(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    token = Maker(rpc, built).token("draws_hash")
    _, (code, level, text) = await found_on(kind, rpc, built, pool, token)
    assert (code, level) == ("unproven", "unknown")
    assert "the token may read block hashes" in text


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_what_asks_a_contract_of_the_network_for_the_number_is_unproven(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    """Multicall3 tells it."""
    token = Maker(rpc, built).token("asks_multicall", int(built.contracts["multicall3"], 16))
    _, (code, level, _) = await found_on(kind, rpc, built, pool, token)
    assert (code, level) == ("unproven", "unknown")


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_what_makes_a_contract_in_a_trade_is_unproven(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    maker = Maker(rpc, built)
    token = maker.token("makes_gates", maker.contract("gate", 10**9))
    _, (code, level, text) = await found_on(kind, rpc, built, pool, token)
    assert (code, level) == ("unproven", "unknown")
    assert "makes other contracts" in text


def test_no_other_contract_of_the_network_tells_the_number(rpc: SyncRpc, built: Built) -> None:
    named = contracts_from(built.contracts).by_name()
    codes = {name: bytes.fromhex(rpc.call("eth_getCode", at, "latest")[2:]) for name, at in named.items()}
    reading = {name for name, code in codes.items() if read_code(code).reads_number()}
    # The router compares the last block's hash with one that its caller already has.
    assert reading == {"multicall3", "swap_router02"}


class Noticing(DialectNode):
    """A node on which a sale with a copied code takes a little more gas."""

    async def _simulate(self, params: list[Any]) -> list[dict[str, Any]]:
        blocks = await super()._simulate(params)
        sales = params[0]["blockStateCalls"]
        if any(
            account.get("code", "").endswith(self.copied) for account in sales[0]["stateOverrides"].values()
        ):
            call = next(call for block in reversed(blocks) for call in block["calls"])
            call["gasUsed"] = hex(int(call["gasUsed"], 16) + 1)
        return blocks

    copied = ""


async def test_what_runs_more_contracts_than_a_check_reads_is_unproven(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool
) -> None:
    maker = Maker(rpc, built)
    token = maker.token("names_many", maker.contract("gate", 10**9))
    _, (code, level, text) = await found_on("nitro", rpc, built, pool, token)
    assert (code, level) == ("unproven", "unknown")
    assert "names too many contracts" in text


class Charging(DialectNode):
    """Nitro charges the parent chain's fee, in gas, where the block's producer is its own."""

    async def _simulate(self, params: list[Any]) -> list[dict[str, Any]]:
        blocks = await super()._simulate(params)
        for asked, block in zip(params[0]["blockStateCalls"], blocks, strict=True):
            for call in block["calls"] if asked["blockOverrides"]["feeRecipient"] == PRODUCER else ():
                call["gasUsed"] = hex(int(call["gasUsed"], 16) + 700)
        return blocks


async def test_the_parent_chains_fee_is_no_difference(rpc: SyncRpc, built: Built, pool: asyncpg.Pool) -> None:
    token, node = built.tokens["blacklist_after_buy"], Charging(rpc.url, "nitro")
    async with node.running(), speaking(node, built, pool, KINDS["nitro"]) as ctx:
        evidence = await gather_evidence(ctx, Address(token), Meter())
        verdict = judge(evidence, ctx.policy).verdict
    assert {env.coinbase for env in evidence.environments} == {PRODUCER}
    assert (verdict.code, evidence.numbers is None) == ("cannot_sell", False)


async def test_a_trade_that_differs_with_the_copy_is_unproven(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool
) -> None:
    token = built.tokens["blacklist_after_buy"]
    node = Noticing(rpc.url, "nitro")
    node.copied = copy_code(bytes.fromhex(rpc.call("eth_getCode", token, "latest")[2:]), "COINBASE")[-64:]
    async with node.running(), speaking(node, built, pool, KINDS["nitro"]) as ctx:
        evidence = await gather_evidence(ctx, Address(token), Meter())
        verdict = judge(evidence, ctx.policy).verdict
    assert (verdict.code, verdict.level, evidence.numbers) == ("unproven", "unknown", None)
    assert "its trade differed with a copy of its code" in verdict.text


async def test_the_evidence_names_what_was_copied_and_how(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool
) -> None:
    maker = Maker(rpc, built)
    logic = maker.contract("waiting_logic", 10)
    evidence, _ = await found_on("nitro", rpc, built, pool, maker.proxy(logic))
    code = bytes.fromhex(rpc.call("eth_getCode", hex40(logic), "latest")[2:])
    number = parent_number(evidence.block.number)
    assert evidence.numbers == NumberSubstitution(
        "COINBASE", number, (Address(hex40(logic)),), ("0x" + keccak(code).hex(),), 2
    )


@pytest.mark.parametrize("name", ["a share behind a beacon", "a list from the next number on"])
async def test_a_node_without_lists_of_what_a_trade_reaches_proves_nothing(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, name: str
) -> None:
    token = MAKERS[name][0](Maker(rpc, built))
    evidence, (code, level, text) = await found_on("nitro", rpc, built, pool, token, lists=False)
    assert (code, level, evidence.numbers) == ("unproven", "unknown", None)
    assert "not all that its sale runs is known" in text


@pytest.mark.parametrize("kind", KINDS)
async def test_what_neither_counts_blocks_nor_runs_other_code_costs_nothing_more(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    node = DialectNode(rpc.url, kind)
    async with node.running(), speaking(node, built, pool, KINDS[kind]) as ctx:
        meter = Meter()
        evidence = await gather_evidence(ctx, Address(built.tokens["plain"]), meter)
    assert (meter.trips, evidence.numbers) == (2, None)
