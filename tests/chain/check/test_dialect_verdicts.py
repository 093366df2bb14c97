"""A check, a simulation and a prepared trade give the same answers on every kind of node (anvil, geth,
nitro)."""

from typing import Any

import asyncpg
import pytest

from roundtrip.app.build import open_context
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.rpc.dialect import GETH, NITRO
from roundtrip.chain.rpc.dialect_probe import probe
from roundtrip.config.networks import contracts_from
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import NodeFault, RoundtripError
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import CompletedBuy
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.dialects import DialectNode, Kind
from support.fixtures import PROJECT, context_for
from support.gathering import gather_evidence
from support.nitro_blocks import parent_number
from support.signing import Signer, prepared
from support.simulated import simulated
from support.wallet import UnsignedStep, calldata
from truth.animals import ANIMALS, BY_MANNER, Animal
from truth.dialect_table import (
    KINDS,
    MAX_UNPROVEN,
    UNPROVEN,
    DialectRow,
    animal_rows,
    gas_rows,
    read_table,
    said_on_all,
    speaking,
    story_rows,
)
from truth.gas_tokens import GAS_TOKENS
from truth.number_tokens import NUMBER_TOKENS, Maker, code_of
from truth.simulated import buy_steps, money_for, spot_of

STORIES = {
    "plain": ("ok", "ok"),
    "owner_only_sell": ("cannot_sell", "danger"),
    "cooldown": ("ok", "warn"),
    "time_bomb": ("cannot_sell", "danger"),
    "v4_fee_on_sell": ("ok", "ok"),
    "curve": ("ok", "ok"),
    "graduated": ("ok", "ok"),
    "first_graduated": ("ok", "ok"),
    "loops_on_transfer": ("cannot_sell", "danger"),
}
LAUNCHED = ("curve", "graduated", "first_graduated")
SLOW = "loops_on_transfer"
"""It burns gas in every run, so only the check is tried with it."""


async def verdict_and_venues(ctx: Context, token: str) -> tuple[tuple[str, str, str], list[Venue]]:
    """Code, level and text; and where it was bought."""
    evidence = await gather_evidence(ctx, Address(token), Meter())
    verdict = judge(evidence, ctx.policy).verdict
    return (verdict.code, verdict.level, verdict.text), [v.venue for v in evidence.venues if v.cells]


