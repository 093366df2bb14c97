"""A book that begins near the head, with an index beside it, knows what a book of the whole chain knows."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import cast

import asyncpg
import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.rpc.dialect import ANVIL
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.check.verdict import judge
from roundtrip.services.engine.candidates import Candidates
from roundtrip.services.engine.token_check import prepare_inputs
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip.store.server.migrate import migrate
from roundtrip.venues import VENUES
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.databases import connected, database
from support.fixtures import closed_database
from support.gathering import gather_evidence
from support.indexing import NarrowNode, at, follow
from support.nodes import node_of, run_check_at
from support.signing import Signer
from support.simulated import approve, simulated

LOOK_BACK_BLOCKS = 5
ODD_TIER_BLOCK = 1190
"""The pool of that name was made shortly before, the last launch more than two ranges later."""
UNUSUAL = (
    "odd_key", "odd_tier", "curve", "curve_other", "graduated_other", "hook_bait", "first_fresh", "plain",
)  # fmt: skip


@contextlib.asynccontextmanager
async def near(ctx: Context, url: str) -> AsyncIterator[Context]:
    """The same context, whose book begins near the head, over the database at ``url``."""
    book = VenueIndex(ctx.contracts, LOOK_BACK_BLOCKS)
    heads = Heads(ctx.node, ctx.chain_id, ctx.contracts, market_age_s=0.0, venue_index=book, dialect=ANVIL)
    await heads.refresh()
    async with connections.create_pool(url, min_size=1, max_size=2) as pool:
        yield replace(ctx, heads=heads, pool=pool)


async def known(ctx: Context, token: Address) -> Candidates:
    """As a check begins."""
    return (await prepare_inputs(ctx, token)).candidates


@pytest.fixture
def last(rpc: SyncRpc) -> int:
    number: str = rpc.call("eth_blockNumber")
    return int(number, 16)


@pytest.fixture
async def empty(database_url: str) -> AsyncIterator[str]:
    """A database that no sync has written into."""
    async with database(database_url, "indexed") as url:
        async with connected(url) as connection:
            await migrate(connection)
        yield url


@pytest.mark.parametrize("late", [False, True])
async def test_with_a_whole_index_it_finds_the_same_places_of_every_token(
    ctx: Context, built: Built, empty: str, last: int, late: bool
) -> None:
    """Also where nearly all of them are from before the first block that was read in full."""
    await follow(node_of(ctx).url, built, empty, last if late else 0, at(last))
    async with near(ctx, empty) as with_index:
        for key, token in built.tokens.items():
            found = await known(with_index, Address(token))
            whole = await known(ctx, Address(token))
            assert found.complete, key
            assert found == whole, key


@pytest.mark.parametrize("key", UNUSUAL)
async def test_with_a_whole_index_it_comes_to_the_same_verdict(
    ctx: Context, built: Built, empty: str, last: int, key: str
) -> None:
    await follow(node_of(ctx).url, built, empty, last, at(last))
    async with near(ctx, empty) as with_index:
        found = [await run_check_at(one, built.tokens[key]) for one in (with_index, ctx)]
    # How many wallets looked depends on how many the database recalls.
    assert len({(*known, re.sub(r"\d+ of \d+ test wallets .*\)", "", text)) for *known, text in found}) == 1


async def test_an_odd_pool_is_found_by_nothing_else(ctx: Context, built: Built, empty: str) -> None:
    async with near(ctx, empty) as without_index:
        assert (await run_check_at(without_index, built.tokens["odd_key"]))[0] == "no_pool"
        assert (await run_check_at(ctx, built.tokens["odd_key"]))[0] == "ok"


async def test_with_an_index_that_is_not_whole_the_standard_keys_are_asked_beside(
    ctx: Context, built: Built, empty: str, last: int
) -> None:
    odd, late = Address(built.tokens["odd_tier"]), Address(built.tokens["first_fresh"])
    async with NarrowNode(node_of(ctx).url, 20).running() as narrow:
        await follow(narrow.url, built, empty, last, lambda step: step.number >= ODD_TIER_BLOCK)
    async with connected(empty) as connection:
        stands = await connection.fetchval("SELECT older_number FROM facts.cursor")
    assert stands < last - 20
    async with near(ctx, empty) as with_part:
        found = await known(with_part, odd)
        assert not found.complete
        assert set(standard(ctx, odd)) < set(found.venues), "what it has is told nevertheless"
        found = await known(with_part, late)
        assert not found.complete
        assert found.venues == standard(ctx, late)


@pytest.mark.parametrize("away", [False, True])
async def test_without_an_index_the_standard_keys_are_asked(
    ctx: Context, built: Built, empty: str, away: bool
) -> None:
    async with near(ctx, empty) as without_index:
        if away:
            await without_index.pool.close()
        for key in ("plain", "odd_tier", "curve"):
            token = Address(built.tokens[key])
            found = await known(without_index, token)
            assert not found.complete
            assert found.venues == standard(ctx, token)


def standard(ctx: Context, token: Address) -> tuple[object, ...]:
    return tuple(venue for file in VENUES for venue in file.candidates(token, ctx.contracts))


class HangingPool:
    """Lends no connection, and does not refuse one."""

    def __init__(self) -> None:
        self.asked = 0

    @contextlib.asynccontextmanager
    async def acquire(self, **_: object) -> AsyncIterator[None]:
        self.asked += 1
        await asyncio.Event().wait()
        yield


@pytest.mark.parametrize("deep", [False, True])
async def test_a_database_that_hangs_costs_a_check_one_patience_and_no_verdict(
    ctx: Context, built: Built, empty: str, deep: bool
) -> None:
    """What it would have told is said to be unknown; what the chain shows of a trap stays."""
    async with near(ctx, empty) as with_index:
        hanging = HangingPool()
        alone = replace(with_index, pool=cast(asyncpg.Pool, hanging), index_patience_s=0.05)
        for number, key in enumerate(("plain", "odd_key", "blacklist_after_buy"), 1):
            evidence = await gather_evidence(alone, Address(built.tokens[key]), Meter(), deep=deep)
            assert hanging.asked == number
            assert not evidence.candidates_complete
            judgement = judge(evidence, alone.policy)
            if key == "plain":
                assert isinstance(evidence.holder_sells, Missing) is deep
                assert (judgement.verdict.level == "ok") is not deep
            elif key == "odd_key":
                assert judgement.verdict.code == "no_pool"
                assert "Only" in judgement.verdict.text
            else:
                assert judgement.verdict.code == "cannot_sell"


async def test_a_curve_from_before_the_logs_is_no_strange_spender(
    ctx: Context, rpc: SyncRpc, built: Built, empty: str, last: int
) -> None:
    """Nor does it cost a trip more: no check was made that could have told of it."""
    token = Address(built.tokens["curve"])
    assert ctx.heads.venue_index is not None
    (curve,) = (venue for venue in ctx.heads.venue_index.venues_of(token) if venue.is_curve)
    assert curve.pool is not None
    wallet = Signer(rpc, built.contracts, "approves a curve").address
    step = approve(token, curve.pool, 10**18)
    known = await simulated(ctx, wallet, step)
    assert known.level == "ok"
    await follow(node_of(ctx).url, built, empty, last, at(last))
    async with near(ctx, empty) as with_index:
        assert with_index.heads.venue_index is not None
        assert with_index.heads.venue_index.token_at(curve.pool) is None
        found = await simulated(with_index, wallet, step)
        assert (found.code, found.level, found.text) == (known.code, known.level, known.text)
        assert found.trips <= known.trips
        # Not found out is not known.
        alone = await simulated(replace(with_index, pool=closed_database()), wallet, step)
        assert (alone.code, alone.level) == (known.code, "warn")
