"""Proofs of real checks, fetched over HTTP and verified by the command line against the same chain, later."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from typer.testing import CliRunner, Result

from chain.check.test_account_rights import HIDDEN, put_controller
from chain.check.test_account_rights import put as put_with_rights
from chain.check.test_pieces import put as put_capped
from roundtrip.cli.main import app
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.policy import POLICY
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, DevnetFolders
from support.dialects import DialectNode, Kind
from support.faulty_node import FaultyNode
from support.fixtures import context_for
from support.serving import service
from support.wallet import Wallet

TEN = {
    "plain": "ok",
    "blacklist_after_buy": "cannot_sell",
    "paused": "cannot_buy",
    "usdg_pool": "ok",
    "both_versions": "ok",
    "no_pool": "no_pool",
    "hook_takes_tenth": "toll_pool",
    "curve_taxed": "high_fees",
    "curve_other": "ok",
    "graduated_other": "ok",
}
"""Stories and their verdicts: every venue, every money, one trip, two, and those with rates of their own."""

Json = dict[str, Any]


@pytest.fixture
def network_file(built: Built, tmp_path: Path) -> Path:
    path = tmp_path / "devnet.json"
    path.write_text(json.dumps(world.describe(built, "http://127.0.0.1:1")))
    return path


async def fetched(ctx: Context, tokens: list[str], query: str = "") -> list[Json]:
    """The proofs of checks made now."""
    async with service(ctx) as base_url, aiohttp.ClientSession() as session:
        found = []
        for token in tokens:
            async with session.get(f"{base_url}/v1/check/{token}{query}") as response:
                assert response.status == 200, await response.text()
            async with session.get(f"{base_url}/v1/check/{token}/proof") as response:
                assert response.status == 200, await response.text()
                found.append(await response.json())
    return found


async def at_a_new_block(ctx: Context, rpc: SyncRpc) -> None:
    """The state of the block that all tests begin with is let go by the local node after a thousand more."""
    rpc.call("evm_mine")
    await ctx.heads.refresh()


async def verified(proof: Json | bytes, folder: Path, network: Path, url: str | None) -> Result:
    """What ``roundtrip verify`` does with it."""
    file = folder / "proof.json"
    file.write_bytes(proof if isinstance(proof, bytes) else json.dumps(proof).encode())
    asked = ["verify", str(file), "--network", str(network), *(["--rpc", url] if url else [])]
    result = await asyncio.to_thread(CliRunner().invoke, app, asked, env={"COLUMNS": "400"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


async def test_ten_proofs_reproduce_at_a_later_block(
    ctx: Context, rpc: SyncRpc, built: Built, tmp_path: Path, network_file: Path
) -> None:
    await at_a_new_block(ctx, rpc)
    proofs = await fetched(ctx, [built.tokens[key] for key in TEN])
    for _ in range(5):
        rpc.call("evm_mine")
    for (key, code), proof in zip(TEN.items(), proofs, strict=True):
        assert (key, proof["verdict"]["code"]) == (key, code)
        result = await verified(proof, tmp_path, network_file, rpc.url)
        assert result.exit_code == 0, (key, result.output)
        assert result.output.count("yes") == 3


@pytest.mark.parametrize("key", ["first_graduated", "first_fresh", "detect_simulation", "fee_on_buy"])
async def test_so_do_other_launchpads_and_deep_ones(
    ctx: Context, rpc: SyncRpc, built: Built, tmp_path: Path, network_file: Path, key: str
) -> None:
    """What is asked of owners stands in the proof as what is asked of wallets does."""
    token = built.tokens[key]
    await at_a_new_block(ctx, rpc)
    (proof,) = await fetched(ctx, [token], "?deep=1")
    assert proof["begun"]["deep"] is True
    asked_owner = proof["evidence"]["owner_calls"] is not None
    assert asked_owner is (key == "fee_on_buy")
    rpc.call("evm_mine")
    result = await verified(proof, tmp_path, network_file, rpc.url)
    assert (result.exit_code, result.output.count("yes")) == (0, 3), result.output
    plain = await verified(changed(proof, "begun.deep", False), tmp_path, network_file, rpc.url)
    assert (plain.exit_code, "the file differs" in plain.output) == (1, True), plain.output


@pytest.mark.parametrize("source", ["ward", "controlled"])
async def test_so_does_one_that_tried_other_accounts_than_the_owner(
    ctx: Context, rpc: SyncRpc, built: Built, tmp_path: Path, network_file: Path, source: str
) -> None:
    """With events that came later, which must not change it."""
    hidden = HIDDEN if source == "ward" else int(put_controller(rpc)[0], 16)
    token = put_with_rights(rpc, built, f"rights/{source}", hidden)
    await at_a_new_block(ctx, rpc)
    (proof,) = await fetched(ctx, [token], "?deep=1")
    assert "can stop you from selling" in proof["verdict"]["text"]
    # What calls another contract may read block numbers, and buys once more with passing ones.
    assert len(proof["trips"]) == {"ward": 6, "controlled": 7}[source]
    wallet = Wallet(rpc, built.contracts, f"later {token}")
    assert wallet.buy(token, "weth", 3000, 10**17, 3)
    result = await verified(proof, tmp_path, network_file, rpc.url)
    assert (result.exit_code, result.output.count("yes")) == (0, 3), result.output
    lie = changed(proof, "evidence.account_rights.tried", [])
    result = await verified(lie, tmp_path, network_file, rpc.url)
    assert (result.exit_code, "account_rights.tried is" in result.output) == (1, True), result.output


@pytest.mark.parametrize("query", ["", "?deep=1"])
async def test_so_does_one_with_ten_sales(
    ctx: Context, rpc: SyncRpc, built: Built, tmp_path: Path, network_file: Path, query: str
) -> None:
    token = put_capped(rpc, built, 100)
    await at_a_new_block(ctx, rpc)
    (proof,) = await fetched(ctx, [token], query)
    (pool,) = (venue for venue in proof["evidence"]["venues"] if venue["cells"])
    assert "pieces" in {cell["probe"]["seller"] for cell in pool["cells"]}
    assert (proof["verdict"]["code"], proof["verdict"]["level"]) == ("ok", "warn")
    rpc.call("evm_mine")
    result = await verified(proof, tmp_path, network_file, rpc.url)
    assert (result.exit_code, result.output.count("yes")) == (0, 3), result.output


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_proofs_of_other_nodes_reproduce_there(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, tmp_path: Path, network_file: Path, kind: Kind
) -> None:
    node = DialectNode(rpc.url, kind)
    async with node.running(), context_for(node.url, built, pool, dialect=None) as ctx:
        await ctx.heads.refresh()
        for key, code in (("plain", "ok"), ("blacklist_after_buy", "cannot_sell"), ("graduated_other", "ok")):
            (proof,) = await fetched(ctx, [built.tokens[key]])
            assert (proof["dialect"], proof["verdict"]["code"]) == (kind, code)
            result = await verified(proof, tmp_path, network_file, node.url)
            assert (result.exit_code, result.output.count("yes")) == (0, 3), result.output


async def test_a_proof_has_the_copies_that_let_block_numbers_pass_and_their_control(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, tmp_path: Path, network_file: Path
) -> None:
    node = DialectNode(rpc.url, "nitro")
    async with node.running(), context_for(node.url, built, pool, dialect=None) as ctx:
        await ctx.heads.refresh()
        (proof,) = await fetched(ctx, [built.tokens["blacklist_after_buy"]])
        numbers = proof["evidence"]["numbers"]
        assert (numbers["instruction"], numbers["controls"]) == ("COINBASE", 2)
        lie = changed(proof, "evidence.numbers.controls", 4)
        result = await verified(lie, tmp_path, network_file, node.url)
        assert (result.exit_code, "numbers.controls is" in result.output) == (1, True), result.output


async def test_evidence_and_proof_are_kept_together_or_not_at_all(ctx: Context, built: Built) -> None:
    token = built.tokens["plain"]
    counting = "SELECT count(*) FROM facts.evidence"
    before = await ctx.pool.fetchval(counting)
    await ctx.pool.execute("ALTER TABLE facts.proof ADD CONSTRAINT closed CHECK (false) NOT VALID")
    try:
        with pytest.raises(ServiceFull):
            await check(ctx, CheckParams(token))
    finally:
        await ctx.pool.execute("ALTER TABLE facts.proof DROP CONSTRAINT closed")
    assert await ctx.pool.fetchval(counting) == before
    await check(ctx, CheckParams(token))
    assert await ctx.pool.fetchval(counting) == before + 1


# --- proofs that are not true -----------------------------------------------------------------------


def changed(proof: Json, path: str, value: Any) -> Json:
    """The proof with another value at a path of keys; a callable is given what was there."""
    found: Json = json.loads(json.dumps(proof))
    at: Any = found
    *way, last = (int(key) if key.isdigit() else key for key in path.split("."))
    for key in way:
        at = at[key]
    at[last] = value(at[last]) if callable(value) else value
    return found


def everywhere(old: str, new: str) -> Callable[[Json], Json]:
    """A liar who is consistent."""
    return lambda proof: json.loads(json.dumps(proof).replace(old, new))


OTHER_HASH = "0x" + "ab" * 32
LIES: dict[str, tuple[Callable[[Json], Json], str, str]] = {
    "the verdict's text": (lambda p: changed(p, "verdict.text", "Buy it."), "NO yes yes", "Buy it."),
    "what a sell brought": (
        lambda p: changed(p, "evidence.venues.0.cells.0.outcome.back_raw", lambda wei: str(int(wei) + 1)),
        "yes yes NO",
        "venues[0].cells[0].outcome.back_raw is",
    ),
    "a cell that was not asked": (
        lambda p: changed(p, "evidence.venues.0.cells", lambda cells: cells[:-1]),
        "? yes NO",
        "venues[0].cells is a list of",
    ),
    "a fact": (lambda p: changed(p, "evidence.facts.decimals", 9), "yes yes NO", "facts.decimals is 9"),
    "a request's data": (
        lambda p: changed(p, "trips.1.0.3.params.0.blockStateCalls.0.calls.0.input", "0x00"),
        "yes NO yes",
        "round 2, batch 1, call 4 (eth_simulateV1) differs at .params[0].blockStateCalls[0].calls[0].input",
    ),
    "a request that sends": (
        lambda p: changed(p, "trips.0.0.1.method", "eth_sendRawTransaction"),
        "yes NO unknown",
        "the requests include eth_sendRawTransaction",
    ),
    "a trip that was left away": (
        lambda p: changed(p, "trips", lambda trips: trips[:1]), "yes NO yes", "round 2 is missing",
    ),
    "the block's hash": (
        lambda p: changed(p, "block.hash", OTHER_HASH), "NO yes yes", "block.hash is 0xabab",
    ),
    "the block's hash in the evidence": (
        lambda p: changed(changed(p, "block.hash", OTHER_HASH), "evidence.block.hash", OTHER_HASH),
        "yes unknown NO",
        "on the chain and 0xabab",
    ),
    "the base fee": (
        lambda p: everywhere('"block_base_fee_wei": 7', '"block_base_fee_wei": 8')(p),
        "yes NO unknown",
        "not drawn from the seed",
    ),
    "the wallets": (
        lambda p: changed(p, "evidence.environments.0.buyer", "0x" + "77" * 20),
        "yes NO unknown",
        "not drawn from the seed",
    ),
    "the seed": (lambda p: changed(p, "begun.seed", "0x" + "77" * 32), "yes NO unknown", "not drawn"),
    "a router": (
        lambda p: everywhere(p["contracts"]["swapRouter02"], "0x" + "99" * 20)(p),
        "yes NO unknown",
        "swapRouter02 is 0x9999",
    ),
    "a pool that was left away": (
        lambda p: changed(p, "begun.venues", lambda venues: venues[1:]),
        "yes NO NO",
        "round 1, batch 1, call 2",
    ),
    "pools that there are": (
        lambda p: changed(p, "evidence.pools_found", 900),
        "yes yes NO",
        "pools_found is 900 in the file and 2",
    ),
    "what an eth is worth": (
        lambda p: changed(p, "evidence.market.usdg_per_eth_raw", lambda usdg: usdg * 2),
        "yes unknown NO",
        "an eth is worth",
    ),
    "the pool that usdg is bought in": (
        lambda p: changed(p, "evidence.market.pool_fee_pips", lambda fee: 100 if fee != 100 else 500),
        "yes unknown unknown",
        "usdg was bought in another pool",
    ),
    "the block's time": (
        lambda p: changed(
            changed(p, "block.time", "2025-10-18T09:00:32Z"), "evidence.block.timestamp_s", 1_760_778_032
        ),
        "yes unknown NO",
        "the block's time is 1760778032 in the file and ",
    ),
    "the block's number": (
        lambda p: changed(changed(p, "block.number", 1278), "evidence.block.number", 1278),
        "yes unknown NO",
        "the block's number is 1278 in the file",
    ),
    "the miner": (
        lambda p: everywhere(p["evidence"]["environments"][0]["coinbase"], "0x" + "77" * 20)(p),
        "yes unknown NO",
        "the block's miner is 0x7777",
    ),
    "how the node counts": (
        lambda p: changed(p, "dialect", "geth"), "yes unknown unknown", "of kind anvil",
    ),
    "the token": (
        lambda p: everywhere(p["address"], "0x" + "99" * 20)(p), "yes NO unknown", "of this token",
    ),
}  # fmt: skip
"""What is changed, what holds then ("?": either), and what is said of it."""


@pytest.fixture
async def sound(ctx: Context, rpc: SyncRpc, built: Built) -> Json:
    """A proof of a token with two venues."""
    await at_a_new_block(ctx, rpc)
    (proof,) = await fetched(ctx, [built.tokens["both_versions"]])
    return proof


@pytest.mark.parametrize("name", LIES)
async def test_a_lie_is_found_out_and_where(
    sound: Json, rpc: SyncRpc, tmp_path: Path, network_file: Path, name: str
) -> None:
    lie, holds, answer = LIES[name]
    result = await verified(lie(sound), tmp_path, network_file, rpc.url)
    rows = [line.split("│") for line in result.output.splitlines() if "│" in line]
    for (_, what, found, *_), expected in zip(rows, holds.split(), strict=True):
        assert expected in ("?", found.strip()), (what, result.output)
    assert answer in result.output, result.output
    assert result.exit_code == (1 if "NO" in holds else 2)


async def test_without_a_node_the_verdict_alone_is_known(
    sound: Json, rpc: SyncRpc, tmp_path: Path, network_file: Path
) -> None:
    result = await verified(sound, tmp_path, network_file, None)
    assert result.exit_code == 2
    assert result.output.count("name a node with --rpc") == 2


@pytest.mark.parametrize("file", [b"", b"{}", b"[" * 100_000, b'{"error":{"code":"busy"}}'])
async def test_what_is_no_proof_is_one_line(
    rpc: SyncRpc, tmp_path: Path, network_file: Path, file: bytes
) -> None:
    result = await verified(file, tmp_path, network_file, rpc.url)
    assert result.exit_code == 2
    assert result.output.startswith("roundtrip: The file ")
    assert result.output.count("\n") == 1


async def test_an_error_that_was_saved_is_told_as_that(tmp_path: Path, network_file: Path) -> None:
    text = {"error": {"code": "rate_limited", "message": "Too many calls; wait 20 s.\x1b[1m"}}
    result = await verified(json.dumps(text).encode(), tmp_path, network_file, None)
    assert result.exit_code == 2
    answer = "The file holds an error answer, not a proof: rate_limited, Too many calls; wait 20 s.[1m"
    assert result.output == f"roundtrip: {answer}\n"


# --- other nodes ------------------------------------------------------------------------------------


async def test_a_node_that_lost_the_state_cannot_tell(
    ctx: Context, built: Built, places: DevnetFolders, tmp_path: Path, network_file: Path
) -> None:
    options = NodeOptions(state=built.state, prune_history=20)
    with world.start_world(places, built, options) as node:
        with SyncRpc(node.url) as chain:
            for _ in range(5):
                chain.call("evm_mine")
        async with context_for(node.url, built, ctx.pool) as own:
            await own.heads.refresh()
            (proof,) = await fetched(own, [built.tokens["two_pools"]])
        result = await verified(proof, tmp_path, network_file, node.url)
        assert result.exit_code == 0, result.output
        with SyncRpc(node.url) as chain:
            for _ in range(300):
                chain.call("evm_mine")
        result = await verified(proof, tmp_path, network_file, node.url)
        assert result.exit_code == 2
        assert result.output.count("no longer has the state of block") == 2
    with world.start_world(places, built, NodeOptions(state=built.state)) as again:
        result = await verified(proof, tmp_path, network_file, again.url)
    assert result.exit_code == 2
    assert result.output.count("does not know block") == 2
    result = await verified(proof, tmp_path, network_file, again.url)
    assert result.exit_code == 2
    assert "the connection to the node failed" in result.output


async def faulted(sound: Json, rpc: SyncRpc, folder: Path, network: Path, fault: str, after: int) -> Result:
    async with FaultyNode(rpc.url).running() as node:
        node.fault, node.after = fault, after
        return await verified(sound, folder, network, node.url)


async def test_a_node_of_another_chain_is_said_first(
    sound: Json, rpc: SyncRpc, tmp_path: Path, network_file: Path
) -> None:
    result = await faulted(sound, rpc, tmp_path, network_file, "wrong chain id", 0)
    assert result.exit_code == 2
    assert "your node is on chain 1, and the proof is for chain 4663" in result.output


@pytest.mark.parametrize("after", [0, 1, 4, 6])
@pytest.mark.parametrize("fault", ["no eth_simulateV1", "all null", "status 500", "nonsense", "cut off"])
async def test_a_node_that_does_not_answer_disproves_nothing(
    sound: Json, rpc: SyncRpc, tmp_path: Path, network_file: Path, fault: str, after: int
) -> None:
    result = await faulted(sound, rpc, tmp_path, network_file, fault, after)
    assert result.exit_code == 2, result.output
    assert "NO" not in result.output


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "ftp://127.0.0.1", "http://"])
async def test_an_address_without_a_node_is_one_line(
    sound: Json, tmp_path: Path, network_file: Path, url: str
) -> None:
    result = await verified(sound, tmp_path, network_file, url)
    assert result.exit_code == 2
    assert result.output.count("cannot be verified here") == 2


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{}", '{"contracts": {"weth": "0x1"}, "rpcUrl": ""}', "[" * 9000]
)
async def test_a_network_that_cannot_be_read_is_one_line(
    sound: Json, tmp_path: Path, text: str | None
) -> None:
    network = tmp_path / "network.json"
    if text is not None:
        network.write_text(text)
    result = await verified(sound, tmp_path, network, None)
    assert result.exit_code == 2
    assert result.output.startswith("roundtrip: ")
    assert result.output.count("\n") == 1


async def test_a_node_that_counts_otherwise_is_no_place_to_verify(
    sound: Json, rpc: SyncRpc, tmp_path: Path, network_file: Path
) -> None:
    async with DialectNode(rpc.url, "geth").running() as node:
        result = await verified(sound, tmp_path, network_file, node.url)
    assert result.exit_code == 2
    assert "your node is of kind geth, and the check was made on one of kind anvil" in result.output


# --- what an index told -----------------------------------------------------------------------------

OWNED = "begun.indexed.holders"
STRANGER = "0x" + "ab" * 20


async def test_a_check_over_an_index_reproduces_without_one(
    indexed: Context, rpc: SyncRpc, built: Built, tmp_path: Path, network_file: Path
) -> None:
    """Holders and deployer are given; what the holders have and sell for is the chain's."""
    await at_a_new_block(indexed, rpc)
    tokens = [built.tokens[key] for key in ("graduated", "curve_usdg", "first_graduated")]
    for proof in await fetched(indexed, tokens, "?deep=1"):
        assert proof["begun"]["indexed"]["holders"]
        assert proof["evidence"]["holder_sells"]["tried"]
        rpc.call("evm_mine")
        result = await verified(proof, tmp_path, network_file, rpc.url)
        assert (result.exit_code, result.output.count("yes")) == (0, 3), result.output


