"""Builds what commands run, from settings: a service, a sync or a worker, and short tasks on a database or on
nodes. Used by commands and measurements only."""

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
from roundtrip.chain.rpc.background import run_in_background
from roundtrip.chain.rpc.bulkhead import Bulkhead
from roundtrip.chain.rpc.client import MAX_ANSWER_BYTES, MAX_WAIT_S, Budget, Node, RpcError
from roundtrip.chain.rpc.dialect_probe import speaks_dialect
from roundtrip.chain.rpc.endpoints import NodeEndpoint, NodeUrl
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.chain.simulate.rates import Rates
from roundtrip.config.networks import CHAIN_ID, ROBINHOOD, Network, network_from
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import NodeFault, RoundtripError
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.jobs.alerts.loop import AlertLoop
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.kinds.telegram import link_chats
from roundtrip.jobs.registry import KINDS
from roundtrip.services.check.proof_file import Claim, ProofFinding
from roundtrip.services.check.proof_replay import TrustedSetting, verify_claim
from roundtrip.services.runtime.book_cache import BookCache, reading_budget
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import check_key
from roundtrip.services.wallets.history import resolve_origin
from roundtrip.store.accounts import accounts
from roundtrip.store.index.cursor import BLOCKS_KEPT
from roundtrip.store.maintenance.backup import forget
from roundtrip.store.replicas.pools import open_replicas
from roundtrip.store.server import connections
from roundtrip.store.server.migrate import migrate, place
from roundtrip.store.server.postgres import EmbeddedPostgres, PostgresInUse
from roundtrip.store.server.rows import Connection
from roundtrip.store.server.sync_lock import LET_GO, leader, name_of_sync
from roundtrip.sync.position_fold import rebuild
from roundtrip.sync.run import Following, Progress, Sync
from roundtrip.venues import LISTINGS
from roundtrip.venues.base import Contracts

from .notifiers import open_notifiers

_POOL_CONNECTIONS = 11
_JOB_CONNECTIONS = 8
"""Three of those for jobs listen for notifications: of jobs, of facts, and of chats to link."""
_OLDEST_S = 60.0
"""The maximum age of the head. A real chain makes ten blocks a second."""
_PATIENCE_S = 2.0
"""How long to wait for a node that is behind the others: some twenty blocks."""
_STATEMENT_S = 5.0
_SYNC_STATEMENT_S = 120.0
"""Time limits of one database statement."""
_MAX_SPAN_BYTES = 64 * 2**20
"""Some 400 blocks of a busy chain; a check's answers are a hundredth of that."""
_SPAN_BUFFER_BYTES = 2**20
"""Received before reading from a node pauses. With 64 KB receiving takes nearly twice the processor time, as
with 4 MB."""
_DEEPEST_FORK_BLOCKS = BLOCKS_KEPT
"""The deepest reorg that the sync follows, of a real chain; a local one may have restarted from genesis."""
_VERIFY_TIMEOUT_S = 30.0
_GC_THRESHOLDS = (200_000, 20, 50)
_chance = secrets.SystemRandom().random

# Ensures the native backend is installed: without it a signature silently costs 4.7 ms.
assert coincurve.PublicKey is not None


def collect_garbage_rarely() -> None:
    """Makes the garbage collector run rarely: for programs that make millions of tuples and hardly a cycle.
    It would walk them again and again, for nearly as long as the sync itself works."""
    gc.set_threshold(*_GC_THRESHOLDS)


def select_network(settings: Settings) -> Network:
    """The network to serve: a known one, or the local chain that ``devnet.json`` describes. Raises OSError:
    that file is missing."""
    known = ROBINHOOD if settings.network == "robinhood" else network_from(settings.var / "devnet.json")
    return known if settings.rpc_url is None else replace(known, rpc_url=settings.rpc_url)


