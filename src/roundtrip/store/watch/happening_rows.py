"""The parts that the queries of all happenings share: a span of blocks, and a rule's filter."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, Numeric
from roundtrip.domain.market.price_history import worth_wei
from roundtrip.domain.watch.rules import Happening, Over, Watch
from roundtrip.store.index.prices import past_prices
from roundtrip.store.index.tokens import ids_of
from roundtrip.store.server.partitions import DAY_S
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_row, fetch_values
from roundtrip.venues.base import Contracts
from roundtrip.venues.entry_point import ENTRY_POINTS

LAUNCHED_RAW = 10**27
"""The supply of every launchpad token, 10^9 of 18 decimals; a supply read from the contract is not used."""
PPM = 1_000_000

Key = tuple[int, int, int]
"""The position of a fact: time, block, log."""
NEWEST: Key = (2**31 - 1, 2**31 - 1, 2**31 - 1)
"""After the position of every fact."""


class Spotted(Protocol):
    """A row with its position."""

    @property
    def spot(self) -> Spot: ...


FactRow = TypeVar("FactRow", bound=Spotted)


class FactSpan(NamedTuple):
    """Facts of the blocks after ``after_number`` up to ``to_number`` with times from ``from_s`` to ``to_s``,
    both included; of these the newest ``limit`` that are before ``before``. ``limit`` None: all."""

    from_s: int
    to_s: int
    after_number: int
    to_number: int
    before: Key = NEWEST
    limit: int | None = None


class HappeningPage(NamedTuple):
    """Happenings, the newest first. ``rest``: the position before which there may be more; None: there are no
    more."""

    happenings: Sequence[Happening]
    rest: Key | None


@dataclass(frozen=True, slots=True)
class RuleFilter:
    """What a rule lets through, in the database's numbers: of these wallets, of this token, in these of its
    pools. It drops no happening that matches the rule, and may keep some that do not. ``least_raw``: more
    tokens than this have to move; known where the token is."""

    wallets: Sequence[int] | None = None
    token: int | None = None
    pools: Sequence[int] | None = None
    over: Over | None = None
    least_raw: int | None = None

    def above(self, unit: str) -> int | None:
        """The rule's threshold in this unit; None: it has none in this unit."""
        return self.over.raw if self.over is not None and self.over.unit == unit else None


ALL = RuleFilter()


