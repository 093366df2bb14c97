"""What every kind of happening is looked up by: a span of blocks, and what a rule leaves of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import asyncpg

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, TxHash
from roundtrip.domain.market.price_history import worth_wei
from roundtrip.domain.watch.rules import Happening, Over, Watch
from roundtrip.store.index.addresses import ids_of
from roundtrip.store.index.prices import past_prices
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.partitions import DAY_S
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts
from roundtrip.venues.entry_point import ENTRY_POINTS

LAUNCHED_RAW = 10**27
"""The supply of every launchpad's token: 10^9 of 18 decimals, whatever somebody read of it when."""
PPM = 1_000_000

Key = tuple[int, int, int]
"""Where a fact stands: time, block, log."""
NEWEST: Key = (2**31 - 1, 2**31 - 1, 2**31 - 1)


class FactSpan(NamedTuple):
    """Facts of blocks after ``after_number`` up to ``to_number`` whose times are ``from_s`` to ``to_s``, both
    of them in it; the newest ``most`` that stand before ``before``. ``most`` None: all."""

    from_s: int
    to_s: int
    after_number: int
    to_number: int
    before: Key = NEWEST
    most: int | None = None


class HappeningPage(NamedTuple):
    """What was found, the newest first. ``rest``: before which there may be more; None: that is all."""

    found: Sequence[Happening]
    rest: Key | None


@dataclass(frozen=True, slots=True)
class RuleFilter:
    """What a rule leaves, in the database's numbers: of these wallets, of this token, in these of its pools.
    Whatever it leaves out is none of the rule's; what it leaves may still be none. ``least_raw``: tokens of
    which more have to move; known where the token is."""

    wallets: Sequence[int] | None = None
    token: int | None = None
    pools: Sequence[int] | None = None
    over: Over | None = None
    least_raw: int | None = None

    def above(self, unit: str) -> int | None:
        """What the rule's threshold is in this unit; None: it has none in it."""
        return self.over.raw if self.over is not None and self.over.unit == unit else None


ALL = RuleFilter()


class Arguments:
    """A statement's arguments, each by the number under which it stands in it."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def __call__(self, value: Any) -> str:
        """Its number, as it is written."""
        self.values.append(value)
        return f"${len(self.values)}"

    def within(self, span: FactSpan, table: str) -> str:
        """That a row of a table of facts is in a span."""
        return (
            f"{table}.at_s BETWEEN {self(span.from_s)}::int AND {self(span.to_s)}::int"
            f" AND {table}.block_number > {self(span.after_number)}::int"
            f" AND {table}.block_number <= {self(span.to_number)}::int"
        )

    def newest(self, span: FactSpan, table: str) -> str:
        """The newest of a span's, as many as it wants."""
        at, number, log = (f"{self(one)}::int" for one in span.before)
        place = f"{table}.at_s, {table}.block_number, {table}.log_index"
        down = place.replace(",", " DESC,")
        return f"({place}) < ({at}, {number}, {log}) ORDER BY {down} DESC LIMIT {self(span.most)}::bigint"


@dataclass(frozen=True, slots=True)
class HappeningReader:
    """Reads one network's facts. ``eth_ids``: quotes that are eth; ``money_ids``: with the dollar;
    ``machinery_ids``: the network's own contracts, whom nobody gives tokens to keep. All in the database's
    numbers, as far as they stand in a fact."""

    connection: Connection
    contracts: Contracts
    eth_ids: Sequence[int]
    money_ids: Sequence[int]
    machinery_ids: Sequence[int]
    zero_id: int

    @staticmethod
    async def of(connection: Connection, contracts: Contracts) -> "HappeningReader":
        """In a transaction: statements are planned for what they ask of from here to its end, by what is
        mostly in memory. A plan for anything reads every day that there is."""
        await connection.execute(
            "SELECT set_config('plan_cache_mode', 'force_custom_plan', true),"
            " set_config('max_parallel_workers_per_gather', '0', true),"
            " set_config('random_page_cost', '1.1', true)"
        )
        eth = {ZERO_ADDRESS, contracts.weth}
        machinery = contracts.all_addresses() | ENTRY_POINTS
        ids = await ids_of(connection, eth | {contracts.usdg} | machinery)
        money = eth | {contracts.usdg}
        return HappeningReader(
            connection,
            contracts,
            [ids[one] for one in eth & ids.keys()],
            [ids[one] for one in money & ids.keys()],
            [ids[one] for one in machinery & ids.keys()],
            ids.get(ZERO_ADDRESS, 0),
        )

    async def rows(self, statement: str, asked: Arguments) -> list[asyncpg.Record]:
        """What a statement gives, the newest first; its rows tell where they stand."""
        rows = await self.connection.fetch(statement, *asked.values)
        return sorted(rows, key=key_of, reverse=True)

    def is_eth(self, quote: Address) -> bool:
        """Whether a quote is eth itself."""
        return quote in (ZERO_ADDRESS, self.contracts.weth)

    async def eth_usdg(self, span: FactSpan, table: str) -> "EthUsdg | None":
        """What eth was worth as those blocks of a span began that have rows in a table of facts; None: it was
        not known of any."""
        asked = Arguments()
        blocks = f"SELECT block_number FROM facts.{table} AS one WHERE {asked.within(span, 'one')}"  # noqa: S608
        weth = asked(as_bytes(self.contracts.weth))
        row = await self.connection.fetchrow(_ETH_USDG.format(blocks=blocks, weth=weth), *asked.values)
        if row is None or row["least"] is None:
            return None
        return EthUsdg(int(row["least"]), int(row["most"]), row["is_always"])

    async def worths(
        self, sums: Iterable[tuple[Address, int | None, Spot]]
    ) -> list[tuple[int | None, int | None]]:
        """What so much of a quote was worth in wei and in millionths of a dollar as its block began, as the
        sync has it (``sync/prices.py``); None: not known."""
        given = list(sums)
        blocks: dict[Address, dict[int, int]] = {}
        for quote, raw, spot in given:
            if raw is not None:
                blocks.setdefault(quote, {})[spot.block_number] = spot.at_s
        prices = {
            quote: await past_prices(self.connection, self.contracts, {quote, self.contracts.weth}, numbers)
            for quote, numbers in blocks.items()
        }
        found: list[tuple[int | None, int | None]] = []
        for quote, raw, spot in given:
            if raw is None:
                found.append((None, None))
                continue
            told = prices[quote]
            micro_usd = told.worth(quote, raw, spot.block_number)
            eth_usdg = told.usdg_raw.get((self.contracts.weth, spot.block_number))
            if self.is_eth(quote):
                found.append((raw, micro_usd))
            elif micro_usd is None or eth_usdg is None:
                found.append((None, micro_usd))
            else:
                found.append((worth_wei(micro_usd, eth_usdg), micro_usd))
        return found


