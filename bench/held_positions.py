"""How quick ``practice_account`` is when it holds as many positions as it may, and in how many trips."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from roundtrip.app.build import open_context
from roundtrip.chain.rpc.client import Meter, Node
from roundtrip.config.networks import contracts_from
from roundtrip.config.settings import Settings
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address
from roundtrip.domain.practice import practice
from roundtrip.domain.practice.practice import MAX_POSITIONS, PracticePosition
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.practice.account import practice_account
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.valuation.holdings import slot_of
from roundtrip.store.accounts import accounts
from roundtrip.store.practice import practice as store
from roundtrip.store.practice.practice import Slot, StoredPosition
from roundtrip_development.devnet import world
from roundtrip_development.devnet.actors import ActorMarket
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.indexing import at, follow

from .timing import Times, tell, timed

PROJECT = Path(__file__).resolve().parents[1]
LIVE = ("curve", "graduated", "pool_v3", "pool_v4")
"""Kinds of the history's tokens that are traded."""
HONEST = (
    "plain", "no_return_value", "two_pools", "v4_eth", "v4_weth", "v4_fee_on_sell", "both_versions",
    "fee_on_buy", "usdg_pool", "v4_usdg", "curve", "curve_taxed", "curve_usdg", "graduated",
    "graduated_usdg", "graduated_taxed",
)  # fmt: skip
"""Other tokens of the chain."""
HELD_RAW, COST_WEI = 10**21, 10**15


@dataclass(slots=True)
class CountingNode(Node):
    """Counts what the wire sees. ``trips``: how often something was sent while nothing was under way."""

    requests: int = 0
    trips: int = 0
    under_way: int = 0

    async def _post(self, body: bytes, timeout_s: float) -> bytes:
        self.requests += 1
        self.trips += not self.under_way
        self.under_way += 1
        try:
            return await Node._post(self, body, timeout_s)
        finally:
            self.under_way -= 1


@asynccontextmanager
async def _service(database_url: str) -> AsyncIterator[tuple[Context, world.Built]]:
    """Over the local chain, which makes ten blocks a second, and the index of it as it was built."""
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    options = NodeOptions(block_time_s=0.1, state=built.state)
    with world.start_world(places, built, options) as node:
        with SyncRpc(node.url) as chain:
            newest = int(chain.call("eth_blockNumber"), 16)
        await follow(node.url, built, database_url, 0, at(newest))
        async with open_context(Settings(), node.url, contracts_from(built.contracts), database_url) as ctx:
            yield ctx, built


async def _filled(ctx: Context, tokens: list[Address], account_id: int) -> None:
    """An account with a position of each."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    for token in tokens:
        found = await slot_of(ctx, ctx.heads.current(), token, Meter())
        assert found is not None
        slot, position = Slot(found.layout, found.base), PracticePosition(token, "open", HELD_RAW, COST_WEI)
        async with ctx.pool.acquire() as connection, connection.transaction():
            await store.lock(connection, account_id, practice.open_account(int(ctx.now_s())))
            await store.keep_position(connection, account_id, StoredPosition(position, 18, slot, now, now))


async def _account(ctx: Context) -> Account:
    wallet, now = Address("0x" + "be" * 20), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with ctx.pool.acquire() as connection, connection.transaction():
        return (await accounts.lock_account(connection, wallet, ["mite-bench"], now)).account


async def ask_the_account(database_url: str, runs: int) -> None:
    """Raises SystemExit where it took more than one trip, or a position was not valued."""
    async with _service(database_url) as (ctx, built):
        plain = Address(built.tokens["plain"])
        assert isinstance(ctx.node, Node)
        node = CountingNode(ctx.node.url, ctx.node.session, ctx.node.timeout_s)
        counted = replace(ctx, node=node)
        listed = [one.token for one in ActorMarket.unpack(built.market).tokens if one.kind in LIVE]
        tokens = [Address(token) for token in [*listed, *(built.tokens[key] for key in HONEST)]]
        tokens = tokens[-MAX_POSITIONS:]
        assert len(tokens) == MAX_POSITIONS
        account = await _account(ctx)
        await _filled(ctx, tokens, account.id)
        trips: set[int] = set()
        requests: list[int] = []

        async def ask() -> None:
            node.trips = node.requests = 0
            answer = (await practice_account(counted, Nothing(), account)).answer
            trips.add(node.trips)
            requests.append(node.requests)
            unvalued = [one.why for one in answer.positions if one.worth is None]
            if len(answer.positions) != MAX_POSITIONS or unvalued:
                raise SystemExit(f"not all positions were valued: {unvalued}")

        checks = await timed(lambda: check(counted, CheckParams(plain)), runs)
        found = await timed(ask, runs)
        again = await timed(lambda: check(counted, CheckParams(plain)), runs)
        beside = Times(checks.times_ms + again.times_ms)
        tell("a check of one token, not shared", beside, beside, "a check")
        tell(f"practice_account, {MAX_POSITIONS} positions", found, beside, "a check")
        print(f"     trips of an account to the node {sorted(trips)}, requests in it {sorted(set(requests))}")
        if trips != {1}:
            raise SystemExit("an account is to be valued in one trip")