async def ask_every_use_case(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> dict[str, tuple[Any, ...]]:
    """What every use case says of a token: the check, a simulated buy, and prepared trades of either side."""
    token = built.tokens[key]
    verdict, (venue, *_) = await verdict_and_venues(ctx, token)
    if key == SLOW:
        return {"check": verdict}
    wallet = Signer(rpc, built.contracts, f"dialects {key}")
    spot = spot_of(built, venue)
    steps = buy_steps(built, wallet, token, spot, money_for(rpc, built, wallet, spot))
    result = await simulated(ctx, wallet.address, *steps)
    found: dict[str, tuple[Any, ...]] = {
        "check": verdict,
        "simulate": (result.code, result.level, result.text, result.received(), result.gas()),
        "buy": await try_to_prepare(ctx, "buy", token, wallet.address, amount="0.1"),
    }
    if key not in LAUNCHED:
        owner = ContractDeployer(rpc, built.accounts[0])
        owner.receipt(owner.send(token, calldata("transfer(address,uint256)", wallet.address, 10**24)))
    found["sell"] = await try_to_prepare(ctx, "sell", token, wallet.address, amount="1000")
    return found


def without_gas(answers: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    return {name: values[:-1] if isinstance(values[-1], list) else values for name, values in answers.items()}


def gas_limits(answers: dict[str, tuple[Any, ...]]) -> list[int]:
    return [gas for values in answers.values() if isinstance(values[-1], list) for gas in values[-1]]


async def try_to_prepare(
    ctx: Context, side: str, token: str, sender: str, **given: object
) -> tuple[Any, ...]:
    try:
        trade = await prepared(ctx, side, token, sender, **given)
    except RoundtripError as error:
        return error.status, error.code, str(error)
    return trade.code, trade.text, trade.raw, [step["gas"] for step in trade.steps]


@pytest.mark.parametrize("key", STORIES)
async def test_every_use_case_says_what_it_says_on_anvil(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, key: str
) -> None:
    """None of these tokens depends on the block number (opcode NUMBER), but for a launchpad's own; for those
    that do, see test_number_passing."""
    by_kind = {}
    for kind, dialect in KINDS.items():
        snapshot = rpc.call("evm_snapshot")
        node = DialectNode(rpc.url, kind)
        async with node.running(), speaking(node, built, pool, dialect) as ctx:
            by_kind[kind] = await ask_every_use_case(ctx, rpc, built, key)
        assert rpc.call("evm_revert", snapshot)
    assert by_kind["geth"] == by_kind["anvil"]
    gas = {kind: gas_limits(rows) for kind, rows in by_kind.items()}
    assert all(nitro > anvil for nitro, anvil in zip(gas["nitro"], gas["anvil"], strict=True)), (
        "gas limits on nitro include the data fee"
    )
    assert without_gas(by_kind["nitro"]) == without_gas(by_kind["anvil"])
    assert by_kind["anvil"]["check"][:2] == STORIES[key]
    assert ("out of gas" in by_kind["anvil"]["check"][2]) is (key == SLOW)
    assert all(rows[0] != "unproven" for rows in by_kind["anvil"].values())


@pytest.mark.parametrize("source", ["owner_cooldown", "owner_harmless", "proxy"])
async def test_what_an_owner_could_change_is_the_same_on_every_node(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, source: str
) -> None:
    deployer, zoo = ContractDeployer(rpc, built.accounts[0]), PROJECT / "contracts" / "zoo"
    logic = deployer.create(compile_contract(zoo / "proxy_implementation.vy"))
    story = Animal(source, (int(logic, 16),) if source == "proxy" else ()).story()
    token = put_token(deployer, built.contracts, story, compile_contract(zoo / f"{source}.vy"))
    deployer.check_receipts()
    by_kind = {}
    for kind, dialect in KINDS.items():
        node = DialectNode(rpc.url, kind)
        async with node.running(), speaking(node, built, pool, dialect) as ctx:
            found = judge(await gather_evidence(ctx, Address(token), Meter(), deep=True), ctx.policy).verdict
            by_kind[kind] = (found.level, found.text.partition(" eth together). ")[2])
    assert by_kind["geth"] == by_kind["nitro"] == by_kind["anvil"]
    level, text = by_kind["anvil"]
    assert (level, text.startswith(OWNED[source])) == ("ok", True), text


OWNED = {
    "owner_cooldown": "Its owner can stop you from selling (function setCooldown(uint256)).",
    "owner_harmless": "We tried 5 functions of its owner: none stopped the sell.",
    "proxy": "Its proxy admin can stop you from selling (function upgradeTo(address)).",
}


@pytest.mark.parametrize("kind", KINDS)
async def test_the_dialect_is_found_out(rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind) -> None:
    node = DialectNode(rpc.url, kind)
    async with node.running(), context_for(node.url, built, pool) as ctx:
        await ctx.heads.refresh()
        head = ctx.heads.current()
        found = await probe(ctx.node, head.block, head.base_fee_wei)
    assert found.dialect.name == kind
    inside = parent_number(head.block.number) if kind == "nitro" else head.block.number + 4
    assert (found.number_inside, found.fills_gaps) == (inside, kind != "anvil")


# --- tokens that depend on the block number --------------------------------------------------------


WRITE = "write the page anew with: make long NAME=dialects FLAGS=--write"


def assert_as_written(rows: list[DialectRow]) -> None:
    """No row has a fault, and the page has the same verdicts, except for tokens that refuse some wallets
    only: which ones is chance, so their verdict may differ from the page, but not between kinds of node."""
    assert {row.name: row.fault() for row in rows if row.fault()} == {}
    table, by_chance = read_table(), {animal.named() for animal in BY_MANNER}
    differing = {row.name for row in rows if row.cells() != table[row.name]}
    assert differing <= by_chance, WRITE


async def test_every_story_has_the_same_verdict_on_every_kind_of_node(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool
) -> None:
    assert_as_written([row async for row in story_rows(rpc, built, pool)])


@pytest.mark.parametrize("part", range(4))
async def test_every_animal_has_the_same_verdict_on_every_kind_of_node(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, part: int
) -> None:
    assert_as_written([row async for row in animal_rows(rpc, built, pool, slice(part, None, 4))])


async def test_a_token_with_dear_transfers_has_the_same_verdict_on_every_kind_of_node(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool
) -> None:
    """Its trades need more gas than geth and nitro give to one request."""
    assert_as_written([row async for row in gas_rows(rpc, built, pool)])


def test_the_page_has_every_token_and_few_of_them_are_unproven(built: Built) -> None:
    animals = {animal.named() for animal in (*ANIMALS, *BY_MANNER)}
    table = read_table()
    assert table.keys() == {*built.tokens, *animals, *NUMBER_TOKENS, *GAS_TOKENS}, WRITE
    hiding = {name for name, token in NUMBER_TOKENS.items() if token.hides}
    unproven = {name for name, cells in table.items() if "unproven/unknown" in cells}
    assert unproven == hiding | UNPROVEN
    assert len(UNPROVEN) <= MAX_UNPROVEN * (len(table) - len(hiding))


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("key", ["blacklist_after_buy", "plain"])
async def test_a_trade_of_what_counts_blocks_is_refused_where_they_stand_still(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, key: str, lists: bool
) -> None:
    node = DialectNode(rpc.url, "nitro")
    node.lists_with_overrides = lists
    wallet = Signer(rpc, built.contracts, "counts")
    async with node.running(), speaking(node, built, pool, NITRO) as ctx:
        trade = await prepared(ctx, "buy", built.tokens[key], wallet.address, amount="0.1")
    refused = ("cannot_sell" if lists else "unproven", False)
    assert (trade.code, bool(trade.steps)) == (("ok", True) if key == "plain" else refused)


@pytest.mark.parametrize("kind", ["geth", "nitro"])
@pytest.mark.parametrize("first", ["plain", "blacklist_after_buy"])
async def test_of_two_tokens_each_is_judged_by_its_own_code(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind, first: str
) -> None:
    """A harmless one before it hid what counts blocks."""
    node = DialectNode(rpc.url, kind)
    keys = sorted(("plain", "blacklist_after_buy"), key=lambda key: key != first)
    async with node.running(), speaking(node, built, pool, KINDS[kind]) as ctx:
        wallet, steps = Signer(rpc, built.contracts, "two tokens"), []
        for key in keys:
            evidence = await gather_evidence(ctx, Address(built.tokens[key]), Meter())
            venue = next(
                v.venue for v in evidence.venues if any(isinstance(b.outcome, CompletedBuy) for b in v.buys)
            )
            spot = spot_of(built, venue)
            steps += buy_steps(built, wallet, built.tokens[key], spot, money_for(rpc, built, wallet, spot))
        found = await simulated(ctx, wallet.address, *steps, fund=True)
    assert (found.code, found.level) == ("cannot_sell", "danger")


async def test_of_a_node_that_cannot_be_probed_nothing_is_served(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool
) -> None:
    node = DialectNode(rpc.url, "nitro")
    node.refuses = lambda nth: nth == 0
    async with node.running(), context_for(node.url, built, pool, dialect=None) as ctx:
        await ctx.heads.refresh()
        with pytest.raises(NodeFault, match="The node refused to simulate"):
            await gather_evidence(ctx, Address(built.tokens["plain"]), Meter())
        assert node.simulations == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_the_service_speaks_as_its_node_does(
    rpc: SyncRpc, built: Built, database_url: str, kind: Kind
) -> None:
    node = DialectNode(rpc.url, kind)
    contracts = contracts_from(built.contracts)
    async with node.running(), open_context(Settings(), node.url, contracts, database_url) as ctx:
        assert ctx.heads.current().known_dialect().name == kind
        evidence = await gather_evidence(ctx, Address(built.tokens["plain"]), Meter())
    assert judge(evidence, ctx.policy).verdict.code == "ok"
    assert {env.tip_wei > 0 for env in evidence.environments} == (
        {False} if kind == "nitro" else {True, False}
    )


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        (10, ("ok", "warn")),
        (300, ("ok", "warn")),
        (5000, ("ok", "warn")),
        (20_000, ("cannot_sell", "danger")),
    ],
)
async def test_a_wait_in_numbers_is_seen_to_end_or_not_within_a_day(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, numbers: int, says: tuple[str, str]
) -> None:
    token = Maker(rpc, built).token("waits", numbers, code=code_of("zoo/cooldown_blocks"))
    by_kind = await said_on_all(rpc, built, pool, token)
    assert {kind: rows[:2] for kind, rows in by_kind.items()} == dict.fromkeys(KINDS, says)


