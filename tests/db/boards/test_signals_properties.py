"""Signals are at any moment what a slow and obvious look at every row of the last hour says."""

import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY, Policy
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, plain_decimal
from roundtrip.services.boards.signals import MAX_SHOWN, Signal, signals
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.store.index import tokens
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from support.busy_blocks import Busy
from support.hex_columns import as_address
from support.tables import append_blocks, begin_index, own_database
from support.told_blocks import Chain
from unit.venues.logs import NETWORK

HOUR_S, DAY_S = 3600, 86_400
WIDTHS = (10, 120, 39_999, 40_001, 400_000)
SUPPLIES = (None, 0, 10**12, 10**17, 10**20, 10**23)
PAUSES_S = (0, 1, 1800, 3599, 3600, 89 * DAY_S)
"""Of which the last makes a pool older than what is kept of it."""
ODDS = ("insider_sold", "insider_moved", "large_burn", "liquidity_left", "serial_launcher")
RULES = replace(POLICY, serial_launches=2, serial_graduated_divisor=3)
"""Of five tokens nobody launches very many."""
Row = dict[str, Any]
few = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@dataclass
class SignalsContext:
    """What the answer needs of a context."""

    pool: asyncpg.Pool
    policy: Policy = RULES
    contracts: Any = NETWORK
    chain_id: int = 1

    def index_pool(self) -> asyncpg.Pool:
        return self.pool


@pytest.fixture(scope="session")
async def ground(database_url: str) -> AsyncIterator[SignalsContext]:
    async with (
        own_database(database_url, "signals_properties") as url,
        connections.create_pool(url, min_size=1, max_size=2) as pool,
    ):
        yield SignalsContext(pool)


# --- the obvious look ------------------------------------------------------------------------------


class Odd(NamedTuple):
    """What a signal tells, its sentence apart, after its place on the chain. ``share_bps``: of the supply."""

    block: int
    log: int
    kind: str
    token: Address
    wallet: Address
    other: Address | None
    token_raw: int | None
    share_bps: int | None
    pool_bps: int | None
    eth: float | None
    tx: str
    at_s: int


class SignalTables(NamedTuple):
    """Whole tables, as they are."""

    now_s: int
    start_number: int
    address: dict[int, Address]
    token: dict[Address, Row]
    pool: dict[int, Row]
    launch: list[Row]
    step: list[Row]
    liquidity: list[Row]
    inside: list[Row]
    trade: list[Row]
    price: list[Row]


async def raw(connection: Connection) -> SignalTables:
    async def rows(table: str) -> list[Row]:
        return [dict(row) for row in await connection.fetch(f"SELECT * FROM facts.{table}")]  # noqa: S608

    (stands,) = await rows("cursor")
    return SignalTables(
        stands["at_s"],
        stands["start_number"],
        {row["id"]: as_address(row["address"]) for row in await rows("address")},
        {as_address(row["token"]): row for row in await rows("token")},
        {row["id"]: row for row in await rows("pool")},
        await rows("launch"),
        await rows("launch_step"),
        await rows("liquidity"),
        await rows("inside"),
        await rows("trade"),
        await rows("price"),
    )


def grouped(rows: Iterable[Row], *by: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=place):
        found[tuple(row[name] for name in by)].append(row)
    return found


def place(row: Row) -> tuple[int, int]:
    return row["block_number"], row["log_index"]


def total(rows: Iterable[Row], name: str) -> int | None:
    """None: of one of them it is not known."""
    values = [row[name] for row in rows]
    return None if None in values else int(sum(values))


def within_the_hour(facts: SignalTables, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["at_s"] > facts.now_s - HOUR_S]


def odd(facts: SignalTables, kind: str, evidence: Row, ids: tuple[int, int, int | None], **size: Any) -> Odd:
    """``ids``: of the token, the wallet, and who got it."""
    names = [None if one is None else facts.address[one] for one in ids]
    token, wallet = facts.address[ids[0]], facts.address[ids[1]]
    supply, token_raw = supply_of(facts, ids[0]), size.get("token_raw")
    share = None if token_raw is None or supply is None else token_raw * 10_000 // supply
    wei = size.get("wei")
    answer = token_raw, share, size.get("pool_bps"), None if wei is None else wei / 10**18
    tx = "0x" + evidence["tx_hash"].hex()
    return Odd(*place(evidence), kind, token, wallet, names[2], *answer, tx, evidence["at_s"])


