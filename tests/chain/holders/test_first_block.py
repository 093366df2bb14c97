"""When a token came onto a real node's chain, and by whom: with an archive, without one, at a launchpad."""

from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp
import pytest

from roundtrip.chain.holders.first_block import NoArchive, TokenCreation, find_creation, find_first_block
from roundtrip.chain.holders.views import was_made_in
from roundtrip.chain.rpc.client import Meter, Node, RpcNode
from roundtrip.chain.rpc.endpoints import NodeUrl
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.config.networks import CHAIN_ID
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet import world
from roundtrip_development.devnet.deploy import await_receipt
from roundtrip_development.devnet.node import NodeOptions, find_anvil, running
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from unit.venues.logs import TRANSFER

MADE, BLOCKS, KEPT = 61, 120, 30
_MAKES_A_STOP = "0x6001600c60003960016000f300"
"""Leaves a contract whose code is one byte."""
LAUNCHES = """
    SELECT '0x' || encode(token.address, 'hex') AS token, '0x' || encode(sender.address, 'hex') AS sender,
        '0x' || encode(launch.tx_hash, 'hex') AS tx_hash, launch.block_number
    FROM facts.launch JOIN facts.address AS token ON token.id = token_id
    JOIN facts.address AS sender ON sender.id = sender_id WHERE generation = 2
"""


@dataclass(frozen=True, slots=True)
class CreationChain:
    """A node's chain in which ``sender`` makes ``contract`` in the block MADE. ``kept``: of so many of its
    last blocks it has the state."""

    kept: int
    url: str
    sender: Address
    contract: Address
    tx_hash: TxHash
    refs: list[BlockRef]


@pytest.fixture(scope="module", params=[600, KEPT], ids=["archive", "pruned"])
def chain(request: pytest.FixtureRequest, places: world.DevnetFolders) -> Iterator[CreationChain]:
    options = NodeOptions(prune_history=request.param, timestamp_s=1_700_000_000)
    with running(find_anvil(places.project), options) as node, SyncRpc(node.url) as rpc:
        busy, sender = (Address(one.lower()) for one in rpc.call("eth_accounts")[:2])
        deeds = [{"from": busy, "to": busy, "value": "0x1"} for _ in range(BLOCKS)]
        deeds[MADE - 1] = {"from": sender, "data": _MAKES_A_STOP}
        # One at a time: two that the node has at once may come into one block.
        mined = [await_receipt(rpc, rpc.call("eth_sendTransaction", deed)) for deed in deeds]
        made = mined[MADE - 1]
        refs = [ref(rpc, number) for number in range(BLOCKS + 1)]
        contract, tx_hash = Address(made["contractAddress"].lower()), TxHash(made["transactionHash"])
        yield CreationChain(request.param, node.url, sender, contract, tx_hash, refs)


def ref(rpc: SyncRpc, number: int) -> BlockRef:
    block = rpc.call("eth_getBlockByNumber", hex(number), False)
    return BlockRef(number, block["hash"], int(block["timestamp"], 16))


def nodes(session: aiohttp.ClientSession, url: str) -> list[RpcNode]:
    """One alone, and as one of several."""
    return [Node(url, session), NodePool([NodeUrl(url)], session, CHAIN_ID)]


async def test_the_first_block_is_found_in_an_archive_and_nowhere_else(chain: CreationChain) -> None:
    async with aiohttp.ClientSession() as session:
        for node in nodes(session, chain.url):
            if chain.kept > BLOCKS:
                found = await find_first_block(node, chain.contract, chain.refs[-1])
                assert found == chain.refs[MADE]
                assert await find_first_block(node, chain.contract, chain.refs[MADE - 1]) is None
            else:
                with pytest.raises(NoArchive):
                    await find_first_block(node, chain.contract, chain.refs[-1])
            made = await find_creation(node, chain.contract, chain.refs[MADE])
            assert made == TokenCreation(chain.sender, chain.tx_hash, "deployment")
            assert await find_creation(node, chain.contract, chain.refs[MADE - 1]) is None


async def test_a_node_that_is_not_there_tells_nothing(chain: CreationChain) -> None:
    async with aiohttp.ClientSession() as session:
        for node in nodes(session, "http://127.0.0.1:1"):
            assert await find_first_block(node, chain.contract, chain.refs[-1]) is None
            with pytest.raises(NodeFault):
                await find_creation(node, chain.contract, chain.refs[MADE])


async def test_who_launched_is_who_the_index_says(indexed: Context, rpc: SyncRpc) -> None:
    rows = await indexed.pool.fetch(LAUNCHES)
    assert len(rows) > 30
    for row in rows:
        at = ref(rpc, row["block_number"])
        made = await find_creation(indexed.node, Address(row["token"]), at)
        assert made == TokenCreation(Address(row["sender"]), TxHash(row["tx_hash"]), "launch_tx")
        assert await find_creation(indexed.node, Address(row["token"]), at, TxHash(row["tx_hash"])) == made


async def test_a_plain_tokens_deployer_is_who_sent_it(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    for key in ("plain", "v4_eth", "six_decimals"):
        token = built.tokens[key]
        wanted = {"fromBlock": "0x0", "toBlock": "latest", "address": token, "topics": [TRANSFER.topic]}
        mint = rpc.call("eth_getLogs", wanted)[0]
        sent = rpc.call("eth_getTransactionByHash", mint["transactionHash"])
        at = ref(rpc, int(mint["blockNumber"], 16))
        made = await find_creation(indexed.node, Address(token.lower()), at)
        assert made == TokenCreation(Address(sent["from"].lower()), TxHash(sent["hash"]), "deployment")
        assert sent["to"] is None


async def test_where_a_token_was_made_the_states_around_it_tell(chain: CreationChain) -> None:
    numbers = (MADE, MADE + 1, MADE - 1)
    async with aiohttp.ClientSession() as session:
        for node in nodes(session, chain.url):
            answer = [await was_made_in(node, chain.contract, number, Meter()) for number in numbers]
            assert answer == ([True, False, None] if chain.kept > BLOCKS else [None] * 3)
