"""Whatever way leads to a chain's end, its index is the same: in any batches, over any fork, rebuilt."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.store.server.partitions import DAY_S
from roundtrip.store.server.rows import Connection
from roundtrip.sync.apply import Writer
from roundtrip.sync.position_fold import rebuild, retire_trades
from support.tables import append_blocks, begin_index, tables
from support.told_blocks import Chain, MadeUp
from unit.venues.logs import NETWORK

SEEDS = st.integers(0, 2**20)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=4)
few = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def made_up(seed: int, blocks: int) -> Chain:
    chain = Chain()
    MadeUp(seed).grow(chain, blocks)
    return chain


async def afresh(connection: Connection, chain: Chain) -> dict[str, Any]:
    """The index of a chain that was read at once by somebody who knew nothing."""
    writer = await begin_index(connection, chain.parent)
    await append_blocks(connection, writer, chain.blocks)
    return await tables(connection)


@few
@given(seed=SEEDS, blocks=st.integers(2, 50), sizes=SIZES)
async def test_batches_of_any_size_make_one_index(
    index: Connection, seed: int, blocks: int, sizes: list[int]
) -> None:
    chain = made_up(seed, blocks)
    expected = await afresh(index, chain)
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks, sizes)
    assert await tables(index) == expected


@few
@given(seed=SEEDS, blocks=st.integers(2, 40), sizes=SIZES)
async def test_whoever_forgets_everything_between_batches_makes_the_same(
    index: Connection, seed: int, blocks: int, sizes: list[int]
) -> None:
    chain = made_up(seed, blocks)
    expected = await afresh(index, chain)
    writer = await begin_index(index, chain.parent)
    first = 0
    for size in sizes * blocks:
        some = chain.blocks[first : first + size]
        first += size
        if some:
            writer.forget()
            await append_blocks(index, writer, some)
    assert await tables(index) == expected


@few
@given(
    seed=SEEDS,
    steps=st.lists(st.tuples(st.integers(1, 25), st.integers(0, 25)), min_size=1, max_size=3),
    last=st.integers(1, 20),
    sizes=SIZES,
    keeps=st.booleans(),
)
async def test_forks_leave_nothing_behind(
    index: Connection, seed: int, steps: list[tuple[int, int]], last: int, sizes: list[int], keeps: bool
) -> None:
    """So many blocks on, so many back, a few times over; then the rest. ``keeps``: by one writer, not by a
    new one after each fork."""
    makes, chain = MadeUp(seed), Chain()
    writer = await begin_index(index, chain.parent)
    for turn, (on, back) in enumerate(steps):
        start = len(chain.blocks)
        makes.grow(chain, on)
        await append_blocks(index, writer, chain.blocks[start:], sizes)
        at = chain.blocks[-1].ref
        number = max(chain.parent.number, at.number - back)
        forked = chain.fork(number, f"fork {turn}")
        to = forked.blocks[-1].ref if forked.blocks else chain.parent
        if to != at:
            await writer.rewind(index, at, to)
        chain = forked
        if not keeps:
            writer = Writer(NETWORK)
    start = len(chain.blocks)
    makes.grow(chain, last)
    await append_blocks(index, writer, chain.blocks[start:], sizes)
    answer = await tables(index)
    assert answer == await afresh(index, chain)


@few
@given(seed=SEEDS, blocks=st.integers(2, 50), sizes=SIZES)
async def test_positions_and_closings_are_what_a_rebuild_makes(
    index: Connection, seed: int, blocks: int, sizes: list[int]
) -> None:
    chain = made_up(seed, blocks)
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks, sizes)
    before = await tables(index)
    assert [made async for made in rebuild(index, NETWORK)]
    assert await tables(index) == before
    # Whoever writes on learns of it.
    MadeUp(seed + 1).grow(chain, 5)
    await append_blocks(index, writer, chain.blocks[blocks:])
    assert await tables(index) == await afresh(index, chain)


async def test_made_up_chains_have_something_of_everything(index: Connection) -> None:
    """What the properties above are worth: a few chains fill every table, and trade in every way."""
    filled: dict[str, int] = {}
    for seed in range(8):
        for table, rows in (await afresh(index, made_up(seed, 50))).items():
            filled[table] = filled.get(table, 0) + len(rows)
    assert [table for table, rows in filled.items() if rows < 6] == []


@few
@given(seed=SEEDS, blocks=st.integers(10, 60), sizes=SIZES, back=st.integers(0, 5))
async def test_trades_that_go_leave_positions_as_they_are(
    index: Connection, seed: int, blocks: int, sizes: list[int], back: int
) -> None:
    """Also for who rebuilds them then, forks, and goes on."""
    makes, chain = MadeUp(seed), Chain()
    makes.grow(chain, blocks)
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks, sizes)
    before = await tables(index)
    newest = chain.blocks[-1].ref
    last_day_s = newest.timestamp_s // DAY_S * DAY_S
    while await retire_trades(index, last_day_s, NETWORK):
        pass
    oldest_s = await index.fetchval("SELECT min(at_s) FROM facts.trade")
    assert oldest_s is None or oldest_s >= last_day_s
    assert folded_of(await tables(index)) == folded_of(before)
    assert [made async for made in rebuild(index, NETWORK)]
    assert folded_of(await tables(index)) == folded_of(before)
    of_today = [block.ref for block in chain.blocks if block.ref.timestamp_s >= last_day_s]
    to = of_today[max(0, len(of_today) - 1 - back)]
    if to != newest:
        await writer.rewind(index, newest, to)
    forked = chain.fork(to.number, "fork")
    start = len(forked.blocks)
    makes.grow(forked, 6)
    await append_blocks(index, writer, forked.blocks[start:], sizes)
    answer = folded_of(await tables(index))
    assert answer == folded_of(await afresh(index, forked))


def folded_of(told: dict[str, Any]) -> list[Any]:
    return [told["position"], told["closing"]]