def node_urls(settings: Settings, network: Network) -> tuple[NodeUrl, ...]:
    """The nodes to use, the preferred one first."""
    if settings.rpc_urls:
        return tuple(
            NodeUrl(node.url, node.calls_per_second, node.calls_per_day, node.calls_a_request)
            for node in settings.rpc_urls
        )
    if settings.rpc_url is not None:
        return (NodeUrl(settings.rpc_url),)
    urls = (network.rpc_url, *network.more_rpc_urls)
    return tuple(NodeUrl(url, network.calls_per_second) for url in urls)


@contextlib.asynccontextmanager
async def open_database(settings: Settings, *, joins: bool = False) -> AsyncIterator[str]:
    """The database's url: the one that is set, else that of an embedded server. ``joins``: uses an embedded
    server that a service already runs, and leaves it running; else raises PostgresInUse."""
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
async def open_context(
    settings: Settings,
    nodes: str | tuple[NodeUrl, ...],
    contracts: Contracts,
    database_url: str,
    look_back_blocks: int | None = None,
) -> AsyncIterator[Context]:
    """The context of use cases. Migrates the database, and follows the chain while the block runs. Raises
    CannotRun: wrong secret key. ``look_back_blocks``: how far back venues are read; None: from genesis."""
    await migrate_database(database_url)
    measures = Measures()
    async with contextlib.AsyncExitStack() as stack:
        pool = await stack.enter_async_context(
            connections.create_pool(
                database_url, measures, max_size=_POOL_CONNECTIONS, command_timeout=_STATEMENT_S
            )
        )
        async with pool.acquire() as connection:
            secret = await accounts.secret(connection, "service", secrets.token_bytes(32))
        notifiers = await stack.enter_async_context(open_notifiers(settings))
        await check_key(pool, notifiers)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64))
        )
        urls = (NodeUrl(nodes),) if isinstance(nodes, str) else nodes
        node = _build_client(settings, urls, session, measures=measures)
        patience_s = _PATIENCE_S if isinstance(node, NodePool) else 0.0
        venue_index = VenueIndex(contracts, look_back_blocks)
        heads = Heads(
            node, CHAIN_ID, contracts, settings.poll_ms, venue_index=venue_index, patience_s=patience_s,
            oldest_s=_oldest_s(settings), idle_s=settings.idle_poll_ms / 1000,
            note_data_fee=node.note_data_fee,
        )  # fmt: skip
        if isinstance(node, NodePool):
            node.speaks = _dialect_probe(heads)
        await stack.enter_async_context(heads.following())

        def subject() -> DoctorSubject:
            return DoctorSubject(
                node, heads, contracts, CHAIN_ID, time.time(), time.monotonic, thorough=False
            )

        rounds = await stack.enter_async_context(DoctorRounds(subject).going())
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
            books=BookCache(reading_budget(settings.holders_calls_per_day), _reread_blocks(settings)),
            service_id=hashlib.sha256(secret).hexdigest()[:16],
            outward=notifiers,
            measures=measures,
            bulkhead=Bulkhead(bulkhead.limits(settings.check_places, settings.call_places)),
        )


@contextlib.asynccontextmanager
async def add_replicas(settings: Settings, database_url: str, ctx: Context) -> AsyncIterator[Context]:
    """The context with the replicas that the settings name, watched while the block runs."""
    urls = settings.read_database_urls()
    if not urls:
        yield ctx
        return
    options = {"max_size": _POOL_CONNECTIONS, "command_timeout": _STATEMENT_S}
    async with (
        open_replicas(urls, database_url, time.monotonic, ctx.measures, **options) as replicas,
        run_in_background(replicas.watch(), "replicas"),
    ):
        yield replace(ctx, replicas=replicas)


