"""Prices of quotes in past blocks, out of the index: the prices that the sync writes to the trades of those
blocks (``sync/ledger.py``)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base.types import ZERO_ADDRESS, Address, Numeric
from roundtrip.domain.market.moving import MAX_MICRO_USD, capped_usdg
from roundtrip.store.server.rows import Connection, as_bytes, fetch
from roundtrip.venues.base import Contracts

STALE_S = 86_400
"""For a block that is not indexed yet, the newest price is used if the index is at most so far behind."""


@dataclass(frozen=True, slots=True)
class PastPrices:
    """Prices of some quotes in some blocks. ``usdg_raw``: by quote and block number, usdg raw for 10^18 raw
    of the quote. Eth has the key of weth. An unknown price is missing."""

    weth: Address
    usdg: Address
    loaded: frozenset[Address]
    numbers: frozenset[int]
    usdg_raw: Mapping[tuple[Address, int], int]

    def worth(self, quote: Address, quote_raw: int, number: int) -> int | None:
        """The value of ``quote_raw`` in millionths of a dollar at the start of the block; None: not known.
        Raises KeyError for a quote or a block that was not loaded."""
        if quote == self.usdg:
            return min(quote_raw, MAX_MICRO_USD)
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
    connection: Connection, contracts: Contracts, quotes: Collection[Address], blocks: Mapping[int, int]
) -> PastPrices:
    """The prices of these quotes at the start of each of ``blocks``, which maps block numbers to times in
    seconds since 1970. The price is that at the end of the block before, because within a block a price can
    be manipulated at no cost. It holds until the next trade, with no time limit. A price is not known for a
    block before the first indexed one, for a quote without trades, and without an index."""
    # Eth and weth have one price. Usdg is the unit.
    priced = {contracts.weth if quote == ZERO_ADDRESS else quote for quote in quotes} - {contracts.usdg}
    rows = await fetch(
        connection,
        tuple[tuple[Address, int], Numeric],
        _PRICES,
        [as_bytes(quote) for quote in sorted(priced)],
        list(blocks.keys()),
        list(blocks.values()),
        STALE_S,
    )
    return PastPrices(contracts.weth, contracts.usdg, frozenset(priced), frozenset(blocks), dict(rows))


class TradedWorth(NamedTuple):
    """How much of a token was traded, above zero, and what that was worth in millionths of a dollar."""

    token_raw: Numeric
    micro_usd: Numeric


_TRADED = """
SELECT token.address, sum(trade.token_raw) AS token_raw, sum(trade.micro_usd) AS micro_usd
FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id
JOIN facts.address AS token ON token.id = pool.token_id
WHERE trade.at_s = $1 AND trade.block_number = $2 AND trade.tx_hash = $3
GROUP BY token.address HAVING count(trade.micro_usd) = count(*) AND sum(trade.token_raw) > 0
"""


async def traded_worths(
    connection: Connection, number: int, at_s: int, tx_hash: str
) -> dict[Address, TradedWorth]:
    """The tokens that a transaction of this block traded; without those of which the worth of one trade is
    not known."""
    arguments = at_s, number, as_bytes(tx_hash)
    return dict(await fetch(connection, tuple[Address, TradedWorth], _TRADED, *arguments))
