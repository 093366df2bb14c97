"""Candles, prices and the newest trades of a token, out of trades that are known."""

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.candles import PRICE_ONE, TradeBucket
from roundtrip.store.boards.price_candles import (
    TraderTags,
    main_pools,
    newest_trades,
    read_buckets,
    read_launch_marks,
    read_prices,
    read_trader_tags,
)
from roundtrip.store.index.tokens import id_of, ids_of
from roundtrip.store.server.rows import Connection
from roundtrip.sync.apply import Writer
from support.made_index import MadeIndex, number_address
from support.tables import append_blocks, begin_index, emptied
from support.told_blocks import (
    START_S,
    Chain,
    LoggedTransaction,
    bought,
    launched,
    sent,
    sold,
    v3_at,
    v3_opened,
    v3_priced,
    v3_swap,
)
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH
from unit.venues.logs import NETWORK

SPAN_S = 60
PART = 10**12
"""So small a part of what is paid is kept by the curve that sums stay whole."""


def buy(who: Address, paid: int, got: int) -> LoggedTransaction:
    """The curve keeps a hundredth of what is paid."""
    return sent(bought(CURVE, who, who, paid, got), sender=who)


def sell(who: Address, got: int, given: int) -> LoggedTransaction:
    return sent(sold(CURVE, who, who, got, given), sender=who)


def price(quote_raw: int, token_raw: int) -> int:
    found: int = quote_raw * PRICE_ONE // token_raw
    return found


class TradedLaunch:
    """A launch, and what was traded on its curve."""

    def __init__(self, index: Connection) -> None:
        self.index, self.chain = index, Chain()
        self.chain.block(sent(launched(HIGH, CURVE, DEV), sender=DEV))

    async def read_in(self) -> Writer:
        writer = await begin_index(self.index, self.chain.parent)
        await append_blocks(self.index, writer, self.chain.blocks)
        return writer

    async def pool_ids(self) -> list[int]:
        token_id = await id_of(self.index, HIGH)
        assert token_id is not None
        found = await main_pools(self.index, token_id, self.newest_s, NETWORK)
        assert [pool.at for pool in found] == [CURVE]
        return [pool.id for pool in found]

    @property
    def newest_s(self) -> int:
        return self.chain.blocks[-1].ref.timestamp_s

    async def buckets(self, limit: int = 100) -> tuple[list[TradeBucket], bool]:
        from_s = START_S // SPAN_S * SPAN_S
        return await read_buckets(self.index, await self.pool_ids(), SPAN_S, from_s, self.newest_s, limit)


@pytest.fixture
def priced(index: Connection) -> TradedLaunch:
    return TradedLaunch(index)


def second(priced: TradedLaunch) -> int:
    return priced.newest_s // SPAN_S * SPAN_S


async def test_a_bucket_has_the_prices_at_the_ends_of_its_blocks(priced: TradedLaunch) -> None:
    """What the curve keeps is no part of the price. Within a block the price is moved up and back."""
    priced.chain.block(buy(ALICE, 200 * PART, 99 * PART), after_s=SPAN_S)
    first = second(priced)
    priced.chain.block(buy(BOB, 10**6 * PART, PART), sell(BOB, 297 * PART, 100 * PART), after_s=1)
    priced.chain.block(buy(ALICE, 300 * PART, 99 * PART), after_s=1)
    priced.chain.block(buy(CAROL, 100 * PART, 99 * PART), after_s=2 * SPAN_S)
    await priced.read_in()
    one = price(1, 1)
    assert await priced.buckets() == (
        [
            TradeBucket(
                first,
                open_raw=price(2, 1),
                high_raw=price(3, 1),
                low_raw=price(2, 1),
                close_raw=price(3, 1),
                volume_raw=(200 + 10**6 + 297 + 300) * PART,
                buys=3,
                sells=1,
            ),
            TradeBucket(second(priced), one, one, one, one, volume_raw=100 * PART, buys=1, sells=0),
        ],
        False,
    )


async def test_a_trade_of_dust_sets_no_price(priced: TradedLaunch) -> None:
    priced.chain.block(buy(ALICE, 200 * PART, 99 * PART), after_s=SPAN_S)
    priced.chain.block(buy(BOB, 999, 1), buy(BOB, 10**6, 999))
    await priced.read_in()
    ((bucket,), _) = await priced.buckets()
    assert (bucket.high_raw, bucket.close_raw, bucket.buys) == (price(2, 1), price(2, 1), 3)


async def test_of_too_many_trades_the_newest_whole_buckets_are_given(priced: TradedLaunch) -> None:
    for after_s in (SPAN_S, 1, SPAN_S, 1, SPAN_S):
        priced.chain.block(buy(ALICE, 100 * PART, 99 * PART), after_s=after_s)
    await priced.read_in()
    whole, is_cut = await priced.buckets(limit=5)
    assert not is_cut
    assert len(whole) == 3
    assert await priced.buckets(limit=4) == (whole[1:], True)
    assert await priced.buckets(limit=2) == (whole[2:], True)


async def test_blocks_that_are_undone_take_their_candles_along(priced: TradedLaunch) -> None:
    priced.chain.block(buy(ALICE, 100 * PART, 99 * PART), after_s=SPAN_S)
    kept = priced.chain.blocks[-1].ref
    await priced.read_in()
    before = await priced.buckets()
    priced.chain.block(buy(ALICE, 500 * PART, 99 * PART))
    last = priced.chain.blocks[-1].ref
    writer = await priced.read_in()
    assert (await priced.buckets())[0][0].close_raw == price(5, 1)
    await writer.rewind(priced.index, last, kept)
    assert await priced.buckets() == before
    assert {
        one.price_raw
        for one in (await read_prices(priced.index, await priced.pool_ids(), [priced.newest_s])).values()
    } == {price(1, 1)}


