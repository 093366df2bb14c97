"""What happened is what a slow and obvious reading of the facts says, and a replayed rule hits what it would
have hit while it happened."""

import itertools
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, TxHash
from roundtrip.domain.market.price_history import MAX_MICRO_USD, worth_wei
from roundtrip.domain.market.signals import NARROW_TICKS
from roundtrip.domain.watch.rules import VERBS, Happening, Over, Rule, Unit, Verb, Watch, Who
from roundtrip.store.boards.signals import MAX_CHANGES
from roundtrip.store.index import tokens
from roundtrip.store.index.prices import past_prices
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import happening_moves, happening_rows, happening_trades, happenings
from roundtrip.store.watch.happening_moves import WHOLE_WITHIN_S
from roundtrip.store.watch.happenings import IndexedBlock, read_happenings, replay_rule
from roundtrip.venues.entry_point import ENTRY_POINTS
from support.databases import needs_one_server
from support.hex_columns import as_address, as_text
from support.tables import append_blocks, begin_index
from support.told_blocks import START_S, Chain, MadeUp, sent, v3_at, v3_burnt, v3_minted, v3_opened
from unit.sync.telling import BOB, HIGH
from unit.venues.logs import NETWORK

few = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
MACHINERY = NETWORK.all_addresses() | ENTRY_POINTS
MONEY = {ZERO_ADDRESS, NETWORK.weth, NETWORK.usdg}
ETH = {ZERO_ADDRESS, NETWORK.weth}
BEGIN = IndexedBlock(-1, 0)


async def made(index: Connection, seed: int, blocks: int) -> IndexedBlock:
    """A made-up index; its newest block. Some curves become pools, and some tokens are read."""
    chance, chain = random.Random(seed), Chain()
    MadeUp(seed).grow(chain, blocks)
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks, (7,))
    ref = chain.blocks[-1].ref
    for row in await index.fetch(
        "SELECT launch.*, address FROM facts.launch JOIN facts.address ON id = token_id"
    ):
        later = [one.ref for one in chain.blocks if one.ref.number >= row["block_number"]]
        at = chance.choice(later)
        raised = chance.choice((None, chance.randrange(1, 10**20)))
        await index.execute(
            "INSERT INTO facts.launch_step VALUES ($1, $2, $3, $4, 'pooled', $5, NULL, $6)",
            at.number, 1000 + row["token_id"], at.timestamp_s, row["token_id"], raised, bytes(32),
        )  # fmt: skip
    for row in await index.fetch(
        "SELECT address FROM facts.pool JOIN facts.address ON facts.address.id = token_id"
    ):
        supply = chance.choice((None, 0, 10**12, 10**21, 10**27, 10**29))
        await tokens.keep(index, as_address(row["address"]), "S", None, 18, supply, ref.number)
    # Whatever the sync wrote: a change is in range, out of range, or nobody knows.
    for row in await index.fetch("SELECT * FROM facts.liquidity"):
        least = abs(int(row["liquidity_delta"]))
        active = chance.choice((None, 0, least, 3 * least, 50 * least, 5 * 10**20))
        await index.execute(
            "UPDATE facts.liquidity SET active_raw = $4 WHERE (at_s, block_number, log_index) = ($1, $2, $3)",
            row["at_s"], row["block_number"], row["log_index"], active,
        )  # fmt: skip
    return IndexedBlock(ref.number, ref.timestamp_s)


# --- the obvious reading ---------------------------------------------------------------------------


