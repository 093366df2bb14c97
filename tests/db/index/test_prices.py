"""What money was worth in the past is what the sync wrote to the trades of that block."""

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.market.price_history import MAX_MICRO_USD
from roundtrip.store.index.prices import STALE_S, TradedWorth, past_prices, traded_worths
from roundtrip.store.server.rows import Connection
from support.hex_columns import as_address
from support.tables import append_blocks, begin_index
from support.told_blocks import USDG, WETH, Chain, MadeUp, sent, v3_at, v3_opened, v3_priced
from unit.sync.priced import at_usd, swap
from unit.sync.telling import NVDA
from unit.venues.logs import NETWORK

SHALLOW = v3_at(WETH, USDG)
ETH = 10**18
START = 100
"""The first block of a chain."""

few = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


async def all_trades_are_worth_the_same(connection: Connection) -> int:
    """How many of them are worth something that had to be looked up."""
    rows = await connection.fetch(
        "SELECT trade.block_number, trade.at_s, trade.quote_raw, trade.micro_usd, quote.address"
        " FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id"
        " JOIN facts.address AS quote ON quote.id = pool.quote_id"
    )
    quotes = {as_address(row["address"]) for row in rows}
    loaded = await past_prices(
        connection, NETWORK, quotes, {row["block_number"]: row["at_s"] for row in rows}
    )
    answer = 0
    for row in rows:
        quote = as_address(row["address"])
        worth = loaded.worth(quote, int(row["quote_raw"]), row["block_number"])
        assert worth == row["micro_usd"], row
        answer += worth is not None and quote != USDG
    return answer


@few
@given(seed=st.integers(0, 2**20), blocks=st.integers(10, 80), back=st.integers(0, 30))
async def test_made_up_trades_are_worth_what_the_sync_wrote(
    index: Connection, seed: int, blocks: int, back: int
) -> None:
    """Also after a fork, and whoever wrote them."""
    makes, chain = MadeUp(seed), Chain()
    writer = await begin_index(index, chain.parent)
    makes.grow(chain, blocks)
    await append_blocks(index, writer, chain.blocks, (7,))
    await all_trades_are_worth_the_same(index)
    at = chain.blocks[-1].ref
    chain = chain.fork(max(chain.parent.number, at.number - back), "fork")
    to = chain.blocks[-1].ref if chain.blocks else chain.parent
    if to != at:
        await writer.rewind(index, at, to)
    start = len(chain.blocks)
    makes.grow(chain, 15)
    await append_blocks(index, writer, chain.blocks[start:], (7,))
    await all_trades_are_worth_the_same(index)


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_transactions_tokens_are_worth_what_its_trades_were(index: Connection, seed: int) -> None:
    makes, chain = MadeUp(seed), Chain()
    writer = await begin_index(index, chain.parent)
    makes.grow(chain, 40)
    await append_blocks(index, writer, chain.blocks, (7,))
    rows = await index.fetch(
        "SELECT trade.*, token.address AS token FROM facts.trade AS trade"
        " JOIN facts.pool AS pool ON pool.id = pool_id JOIN facts.address AS token ON token.id = token_id"
    )
    assert rows
    for one in rows[:20]:
        own = [row for row in rows if row["tx_hash"] == one["tx_hash"]]
        answer = await traded_worths(index, one["block_number"], one["at_s"], "0x" + one["tx_hash"].hex())
        expected = {}
        for token in {row["token"] for row in own}:
            raws, worths = zip(
                *((int(row["token_raw"]), row["micro_usd"]) for row in own if row["token"] == token),
                strict=True,
            )
            if None not in worths and sum(raws):
                expected[as_address(token)] = TradedWorth(sum(raws), sum(worths))
        assert answer == expected


async def test_made_up_trades_have_prices_that_are_looked_up(index: Connection) -> None:
    """What the property above is worth."""
    answer = 0
    for seed in range(4):
        chain = Chain()
        writer = await begin_index(index, chain.parent)
        MadeUp(seed).grow(chain, 150)
        await append_blocks(index, writer, chain.blocks, (7,))
        answer += await all_trades_are_worth_the_same(index)
    assert answer > 40


# --- by hand ---------------------------------------------------------------------------------------