async def test_a_price_is_that_of_the_last_trade_before(priced: TradedLaunch) -> None:
    priced.chain.block(buy(ALICE, 100 * PART, 99 * PART), after_s=100)
    priced.chain.block(buy(ALICE, 400 * PART, 99 * PART), after_s=100)
    priced.chain.block(buy(BOB, 999, 1), after_s=100)
    await priced.read_in()
    begin, end = priced.newest_s - 300, priced.newest_s
    found = await read_prices(priced.index, await priced.pool_ids(), [begin, end - 101, end - 200, end])
    assert {asked: (one.at_s, one.price_raw) for asked, one in found.items()} == {
        end - 101: (end - 200, price(1, 1)),
        end - 200: (end - 200, price(1, 1)),
        end: (end - 100, price(4, 1)),
    }


async def test_a_pools_fee_is_no_part_of_the_price(index: Connection) -> None:
    """A pool that keeps 0.3 % of what comes in: a buy and a sell around one price say that price."""
    pool, chain = v3_at(HIGH, NETWORK.weth), Chain()
    chain.block(sent(v3_opened(HIGH, NETWORK.weth), v3_priced(pool, 1 << 96)))
    first, second = (0, 1) if NETWORK.weth > HIGH else (1, 0)

    def swap(token_raw: int, quote_raw: int) -> LoggedTransaction:
        amounts = {first: token_raw, second: quote_raw}
        return sent(v3_swap(pool, amounts[0], amounts[1]), sender=ALICE)

    chain.block(swap(-997 * 10**12, 1_000 * 10**12))
    chain.block(swap(1_000 * 10**12, -997 * 10**12))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    token_id = await id_of(index, HIGH)
    assert token_id is not None
    (place,) = await main_pools(index, token_id, chain.blocks[-1].ref.timestamp_s, NETWORK)
    times = [block.ref.timestamp_s for block in chain.blocks[1:]]
    found = await read_prices(index, [place.id], times)
    assert [found[at_s].price_raw for at_s in times] == [PRICE_ONE, PRICE_ONE]


async def test_the_newest_trades_come_first(priced: TradedLaunch) -> None:
    priced.chain.block(buy(ALICE, 100 * PART, 99 * PART), sell(ALICE, 50 * PART, 40 * PART))
    priced.chain.block(buy(BOB, 999, 7))
    await priced.read_in()
    found = await newest_trades(priced.index, await priced.pool_ids(), 2)
    assert [(one.wallet, one.buys, one.token_raw, one.quote_raw, one.price_raw is None) for one in found] == [
        (BOB, True, 7, 999, True),
        (ALICE, False, 40 * PART, 50 * PART, False),
    ]


async def test_the_launch_and_what_its_deployer_sold_are_marks(priced: TradedLaunch) -> None:
    priced.chain.block(sell(DEV, 50 * PART, 40 * PART))
    await priced.read_in()
    token_id = await id_of(priced.index, HIGH)
    assert token_id is not None
    found = sorted(await read_launch_marks(priced.index, token_id), key=lambda mark: mark.at_s)
    assert [(mark.kind, mark.wallet, mark.token_raw) for mark in found] == [
        ("launch", None, None),
        ("deployer_sold", DEV, 40 * PART),
    ]


DEPLOYER, FUNDER, EXCHANGE, TOKEN = map(number_address, (0xD0, 0xF0, 0xE0, 0x70))
ETH = "0x" + "0" * 40


async def test_what_is_known_of_traders(index: Connection) -> None:
    """Three of one purse are a bundle, three of an exchange are none; who bought late is no sniper."""
    await emptied(index)
    made = MadeIndex(index)
    tied, paid, (late, child) = (
        [number_address(base + n) for n in range(count)]
        for base, count in ((0x100, 3), (0x200, 3), (0x300, 2))
    )
    await made.launch(TOKEN, DEPLOYER, ETH)
    for wallet in (*tied, *paid, DEPLOYER):
        await made.trade(TOKEN, wallet, 31, ETH)
    await made.trade(TOKEN, late, 32, ETH)
    for wallet in tied:
        await made.funded(wallet, FUNDER)
    for wallet in paid:
        await made.funded(wallet, EXCHANGE)
    await made.crowd(EXCHANGE, 500)
    await made.funded(child, DEPLOYER)
    token_id, ids = await id_of(index, TOKEN), await ids_of(index, [*tied, *paid, late, child, DEPLOYER])
    assert token_id is not None
    await index.execute("INSERT INTO facts.winner VALUES ('7d', 4, $1, 5, 5, 1, 1, 1, 1, 1, 1)", ids[late])
    await index.execute("INSERT INTO facts.winner VALUES ('24h', 9, $1, 5, 5, 1, 1, 1, 1, 1, 1)", ids[late])
    found = await read_trader_tags(index, token_id, ids.values())

    def tags(wallet: Address) -> TraderTags:
        return found[ids[wallet]]._replace(wallet_id=0)

    plain = TraderTags(0, False, False, False, False, None, None)
    assert tags(DEPLOYER) == plain._replace(is_deployer=True)
    assert tags(child) == plain._replace(is_funded_by_deployer=True)
    assert tags(late) == plain._replace(span="24h", rank=9)
    assert {tags(wallet) for wallet in tied} == {plain._replace(is_sniper=True, is_bundled=True)}
    assert {tags(wallet) for wallet in paid} == {plain._replace(is_sniper=True)}
