"""Checks on a real geth that has the local chain's state: they answer as on the local chain."""

from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp
import pytest

from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, DevnetFolders
from support.real_geth import BINARY, MISSING, GethNode, RealGeth, running_geth
from truth.gas_tokens import GAS_TOKENS
from truth.geth_table import geth_rows

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason=MISSING)

STORIES = {
    "both_versions": "ok",
    "v4_usdg": "ok",
    "curve": "ok",
    "graduated_other": "ok",
    "blacklist_after_buy": "cannot_sell",
    "detect_simulation": "cannot_sell",
    "loops_on_transfer": "cannot_sell",
    "megabyte_revert": "cannot_sell",
}
"""One or two of every kind of venue, and traps that nodes could report in different ways."""
SEEDS = range(3)


@dataclass(frozen=True)
class BothNodes:
    """The local chain and geth. ``heavy``: tokens of ``GAS_TOKENS`` on both."""

    rpc: SyncRpc
    geth: RealGeth
    heavy: dict[str, str]


@pytest.fixture(scope="module")
def both(places: DevnetFolders, built: Built) -> Iterator[BothNodes]:
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as rpc:
        heavy = {name: token.put(rpc, built) for name, token in GAS_TOKENS.items()}
        with running_geth(rpc) as geth:
            yield BothNodes(rpc, geth, heavy)


@pytest.mark.parametrize("key", STORIES)
async def test_every_field_of_the_answer_is_the_local_chains(both: BothNodes, built: Built, key: str) -> None:
    (row,) = [row async for row in geth_rows(both.rpc, both.geth, built, {key: built.tokens[key]})]
    assert row.differing() == {}
    assert row.geth.answer["verdict"]["code"] == STORIES[key]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", GAS_TOKENS)
async def test_an_honest_token_with_dear_transfers_is_ok(
    both: BothNodes, built: Built, name: str, seed: int
) -> None:
    """Its trades need more gas than a node gives to one request. Which wallets trade in it is drawn."""
    (row,) = [row async for row in geth_rows(both.rpc, both.geth, built, {name: both.heavy[name]}, seed)]
    assert row.differing() == {}
    assert (row.geth.answer["verdict"]["code"], row.geth.answer["verdict"]["level"]) == ("ok", "ok")


async def test_logs_are_the_local_chains_and_the_head_is_geths(both: BothNodes, built: Built) -> None:
    """The proxy's: also in one batch, and by the hash of the newest block."""
    transfers = {"fromBlock": "0x0", "toBlock": "latest", "address": built.tokens["plain"]}
    at_head = {"blockHash": both.geth.head}
    calls: list[tuple[str, list[object]]] = [
        ("eth_getLogs", [transfers]),
        ("eth_chainId", []),
        ("eth_getLogs", [at_head]),
    ]
    calls += [("eth_getBlockByNumber", [number, False]) for number in ("latest", "0x7")]
    batch = [
        {"jsonrpc": "2.0", "id": n, "method": method, "params": params}
        for n, (method, params) in enumerate(calls)
    ]
    async with (
        GethNode(both.geth, both.rpc.url).running() as proxy,
        aiohttp.ClientSession() as session,
        session.post(proxy.url, json=batch) as response,
    ):
        logs, chain_id, none, head, older = [answer["result"] for answer in await response.json()]
    assert logs == both.rpc.call("eth_getLogs", transfers)
    assert len(logs) > 1
    assert (chain_id, none) == ("0x1237", [])
    assert (head["hash"], older) == (both.geth.head, both.rpc.call("eth_getBlockByNumber", "0x7", False))
