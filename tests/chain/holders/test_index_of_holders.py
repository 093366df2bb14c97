"""What the index of the real local chain tells of a token's launch, places and prices."""

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import cursor, deployers, tokens
from roundtrip.store.index.prices import past_prices
from roundtrip_development.devnet.world import Built
from support.hex_columns import as_address

MOST = 256


async def test_every_trade_is_worth_what_the_sync_wrote(indexed: Context) -> None:
    async with indexed.pool.acquire() as connection:
        rows = await connection.fetch(
            "SELECT trade.block_number, trade.at_s, trade.quote_raw, trade.micro_usd, quote.address"
            " FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id"
            " JOIN facts.address AS quote ON quote.id = pool.quote_id"
        )
        quotes = {as_address(row["address"]) for row in rows}
        times = {row["block_number"]: row["at_s"] for row in rows}
        found = await past_prices(connection, indexed.contracts, quotes, times)
    worth = [
        found.worth(as_address(row["address"]), int(row["quote_raw"]), row["block_number"]) for row in rows
    ]
    assert worth == [row["micro_usd"] for row in rows]
    assert len(quotes) >= 4
    assert sum(one is not None for one in worth) > 500


@pytest.mark.parametrize(
    ("key", "generation", "kinds"),
    [
        ("curve", 2, ["launchpad_curve"]),
        ("graduated", 2, ["launchpad_curve", "launchpad_pool"]),
        ("graduated_taxed", 2, ["launchpad_curve", "launchpad_pool"]),
        ("first_fresh", 1, ["amm_v3"]),
        ("first_graduated", 1, ["amm_v3"]),
    ],
)
async def test_a_launch_and_its_own_places(
    indexed: Context, built: Built, key: str, generation: int, kinds: list[str]
) -> None:
    """Told apart by the launch alone: were only so many read, they would be these."""
    token = Address(built.tokens[key].lower())
    async with indexed.pool.acquire() as connection:
        launch = await deployers.launch_of(connection, token)
        assert launch is not None
        venues = await cursor.venues_of(connection, token, MOST)
        own = await cursor.venues_of(connection, token, len(kinds))
        paid = await cursor.pools_of(connection, await tokens.id_of(connection, token) or 0, MOST)
        assert {pool.at for pool in paid} <= {p.at for p in venues}
    assert own == venues[: len(kinds)]
    assert [pool.kind for pool in own] == kinds
    assert (launch.generation, launch.at) == (generation, own[0].at)
    assert own[0].spot.block_number == launch.block_number
    assert launch.sender is not None


async def test_a_token_that_nobody_launched_has_its_pools(indexed: Context, built: Built) -> None:
    token = Address(built.tokens["plain"].lower())
    async with indexed.pool.acquire() as connection:
        assert await deployers.launch_of(connection, token) is None
        assert await cursor.venues_of(connection, token, MOST) != []