def _build_client(
    settings: Settings,
    urls: tuple[NodeUrl, ...],
    session: aiohttp.ClientSession,
    most_answer_bytes: int = MAX_ANSWER_BYTES,
    measures: Measures | None = None,
) -> Node | NodePool:
    """A client of one node without limits, or of several."""
    timeout_s, budget = settings.node_timeout_ms / 1000, Budget(settings.node_calls_per_day)
    measures = measures or Measures()
    if len(urls) == 1 and not urls[0].is_limited():
        return Node(urls[0].url, session, timeout_s, budget, most_answer_bytes, measures=measures)
    return NodePool(
        urls, session, CHAIN_ID, timeout_s, budget, chance=_chance, oldest_s=_oldest_s(settings),
        most_answer_bytes=most_answer_bytes, measures=measures,
    )  # fmt: skip


def _reread_blocks(settings: Settings) -> int:
    """How many blocks holder books may be behind: as many as the venue index reads again, which on a real
    chain is six seconds."""
    return 0 if settings.network == "devnet" else READ_AGAIN_BLOCKS


def _oldest_s(settings: Settings) -> float:
    """The maximum age of the head. The local chain's clock continues from its history, so its age is
    unlimited."""
    return math.inf if settings.network == "devnet" else _OLDEST_S


def _dialect_probe(heads: Heads) -> Callable[[Node], Awaitable[bool | NodeFault | RpcError]]:
    """Returns a probe of whether a node simulates in the current dialect; while there is none, in any known
    one."""

    async def speaks(node: Node) -> bool | NodeFault | RpcError:
        return await speaks_dialect(heads.dialect(), node, *(await newest(node)))

    return speaks


async def examine_nodes(settings: Settings, network: Network) -> list[tuple[str, list[Finding]]]:
    """The doctor's findings of each node (and of the contracts as that node reports them), with its host."""
    urls = node_urls(settings, network)
    return [(NodeEndpoint.of(url).host, await _examine_node(settings, network, url)) for url in urls]


async def _examine_node(settings: Settings, network: Network, url: NodeUrl) -> list[Finding]:
    async with aiohttp.ClientSession() as session:
        node = Node(url.url, session, settings.node_timeout_ms / 1000, patience_s=MAX_WAIT_S)
        heads = Heads(node, network.chain_id, network.contracts, note_data_fee=node.note_data_fee)
        with contextlib.suppress(RoundtripError):
            await heads.refresh()
        clocks = (time.time(), time.monotonic)
        return await examine(DoctorSubject(node, heads, network.contracts, network.chain_id, *clocks))


async def verify_proof(claim: Claim, network: Network, rpc_url: str | None) -> list[ProofFinding]:
    """Verifies a proof under the contracts of ``network`` and this release's policy. ``rpc_url`` None:
    without a node."""
    trusted = TrustedSetting(network.chain_id, network.contracts, POLICY)
    if rpc_url is None:
        return await verify_claim(claim, trusted)
    async with aiohttp.ClientSession() as session:
        node = Node(rpc_url, session, _VERIFY_TIMEOUT_S)
        return await verify_claim(claim, replace(trusted, node=node))


async def migrate_database(database_url: str) -> list[int]:
    """Applies missing migrations; returns their numbers."""
    async with _connect(database_url) as connection:
        return await migrate(connection)


async def distribute_tables(database_url: str) -> list[str]:
    """Places tables on the workers of the database; returns their names. Raises CannotRun."""
    async with _connect(database_url) as connection:
        return await place(connection)


@contextlib.asynccontextmanager
async def _connect(database_url: str, statement_s: float | None = None) -> AsyncIterator[Connection]:
    """A connection while the block runs. ``statement_s``: time limit of each statement; None: no limit."""
    connection = await connections.connect(database_url, command_timeout=statement_s)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def connect_command(settings: Settings) -> AsyncIterator[Connection]:
    """A connection for a command, to a migrated database; works while a service runs."""
    async with open_database(settings, joins=True) as database_url:
        await migrate_database(database_url)
        async with _connect(database_url) as connection:
            yield connection