def supply_of(facts: SignalTables, token_id: int) -> int | None:
    row = facts.token.get(facts.address[token_id])
    return None if row is None or not row["supply_raw"] else int(row["supply_raw"])


def obvious_deeds(facts: SignalTables) -> tuple[list[Odd], int]:
    """Who sold, moved or burned a hundredth of all there is, or sold for a tenth of an eth."""
    kinds = {"sold": "insider_sold", "moved": "insider_moved", "burned": "large_burn"}
    found, untold = [], 0
    inside = within_the_hour(facts, facts.inside)
    for (what, token_id, wallet_id), deeds in grouped(inside, "what", "token_id", "wallet_id").items():
        sum_raw, wei, supply = total(deeds, "token_raw"), total(deeds, "eth_wei"), supply_of(facts, token_id)
        assert sum_raw is not None
        if (wei is None or wei < 10**17) and supply is None:
            untold += wei is None
            continue
        if (wei is None or wei < 10**17) and supply is not None and 100 * sum_raw < supply:
            continue
        # The first of those that come to most.
        txs = list(grouped(deeds, "tx_hash").values())
        most = max(txs, key=lambda some: total(some, "token_raw") or 0)
        others = {row["other_id"] for row in deeds}
        other = others.pop() if what == "moved" and len(others) == 1 else None
        ids = token_id, wallet_id, other
        found.append(odd(facts, kinds[what], most[-1], ids, token_raw=sum_raw, wei=wei))
    return found, untold


def obvious_launchers(facts: SignalTables, rules: Policy) -> list[Odd]:
    """Who launched within the hour, and has many launches of which few became a pool."""
    pooled = {row["token_id"] for row in facts.step if row["step"] == "pooled"}
    found = []
    curved = [row for row in facts.launch if row["generation"] == 2]
    for (deployer_id,), own in grouped(curved, "deployer_id").items():
        newest = own[-1]
        graduated = sum(row["token_id"] in pooled for row in own)
        is_serial = len(own) >= rules.serial_launches
        is_serial &= graduated * rules.serial_graduated_divisor < len(own)
        if is_serial and within_the_hour(facts, [newest]):
            found.append(odd(facts, "serial_launcher", newest, (newest["token_id"], deployer_id, None)))
    return found


def obvious_left(facts: SignalTables) -> tuple[list[Odd], int]:
    """Who took a tenth of a pool, or a whole eth where shares are not known, in turn from each pool that is
    the launch's own or where a tenth of its trades is made: of one token and wallet the largest."""
    launched = {row["token_id"] for row in facts.launch}
    turnover = turnovers(facts)
    for row in facts.liquidity:
        row["weight"] = int(row["liquidity_delta"]) * min(row["tick_upper"] - row["tick_lower"], 40_000)
    found, untold = [], 0
    recent = within_the_hour(facts, facts.liquidity)
    for (pool_id, wallet_id), changes in grouped(recent, "pool_id", "sender_id").items():
        pool = facts.pool[pool_id]
        blocks = {number: some for (number,), some in grouped(changes, "block_number").items()}
        taking = [number for number, some in blocks.items() if (total(some, "weight") or 0) < 0]
        if pool["token_id"] not in launched or not taking or not matters(facts, pool, turnover):
            continue
        since = [row for row in changes if row["block_number"] >= min(taking)]
        weight, token_raw, quote_raw = (total(since, name) for name in ("weight", "token_raw", "quote_raw"))
        if weight is None or weight >= 0:
            continue
        wei = None if quote_raw is None else in_wei(facts, facts.address[pool["quote_id"]], -quote_raw)
        share = share_of_pool(facts, pool, min(taking), -weight)
        if wei is not None and wei < 10**17:
            continue
        if share is None:
            untold += wei is None
            if wei is None or wei < 10**18:
                continue
        elif share < 1000:
            continue
        largest = min(since, key=lambda row: (row["weight"], place(row)))
        size = {"token_raw": None if token_raw is None else -token_raw, "pool_bps": share, "wei": wei}
        found.append(odd(facts, "liquidity_left", largest, (pool["token_id"], wallet_id, None), **size))
    return found, untold


