"""What the doctor finds of the local chain, and of nodes that lack something."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from roundtrip.assembly import CHAIN_ID
from roundtrip.chain.doctor import LOOKS, NEEDED, Finding, Patient, examine
from roundtrip.chain.rpc import Node
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.types import Address
from roundtrip.services.context import Context
from support.faulty_node import FaultyNode
from support.nodes import node_of


@pytest.fixture
async def faulty(rpc: SyncRpc, built: Built) -> AsyncIterator[FaultyNode]:
    async with FaultyNode(rpc.url).running() as found:
        yield found


def patient(ctx: Context, url: str | None = None, now_s: float | None = None) -> Patient:
    node = ctx.node if url is None else Node(url, node_of(ctx).session, 2.0)
    head_s = ctx.heads.current().block.timestamp_s
    clock = head_s + 3 if now_s is None else now_s
    return Patient(node, ctx.heads, ctx.contracts, CHAIN_ID, clock, time.monotonic)


def by_name(found: list[Finding]) -> dict[str, Finding]:
    assert len({row.what for row in found}) == len(found)
    return {row.what: row for row in found}


async def test_everything_works_on_the_local_chain(ctx: Context) -> None:
    found = by_name(await examine(patient(ctx)))
    assert {look.what for look in LOOKS} | {"NUMBER inside"} == found.keys()
    # What was before the state that the chain was started with is not told.
    assert found.pop("archive").state == "in part"
    assert {row.state for row in found.values()} == {"works"}
    assert all(row.costs == "" for row in found.values())
    assert "speaks as anvil" in found["eth_simulateV1"].seen
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
    assert "quoter_v2.factory() is not told" in found["links"].seen
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