class Arguments:
    """The arguments of a statement, each with its parameter number."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def __call__(self, value: object) -> str:
        """Adds an argument; returns its placeholder, such as ``$1``."""
        self.values.append(value)
        return f"${len(self.values)}"

    def within(self, span: FactSpan, table: str) -> str:
        """The condition that a row of a facts table is in a span."""
        return (
            f"{table}.at_s BETWEEN {self(span.from_s)}::int AND {self(span.to_s)}::int"
            f" AND {table}.block_number > {self(span.after_number)}::int"
            f" AND {table}.block_number <= {self(span.to_number)}::int"
        )

    def newest(self, span: FactSpan, table: str) -> str:
        """The condition, order and limit of the newest rows of a span."""
        at, number, log = (f"{self(part)}::int" for part in span.before)
        place = f"{table}.at_s, {table}.block_number, {table}.log_index"
        down = place.replace(",", " DESC,")
        return f"({place}) < ({at}, {number}, {log}) ORDER BY {down} DESC LIMIT {self(span.limit)}::bigint"


@dataclass(frozen=True, slots=True)
class HappeningReader:
    """Reads one network's facts. ``eth_ids``: quotes that are eth; ``money_ids``: those and the dollar;
    ``machinery_ids``: the network's own contracts, which hold tokens for no one. All are the database's
    numbers of addresses that occur in a fact."""

    connection: Connection
    contracts: Contracts
    eth_ids: Sequence[int]
    money_ids: Sequence[int]
    machinery_ids: Sequence[int]
    zero_id: int

    @staticmethod
    async def of(connection: Connection, contracts: Contracts) -> "HappeningReader":
        """A reader for a transaction. Until its end, statements are planned for their arguments and for data
        in memory: a generic plan reads every day that is stored."""
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
            [ids[address] for address in eth & ids.keys()],
            [ids[address] for address in money & ids.keys()],
            [ids[address] for address in machinery & ids.keys()],
            ids.get(ZERO_ADDRESS, 0),
        )

    async def rows(self, row_type: type[FactRow], statement: str, arguments: Arguments) -> list[FactRow]:
        """The rows of a statement, the newest first."""
        rows = await fetch(self.connection, row_type, statement, *arguments.values)
        return sorted(rows, key=key_of, reverse=True)

    def is_eth(self, quote: Address) -> bool:
        """Whether a quote is eth itself."""
        return quote in (ZERO_ADDRESS, self.contracts.weth)

    async def eth_usdg(self, span: FactSpan, table: str) -> "EthUsdg | None":
        """The price of eth at the start of the blocks of a span that have rows in a facts table; None: it is
        known of none."""
        arguments = Arguments()
        blocks = f"SELECT block_number FROM facts.{table} AS one WHERE {arguments.within(span, 'one')}"  # noqa: S608
        weth = arguments(as_bytes(self.contracts.weth))
        statement = _ETH_USDG.format(blocks=blocks, weth=weth)
        return await fetch_row(self.connection, EthUsdg, statement, *arguments.values)

    async def worths(
        self, sums: Iterable[tuple[Address, int | None, Spot]]
    ) -> list[tuple[int | None, int | None]]:
        """The worth of each amount of a quote at the start of its block, in wei and in millionths of a
        dollar, as the sync computes it (``sync/ledger.py``); None: not known."""
        given = list(sums)
        blocks: dict[Address, dict[int, int]] = {}
        for quote, raw, spot in given:
            if raw is not None:
                blocks.setdefault(quote, {})[spot.block_number] = spot.at_s
        prices = {
            quote: await past_prices(self.connection, self.contracts, {quote, self.contracts.weth}, numbers)
            for quote, numbers in blocks.items()
        }
        worths: list[tuple[int | None, int | None]] = []
        for quote, raw, spot in given:
            if raw is None:
                worths.append((None, None))
                continue
            quote_prices = prices[quote]
            micro_usd = quote_prices.worth(quote, raw, spot.block_number)
            eth_usdg = quote_prices.usdg_raw.get((self.contracts.weth, spot.block_number))
            if self.is_eth(quote):
                worths.append((raw, micro_usd))
            elif micro_usd is None or eth_usdg is None:
                worths.append((None, micro_usd))
            else:
                worths.append((worth_wei(micro_usd, eth_usdg), micro_usd))
        return worths


class EthUsdg(NamedTuple):
    """usdg raw for 10^18 wei, the lowest and the highest; ``is_always``: it was known all the time."""

    lowest: Numeric
    highest: Numeric
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
SELECT (min(usdg_raw) FILTER (WHERE is_known))::text AS lowest,
    (max(usdg_raw) FILTER (WHERE is_known))::text AS highest,
    bool_and(is_known) AND (SELECT block_number FROM begin) IS NOT NULL AS is_always
FROM told HAVING bool_or(is_known)
"""


async def narrow_to_rule(connection: Connection, watch: Watch) -> RuleFilter | None:
    """The filter of a rule; None: it lets nothing through."""
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
        pools = await fetch_values(
            connection,
            int,
            "SELECT id FROM facts.pool WHERE token_id = $1 AND in_money_from IS NOT NULL",
            token,
        )
        if rule.over is not None and rule.over.unit == "%" and rule.verb not in ("draining", "removing"):
            supply_raw = await _supply_of(connection, token)
            if not supply_raw:
                return None
            least_raw = rule.over.raw * supply_raw // PPM
    return RuleFilter(wallets, token, pools, rule.over, least_raw)


async def _supply_of(connection: Connection, token: int) -> int | None:
    row = await fetch_row(
        connection,
        tuple[bool, Numeric | None],
        "SELECT launch.token_id IS NOT NULL AS launched, told.supply_raw::text AS supply"
        " FROM facts.address AS address LEFT JOIN facts.launch AS launch ON launch.token_id = address.id"
        " LEFT JOIN facts.token AS told ON told.token = address.address WHERE address.id = $1",
        token,
    )
    if row is None:
        return None
    is_launched, supply_raw = row
    return LAUNCHED_RAW if is_launched else supply_raw or None


def days_back(after_s: int, to_s: int) -> Iterator[tuple[int, int]]:
    """The spans of seconds after ``after_s`` up to ``to_s``, one per day of UTC, the newest first."""
    end = to_s
    while end > after_s:
        first = max(after_s + 1, end - end % DAY_S)
        yield first, end
        end = first - 1


def page(rows: Sequence[FactRow], happenings: Sequence[Happening], span: FactSpan) -> HappeningPage:
    """The page of a span's rows, which are as many as it asks for, or all."""
    is_all = span.limit is None or len(rows) < span.limit
    return HappeningPage(happenings, None if is_all else key_of(rows[-1]))


def key_of(row: FactRow) -> Key:
    """The position of a row."""
    return row.spot.at_s, row.spot.block_number, row.spot.log_index
