"""The chart of a token's page, out of an index that is made by hand."""

import functools
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from roundtrip.services.boards.price_chart import ChartParams, PriceChart, price_chart, token_trades
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.services.support.index_reader import when
from roundtrip.store.boards import price_candles
from roundtrip.store.check import evidence
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip.store.server import connections
from support.made_index import ETH, MadeIndex, number_address
from support.tables import emptied
from support.told_blocks import START_S
from unit.venues.logs import NETWORK

TOKEN, DEPLOYER, TRADER = map(number_address, (0x70, 0xD0, 0xA1))
QUOTE = "0x" + "0" * 40
DAY_S = 86_400


@pytest.fixture
async def pool(url: str) -> AsyncIterator[asyncpg.Pool]:
    async with connections.create_pool(url, min_size=1, max_size=2) as found:
        yield found


@pytest.fixture
async def made(pool: asyncpg.Pool) -> AsyncIterator[MadeIndex]:
    """A launch that was traded two days and a minute before the index's last second."""
    async with pool.acquire() as connection:
        await emptied(connection)
        found = MadeIndex(connection)
        await found.begin(0, 2 * DAY_S + 60)
        await found.launch(TOKEN, DEPLOYER, QUOTE)
        await connection.execute("UPDATE facts.pool SET at_s = $1", START_S)
        yield found


async def chart(pool: asyncpg.Pool, span: str = "") -> PriceChart:
    ctx: Any = SimpleNamespace(index_pool=lambda: pool, pool=pool, contracts=NETWORK, chain_id=7)
    return (await price_chart(ctx, ChartParams(TOKEN, span))).answer


async def test_prices_are_written_in_whole_units_with_their_changes(
    made: MadeIndex, pool: asyncpg.Pool
) -> None:
    await made.named(TOKEN, "T", 18, 10**27)
    await made.trade(TOKEN, TRADER, 0, QUOTE, ETH)
    await made.trade(TOKEN, TRADER, 2 * DAY_S, QUOTE, 3 * ETH)
    found = await chart(pool)
    assert found.now is not None
    assert (found.now.price, found.now.usd, found.unit, found.span) == ("3", None, "eth", "1h")
    assert found.now.changes == {"5 min": 20_000, "1 h": 20_000, "24 h": 20_000}
    assert [(one.open, one.close, one.volume, one.buys) for one in found.candles] == [
        ("1", "1", "1", 1),
        ("1", "3", "3", 1),
    ]
    assert "+200.00 % in 24 h" in found.text


async def test_a_token_whose_decimals_are_not_known_has_no_price(made: MadeIndex, pool: asyncpg.Pool) -> None:
    await made.trade(TOKEN, TRADER, 0, QUOTE, ETH)
    found = await chart(pool)
    assert (found.now, found.candles) == (None, [])
    assert "decimals" in found.text
    ctx: Any = SimpleNamespace(index_pool=lambda: pool, pool=pool, contracts=NETWORK, chain_id=7)
    (row,) = (await token_trades(ctx, TokenParams(TOKEN))).answer.trades
    assert (row.tokens, row.quote, row.price) == (None, None, None)


async def test_a_busy_token_gets_shorter_candles_unless_they_are_chosen(
    made: MadeIndex, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = functools.partial(price_candles.read_buckets, limit=4)
    monkeypatch.setattr(price_candles, "read_buckets", few)
    await made.named(TOKEN, "T", 18, 10**27)
    for number in (0, *(2 * DAY_S + 60 * place for place in range(-9, 1))):
        await made.trade(TOKEN, TRADER, number, QUOTE)
    found = await chart(pool)
    assert (found.span, found.is_cut) == ("1m", True)
    assert 2 <= len(found.candles) <= 4
    assert (await chart(pool, "1h")).span == "1h"


async def test_only_a_change_of_the_verdict_is_a_mark(made: MadeIndex, pool: asyncpg.Pool) -> None:
    await made.named(TOKEN, "T", 18, 10**27)
    await made.trade(TOKEN, TRADER, 0, QUOTE)
    begin = when(START_S)
    for place, (code, level) in enumerate([("ok", "ok"), ("ok", "ok"), ("cannot_sell", "danger")]):
        at = begin + timedelta(hours=1 + place)
        await evidence.keep(made.connection, TOKEN, KeptEvidence(at, place, "p", code, level, b"{}"))
    found = [mark for mark in (await chart(pool)).marks if mark.kind == "verdict"]
    assert [(mark.at, mark.level) for mark in found] == [(begin + timedelta(hours=3), "danger")]
    assert found[0].text.startswith("The verdict went from ")
