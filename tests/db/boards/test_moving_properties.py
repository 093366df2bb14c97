"""What moves, and the chain's vitals, are at any moment what a slow and obvious count of the facts says."""

import itertools
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.market.fairness import FAIRNESS, Fairness
from roundtrip.domain.market.moving import (
    CAUGHT_FOR_S,
    SHARED_PURSE,
    WINDOW_S,
    CheckedLevel,
    MoneyFlow,
    crowd,
)
from roundtrip.store.boards import moving
from roundtrip.store.check import evidence
from roundtrip.store.index import cursor, vitals
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.server.rows import Connection, as_bytes
from support.hex_columns import as_address
from support.tables import append_blocks, begin_index
from support.told_blocks import Chain, MadeUp, bought, launched, sent, sold
from unit.sync.telling import ALICE, CURVE, DEV, HIGH
from unit.venues.logs import NETWORK

VERDICTS = (
    ("ok", "ok"),
    ("ok", "warn"),
    ("cannot_sell", "danger"),
    ("unproven", "unknown"),
    ("heavy_fees", "danger"),
)
SPANS_S = (1, 30, WINDOW_S, 50_000)
FAIRNESSES = (FAIRNESS, Fairness(young_s=0), Fairness(young_s=1, most_funded=1), Fairness(300, 1, 0))
"""For chains of four wallets."""
few = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


# --- the obvious count -----------------------------------------------------------------------------


class MovingTables(NamedTuple):
    """Whole tables, as they are."""

    address: dict[int, Address]
    pool: dict[int, Any]
    trade: list[Any]
    launch: list[Any]
    step: list[Any]
    origin: dict[int, Any]
    block: list[Any]
    evidence: list[Any]
    caught_holder: list[Any]


async def raw(connection: Connection) -> MovingTables:
    async def rows(table: str) -> list[Any]:
        return [dict(row) for row in await connection.fetch(f"SELECT * FROM facts.{table}")]  # noqa: S608

    return MovingTables(
        {row["id"]: as_address(row["address"]) for row in await rows("address")},
        {row["id"]: row for row in await rows("pool")},
        await rows("trade"),
        await rows("launch"),
        await rows("launch_step"),
        {row["wallet_id"]: row for row in await rows("origin")},
        await rows("block"),
        await rows("evidence"),
        await rows("caught_holder"),
    )


def told_trades(facts: MovingTables, window: tuple[int, int]) -> dict[int, list[Any]]:
    """By token the trades in the window whose worth in eth is known."""
    found: dict[int, list[Any]] = {}
    for trade in facts.trade:
        pool = facts.pool[trade["pool_id"]]
        wei = trade["eth_wei"]
        if wei is None and facts.address[pool["quote_id"]] in (ZERO_ADDRESS, NETWORK.weth):
            wei = trade["quote_raw"]
        if window[0] < trade["at_s"] <= window[1] and wei is not None:
            found.setdefault(pool["token_id"], []).append({**trade, "wei": int(wei), "pool": pool})
    return found


def obvious_flows(facts: MovingTables, window: tuple[int, int], least_buyers: int) -> dict[int, MoneyFlow]:
    found = {}
    for token_id, trades in told_trades(facts, window).items():
        buys = [trade for trade in trades if trade["buys"]]
        sells = [trade for trade in trades if not trade["buys"]]
        in_wei, out_wei = (sum(trade["wei"] for trade in some) for some in (buys, sells))
        buyers = {trade["trader_id"] for trade in buys}
        if in_wei <= out_wei or len(buyers) < least_buyers:
            continue
        kinds = {trade["pool"]["kind"] for trade in buys}
        by_kind = {k: sum(t["wei"] for t in buys if t["pool"]["kind"] == k) for k in kinds}
        dollars = [trade["micro_usd"] for trade in buys]
        kind = min(kinds, key=lambda kind: (-by_kind[kind], kind))
        by_pool: dict[int, int] = {}
        for trade in trades:
            wei = trade["wei"] if trade["buys"] else 0
            if trade["pool"]["kind"] == kind:
                by_pool[trade["pool_id"]] = by_pool.get(trade["pool_id"], 0) + wei
        launched = [
            one["at_s"] for one in facts.launch if one["token_id"] == token_id and one["generation"] == 2
        ]
        checks = [one for one in facts.evidence if as_address(one["token"]) == facts.address[token_id]]
        deep = [one for one in checks if one["deep"]]
        decided = [one for one in deep if one["verdict_level"] != "unknown" and one["holders"] > 0]
        tested = [one for one in decided if one["verdict_level"] in ("ok", "danger")]
        if tested and any(one["token"] == as_bytes(facts.address[token_id]) for one in facts.caught_holder):
            last, newest_one = (max(some, key=lambda one: one["id"]) for some in (tested, decided))
            age_s = (newest_one["checked_at"] - last["checked_at"]).total_seconds()
            if last["verdict_code"] == "cannot_sell" and age_s <= CAUGHT_FOR_S:
                # A warning lifts no trap.
                decided = tested
        found[token_id] = MoneyFlow(
            token_id,
            facts.address[token_id],
            launched[0] if launched else None,
            min(trade["pool"]["at_s"] for trade in trades),
            kind,
            in_wei,
            out_wei,
            None if None in dollars else sum(dollars),
            len(buys),
            len(sells),
            tuple(sorted(buyers)),
            len({trade["trader_id"] for trade in sells}),
            newest(checks),
            newest(deep),
            newest(decided),
            min(by_pool, key=lambda pool_id: (-by_pool[pool_id], pool_id)),
            len({trade["trader_id"] for trade in trades}),
        )
    return found