@pytest.fixture
async def priced_chain(index: Connection) -> Chain:
    """Eth is worth 2000 dollars from the end of the second block on, 3000 and then 4000 in the fifth, and
    nothing happens in two more."""
    chain = Chain()
    chain.block(sent(v3_opened(WETH, USDG), v3_priced(SHALLOW, at_usd(1000))))
    chain.block(sent(swap(SHALLOW, 2000)))
    chain.block()
    chain.block()
    chain.block(sent(swap(SHALLOW, 3000), swap(SHALLOW, 4000)))
    chain.block()
    chain.block()
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    return chain


async def dollars(index: Connection, times: Mapping[int, int], quote: Address = WETH) -> list[object]:
    """What an eth is worth in each of these blocks."""
    found = await past_prices(index, NETWORK, {quote}, times)
    worth = [found.worth(quote, ETH, number) for number in times]
    return [None if one is None else round(one / 10**6) for one in worth]


@pytest.mark.parametrize("quote", [WETH, ZERO_ADDRESS])
async def test_a_block_has_the_price_of_the_end_of_the_one_before(
    index: Connection, priced_chain: Chain, quote: Address
) -> None:
    times = {block.ref.number: block.ref.timestamp_s for block in priced_chain.blocks}
    assert await dollars(index, times, quote) == [None, None, 2000, 2000, 2000, 4000, 4000]


async def test_before_the_first_block_nothing_is_known(index: Connection, priced_chain: Chain) -> None:
    assert await dollars(index, {0: 0, START - 1: 0, START: 0}) == [None, None, None]


async def test_past_the_newest_block_a_price_holds_for_a_day(index: Connection, priced_chain: Chain) -> None:
    """The next block has the price of the newest, whenever it comes."""
    last = priced_chain.blocks[-1].ref
    later = {
        last.number + 1: last.timestamp_s + 9 * STALE_S,
        last.number + 2: last.timestamp_s + STALE_S,
        last.number + 3: last.timestamp_s + STALE_S + 1,
    }
    assert await dollars(index, later) == [4000, 4000, None]


async def test_a_price_holds_as_long_as_nobody_trades(index: Connection, priced_chain: Chain) -> None:
    """However long: the pool still gives it."""
    priced_chain.block(after_s=9 * STALE_S)
    priced_chain.block()
    await append_blocks(index, await begin_index(index, priced_chain.parent), priced_chain.blocks)
    last = priced_chain.blocks[-1].ref
    assert await dollars(index, {last.number: last.timestamp_s}) == [4000]


async def test_a_pool_with_nothing_in_it_tells_nothing(index: Connection, priced_chain: Chain) -> None:
    """Also where it did before: an older price is not taken for one."""
    await index.execute("UPDATE facts.price SET depth_raw = 0 WHERE block_number = $1", START + 4)
    times = {block.ref.number: block.ref.timestamp_s for block in priced_chain.blocks}
    assert await dollars(index, times) == [None, None, 2000, 2000, 2000, None, None]
    await index.execute(
        "UPDATE facts.price SET depth_raw = 1, usdg_raw = 0 WHERE block_number = $1", START + 4
    )
    assert await dollars(index, times) == [None, None, 2000, 2000, 2000, None, None]


async def test_without_an_index_only_dollars_are_worth_something(connection: Connection) -> None:
    await connection.execute("DELETE FROM facts.cursor")
    found = await past_prices(connection, NETWORK, {WETH, USDG, NVDA}, {7: 7})
    assert [found.worth(quote, ETH, 7) for quote in (WETH, USDG, NVDA)] == [None, ETH, None]


async def test_nothing_is_worth_more_than_fits(index: Connection, priced_chain: Chain) -> None:
    found = await past_prices(index, NETWORK, {WETH}, {START + 6: 0})
    assert found.worth(WETH, 2**255, START + 6) == MAX_MICRO_USD
    assert found.worth(USDG, 2**255, START + 6) == MAX_MICRO_USD
    assert found.worth(WETH, 0, START + 6) == 0


async def test_what_was_not_loaded_is_not_taken_for_unknown(index: Connection, priced_chain: Chain) -> None:
    found = await past_prices(index, NETWORK, {WETH}, {START + 6: 0})
    for quote, number in ((WETH, START + 5), (NVDA, START + 6)):
        with pytest.raises(KeyError):
            found.worth(quote, 1, number)
    assert found.worth(USDG, 1, START + 5) == 1
