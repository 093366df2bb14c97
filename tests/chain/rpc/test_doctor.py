"""What the doctor finds of the local chain, and of nodes that lack something."""

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import aiohttp
import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.doctor import CHECKS, NEEDED, DoctorRounds, DoctorSubject, Finding, examine
from roundtrip.chain.rpc.client import Budget, Node
from roundtrip.chain.rpc.endpoints import NodeUrl
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.config.networks import CHAIN_ID
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.system.status import health
from roundtrip.store.server import connections
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, describe
from support.dialects import DialectNode, Kind
from support.faulty_node import FaultyNode
from support.followed import followed
from support.nitro_blocks import parent_number
from support.nodes import node_of, over, pair


def patient(ctx: Context, url: str | None = None, now_s: float | None = None) -> DoctorSubject:
    node = node_of(ctx) if url is None else Node(url, node_of(ctx).session, 2.0)
    head_s = ctx.heads.current().block.timestamp_s
    clock = head_s + 3 if now_s is None else now_s
    return DoctorSubject(node, ctx.heads, ctx.contracts, CHAIN_ID, clock, time.monotonic)


async def patient_of_kind(ctx: Context, node: DialectNode) -> DoctorSubject:
    """Its base fee is that of the node's own head."""
    own = over(ctx, node.url)
    await own.heads.refresh()
    return replace(patient(ctx, node.url), heads=own.heads)


def by_name(found: list[Finding]) -> dict[str, Finding]:
    assert len({row.what for row in found}) == len(found)
    return {row.what: row for row in found}


async def test_everything_works_on_the_local_chain(ctx: Context) -> None:
    found = by_name(await examine(patient(ctx)))
    assert {look.what for look in CHECKS if look.what != "nodes"} | {"NUMBER inside"} == found.keys()
    # What was before the state that the chain was started with is not told.
    assert found.pop("archive").state == "in part"
    assert {row.state for row in found.values()} == {"works"}
    assert all(row.costs == "" for row in found.values())
    assert "in the format of anvil" in found["eth_simulateV1"].seen
    block = ctx.heads.current().block
    assert f"NUMBER {block.number + 4}, TIMESTAMP {block.timestamp_s + 37}" in found["NUMBER inside"].seen


async def test_a_clock_that_is_apart_is_told(ctx: Context) -> None:
    head_s = ctx.heads.current().block.timestamp_s
    found = by_name(await examine(patient(ctx, now_s=head_s + 61)))
    assert (found["clock"].state, found["clock"].seen) == (
        "in part",
        "the newest block is 61 s behind our clock",
    )
    found = by_name(await examine(patient(ctx, now_s=head_s - 100)))
    assert "100 s ahead of our clock" in found["clock"].seen


async def test_contracts_that_are_not_there_or_belong_to_others(ctx: Context) -> None:
    one = patient(ctx)
    nobody = replace(one.contracts, quoter_v2=Address("0x" + "99" * 20))
    found = by_name(await examine(replace(one, contracts=nobody)))
    assert (found["contracts"].state, found["contracts"].seen) == ("missing", "no code at quoter_v2")
    assert "quoter_v2.factory() is unknown" in found["links"].seen
    several = replace(one.contracts, launchpad_v1_factories=(one.contracts.weth, Address("0x" + "99" * 20)))
    found = by_name(await examine(replace(one, contracts=several)))
    assert found["contracts"].seen == "no code at launchpad_v1_factories 2"
    mixed = replace(one.contracts, weth=one.contracts.usdg)
    found = by_name(await examine(replace(one, contracts=mixed)))
    assert found["contracts"].state == "works"
    assert found["links"].state == "missing"
    assert "swap_router02.WETH9() is " in found["links"].seen


@pytest.mark.parametrize(
    ("fault", "missing"),
    [
        ("wrong chain id", {"chain id"}),
        ("no eth_simulateV1", {"eth_simulateV1"}),
        ("all errors", {"chain id", "contracts", "links", "eth_simulateV1", "logs", "batches"}),
    ],
)
async def test_what_a_node_lacks_is_told_with_its_cost(
    ctx: Context, faulty: FaultyNode, fault: str, missing: set[str]
) -> None:
    faulty.fault = fault
    found = by_name(await examine(patient(ctx, faulty.url)))
    assert {row.what for row in found.values() if row.state == "missing"} >= missing
    assert missing & NEEDED
    assert all(row.costs for row in found.values() if row.state != "works")


async def test_without_logs_a_check_works_and_a_service_does_not(
    faulty: FaultyNode, built: Built, tmp_path: Path
) -> None:
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, faulty.url)))
    shown = ""
    settings = {"ROUNDTRIP_RPC_URL": faulty.url, "ROUNDTRIP_VAR": str(tmp_path), "COLUMNS": "200"}
    for faulty.lacks, code, served in (("", 0, "works"), ("eth_getLogs", 1, "cannot work, for want of logs")):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "roundtrip", "doctor"), stdout=PIPE, env={**os.environ, **settings}
        )
        shown = (await process.communicate())[0].decode()
        assert process.returncode == code
        assert f"roundtrip check: works\nroundtrip serve --all: {served}\n" in shown
    assert "boards, wallets, holders and alerts: nothing is indexed" in shown


