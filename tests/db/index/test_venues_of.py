"""Where a token may trade: every place, its own first, whoever opened others beside."""

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.store.index import cursor
from roundtrip.store.server.rows import Connection
from support.tables import append_blocks, begin_index
from support.told_blocks import (
    HOOK,
    WETH,
    Chain,
    launched,
    sent,
    swept,
    v3_at,
    v3_opened,
    v3_swap,
    v4_at,
    v4_opened,
)
from unit.sync.telling import CURVE, DEV, HIGH, LOW, NVDA
from unit.venues.network import address

OTHERS = [address(0x7000 + n) for n in range(6)]
ABOVE = address(0xEE << 152)
"""Its address is above that of the token, which is the first side of their pool then."""


def story() -> Chain:
    """Launched, and some time later swept and become a pool; before, between and after that strangers open
    others: for money, for nobody's money, and where the token is the money."""
    made = Chain()
    made.block(sent(v3_opened(HIGH, OTHERS[0]), v3_opened(HIGH, ABOVE)))
    made.block(sent(v3_opened(HIGH, WETH, 500)))
    made.block(sent(launched(HIGH, CURVE, DEV)))
    made.block(*(sent(v4_opened(HIGH, other)) for other in OTHERS[1:]))
    made.block(sent(swept(HIGH), v4_opened(HIGH, ZERO_ADDRESS, HOOK)))
    made.block(sent(v3_opened(HIGH, WETH, 3000), v3_opened(NVDA, WETH)))
    return made


async def places(index: Connection, token: Address = HIGH, most: int = 256) -> list[str]:
    return [pool.at for pool in await cursor.venues_of(index, token, most)]


async def test_every_place_is_there_and_its_own_come_first(index: Connection) -> None:
    made = story()
    await append_blocks(index, await begin_index(index, made.parent), made.blocks)
    found = await places(index)
    assert found[:4] == [
        CURVE,
        v4_at(HIGH, ZERO_ADDRESS, HOOK),
        v3_at(HIGH, WETH, 500),
        v3_at(HIGH, WETH, 3000),
    ]
    assert found[4] == v3_at(HIGH, ABOVE)
    assert sorted(found[5:]) == sorted(
        [v3_at(HIGH, OTHERS[0]), *(v4_at(HIGH, other) for other in OTHERS[1:])]
    )
    assert await places(index, OTHERS[2]) == [v4_at(HIGH, OTHERS[2])]
    assert await places(index, LOW) == []
    assert await places(index, address(0x404)) == []


async def test_as_many_as_are_asked_for_and_never_without_its_own(index: Connection) -> None:
    """Many that are older, and many that were opened between, keep none of its own away."""
    made = story()
    await append_blocks(index, await begin_index(index, made.parent), made.blocks)
    for most in range(1, 5):
        found = await places(index, most=most)
        assert len(found) == most
        assert found[:2] == [CURVE, v4_at(HIGH, ZERO_ADDRESS, HOOK)][:most]


async def test_where_it_is_the_money_is_a_place_too(index: Connection) -> None:
    """Behind those where it is what is traded."""
    made = Chain()
    made.block(*(sent(launched(other, address(int(other, 16) + 99), DEV, NVDA)) for other in OTHERS))
    made.block(sent(v3_opened(NVDA, WETH)))
    await append_blocks(index, await begin_index(index, made.parent), made.blocks)
    curves = [address(int(other, 16) + 99) for other in OTHERS]
    assert await places(index, NVDA) == [v3_at(NVDA, WETH), *curves]
    assert await places(index, NVDA, 3) == [v3_at(NVDA, WETH), *curves[:2]]
    (pool,) = await cursor.venues_of(index, NVDA, 1)
    assert (pool.kind, pool.token, pool.quote, pool.in_money_from) == ("amm_v3", NVDA, WETH, 101)
    assert (pool.spot.block_number, pool.spot.at_s) == (101, made.blocks[1].ref.timestamp_s)


async def test_where_it_was_traded_beyond_the_places_that_are_taken(index: Connection) -> None:
    made = story()
    traded = v3_at(HIGH, WETH, 3000)
    made.block(sent(v3_swap(traded, -5, 7)))
    await append_blocks(index, await begin_index(index, made.parent), made.blocks)
    found = await places(index)
    assert not await cursor.may_trade_beyond(index, HIGH, found)
    assert not await cursor.may_trade_beyond(index, HIGH, [traded])
    others = [at for at in found if at != traded]
    assert await cursor.may_trade_beyond(index, HIGH, others)
    # Of a token that stands nowhere, or where nothing is traded, there is nothing.
    assert not await cursor.may_trade_beyond(index, OTHERS[2], [])
    assert not await cursor.may_trade_beyond(index, address(0x404), [])
    # What was traded before what is kept is gone.
    await index.execute("UPDATE facts.cursor SET trades_from_s = $1", made.blocks[-1].ref.timestamp_s + 1)
    assert await cursor.may_trade_beyond(index, HIGH, [traded])
    assert not await cursor.may_trade_beyond(index, HIGH, found)