class EthUsdg(NamedTuple):
    """usdg raw for 10^18 wei, the least and the most; ``is_always``: it was known all the time."""

    least: int
    most: int
    is_always: bool


_ETH_USDG = """
WITH first AS MATERIALIZED ({blocks} ORDER BY at_s, block_number LIMIT 1),
last AS MATERIALIZED ({blocks} ORDER BY at_s DESC, block_number DESC LIMIT 1),
quote AS MATERIALIZED (SELECT id FROM facts.address WHERE address = {weth}::bytea),
begin AS MATERIALIZED (
    SELECT max(block_number) AS block_number FROM facts.price
    WHERE quote_id = (SELECT id FROM quote) AND block_number < (SELECT block_number FROM first)
), told AS (
    SELECT usdg_raw, usdg_raw > 0 AND depth_raw > 0 AS is_known FROM facts.price
    WHERE quote_id = (SELECT id FROM quote) AND block_number < (SELECT block_number FROM last)
        AND block_number >= coalesce((SELECT block_number FROM begin), 0)
)
SELECT (min(usdg_raw) FILTER (WHERE is_known))::text AS least,
    (max(usdg_raw) FILTER (WHERE is_known))::text AS most,
    bool_and(is_known) AND (SELECT block_number FROM begin) IS NOT NULL AS is_always
FROM told
"""


async def narrow_to_rule(connection: Connection, watch: Watch) -> RuleFilter | None:
    """What a rule leaves; None: nothing at all."""
    rule = watch.rule
    wallets, token, pools, least_raw = None, None, None, None
    if watch.wallets is not None:
        wallets = list((await ids_of(connection, watch.wallets)).values())
        if not wallets:
            return None
    if rule.token is not None:
        token = (await ids_of(connection, [rule.token])).get(rule.token)
        if token is None:
            return None
        rows = await connection.fetch(
            "SELECT id FROM facts.pool WHERE token_id = $1 AND in_money_from IS NOT NULL", token
        )
        pools = [row["id"] for row in rows]
        if rule.over is not None and rule.over.unit == "%" and rule.verb != "draining":
            whole_raw = await _whole_of(connection, token)
            if not whole_raw:
                return None
            least_raw = rule.over.raw * whole_raw // PPM
    return RuleFilter(wallets, token, pools, rule.over, least_raw)


async def _whole_of(connection: Connection, token: int) -> int | None:
    row = await connection.fetchrow(
        "SELECT launch.token_id IS NOT NULL AS launched, told.supply_raw::text AS supply"
        " FROM facts.address AS address LEFT JOIN facts.launch AS launch ON launch.token_id = address.id"
        " LEFT JOIN facts.token AS told ON told.token = address.address WHERE address.id = $1",
        token,
    )
    return None if row is None else whole_raw(row["launched"], row["supply"])


def whole_raw(launched: bool, supply: str | None) -> int | None:
    """How many base units of a token there are."""
    return LAUNCHED_RAW if launched else maybe(supply) or None


def days_back(after_s: int, to_s: int) -> Iterator[tuple[int, int]]:
    """The seconds after ``after_s`` up to ``to_s``, a day of UTC after the other, the newest first."""
    end = to_s
    while end > after_s:
        first = max(after_s + 1, end - end % DAY_S)
        yield first, end
        end = first - 1


def page(rows: Sequence[asyncpg.Record], found: Sequence[Happening], span: FactSpan) -> HappeningPage:
    """What a span's rows are, which are as many as it wants or all."""
    is_all = span.most is None or len(rows) < span.most
    return HappeningPage(found, None if is_all else key_of(rows[-1]))


def key_of(row: asyncpg.Record) -> Key:
    """Where a row stands."""
    return row["at_s"], row["block_number"], row["log_index"]


def spot_of(row: asyncpg.Record) -> Spot:
    """The same, with its transaction."""
    return Spot(row["block_number"], row["log_index"], row["at_s"], TxHash(as_text(row["tx_hash"])))


def address(value: bytes) -> Address:
    """An address of a row."""
    return as_address(value)


def maybe(text: str | None) -> int | None:
    """A number that may not be known."""
    return None if text is None else int(text)