async def test_a_node_that_lists_no_trade_lets_no_number_pass(ctx: Context, rpc: SyncRpc) -> None:
    node = DialectNode(rpc.url, "nitro")
    node.lists_with_overrides = False
    async with node.running():
        inside = by_name(await examine(await patient_of_kind(ctx, node)))["NUMBER inside"]
    assert (inside.state, "count blocks stay unproven" in inside.costs) == ("in part", True)


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_nodes_of_other_kinds(ctx: Context, rpc: SyncRpc, kind: Kind) -> None:
    node = DialectNode(rpc.url, kind)
    async with node.running():
        found = by_name(await examine(await patient_of_kind(ctx, node)))
    assert {name for name, row in found.items() if row.state == "missing"} == set()
    assert f"in the format of {kind}" in found["eth_simulateV1"].seen
    inside = found["NUMBER inside"]
    if kind == "nitro":
        assert str(parent_number(ctx.heads.current().block.number)) in inside.seen
    assert (
        inside.state,
        "; a simulation can set COINBASE or PREVRANDAO in place of NUMBER" in inside.seen,
    ) == ("in part", True)
    assert "block hashes" in inside.costs
    assert found["websocket"].state == "in part"


async def test_what_is_missing_shows_in_health_and_what_is_there_again_does_not(
    ctx: Context, faulty: FaultyNode
) -> None:
    rounds = DoctorRounds(lambda: replace(patient(ctx, faulty.url), thorough=False))
    ctx = replace(ctx, lacks=rounds.lacks)
    async with followed(ctx):
        assert (await health(ctx, Nothing())).answer.lacks == []
        faulty.fault = "no eth_simulateV1"
        await rounds.once()
        result = (await health(ctx, Nothing())).answer
        assert result.ok is False
        assert "eth_simulateV1" in {lack.what for lack in result.lacks}
        assert all(lack.costs for lack in result.lacks)
        faulty.fault = None
        await rounds.once()
        result = (await health(ctx, Nothing())).answer
        assert (result.ok, {lack.what for lack in result.lacks}) == (True, {"archive"})


async def test_what_runs_beside_the_service_asks_nothing_heavy(ctx: Context, faulty: FaultyNode) -> None:
    light = await examine(replace(patient(ctx, faulty.url), thorough=False))
    names = {row.what for row in light}
    looked_at = {look.what for look in CHECKS if not look.heavy and look.what != "nodes"}
    assert names == looked_at | {"NUMBER inside"}


async def test_rounds_are_made_while_the_service_runs(ctx: Context) -> None:
    seen: list[int] = []
    done = asyncio.Event()

    def counted() -> DoctorSubject:
        seen.append(1)
        done.set()
        return replace(patient(ctx), thorough=False)

    async with DoctorRounds(counted).going(), asyncio.timeout(10):
        await done.wait()
    assert seen == [1]


async def test_a_database_that_is_gone_shows_in_health(ctx: Context, built: Built) -> None:
    pool = await connections.create_pool("postgresql://nobody@127.0.0.1:1/none", min_size=0)
    result = (await health(replace(ctx, pool=pool), Nothing())).answer
    assert (result.ok, [lack.what for lack in result.lacks]) == (False, ["database"])
    pool.terminate()


async def test_of_several_nodes_it_is_told_how_many_are_left(ctx: Context, rpc: SyncRpc) -> None:
    async with pair(rpc.url) as (first, second), aiohttp.ClientSession() as session:
        nodes = NodePool([NodeUrl(first.url), NodeUrl(second.url)], session, CHAIN_ID)
        one = replace(patient(ctx), node=nodes, thorough=False)
        assert by_name(await examine(one))["nodes"].state == "works"
        first.quirk = "403"
        await examine(one)
        result = by_name(await examine(one))["nodes"]
    assert (result.state, result.costs) == ("in part", "1 of 2 nodes are usable")
    assert "told to wait" in result.seen


async def test_rounds_outlive_what_no_node_should_answer(ctx: Context, faulty: FaultyNode) -> None:
    """Fields that are none, and a day's budget that is used up: findings, never exceptions."""
    faulty.fault = "odd fields"
    found = by_name(await examine(replace(patient(ctx, faulty.url), thorough=False)))
    assert found["eth_simulateV1"].state == "missing"
    spent = Budget(1, spent=1, day=int(time.time() // 86_400))
    node = Node(node_of(ctx).url, node_of(ctx).session, 2.0, spent)
    found = by_name(await examine(replace(patient(ctx), node=node, thorough=False)))
    assert found["chain id"].state == "works"


async def test_health_is_not_ok_while_no_simulation_can_be_read(ctx: Context, faulty: FaultyNode) -> None:
    faulty.fault = "no eth_simulateV1"
    node = Node(faulty.url, node_of(ctx).session, 2.0)
    heads = Heads(node, CHAIN_ID, ctx.contracts)
    await heads.refresh()
    assert (await health(replace(ctx, heads=heads), Nothing())).answer.ok is False
    faulty.fault = None


async def test_health_that_is_not_ok_says_why(ctx: Context, indexed: Context) -> None:
    """Also where the index is not behind the node: it is the node that is gone, or behind."""
    head = ctx.heads.current()
    gone = Heads(Node("http://127.0.0.1:1", node_of(ctx).session, 0.1), CHAIN_ID, ctx.contracts)
    result = (await health(replace(indexed, heads=gone), Nothing())).answer
    assert (result.ok, [lack.what for lack in result.lacks]) == (False, ["node"])
    for by_blocks, by_s, behind in ((-1000, -1000, "node"), (1000, 1000, "index")):
        block = replace(
            head.block, number=head.block.number + by_blocks, timestamp_s=head.block.timestamp_s + by_s
        )
        heads = cast(
            Heads,
            SimpleNamespace(current=lambda block=block: replace(head, block=block), poll_soon=lambda: None),
        )
        result = (await health(replace(indexed, heads=heads), Nothing())).answer
        assert (result.ok, [lack.what for lack in result.lacks]) == (False, [behind])
        assert (result.blocks_behind == 0) is (behind == "node")
