"""The boards are what a slow, obvious recount of all facts says, at any moment and after any fork."""

import random
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.market.fairness import Fairness
from roundtrip.domain.market.winners import SPANS
from roundtrip.store.boards import winners
from roundtrip.store.index import cursor as chain
from roundtrip.store.index import rewind
from roundtrip.store.server.rows import Connection
from support.tables import append_blocks, begin_index
from support.told_blocks import Chain, MadeUp
from support.won import Facts, block, facts, plain, row_of, strewn

FAIRNESSES = st.builds(
    Fairness,
    young_s=st.sampled_from((0, 1, 60, 54_000)),
    least_buyers=st.integers(1, 3),
    most_funded=st.integers(0, 3),
)
"""For chains of four wallets."""
few = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


async def recounted(connection: Connection, fairness: Fairness, looked_at: int = 3) -> Facts:
    """Counts every span and holds it against the slow way; gives what there was before."""
    stands = await chain.cursor(connection)
    assert stands is not None
    before = await facts(connection, fairness)
    for span in SPANS:
        slow = await facts(connection, fairness)
        async with connection.transaction():
            board = await winners.count_board(connection, span, stands.block, fairness, looked_at=looked_at)
            assert await winners.keep(connection, board, stands)
        assert slow.ranked_rows(board.rows) == plain(slow.winners(span))
        assert slow.names(board.found) == slow.fair(span) - slow.kept_fair
        kept = await winners.load_board(connection, span)
        assert kept is not None
        assert (kept.rows, kept.block_number, kept.at_s) == (board.rows, stands.block.number, slow.at_s)
        after = await facts(connection, fairness)
        assert after.kept_fair == slow.kept_fair | slow.fair(span)
    assert await winners.counted_to(connection) == dict.fromkeys(SPANS, stands.block.number)
    return before


@few
@given(
    seed=st.integers(0, 2**20),
    fairness=FAIRNESSES,
    steps=st.lists(st.tuples(st.integers(5, 40), st.integers(0, 25)), min_size=1, max_size=3),
)
async def test_boards_are_what_a_slow_recount_says(
    index: Connection, seed: int, fairness: Fairness, steps: list[tuple[int, int]]
) -> None:
    """So many blocks on and so many back, a few times over, counted each time."""
    makes, chain = MadeUp(seed), Chain()
    writer = await begin_index(index, chain.parent)
    for turn, (on, back) in enumerate(steps):
        start = len(chain.blocks)
        makes.grow(chain, on)
        await append_blocks(index, writer, chain.blocks[start:], (7,))
        await recounted(index, fairness)
        at = chain.blocks[-1].ref
        chain = chain.fork(max(chain.parent.number, at.number - back), f"fork {turn}")
        to = chain.blocks[-1].ref if chain.blocks else chain.parent
        if to != at:
            await writer.rewind(index, at, to)
            await recounted(index, fairness)


@few
@given(
    seed=st.integers(0, 2**20),
    fairness=FAIRNESSES,
    back=st.lists(st.integers(0, 300), max_size=2),
    looked_at=st.integers(0, 12),
)
async def test_boards_of_strewn_facts_are_what_a_slow_recount_says(
    index: Connection, seed: int, fairness: Fairness, back: list[int], looked_at: int
) -> None:
    """Whatever the tables may say, also after everything above a block was taken away."""
    newest = await strewn(index, random.Random(seed))
    await recounted(index, fairness, looked_at)
    for blocks in back:
        newest = block(newest.number - blocks)
        await rewind.take_away(index, newest)
        await index.execute("UPDATE facts.cursor SET number = $1, hash = $2, at_s = $3", *row_of(newest))
        await recounted(index, fairness)


async def test_strewn_facts_have_winners_and_losers_of_every_sort(index: Connection) -> None:
    """What the property above is worth."""
    seen: Counter[str] = Counter()
    fairness = Fairness(young_s=54_000, least_buyers=3, most_funded=2)
    for seed in range(16):
        await strewn(index, random.Random(seed))
        slow = await recounted(index, fairness)
        won, wallets = slow.winners("all"), slow.wallets
        seen["winners"] += len(won)
        seen["of equal profit"] += len(won) - len({one.profit_wei for one in won})
        seen["more than one closing"] += any(one.closed > 1 for one in won)
        seen["a loss among them"] += any(one.won < one.closed for one in won)
        seen["another board for a day"] += won != slow.winners("24h")
        fair = slow.fair("all")
        seen["fair tokens"] += len(fair - slow.kept_fair)
        seen["kept though no longer fair"] += len(fair & slow.kept_fair)
        seen["unfair ones"] += len({one.token for one in slow.closings} - fair)
        seen["exchanges"] += sum(wallets.is_exchange(one) for one in wallets.funded)
        for one in slow.closings:
            begun = slow.begun.get(one.token)
            seen["kin"] += begun is not None and wallets.is_kin(one.wallet, begun.deployer)
    assert len(seen) == 10
    assert min(seen.values()) >= 3, seen
