"""Large removals: of active liquidity, net within a transaction, by anyone and by the deployer."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.unlocks import Removal
from roundtrip.domain.verdicts.stream_position import StreamPosition
from roundtrip.services.verdicts.news import DatabaseNews
from roundtrip.store.liquidity.positions import read_removals, read_removals_between
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch.happenings import IndexedBlock, read_happenings
from roundtrip.venues.base import Log
from support.tables import append_blocks, begin_index
from support.told_blocks import (
    Q96,
    Chain,
    launched,
    sent,
    v3_at,
    v3_burnt,
    v3_minted,
    v3_opened,
    v3_priced,
    v3_swap,
)
from unit.sync.telling import ALICE, BOB, CURVE, DEV, HIGH
from unit.venues.logs import NETWORK

POOL = v3_at(HIGH, NETWORK.weth)
WHOLE = 10**21


def mint(who: Address, liquidity: int) -> Log:
    return v3_minted(POOL, who, liquidity, 10**15, 10**15)


def burn(who: Address, liquidity: int) -> Log:
    return v3_burnt(POOL, who, liquidity, 10**15, 10**15)


class Pooled:
    """A launch, and a pool of its token whose active liquidity is all there is."""

    def __init__(self, index: Connection) -> None:
        self.index, self.chain = index, Chain()

    async def happen(self, *parts: tuple[Address, list[Log]]) -> list[Removal]:
        """The removals of one block, with a transaction of each part."""
        self.chain.block(sent(launched(HIGH, CURVE, DEV), sender=DEV))
        self.chain.block(sent(v3_opened(HIGH, NETWORK.weth), v3_priced(POOL, Q96)))
        self.chain.block(sent(mint(ALICE, WHOLE), sender=ALICE))
        first = self.chain.block(*(sent(*logs, sender=who) for who, logs in parts))
        await append_blocks(self.index, await begin_index(self.index, self.chain.parent), self.chain.blocks)
        at_s, number = first.ref.timestamp_s, first.ref.number
        found = await read_removals_between(self.index, at_s, at_s, number - 1, number)
        assert await read_removals(self.index, HIGH, at_s - 1, 10) == found[::-1]
        assert await read_removals(self.index, HIGH, at_s, 10) == []
        assert await read_removals(self.index, NETWORK.usdg, 0, 10) == []
        assert await read_removals(self.index, HIGH, 0, 1) == found[::-1][:1]
        return found


@pytest.fixture
def pooled(index: Connection) -> Pooled:
    return Pooled(index)


async def test_more_than_a_tenth_by_anyone_and_a_hundredth_by_the_deployer(pooled: Pooled) -> None:
    tenth = WHOLE // 10
    found = await pooled.happen(
        (BOB, [burn(BOB, tenth)]),
        (BOB, [mint(BOB, tenth), burn(BOB, tenth + 10)]),
        (ALICE, [burn(ALICE, tenth)]),
        (DEV, [burn(DEV, WHOLE * 8 // 1_000 - 1)]),
        (DEV, [burn(DEV, WHOLE * 9 // 1_000)]),
    )
    assert [(one.wallet, one.by_deployer, one.share_bps) for one in found] == [
        (ALICE, False, 1_111),
        (DEV, True, 113),
    ]
    (first, _) = found
    assert (first.token, first.pool) == (HIGH, POOL)


async def test_what_lies_out_of_range_is_none(pooled: Pooled) -> None:
    away = v3_swap(POOL, 10**15, -(10**15), Q96, WHOLE, tick=600)
    assert await pooled.happen((BOB, [away]), (ALICE, [burn(ALICE, WHOLE)])) == []
    ref = pooled.chain.blocks[-1].ref
    async with pooled.index.transaction():
        to = IndexedBlock(ref.number, ref.timestamp_s)
        verbs = {one.verb for one in await read_happenings(pooled.index, NETWORK, IndexedBlock(-1, 0), to)}
    assert "draining" in verbs
    assert "removing" not in verbs


async def test_a_depth_that_is_not_known_gives_no_large_removal(pooled: Pooled) -> None:
    found = await pooled.happen((ALICE, [burn(ALICE, WHOLE)]))
    assert [one.share_bps for one in found] == [10_000]
    await pooled.index.execute("UPDATE facts.liquidity SET active_raw = NULL")
    assert await read_removals(pooled.index, HIGH, 0, 10) == []


async def test_what_is_put_in_before_the_price_comes_counts(pooled: Pooled) -> None:
    """It is put in out of range, made active by a swap, and taken out again: nothing left the pool."""
    away, back = (
        v3_swap(POOL, 10**15, -(10**15), Q96, liquidity, tick=tick)
        for tick, liquidity in ((600, 0), (0, WHOLE))
    )
    assert await pooled.happen((BOB, [away, mint(BOB, WHOLE), back, burn(BOB, WHOLE)])) == []


async def test_the_stream_has_each_large_removal_once(pooled: Pooled) -> None:
    third = WHOLE // 3
    found = await pooled.happen((ALICE, [burn(ALICE, third)]), (DEV, [burn(DEV, third)]))
    ref, start = pooled.chain.blocks[-1].ref, pooled.chain.blocks[0].ref
    source, to = DatabaseNews(SimpleNamespace(contracts=NETWORK)), (ref.number, ref.timestamp_s)  # type: ignore[arg-type]
    begin = StreamPosition(0, start.number, 10**9, start.timestamp_s, 0, 0, 0)

    async def read(
        position: StreamPosition,
    ) -> tuple[list[dict[str, Any]], list[StreamPosition], StreamPosition]:
        async with pooled.index.transaction():
            events, after = await source._read_chain(pooled.index, position, to, 100)
        return [json.loads(event.data) for event in events], [event.position for event in events], after

    rows, positions, after = await read(begin)
    assert [one["kind"] for one in rows] == ["removal", "removal"]
    assert [one["removal"]["tx"] for one in rows] == [removal.spot.tx_hash for removal in found]
    assert [one["removal"]["byDeployer"] for one in rows] == [False, True]
    assert rows[0]["text"] == (
        f"{ALICE} removed 33.33 % of the active liquidity of a pool of {HIGH} ({POOL})."
    )
    assert (rows[0]["token"], rows[0]["wallet"], rows[0]["block"]) == (HIGH, ALICE, ref.number)
    # Whoever has the first resumes at the second, and whoever has both gets none again.
    assert (await read(positions[0]))[0] == rows[1:]
    assert (await read(after))[0] == []
