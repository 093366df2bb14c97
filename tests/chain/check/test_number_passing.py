"""Tokens that read block numbers, or run other code: nodes of every kind say the same of them."""

from typing import Any

import asyncpg
import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.number_copies import copy_code, read_code
from roundtrip.config.networks import contracts_from
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import NumberSubstitution
from roundtrip.domain.check.verdict import judge
from roundtrip.venues.abi import keccak
from roundtrip_development.devnet.deploy import COINBASE as PRODUCER
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.dialects import DialectNode, Kind
from support.gathering import gather_evidence
from support.nitro_blocks import parent_number
from truth.dialect_table import KINDS, check_on, number_rows, read_table, speaking
from truth.number_tokens import NUMBER_TOKENS, Maker, hex40

WAITS = ("ok", "warn")
PROVEN = [name for name, token in NUMBER_TOKENS.items() if not token.hides]
HIDING = [name for name, token in NUMBER_TOKENS.items() if token.hides]


@pytest.mark.parametrize("name", PROVEN)
async def test_every_kind_of_node_says_the_same(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, name: str
) -> None:
    (row,) = [row async for row in number_rows(rpc, built, pool, [name])]
    assert row.said["geth"] == row.said["nitro"] == row.said["anvil"]
    assert row.cells() == read_table()[name]
    assert not row.unproven()


@pytest.mark.parametrize("name", HIDING)
async def test_what_hides_from_copies_is_unproven_and_why_is_told(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, name: str
) -> None:
    (row,) = [row async for row in number_rows(rpc, built, pool, [name])]
    assert (row.fault(), row.cells()) == ("", read_table()[name])
    assert all(NUMBER_TOKENS[name].hides in row.said[kind][2] for kind in ("geth", "nitro"))


@pytest.mark.parametrize("name", ["a wait behind a proxy", "a share behind a beacon"])
async def test_every_kind_of_node_says_the_same_of_owners(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, name: str
) -> None:
    token = NUMBER_TOKENS[name].put(rpc, built)
    came = {kind: (await check_on(kind, rpc, built, pool, token, deep=True))[1] for kind in KINDS}
    assert came["geth"] == came["nitro"] == came["anvil"]
    assert came["anvil"][0] == "ok"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_contract_that_is_asked_only_later_is_read(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    """The node's list does not have it: it is asked ten minutes after the purchase. It says no from 250
    numbers on."""
    maker = Maker(rpc, built, kind=kind)
    token = maker.token("asks_later", maker.contract("gate", maker.number() + 250))
    _, (code, level, text) = await check_on(kind, rpc, built, pool, token)
    assert (code, level) == ("cannot_sell", "danger")
    assert "but not after an hour or a day" in text


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_what_draws_by_block_hashes_is_unproven(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    token = Maker(rpc, built).token("draws_hash")
    _, (code, level, text) = await check_on(kind, rpc, built, pool, token)
    assert (code, level) == ("unproven", "unknown")
    assert "the token may read block hashes" in text


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


async def test_the_parent_chains_fee_is_no_difference(rpc: SyncRpc, built: Built, pool: asyncpg.Pool) -> None:
    token, node = built.tokens["blacklist_after_buy"], DialectNode(rpc.url, "nitro")
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
    evidence, _ = await check_on("nitro", rpc, built, pool, maker.proxy(logic))
    code = bytes.fromhex(rpc.call("eth_getCode", hex40(logic), "latest")[2:])
    number = parent_number(evidence.block.number)
    assert evidence.numbers == NumberSubstitution(
        "COINBASE", number, (Address(hex40(logic)),), ("0x" + keccak(code).hex(),), 2
    )


@pytest.mark.parametrize("name", ["a share behind a beacon", "a list from the next number on"])
async def test_a_node_without_lists_of_what_a_trade_reaches_proves_nothing(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, name: str
) -> None:
    token = NUMBER_TOKENS[name].put(rpc, built)
    evidence, (code, level, text) = await check_on("nitro", rpc, built, pool, token, lists=False)
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