INDEX_LIES: dict[str, tuple[Callable[[Json], Json], str, str]] = {
    "a holder left away": (lambda p: changed(p, OWNED, lambda own: own[1:]), "yes NO NO", "check sends 4"),
    "somebody who holds nothing": (
        lambda p: changed(p, f"{OWNED}.0", STRANGER), "yes NO NO", "differs at .params",
    ),
    "another who holds": (
        lambda p: changed(p, OWNED, lambda own: [own[1], own[0], *own[2:]]),
        "yes NO NO",
        "differs at .params",
    ),
    "a holder twice": (
        lambda p: changed(p, OWNED, lambda own: [*own, own[0]]), "yes NO unknown", "one of them twice",
    ),
    "too many": (
        lambda p: changed(p, OWNED, [f"0x{n:040x}" for n in range(100, 101 + POLICY.drawn_holders)]),
        "yes NO unknown",
        "more holders than a check does",
    ),
    "the router": (
        lambda p: changed(p, f"{OWNED}.0", p["contracts"]["swapRouter02"]),
        "yes NO unknown",
        "cannot be a holder of the token",
    ),
    "no address": (
        lambda p: changed(p, f"{OWNED}.0", "0xAB"), "yes NO unknown", "no check can start from these inputs",
    ),
    "what a holder got": (
        lambda p: changed(p, "evidence.holder_sells.tried.0.outcome.back_raw", lambda wei: str(int(wei) + 1)),
        "yes yes NO",
        "holder_sells.tried[0].outcome.back_raw is",
    ),
    "a holder who was not sold as": (
        lambda p: changed(p, "evidence.holder_sells.tried", lambda tried: tried[:-1]),
        "NO yes NO",
        "a list of",
    ),
    "that no holder was asked": (
        lambda p: changed(p, "evidence.holder_sells", None), "NO yes NO", "holder_sells is",
    ),
    "what the deployer did": (
        lambda p: changed(p, "evidence.deployer.launches", 99), "yes yes NO", "deployer.launches is 99",
    ),
    "who launched it": (
        lambda p: changed(p, "begun.indexed.deployer", STRANGER), "yes yes NO", "deployer is",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEX_LIES)
async def test_a_lie_about_what_an_index_told_is_found_out(
    indexed: Context, rpc: SyncRpc, built: Built, tmp_path: Path, network_file: Path, name: str
) -> None:
    lie, holds, answer = INDEX_LIES[name]
    await at_a_new_block(indexed, rpc)
    (sound,) = await fetched(indexed, [built.tokens["graduated"]], "?deep=1")
    result = await verified(lie(sound), tmp_path, network_file, rpc.url)
    rows = [line.split("│") for line in result.output.splitlines() if "│" in line]
    assert [row[2].strip() for row in rows if row[2].strip()] == holds.split(), result.output
    assert answer in result.output, result.output
    assert result.exit_code == 1