def turnovers(facts: SignalTables) -> dict[int, tuple[int, int]]:
    """Of each pool what was traded within a day: worth in wei, and how many."""
    found: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in facts.trade:
        if row["at_s"] > facts.now_s - DAY_S:
            quote = facts.address[facts.pool[row["pool_id"]]["quote_id"]]
            wei = row["eth_wei"]
            if wei is None:
                wei = row["quote_raw"] if quote in (ZERO_ADDRESS, NETWORK.weth) else 0
            before = found[row["pool_id"]]
            found[row["pool_id"]] = before[0] + int(wei), before[1] + 1
    return found


def matters(facts: SignalTables, pool: Row, turnover: dict[int, tuple[int, int]]) -> bool:
    if pool["kind"] == "launchpad_pool" or pool["at"] in {row["at"] for row in facts.launch}:
        return True
    places = [
        turnover[row["id"]]
        for row in facts.pool.values()
        if row["token_id"] == pool["token_id"] and row["in_money_from"] is not None
    ]
    by = 0 if sum(wei for wei, _ in places) else 1
    whole = sum(place[by] for place in places)
    return whole > 0 and 10 * turnover[pool["id"]][by] >= whole


def share_of_pool(facts: SignalTables, pool: Row, number: int, weight: int) -> int | None:
    """Of what lay there before that block; None where not all of that is known."""
    if pool["block_number"] < facts.start_number or pool["at_s"] <= facts.now_s - 89 * DAY_S:
        return None
    before = [row for row in facts.liquidity if (row["pool_id"] == pool["id"])]
    lay = sum(row["weight"] for row in before if row["block_number"] < number)
    return min(10_000, weight * 10_000 // lay) if lay > 0 else None


def in_wei(facts: SignalTables, quote: Address, quote_raw: int) -> int | None:
    """At the newest prices of eth and of the quote."""
    newest = {
        facts.address[row["quote_id"]]: row
        for row in sorted(facts.price, key=lambda row: row["block_number"])
    }
    usdg = {one: int(row["usdg_raw"]) for one, row in newest.items() if row["depth_raw"]}
    if quote in (ZERO_ADDRESS, NETWORK.weth):
        return quote_raw
    if not usdg.get(NETWORK.weth) or (quote != NETWORK.usdg and quote not in usdg):
        return None
    in_usdg = quote_raw if quote == NETWORK.usdg else quote_raw * usdg[quote] // 10**18
    return in_usdg * 10**18 // usdg[NETWORK.weth]


def obvious(facts: SignalTables, rules: Policy) -> tuple[list[Odd], int]:
    """All of it, the newest first, of one kind, token and wallet the largest; and how many cannot be told."""
    deeds, deeds_untold = obvious_deeds(facts)
    left, left_untold = obvious_left(facts)
    largest: dict[tuple[str, Address, Address], Odd] = {}
    for one in sorted([*deeds, *left, *obvious_launchers(facts, rules)], key=size_of):
        largest[one.kind, one.token, one.wallet] = one
    return sorted(largest.values(), reverse=True), deeds_untold + left_untold


def size_of(one: Odd) -> tuple[Any, ...]:
    share = one.share_bps if one.pool_bps is None else one.pool_bps
    return one.eth or 0, share or 0, one.block, one.log


# --- at random moments -----------------------------------------------------------------------------


def as_told(one: Odd, facts: SignalTables) -> tuple[Any, ...]:
    decimals = facts.token[one.token]["decimals"] if one.token in facts.token else None
    amount = None if one.token_raw is None or decimals is None else plain_decimal(one.token_raw, decimals)
    size = amount, one.share_bps, one.pool_bps, one.eth
    return one.kind, one.token, one.wallet, one.other, size, one.tx, one.block, one.at_s


def shown(one: Signal) -> tuple[Any, ...]:
    size = one.size.amount, one.size.supply_bps, one.size.pool_bps, one.size.eth
    at_s = int(one.time.timestamp())
    return one.kind, one.token.address, one.wallet, one.other, size, one.tx, one.block, at_s


def count_in(text: str, pattern: str) -> int:
    found = re.search(rf"{pattern}(\d+) ", text)
    return int(found[1]) if found else 0


async def agrees(ground: SignalsContext, seen: dict[str, int]) -> None:
    """The answer of now is the obvious one. Counts into ``seen`` how much there was to tell."""
    answer = (await signals(cast(Context, ground), Nothing())).answer
    async with ground.pool.acquire() as connection:
        facts = await raw(connection)
    expected, untold = obvious(facts, ground.policy)
    reply = [shown(one) for one in answer.signals]
    if len(expected) <= MAX_SHOWN:
        assert reply == [as_told(one, facts) for one in expected]
    else:
        assert len(reply) == MAX_SHOWN
        assert set(reply) <= {as_told(one, facts) for one in expected}
    assert count_in(answer.text, "Not measured: ") == untold
    assert count_in(answer.text, "Left out: ") == max(0, len(expected) - MAX_SHOWN)
    for one in expected:
        seen[one.kind] += 1
    seen["untold"] += untold
    left = [one for one in expected if one.kind == "liquidity_left"]
    shares = sum(one.pool_bps is not None for one in left)
    seen["shares of a pool"] += shares
    seen["no shares of a pool"] += len(left) - shares


async def adds_some(connection: Connection, chance: random.Random) -> None:
    """What made-up chains lack: tokens that say how many there are, ranges of any width, curves that became
    a pool."""
    for row in await connection.fetch("SELECT address FROM facts.address ORDER BY id"):
        supply, decimals = chance.choice(SUPPLIES), chance.choice((None, 0, 6, 18))
        await tokens.keep(connection, as_address(row["address"]), "S", None, decimals, supply, 1)
    await connection.execute(
        "UPDATE facts.launch_step SET step = 'pooled' WHERE log_index % 2 = $1", chance.randrange(2)
    )
    await connection.execute(
        "UPDATE facts.liquidity"
        " SET tick_upper = tick_lower + ($1::int[])[1 + (log_index + block_number) % 5]",
        chance.sample(WIDTHS, 5),
    )


@few
@given(
    seed=st.integers(0, 2**20),
    steps=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    back=st.integers(0, 25),
)
async def test_signals_are_what_an_obvious_look_says(
    ground: SignalsContext, seed: int, steps: list[int], back: int
) -> None:
    """Between batches, after a fork was gone back over, and when the chain went on from there."""
    await plays(ground, seed, steps, back, defaultdict(int))


async def plays(ground: SignalsContext, seed: int, steps: list[int], back: int, seen: dict[str, int]) -> None:
    makes, found, chance = Busy(seed), Chain(), random.Random(seed)
    async with ground.pool.acquire() as connection:
        writer = await begin_index(connection, found.parent)
        await agrees(ground, seen)
        for blocks in steps:
            start = len(found.blocks)
            grow(makes, found, blocks, chance)
            await append_blocks(connection, writer, found.blocks[start:])
            await adds_some(connection, chance)
            await agrees(ground, seen)
            await agrees_of_a_later_start(ground, connection, chance, seen)
        at = found.blocks[-1].ref
        forked = found.fork(max(found.parent.number, at.number - back), "fork")
        to = forked.blocks[-1].ref if forked.blocks else found.parent
        if to != at:
            await writer.rewind(connection, at, to)
            await agrees(ground, seen)
        start = len(forked.blocks)
        grow(makes, forked, 8, chance)
        await append_blocks(connection, writer, forked.blocks[start:])
        await agrees(ground, seen)


def grow(makes: Busy, chain: Chain, blocks: int, chance: random.Random) -> None:
    """Some blocks, and now and then a pause before or after."""
    chain.block(after_s=chance.choice(PAUSES_S))
    makes.grow(chain, blocks)
    chain.block(after_s=chance.choice(PAUSES_S[:-1]))


async def agrees_of_a_later_start(
    ground: SignalsContext, connection: Connection, chance: random.Random, seen: dict[str, int]
) -> None:
    """As if some of it were older than the index's first block."""
    [(before, number)] = await connection.fetch("SELECT start_number, number FROM facts.cursor")
    later = chance.randint(before, number)
    await connection.execute("UPDATE facts.cursor SET start_number = $1", later)
    await agrees(ground, seen)
    await connection.execute("UPDATE facts.cursor SET start_number = $1", before)


async def test_made_up_chains_have_signals_of_every_sort(ground: SignalsContext) -> None:
    """What the property above is worth."""
    seen: dict[str, int] = defaultdict(int)
    for seed in range(40):
        await plays(ground, seed, [10, 20, 30], 10, seen)
    sorts = (*ODDS, "untold", "shares of a pool", "no shares of a pool")
    assert {sort: seen[sort] for sort in sorts if seen[sort] < 5} == {}
