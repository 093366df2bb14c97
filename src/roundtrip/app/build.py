"""Puts the service together from settings, and runs it. Used by the command line only."""

import contextlib
import functools
import gc
import hashlib
import math
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import aiohttp
import coincurve

from roundtrip.chain.blocks.head_feed import Feed
from roundtrip.chain.blocks.heads import Heads, newest
from roundtrip.chain.blocks.venue_index import READ_AGAIN_BLOCKS, VenueIndex
from roundtrip.chain.doctor import DoctorRounds, DoctorSubject, Finding, examine
from roundtrip.chain.holders.origins import NothingReached
from roundtrip.chain.rpc import bulkhead
from roundtrip.chain.rpc.background import beside
from roundtrip.chain.rpc.bulkhead import Bulkhead
from roundtrip.chain.rpc.client import MOST_ANSWER_BYTES, Budget, Node, RpcError
from roundtrip.chain.rpc.dialect_probe import speaks_as
from roundtrip.chain.rpc.endpoints import NodeEndpoint, NodeUrl
from roundtrip.chain.rpc.node_pool import Nodes
from roundtrip.chain.simulate.rates import Rates
from roundtrip.config.networks import CHAIN_ID, ROBINHOOD, Network, network_from
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.jobs.alerts.loop import AlertLoop
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.kinds.telegram import link_chats
from roundtrip.jobs.registry import KINDS
from roundtrip.services.check.proof_file import Claim, ProofFinding
from roundtrip.services.check.proof_replay import TrustedSetting, verify_claim
from roundtrip.services.runtime.book_cache import BookCache, reading_budget
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import check_key
from roundtrip.services.wallets.origins import find_out
from roundtrip.store.accounts import accounts
from roundtrip.store.index.cursor import BLOCKS_KEPT
from roundtrip.store.index.origins import StoredOrigin
from roundtrip.store.maintenance.reset import forget
from roundtrip.store.server import connections
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.postgres import EmbeddedPostgres, PostgresInUse
from roundtrip.store.server.rows import Connection
from roundtrip.store.server.sync_lock import LET_GO, leader, name_of_sync
from roundtrip.sync.rebuild import rebuild
from roundtrip.sync.run import Following, Progress, Sync
from roundtrip.venues import LISTINGS
from roundtrip.venues.base import Contracts

from .notifiers import outward, secret_key

_POOL_CONNECTIONS = 11
_JOB_CONNECTIONS = 8
"""Three of them listen: to jobs, to facts, and for who links a chat."""
_OLDEST_S = 60.0
"""A real chain makes ten blocks a second."""
_PATIENCE_S = 2.0
"""Of several nodes one may be behind: some twenty blocks."""
_STATEMENT_S = 5.0
_SYNC_STATEMENT_S = 120.0
_MOST_SPAN_BYTES = 64 * 2**20
"""Of a busy chain's blocks some 400, where a check's answers are a hundredth of that."""
_DEEPEST_FORK = BLOCKS_KEPT
"""Of a real chain; a local one may have been begun anew."""
_VERIFY_TIMEOUT_S = 30.0
_COLLECTED = (200_000, 20, 50)
_chance = secrets.SystemRandom().random

# Without its native backend a signature costs 4.7 ms, and nothing says so.
assert coincurve.PublicKey is not None


def spare_the_collector() -> None:
    """For what makes tuples by the million and hardly a cycle: by default the collector walks all of them
    again and again. The sync's processor time for 130,000 logs went from 3.6 s to 1.9 s."""
    gc.set_threshold(*_COLLECTED)


def network_of(settings: Settings) -> Network:
    """The network that is served: a known one, else the local chain as ``devnet.json`` describes it. Raises
    OSError where that is not there."""
    known = ROBINHOOD if settings.network == "robinhood" else network_from(settings.var / "devnet.json")
    return known if settings.rpc_url is None else replace(known, rpc_url=settings.rpc_url)


def node_urls(settings: Settings, network: Network) -> tuple[NodeUrl, ...]:
    """The nodes to ask, the one that is preferred first."""
    if settings.rpc_urls:
        return tuple(
            NodeUrl(one.url, one.calls_per_second, one.calls_per_day, one.calls_a_request)
            for one in settings.rpc_urls
        )
    if settings.rpc_url is not None:
        return (NodeUrl(settings.rpc_url),)
    urls = (network.rpc_url, *network.more_rpc_urls)
    return tuple(NodeUrl(url, network.calls_per_second) for url in urls)


