"""A wallet's origin on a real node with an archive, and on one that lets old states go."""

from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp
import pytest

from roundtrip.chain.holders.origins import NothingReached, find_origin
from roundtrip.chain.rpc.client import Node, RpcNode
from roundtrip.chain.rpc.endpoints import NodeUrl
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.config.networks import CHAIN_ID
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions, find_anvil, running
from roundtrip_development.devnet.sync_rpc import SyncRpc

WALLET, NOBODY = Address("0x" + "c0" * 20), Address("0x" + "de" * 20)
FUNDED, MADE, BLOCKS, KEPT = 61, 70, 120, 30
_MAKES_A_STOP = "0x6001600c60003960016000f300"
"""Leaves a contract whose code is one byte."""


@dataclass(frozen=True, slots=True)
class FundingChain:
    """A node's chain in which ``funder`` funds ``WALLET`` in block ``FUNDED``, and again later."""

    url: str
    funder: Address
    contract: Address
    refs: list[BlockRef]


@pytest.fixture(scope="module")
def archive(places: world.DevnetFolders) -> Iterator[FundingChain]:
    with running(
        find_anvil(places.project), NodeOptions(prune_history=600, timestamp_s=1_700_000_000)
    ) as node:
        yield followed(node.url)


@pytest.fixture(scope="module")
def pruned(places: world.DevnetFolders) -> Iterator[FundingChain]:
    with running(
        find_anvil(places.project), NodeOptions(prune_history=KEPT, timestamp_s=1_800_000_000)
    ) as node:
        yield followed(node.url)


def followed(url: str) -> FundingChain:
    """Blocks of one transaction each."""
    with SyncRpc(url) as rpc:
        busy, funder = (Address(one.lower()) for one in rpc.call("eth_accounts")[:2])
        deeds = [{"from": busy, "to": busy, "value": "0x1"} for _ in range(BLOCKS)]
        deeds[FUNDED - 21] = {"from": busy, "to": WALLET, "value": "0x0"}
        deeds[FUNDED - 1] = {"from": funder, "to": WALLET, "value": "0x5"}
        deeds[FUNDED + 30] = {"from": busy, "to": WALLET, "value": "0x5"}
        deeds[MADE - 1] = {"from": busy, "data": _MAKES_A_STOP}
        # Mined by itself, two that come quickly may stand in one block.
        rpc.call("evm_setAutomine", False)
        sent = []
        for deed in deeds:
            sent.append(rpc.call("eth_sendTransaction", deed))
            rpc.call("evm_mine")
        contract = rpc.call("eth_getTransactionReceipt", sent[MADE - 1])["contractAddress"]
        blocks = [rpc.call("eth_getBlockByNumber", hex(number), False) for number in range(BLOCKS + 1)]
    refs = [BlockRef(int(b["number"], 16), b["hash"], int(b["timestamp"], 16)) for b in blocks]
    return FundingChain(url, funder, Address(contract.lower()), refs)


def nodes(session: aiohttp.ClientSession, *urls: str) -> list[RpcNode]:
    """One of them alone, and all as one."""
    return [Node(urls[0], session), NodePool([NodeUrl(url) for url in urls], session, CHAIN_ID)]


async def test_the_block_that_funded_it_is_found(archive: FundingChain) -> None:
    high = archive.refs[-1]
    async with aiohttp.ClientSession() as session:
        for node in nodes(session, archive.url):
            found = await find_origin(node, WALLET, 0, high)
            assert found == FirstSeen(FUNDED, archive.refs[FUNDED].timestamp_s, archive.funder)
            made = await find_origin(node, archive.contract, 0, high)
            assert made == FirstSeen(MADE, archive.refs[MADE].timestamp_s, None)
            assert await find_origin(node, NOBODY, 0, high) == NothingReached(BLOCKS)
            assert await find_origin(node, WALLET, 0, archive.refs[FUNDED - 1]) == NothingReached(FUNDED - 1)
            assert await find_origin(node, archive.funder, 0, high) == FirstSeen(
                0, archive.refs[0].timestamp_s, None
            )
            assert await find_origin(node, WALLET, FUNDED + 1, high) is None


async def test_a_node_without_an_archive_tells_nothing(pruned: FundingChain) -> None:
    async with aiohttp.ClientSession() as session:
        for node in nodes(session, pruned.url):
            assert await find_origin(node, WALLET, 0, pruned.refs[-1]) is None
            assert await find_origin(node, WALLET, BLOCKS - KEPT + 5, pruned.refs[-1]) is None


async def test_a_node_that_is_not_there_tells_nothing(archive: FundingChain) -> None:
    async with aiohttp.ClientSession() as session:
        for node in nodes(session, "http://127.0.0.1:1"):
            assert await find_origin(node, WALLET, 0, archive.refs[-1]) is None


async def test_another_chain_tells_nothing(archive: FundingChain, pruned: FundingChain) -> None:
    """The block that the search was pinned to is of another node's chain."""
    assert archive.refs[-1].hash != pruned.refs[-1].hash
    async with aiohttp.ClientSession() as session:
        assert await find_origin(Node(archive.url, session), WALLET, 0, pruned.refs[-1]) is None