async def rebuild_positions(database_url: str, network: Network) -> int:
    """Rebuilds positions from their trades; returns the number of positions."""
    await migrate_database(database_url)
    async with _connect(database_url, _SYNC_STATEMENT_S) as connection:
        return sum([count async for count in rebuild(connection, network.contracts)])


async def forget_index(database_url: str) -> None:
    """Deletes what the sync wrote. Raises CannotRun; asyncpg.LockNotAvailableError: a table is in use."""
    await migrate_database(database_url)
    async with _connect(database_url, _SYNC_STATEMENT_S) as connection:
        await forget(connection)


async def find_wallet_origin(
    settings: Settings, network: Network, database_url: str, wallet: Address
) -> FirstSeen | NothingReached | None:
    """A wallet's origin, from the database or the nodes; None: not known. Raises NodeFault, ServiceFull."""
    await migrate_database(database_url)
    async with _connect(database_url, _STATEMENT_S) as connection, aiohttp.ClientSession() as session:
        node = _build_client(settings, node_urls(settings, network), session)
        return await resolve_origin(connection, node, network.chain_id, wallet)


@contextlib.asynccontextmanager
async def open_sync(
    settings: Settings,
    network: Network,
    database_url: str,
    report: Callable[[Progress], None],
    any_fork: bool = False,
    measures: Measures | None = None,
) -> AsyncIterator[Sync]:
    """The sync of ``network``, over its own node client and its own connections. ``any_fork``: follows a
    reorg of any depth."""
    is_local = network.look_back_blocks is None
    await migrate_database(database_url)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=16), read_bufsize=_SPAN_BUFFER_BYTES
    ) as session:
        measures = measures or Measures()
        node = _build_client(settings, node_urls(settings, network), session, _MAX_SPAN_BYTES, measures)
        topics = sorted({topic for listing in LISTINGS for _, topic in listing.listings(network.contracts)})
        every_ms = network.sync_every_ms if settings.sync_every_ms is None else settings.sync_every_ms
        poll_ms = max(settings.poll_ms, every_ms // 2)
        feed = Feed(node, settings.ws_url, session, poll_ms, topics=topics, chance=_chance)
        yield Sync(
            Following(
                node=node,
                feed=feed,
                every_s=every_ms / 1000,
                chain_id=network.chain_id,
                contracts=network.contracts,
                first=(settings.sync_from or 0) if is_local else settings.sync_from,
                look_back_blocks=network.look_back_blocks or 0,
                deepest_fork=None if is_local or any_fork else _DEEPEST_FORK_BLOCKS,
                is_local=is_local,
                eth_usd_pool=network.eth_usd_pool,
                tell=report,
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


async def find_leader(database_url: str) -> str | None:
    """The name of the sync that leads; None: none does."""
    async with _connect(database_url, _STATEMENT_S) as connection:
        return await leader(connection)


@contextlib.asynccontextmanager
async def run_sync_and_jobs(
    settings: Settings, network: Network, database_url: str, ctx: Context
) -> AsyncIterator[None]:
    """Runs the sync and the jobs in the serving process while the block runs."""
    collect_garbage_rarely()
    async with (
        open_sync(settings, network, database_url, lambda _: None, measures=ctx.measures) as sync,
        # A pool of its own, so that callers cannot delay alerts.
        connections.create_pool(
            database_url, ctx.measures, "jobs", max_size=_JOB_CONNECTIONS, command_timeout=_STATEMENT_S
        ) as pool,
        run_in_background(sync.run(stays=True), "sync"),
        run_in_background(run_worker(replace(ctx, pool=pool)), "jobs"),
    ):
        yield


async def run_worker(ctx: Context) -> None:
    """Runs jobs, raises alerts and answers chats, over an open context, until cancelled."""
    async with (
        run_in_background(AlertLoop(ctx).run(), "alerts"),
        run_in_background(link_chats(ctx), "telegram"),
    ):
        await Worker(ctx, KINDS, _chance, measures=ctx.measures).run()