@contextlib.asynccontextmanager
async def database(settings: Settings, *, joins: bool = False) -> AsyncIterator[str]:
    """A database's url: the one that was set, else an embedded server's of our own. ``joins``: also one that
    a service has running, which is left running; else raises PostgresInUse then."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    server = EmbeddedPostgres((settings.var / "postgres").absolute())
    try:
        await server.start()
    except PostgresInUse:
        if not joins:
            raise
    async with server.keep_running():
        yield server.dsn


@contextlib.asynccontextmanager
async def context(
    settings: Settings,
    nodes: str | tuple[NodeUrl, ...],
    contracts: Contracts,
    database_url: str,
    look_back_blocks: int | None = None,
) -> AsyncIterator[Context]:
    """Everything a use case is given, opened and closed. ``nodes``: one url, or several with limits.
    Raises OtherKey."""
    await migrate_database(database_url)
    measures = Measures()
    async with contextlib.AsyncExitStack() as stack:
        pool = await stack.enter_async_context(
            connections.create_pool(
                database_url, measures, max_size=_POOL_CONNECTIONS, command_timeout=_STATEMENT_S
            )
        )
        async with pool.acquire() as connection:
            drawn = await accounts.secret(connection, "service", secrets.token_bytes(32))
        out = await stack.enter_async_context(outward(settings))
        await check_key(pool, out)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64))
        )
        urls = (NodeUrl(nodes),) if isinstance(nodes, str) else nodes
        node = _node(settings, urls, session, measures=measures)
        patience_s = _PATIENCE_S if isinstance(node, Nodes) else 0.0
        book = VenueIndex(contracts, look_back_blocks)
        heads = Heads(
            node, CHAIN_ID, contracts, settings.poll_ms, book=book, patience_s=patience_s,
            oldest_s=_oldest_s(settings),
        )  # fmt: skip
        if isinstance(node, Nodes):
            node.speaks = _speaks(heads)
        await stack.enter_async_context(heads.following())

        def patient() -> DoctorSubject:
            return DoctorSubject(
                node, heads, contracts, CHAIN_ID, time.time(), time.monotonic, thorough=False
            )

        rounds = await stack.enter_async_context(DoctorRounds(patient).going())
        yield Context(
            chain_id=CHAIN_ID,
            contracts=contracts,
            node=node,
            heads=heads,
            policy=POLICY,
            pool=pool,
            rates=Rates(node, contracts),
            now_s=time.time,
            entropy=lambda: secrets.token_bytes(32),
            lacks=rounds.lacks,
            books=BookCache(reading_budget(settings.holders_calls_per_day), _behind_blocks(settings)),
            service_id=hashlib.sha256(drawn).hexdigest()[:16],
            outward=out,
            measures=measures,
            bulkhead=Bulkhead(bulkhead.limits(settings.check_places, settings.call_places)),
        )


def _node(
    settings: Settings,
    urls: tuple[NodeUrl, ...],
    session: aiohttp.ClientSession,
    most_answer_bytes: int = MOST_ANSWER_BYTES,
    measures: Measures | None = None,
) -> Node | Nodes:
    """One without limits is asked plainly."""
    timeout_s, budget = settings.node_timeout_ms / 1000, Budget(settings.node_calls_per_day)
    measures = measures or Measures()
    if len(urls) == 1 and not urls[0].is_limited():
        return Node(urls[0].url, session, timeout_s, budget, most_answer_bytes, measures=measures)
    return Nodes(
        urls, session, CHAIN_ID, timeout_s, budget, chance=_chance, oldest_s=_oldest_s(settings),
        most_answer_bytes=most_answer_bytes, measures=measures,
    )  # fmt: skip


def _behind_blocks(settings: Settings) -> int:
    """The book of pools reads as many blocks again, for the same reason; on a real chain they are six
    seconds."""
    return 0 if settings.network == "devnet" else READ_AGAIN_BLOCKS


def _oldest_s(settings: Settings) -> float:
    """The local chain's clock goes on where its history ended; a real one's is ours."""
    return math.inf if settings.network == "devnet" else _OLDEST_S


def _speaks(heads: Heads) -> Callable[[Node], Awaitable[bool | RpcError]]:
    """Asks a node whether it simulates in the dialect that answers are read in; while none is known, whether
    it does in any that is."""

    async def speaks(node: Node) -> bool | RpcError:
        return await speaks_as(heads.dialect(), node, *(await newest(node)))

    return speaks


async def examine_nodes(settings: Settings, network: Network) -> list[tuple[str, list[Finding]]]:
    """What the doctor finds of each node, with its host, and of the contracts as that node tells them."""
    urls = node_urls(settings, network)
    return [(NodeEndpoint.of(one).host, await _examine_node(settings, network, one)) for one in urls]


async def _examine_node(settings: Settings, network: Network, one: NodeUrl) -> list[Finding]:
    async with aiohttp.ClientSession() as session:
        node = Node(one.url, session, settings.node_timeout_ms / 1000)
        heads = Heads(node, network.chain_id, network.contracts)
        with contextlib.suppress(RoundtripError):
            await heads.refresh()
        now = (time.time(), time.monotonic)
        return await examine(DoctorSubject(node, heads, network.contracts, network.chain_id, *now))


async def verified_proof(claim: Claim, network: Network, rpc_url: str | None) -> list[ProofFinding]:
    """What holds of a proof, under the contracts of ``network`` and the policy of this release; without a url
    no node is asked."""
    trusted = TrustedSetting(network.chain_id, network.contracts, POLICY)
    if rpc_url is None:
        return await verify_claim(claim, trusted)
    async with aiohttp.ClientSession() as session:
        node = Node(rpc_url, session, _VERIFY_TIMEOUT_S)
        return await verify_claim(claim, replace(trusted, node=node))


def backup_key(settings: Settings) -> bytes:
    """What backups are signed with. Raises OSError, ValueError."""
    return secret_key(settings)


async def migrate_database(database_url: str) -> list[int]:
    """Brings the database up to date; the numbers of the migrations that were missing."""
    connection = await connections.connect(database_url)
    try:
        return await migrate(connection)
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def connect_command(settings: Settings) -> AsyncIterator[Connection]:
    """A connection for a command, to a database that is up to date; also beside a service."""
    async with database(settings, joins=True) as database_url:
        await migrate_database(database_url)
        connection = await connections.connect(database_url)
        try:
            yield connection
        finally:
            await connection.close()


async def rebuilt(database_url: str, network: Network) -> int:
    """Makes positions again from their trades; how many."""
    await migrate_database(database_url)
    connection = await connections.connect(database_url, command_timeout=_SYNC_STATEMENT_S)
    try:
        return sum([made async for made in rebuild(connection, network.contracts)])
    finally:
        await connection.close()


async def forgotten(database_url: str) -> None:
    """Takes away what the sync wrote. Raises StillFollowed, and asyncpg.LockNotAvailableError."""
    await migrate_database(database_url)
    connection = await connections.connect(database_url, command_timeout=_SYNC_STATEMENT_S)
    try:
        await forget(connection)
    finally:
        await connection.close()


async def found_origin(
    settings: Settings, network: Network, database_url: str, wallet: Address
) -> StoredOrigin | NothingReached | None:
    """Where a wallet comes from, as far as the database or the nodes tell. Raises NodeFault, ServiceFull."""
    await migrate_database(database_url)
    connection = await connections.connect(database_url, command_timeout=_STATEMENT_S)
    try:
        async with aiohttp.ClientSession() as session:
            node = _node(settings, node_urls(settings, network), session)
            return await find_out(connection, node, network.chain_id, wallet)
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def following(
    settings: Settings,
    network: Network,
    database_url: str,
    tell: Callable[[Progress], None],
    any_fork: bool = False,
    measures: Measures | None = None,
) -> AsyncIterator[Sync]:
    """The sync over its own node client and its own connection. ``network``: what is followed."""
    is_local = network.look_back_blocks is None
    await migrate_database(database_url)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=16)) as session:
        measures = measures or Measures()
        node = _node(settings, node_urls(settings, network), session, _MOST_SPAN_BYTES, measures)
        topics = sorted({topic for file in LISTINGS for _, topic in file.listings(network.contracts)})
        feed = Feed(node, settings.ws_url, session, settings.poll_ms, topics=topics, chance=_chance)
        yield Sync(
            Following(
                node=node,
                feed=feed,
                chain_id=network.chain_id,
                contracts=network.contracts,
                first=(settings.sync_from or 0) if is_local else settings.sync_from,
                look_back_blocks=network.look_back_blocks or 0,
                deepest_fork=None if is_local or any_fork else _DEEPEST_FORK,
                is_local=is_local,
                eth_usd_pool=network.eth_usd_pool,
                tell=tell,
                listening=feed.open,
                measures=measures,
            ),
            functools.partial(
                connections.connect,
                database_url,
                command_timeout=_SYNC_STATEMENT_S,
                more=LET_GO | {"application_name": name_of_sync(os.getpid(), socket.gethostname())},
            ),
        )


async def leading(database_url: str) -> str | None:
    """The sync that leads, as it names itself; None: there is none."""
    connection = await connections.connect(database_url, command_timeout=_STATEMENT_S)
    try:
        return await leader(connection)
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def beside_serving(
    settings: Settings, network: Network, database_url: str, ctx: Context
) -> AsyncIterator[None]:
    """The sync and the jobs in the process that serves: all there is, in one."""
    spare_the_collector()
    async with (
        following(settings, network, database_url, lambda _: None, measures=ctx.measures) as sync,
        # Of its own: whatever callers ask, alerts are made and sent.
        connections.create_pool(
            database_url, ctx.measures, "jobs", max_size=_JOB_CONNECTIONS, command_timeout=_STATEMENT_S
        ) as pool,
        beside(sync.run(stays=True), "sync"),
        beside(run_worker(replace(ctx, pool=pool)), "jobs"),
    ):
        yield


async def run_worker(ctx: Context) -> None:
    """Does the work that is to be done later, tells accounts of what happens, and links chats, over an open
    context; until it is cancelled."""
    async with beside(AlertLoop(ctx).run(), "alerts"), beside(link_chats(ctx), "telegram"):
        await worker(ctx).run()


def worker(ctx: Context) -> Worker[Context]:
    """What does the work that is to be done later, over an open context."""
    return Worker(ctx, KINDS, secrets.SystemRandom().random, measures=ctx.measures)