class Obvious:
    """Whole tables, walked."""

    def __init__(self, tables: dict[str, list[Any]], prices: Any, start: int) -> None:
        self.tables, self.prices, self.start = tables, prices, start
        self.names = {row["id"]: as_address(row["address"]) for row in tables["address"]}
        self.pools = {row["id"]: row for row in tables["pool"]}
        self.launched = {row["token_id"]: row for row in tables["launch"]}
        self.supply = {as_address(row["token"]): row["supply_raw"] for row in tables["token"]}

    @staticmethod
    async def of(index: Connection) -> "Obvious":
        names = (
            "address", "pool", "launch", "launch_step", "trade", "liquidity", "transfer", "token", "cursor",
        )  # fmt: skip
        tables = {
            name: [dict(row) for row in await index.fetch(f"SELECT * FROM facts.{name}")]  # noqa: S608
            for name in names
        }
        blocks = {
            row["block_number"]: row["at_s"] for name in ("launch_step", "liquidity") for row in tables[name]
        }
        quotes = {as_address(row["address"]) for row in tables["address"]}
        prices = await past_prices(index, NETWORK, quotes | {NETWORK.weth}, blocks)
        return Obvious(tables, prices, tables["cursor"][0]["start_number"])

    def happenings(self) -> list[Happening]:
        found = [*self.trades(), *self.launches(), *self.graduations(), *self.moves()]
        found += [*self.drains(), *self.removals()]
        return sorted(found, key=lambda one: (*one.spot[:2], VERBS.index(one.verb)))

    def spot(self, row: Any) -> Any:
        return Spot(row["block_number"], row["log_index"], row["at_s"], TxHash(as_text(row["tx_hash"])))

    def quote(self, pool_id: int) -> Address:
        return self.names[self.pools[pool_id]["quote_id"]]

    def wei(self, trade: Any) -> int | None:
        if trade["eth_wei"] is None and self.quote(trade["pool_id"]) not in ETH:
            return None
        return int(trade["quote_raw"] if trade["eth_wei"] is None else trade["eth_wei"])

    def worth(self, quote: Address, raw: Any, number: int) -> tuple[int | None, int | None]:
        if raw is None:
            return None, None
        usd = self.prices.worth(quote, int(raw), number)
        eth = self.prices.usdg_raw.get((NETWORK.weth, number))
        if quote in ETH:
            return int(raw), usd
        return None if usd is None or eth is None else worth_wei(usd, eth), usd

    def same(self, table: str, row: Any, token_id: int | None = None) -> list[Any]:
        """Rows of its transaction that are about the token."""
        return [
            one
            for one in self.tables[table]
            if (one["block_number"], one["tx_hash"]) == (row["block_number"], row["tx_hash"])
            and token_id in (None, self.pools[one["pool_id"]]["token_id"])
        ]

    def trades(self) -> list[Happening]:
        found = []
        for row in self.tables["trade"]:
            token_id = self.pools[row["pool_id"]]["token_id"]
            token = self.names[token_id]
            whole = 10**27 if token_id in self.launched else int(self.supply.get(token) or 0) or None
            verb: Verb = "buying" if row["buys"] else "selling"
            who = self.names[row["trader_id"]], token
            worth = self.wei(row), row["micro_usd"]
            found.append(Happening(verb, self.spot(row), *who, *worth, int(row["token_raw"]), whole))
        return found

    def launches(self) -> list[Happening]:
        found = []
        for row in self.tables["launch"]:
            own = {row["deployer_id"], row["sender_id"]}
            buys = [
                one
                for one in self.same("trade", row, row["token_id"])
                if one["buys"] and one["trader_id"] in own
            ]
            weis, usds = [self.wei(one) for one in buys], [one["micro_usd"] for one in buys]
            wei, usd = (None if None in some else sum(map(int, some)) for some in (weis, usds))
            who = self.names[row["deployer_id"]], self.names[row["token_id"]]
            found.append(Happening("launching", self.spot(row), *who, wei, usd, None, None))
        return found

    def graduations(self) -> list[Happening]:
        found, swept = [], dict[int, Any]()
        for row in sorted(
            self.tables["launch_step"], key=lambda one: (one["block_number"], one["log_index"])
        ):
            if row["step"] == "swept":
                swept[row["token_id"]] = row["quote_raw"]
            if row["step"] != "pooled":
                continue
            launch = self.launched[row["token_id"]]
            raised = swept.get(row["token_id"]) if row["quote_raw"] is None else row["quote_raw"]
            worth = self.worth(self.names[launch["quote_id"]], raised, row["block_number"])
            who = self.names[launch["deployer_id"]], self.names[row["token_id"]]
            found.append(Happening("graduating", self.spot(row), *who, *worth, None, None))
        return found

    def moves(self) -> list[Happening]:
        found = []
        for row in self.tables["transfer"]:
            giver, taker, token = (self.names[row[one]] for one in ("from_id", "to_id", "token_id"))
            places = {
                as_text(one["at"])
                for one in self.pools.values()
                if one["block_number"] <= row["block_number"]
            }
            if (
                not row["amount_raw"]
                or giver in MACHINERY | places | {ZERO_ADDRESS}
                or taker in (MACHINERY | places | {giver, token}) - BURN_ADDRESSES
                or self.same("trade", row, row["token_id"])
                or self.same("liquidity", row, row["token_id"])
            ):
                continue
            worth = self.last_worth(row)
            amount = int(row["amount_raw"])
            found.append(Happening("moving", self.spot(row), giver, token, *worth, amount, 10**27))
        return found

    def last_worth(self, move: Any) -> tuple[int | None, int | None]:
        at = move["block_number"], move["log_index"]
        before = [
            one
            for one in self.tables["trade"]
            if self.pools[one["pool_id"]]["token_id"] == move["token_id"]
            and (one["block_number"], one["log_index"]) < at
            and one["at_s"] > move["at_s"] - 86_400
            and one["token_raw"]
        ]
        if not before:
            return None, None
        last = max(before, key=lambda one: (one["block_number"], one["log_index"]))
        wei, usd = self.wei(last), last["micro_usd"]
        amount, for_raw = int(move["amount_raw"]), int(last["token_raw"])
        worth_usd = None if usd is None else min(amount * usd // for_raw, MAX_MICRO_USD)
        return None if wei is None else amount * wei // for_raw, worth_usd

    def drains(self) -> list[Happening]:
        def weight(one: Any) -> int:
            width: int = min(one["tick_upper"] - one["tick_lower"], NARROW_TICKS)
            return int(one["liquidity_delta"]) * width

        def group(one: Any) -> Any:
            return one["block_number"], one["tx_hash"], one["pool_id"], one["sender_id"]

        found = []
        rows = sorted(self.tables["liquidity"], key=lambda one: (one["block_number"], one["log_index"]))
        for _, some in itertools.groupby(sorted(rows, key=group), key=group):
            own = list(some)
            pool = self.pools[own[0]["pool_id"]]
            part, token = -sum(map(weight, own)), self.names[pool["token_id"]]
            if part <= 0 or token in MONEY:
                continue
            first = next(one for one in own if one["liquidity_delta"] < 0)
            quotes = [one["quote_raw"] for one in own]
            out = None if None in quotes else max(0, -sum(map(int, quotes)))
            worth = self.worth(self.quote(pool["id"]), out, first["block_number"])
            of_pool = [one for one in rows if one["pool_id"] == pool["id"]]
            place = next(n for n, one in enumerate(of_pool) if one["tx_hash"] == first["tx_hash"])
            before = sum(map(weight, of_pool[:place]))
            is_whole = pool["block_number"] >= self.start and pool["at_s"] > first["at_s"] - WHOLE_WITHIN_S
            whole = max(before, part) if is_whole and before > 0 and place <= MAX_CHANGES else None
            who = self.names[first["sender_id"]], token
            found.append(Happening("draining", self.spot(first), *who, *worth, part, whole))
        return found

    def removals(self) -> list[Happening]:
        def ticks(one: Any) -> Any:
            return one["tick_lower"], one["tick_upper"]

        def group(one: Any) -> Any:
            return one["block_number"], one["tx_hash"], one["pool_id"], one["sender_id"]

        found = []
        for _, some in itertools.groupby(sorted(self.tables["liquidity"], key=group), key=group):
            own = sorted(some, key=lambda one: one["log_index"])
            pool = self.pools[own[0]["pool_id"]]
            active = {ticks(one) for one in own if one["active_raw"] is None or one["active_raw"]}
            own = [one for one in own if ticks(one) in active]
            part, token = -int(sum(one["liquidity_delta"] for one in own)), self.names[pool["token_id"]]
            if part <= 0 or token in MONEY:
                continue
            depths = [one["active_raw"] for one in own]
            before = None if None in depths else int(next(depth for depth in depths if depth))
            quotes = [one["quote_raw"] for one in own]
            out = None if None in quotes else max(0, -int(sum(quotes)))
            first = next(one for one in own if one["liquidity_delta"] < 0)
            worth = self.worth(self.quote(pool["id"]), out, first["block_number"])
            whole = None if before is None else max(before, part)
            launch = self.launched.get(pool["token_id"])
            by_deployer = launch is not None and launch["deployer_id"] == first["sender_id"]
            who = self.names[first["sender_id"]], token
            found.append(Happening("removing", self.spot(first), *who, *worth, part, whole, by_deployer))
        return found


# --- rules -----------------------------------------------------------------------------------------


def a_rule(chance: random.Random, there: list[Happening]) -> Watch:
    """Mostly about something that happened."""
    one = chance.choice(there)
    verb = one.verb if chance.random() < 0.9 else chance.choice(VERBS)
    over = None
    if chance.random() < 0.7:
        alike = [each for each in there if each.verb == verb]
        unit: Unit = chance.choice(("eth", "usd", "%"))
        of = chance.choice(alike or there)
        known = {"eth": of.eth_wei, "usd": of.micro_usd, "%": of.share_ppm()}[unit]
        over = Over(unit, max(0, (known or 0) + chance.choice((-1, 0, 1, -(known or 0)))))
    wallets = [
        None,
        {one.wallet},
        {each.wallet for each in there[:40]},
        {Address("0x" + "9" * 40)},
        set[Address](),
    ]
    token = chance.choice((None, None, one.token, chance.choice(there).token))
    own = chance.choices(wallets, (4, 3, 3, 1, 1))[0]
    return Watch(Rule(Who("any"), verb, over, token), own)


@few
@given(seed=st.integers(0, 2**20), blocks=st.integers(20, 120))
async def test_what_happened_is_what_the_facts_say(index: Connection, seed: int, blocks: int) -> None:
    to = await made(index, seed, blocks)
    async with index.transaction():
        everything = await read_happenings(index, NETWORK, BEGIN, to)
        assert everything == (await Obvious.of(index)).happenings()
        # Block by block it is the same.
        found, before = [], BEGIN
        for row in await index.fetch("SELECT number, at_s FROM facts.block ORDER BY number"):
            place = IndexedBlock(row["number"], row["at_s"])
            found += await read_happenings(index, NETWORK, before, place)
            before = place
        assert found == everything


@few
@given(seed=st.integers(0, 2**20), blocks=st.integers(20, 120), most=st.sampled_from((2, 10, 10_000)))
async def test_a_replay_hits_what_would_have_been_hit(
    index: Connection, seed: int, blocks: int, most: int
) -> None:
    chance = random.Random(seed)
    to = await made(index, seed, blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(happenings, "MAX_COUNTED", most)
        patch.setattr(happening_trades, "FEW", most)
        patch.setattr(happening_moves, "VALUABLE_WEI", 10**17 if seed % 2 else 0)
        patch.setattr(happening_trades, "LARGE_WEI", 10**17 if seed % 2 else 0)
        async with index.transaction():
            everything = await read_happenings(index, NETWORK, BEGIN, to)
            for _ in range(12 if everything else 0):
                watch = a_rule(chance, everything)
                after_s = chance.choice((START_S, chance.choice(everything).spot.at_s))
                hits = [one for one in everything if one.spot.at_s > after_s and watch.matches(one)]
                result = await replay_rule(index, NETWORK, watch, after_s, to)
                assert (result.hits, result.at_least) == (min(most, len(hits)), len(hits) > most), watch
                assert list(result.last) == hits[::-1][: min(most, 10)], watch


@few
@given(seed=st.integers(0, 2**20))
async def test_narrowing_leaves_out_nothing(index: Connection, seed: int) -> None:
    """Whatever the matcher would take is in the rows that a rule leaves."""
    chance = random.Random(seed)
    to = await made(index, seed, 80)
    async with index.transaction():
        everything = await read_happenings(index, NETWORK, BEGIN, to)
        reader = await happening_rows.HappeningReader.of(index, NETWORK)
        span = happening_rows.FactSpan(0, to.at_s, -1, to.number, limit=100_000)
        start = await index.fetchval("SELECT start_number FROM facts.cursor")
        for _ in range(20 if everything else 0):
            watch = a_rule(chance, everything)
            narrow = await happening_rows.narrow_to_rule(index, watch)
            hits = {one for one in everything if watch.matches(one)}
            if narrow is None:
                assert not hits, watch
                continue
            page = await happenings._read_page(reader, span, narrow, watch, start)
            assert hits <= set(page.happenings), watch
            assert set(page.happenings) <= set(everything), watch


@needs_one_server
async def test_who_takes_what_others_put_in_meanwhile_takes_all(index: Connection) -> None:
    """In one bundle one account gives and another takes."""
    chain, at = Chain(), v3_at(HIGH, NETWORK.weth)
    chain.block(sent(v3_opened(HIGH, NETWORK.weth)))
    chain.block(sent(v3_minted(at, BOB, 1_000, 5, 5), sender=BOB))
    chain.block(sent(v3_minted(at, BOB, 500, 5, 5), v3_burnt(at, BOB, 1_400, 5, 5), sender=BOB))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    await index.execute(
        "UPDATE facts.liquidity SET sender_id = (SELECT id FROM facts.address WHERE address = $1)"
        " WHERE block_number = $2 AND liquidity_delta > 0",
        bytes.fromhex(NETWORK.weth[2:]), chain.blocks[-1].ref.number,
    )  # fmt: skip
    ref = chain.blocks[-1].ref
    async with index.transaction():
        found = await read_happenings(index, NETWORK, BEGIN, IndexedBlock(ref.number, ref.timestamp_s))
    (one,) = [each for each in found if each.verb == "draining"]
    assert one.share_ppm() == 10**6