def newest(checks: list[Any]) -> CheckedLevel | None:
    one = max(checks, key=lambda one: one["id"], default=None)
    return one and CheckedLevel(
        one["verdict_code"], one["verdict_level"], one["checked_at"].timestamp(), one["loss_bps"]
    )


def obvious_crowd(facts: MovingTables, buyers: tuple[int, ...], from_s: int, fairness: Fairness) -> int:
    """Person by person, out of the whole table."""

    def old(wallet: int) -> bool:
        return wallet in facts.origin and bool(facts.origin[wallet]["first_s"] <= from_s - fairness.young_s)

    def pays_many(wallet: int) -> bool:
        return bool(sum(row["funder_id"] == wallet for row in facts.origin.values()) > fairness.most_funded)

    people: set[int] = set()
    shared: list[int | None] = []
    for buyer in buyers:
        funder = facts.origin[buyer]["funder_id"] if buyer in facts.origin else None
        if old(buyer) and (funder is None or pays_many(funder)):
            people.add(buyer)
            if pays_many(buyer):
                shared.append(buyer)
        elif funder is None or not old(funder):
            shared.append(None)
        elif pays_many(funder):
            shared.append(funder)
        else:
            people.add(funder)
    alone = len(people - set(shared))
    return alone + sum(max(1, shared.count(one) // SHARED_PURSE) for one in set(shared))


def in_order(flow: MoneyFlow) -> MoneyFlow:
    return replace(flow, buyers=tuple(sorted(flow.buyers)))


async def agrees(connection: Connection, seen: dict[str, int]) -> None:
    """Every answer of now is the obvious one. Counts into ``seen`` how much there was to tell."""
    stands = await cursor.cursor(connection)
    assert stands is not None
    facts, now_s = await raw(connection), stands.block.timestamp_s
    for span_s, ago_s in [*itertools.product(SPANS_S, (0, 1)), (WINDOW_S, 40_000)]:
        window = now_s - ago_s - span_s, now_s - ago_s
        for least in (1, 2, 3):
            expected = obvious_flows(facts, window, least)
            found = await moving.flows(connection, window, NETWORK, least)
            assert {flow.token_id: in_order(flow) for flow in found} == expected
            assert len(found) == len(expected)
            by_money = sorted((one.in_wei - one.out_wei for one in found), reverse=True)
            most = await moving.flows(connection, window, NETWORK, least, 1)
            assert [one.in_wei - one.out_wei for one in most] == by_money[:1]
            seen["flows"] += len(found)
            for name in ("in_micro_usd", "launched_s", "checked", "deep", "decided"):
                seen[name] += sum(getattr(flow, name) is not None for flow in found)
            seen["out"] += sum(flow.out_wei > 0 for flow in found)
        for flow in obvious_flows(facts, window, 1).values():
            for fairness in FAIRNESSES:
                wallets = await moving.read_origins(connection, flow.buyers, fairness)
                count = crowd(flow.buyers, wallets, window[0])
                assert count == obvious_crowd(facts, flow.buyers, window[0], fairness)
                seen["shared"] += count < len(flow.buyers)
                seen["apart"] += count > 1
                seen["exchanges"] += any(map(wallets.is_exchange, wallets.funded))
    await vitals_agree(connection, stands, facts, seen)


async def vitals_agree(
    connection: Connection, stands: Cursor, facts: MovingTables, seen: dict[str, int]
) -> None:
    now_s = stands.block.timestamp_s
    for span_s in SPANS_S:
        inside = [[row for row in some if now_s - span_s < row["at_s"] <= now_s] for some in facts[2:5]]
        pooled = [step for step in inside[2] if step["step"] == "pooled"]
        span = now_s - span_s, now_s
        assert await vitals.trades(connection, *span) == len(inside[0])
        assert await vitals.launches(connection, *span) == len(inside[1])
        assert await vitals.graduations(connection, *span) == len(pooled)
        seen["launches"] += len(inside[1])
        seen["graduations"] += len(pooled)
    blocks = sorted((row["number"], row["at_s"]) for row in facts.block)
    newest = [block for block in blocks if block[0] >= stands.block.number - vitals.AVERAGED_BLOCKS]
    assert await vitals.newest_times(connection, stands) == [at_s for _, at_s in newest]
    from_s = blocks[0][1] if blocks else now_s
    assert await vitals.followed_from_s(connection, stands) == from_s


# --- at random moments -----------------------------------------------------------------------------


async def adds_some(connection: Connection, chance: random.Random) -> None:
    """What made-up chains lack: some tokens are checked, some of them again; some wallets have one funder,
    some curves became a pool."""
    await connection.execute(
        "UPDATE facts.origin SET funder_id = (SELECT min(id) + $1 FROM facts.address), funded_number = 1,"
        " funded_s = 1 WHERE wallet_id % 2 = $1",
        chance.randrange(2),
    )
    await connection.execute(
        "UPDATE facts.launch_step SET step = 'pooled' WHERE log_index % 2 = $1", chance.randrange(2)
    )
    for row in await connection.fetch("SELECT address FROM facts.address ORDER BY id"):
        if chance.random() < 0.5:
            await connection.execute(
                "INSERT INTO facts.caught_holder (token, holder, seen_at) VALUES ($1, $1, to_timestamp(1))"
                " ON CONFLICT DO NOTHING",
                row["address"],
            )
        for _ in range(chance.choice((0, 0, 1, 2, 3))):
            at = datetime.fromtimestamp(chance.randrange(3 * CAUGHT_FOR_S), UTC)
            code, level = chance.choice(VERDICTS)
            deep, holders = chance.random() < 0.6, chance.choice((0, 1, 12))
            kept = evidence.KeptEvidence(at, 1, "p", code, level, b"", deep=deep, holders=holders)
            await evidence.keep(connection, as_address(row["address"]), kept)


@few
@given(
    seed=st.integers(0, 2**20),
    steps=st.lists(st.integers(1, 25), min_size=1, max_size=4),
    back=st.integers(0, 25),
)
async def test_boards_are_what_an_obvious_count_says(
    index: Connection, seed: int, steps: list[int], back: int
) -> None:
    """Between batches, after a fork was gone back over, and when the chain went on from there."""
    seen = dict.fromkeys(KINDS_SEEN, 0)
    await plays(index, seed, steps, back, seen)


async def plays(index: Connection, seed: int, steps: list[int], back: int, seen: dict[str, int]) -> None:
    makes, found, chance = MadeUp(seed), Chain(), random.Random(seed)
    writer = await begin_index(index, found.parent)
    await agrees(index, seen)
    for blocks in steps:
        start = len(found.blocks)
        makes.grow(found, blocks)
        await append_blocks(index, writer, found.blocks[start:])
        await adds_some(index, chance)
        await agrees(index, seen)
    at = found.blocks[-1].ref
    forked = found.fork(max(found.parent.number, at.number - back), "fork")
    to = forked.blocks[-1].ref if forked.blocks else found.parent
    if to != at:
        await writer.rewind(index, at, to)
        await agrees(index, seen)
    start = len(forked.blocks)
    makes.grow(forked, 8)
    await append_blocks(index, writer, forked.blocks[start:])
    await agrees(index, seen)


KINDS_SEEN = (
    "flows", "in_micro_usd", "launched_s", "checked", "deep", "decided", "out", "shared", "apart",
    "exchanges", "launches", "graduations",
)  # fmt: skip


async def test_made_up_chains_have_something_to_count(index: Connection) -> None:
    """What the property above is worth."""
    seen = dict.fromkeys(KINDS_SEEN, 0)
    for seed in range(6):
        await plays(index, seed, [20, 30, 40], 10, seen)
    assert [kind for kind, count in seen.items() if count < 5] == []


@pytest.mark.parametrize(("got_raw", "shown"), [(99, 1), (100, 0), (101, 0)])
async def test_what_brings_as_much_as_it_takes_does_not_move(
    index: Connection, got_raw: int, shown: int
) -> None:
    found = Chain()
    found.block(sent(launched(HIGH, CURVE, DEV), bought(CURVE, ALICE, ALICE, 100, 7)))
    found.block(sent(sold(CURVE, ALICE, ALICE, got_raw, 7)))
    await append_blocks(index, await begin_index(index, found.parent), found.blocks)
    now_s = found.blocks[-1].ref.timestamp_s
    flows = await moving.flows(index, (now_s - WINDOW_S, now_s), NETWORK, 1)
    assert [one.in_wei - one.out_wei for one in flows] == [1] * shown