# --- requests that are refused as a whole ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["geth", "nitro"])
@pytest.mark.parametrize("key", ["plain", "owner_only_sell", "curve"])
async def test_no_simulation_is_run_and_nothing_is_proven(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind, key: str
) -> None:
    node = DialectNode(rpc.url, kind)
    wallet = Signer(rpc, built.contracts, "refused")
    async with node.running(), speaking(node, built, pool, KINDS[kind]) as ctx:
        node.refuses = lambda _: True
        evidence = await gather_evidence(ctx, Address(built.tokens[key]), Meter())
        found = judge(evidence, ctx.policy)
        assert (found.verdict.code, found.verdict.level) == ("unproven", "unknown")
        assert found.missing is not None
        assert found.missing.fault == "node"
        result = await simulated(ctx, wallet.address, UnsignedStep(built.tokens[key], "0x18160ddd"))
        assert (result.code, result.level) == ("unproven", "unknown")
        with pytest.raises(NodeFault):
            await prepared(ctx, "buy", built.tokens[key], wallet.address, amount="0.1")


@pytest.mark.parametrize(("key", "from_then_on"), [("plain", True), ("owner_only_sell", False)])
async def test_one_simulation_is_not_run_or_all_from_it_on(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, key: str, from_then_on: bool
) -> None:
    """Unproven, or what it is: never another code, whichever simulation it is."""
    node, codes = DialectNode(rpc.url, "geth"), []
    async with node.running(), speaking(node, built, pool, GETH) as ctx:
        await verdict_and_venues(ctx, built.tokens[key])
        total = node.simulations
        for n in range(total):
            await ctx.heads.refresh()
            node.simulations = 0
            node.refuses = lambda nth, n=n: nth >= n if from_then_on else nth == n  # type: ignore[misc]
            evidence = await gather_evidence(ctx, Address(built.tokens[key]), Meter())
            codes.append(judge(evidence, ctx.policy).verdict.code)
    assert total >= 6
    assert codes.count("unproven") >= (3 * total // 4 if from_then_on else 3)
    assert set(codes) <= {STORIES[key][0], "unproven"}
