"""What money was worth in blocks that are past, out of the index: the same that the sync writes to a trade of
that block (``sync/prices.py``)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.market.price_history import MOST_MICRO_USD, capped_usdg
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

STALE_S = 86_400
"""Of a block that the index does not have yet the newest price counts, where it is no further behind."""


@dataclass(frozen=True, slots=True)
class PastPrices:
    """Prices of some quotes in some blocks. ``usdg_raw``: by quote and number of a block, usdg raw for 10^18
    raw of the quote; weth stands for eth; what is not known is missing."""

    weth: Address
    usdg: Address
    loaded: frozenset[Address]
    numbers: frozenset[int]
    usdg_raw: Mapping[tuple[Address, int], int]

    def worth(self, quote: Address, quote_raw: int, number: int) -> int | None:
        """So much of a quote in millionths of a dollar, as the block began; None: not known. Raises KeyError
        for a quote or a block that was not loaded: that is no "not known"."""
        if quote == self.usdg:
            return min(quote_raw, MOST_MICRO_USD)
        priced = self.weth if quote == ZERO_ADDRESS else quote
        if priced not in self.loaded or number not in self.numbers:
            raise KeyError(quote, number)
        price = self.usdg_raw.get((priced, number))
        return None if price is None else capped_usdg(quote_raw, price)


_PRICES = """
SELECT quote.address, given.number, price.usdg_raw::text AS usdg_raw
FROM facts.cursor AS cursor
CROSS JOIN facts.address AS quote
CROSS JOIN unnest($2::int[], $3::int[]) AS given (number, at_s)
CROSS JOIN LATERAL (
    SELECT usdg_raw, depth_raw FROM facts.price
    WHERE quote_id = quote.id AND block_number < given.number ORDER BY block_number DESC LIMIT 1
) AS price
WHERE quote.address = ANY($1::bytea[]) AND price.depth_raw > 0 AND price.usdg_raw > 0
    AND (given.number <= cursor.number + 1 OR given.at_s <= cursor.at_s + $4::int)
"""


async def past_prices(
    connection: Connection,
    contracts: Contracts,
    quotes: Collection[Address],
    blocks: Mapping[int, int],
) -> PastPrices:
    """What these quotes were worth as each of ``blocks`` began: their times, in seconds since 1970, by their
    numbers. Within a block anybody can bend a price for nothing, so it is the price at the end of the one
    before; it holds until somebody trades, however long that is. Not known: of a block before the first one
    that was followed, of money that nobody had priced, without an index."""
    # Eth and weth are one; usdg is what it is counted in.
    asked = {contracts.weth if quote == ZERO_ADDRESS else quote for quote in quotes} - {contracts.usdg}
    rows = await connection.fetch(
        _PRICES,
        [as_bytes(quote) for quote in sorted(asked)],
        list(blocks.keys()),
        list(blocks.values()),
        STALE_S,
    )
    found = {(as_address(row["address"]), row["number"]): int(row["usdg_raw"]) for row in rows}
    return PastPrices(contracts.weth, contracts.usdg, frozenset(asked), frozenset(blocks), found)
