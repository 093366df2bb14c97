"""What lies in curves, and what insiders did: against an obvious sum over what is kept, also after forks."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.wallets.linked import EXCHANGE_WALLETS
from roundtrip.store.index import curves, insiders
from roundtrip.store.server.rows import Connection
from roundtrip.sync.position_fold import rebuild
from roundtrip.venues.base import Log
from roundtrip.venues.entry_point import ENTRY_POINTS
from support.inside_expected import Row, deeds_inside, read_table
from support.tables import all_rows, append_blocks, begin_index
from support.told_blocks import (
    DEAD,
    WETH,
    Chain,
    MadeUp,
    bought,
    bought_back,
    executing,
    launched,
    moved,
    operated,
    sent,
    sold,
    v3_at,
    v3_opened,
    v3_swap,
)
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH
from unit.venues.logs import NETWORK
from unit.venues.network import address

ROUTER = address(0x2007E2)
"""A stranger's: no part of the network's machinery."""
PAYEE = address(0x9A7EE)
"""A wallet that nobody has paid at the start."""
OTHERS_PAID = EXCHANGE_WALLETS - 2
"""So many more make ``DEV`` nearly an exchange: it also pays ``BOB`` and ``PAYEE``."""
few = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


async def expected_curves(connection: Connection) -> list[Row]:
    """Each curve's trades and buybacks, one after another."""
    found = {}
    launches = {row["token_id"]: row for row in await read_table(connection, "launch")}
    for pool in await read_table(connection, "pool"):
        if pool["kind"] == "launchpad_curve":
            launch = launches[pool["token_id"]]
            found[pool["id"]] = {
                "token_id": pool["token_id"],
                "pool_id": pool["id"],
                "threshold_raw": launch["threshold_raw"],
                "raised_raw": 0,
                "last_s": launch["at_s"],
            }
    for trade in sorted(await read_table(connection, "trade"), key=lambda row: row["block_number"]):
        assert (trade["kept_raw"] is None) is (trade["pool_id"] not in found)
        if trade["kept_raw"] is None:
            continue
        row, quote = found[trade["pool_id"]], trade["quote_raw"]
        row["raised_raw"] += quote - trade["kept_raw"] if trade["buys"] else -(quote + trade["kept_raw"])
        row["last_s"] = trade["at_s"]
    for buyback in await read_table(connection, "buyback"):
        found[buyback["pool_id"]]["raised_raw"] += buyback["quote_raw"]
    return sorted(found.values(), key=lambda row: row["pool_id"])


async def expected_fullest(connection: Connection, after_s: int) -> list[tuple[int, int]]:
    """Every curve looked at alone."""
    launches = {row["token_id"]: row for row in await read_table(connection, "launch")}
    gone = {row["token_id"] for row in await read_table(connection, "launch_step")}
    token_of = {row["id"]: row["token_id"] for row in await read_table(connection, "pool")}
    found = [
        (
            row["raised_raw"] / launches[token_of[row["pool_id"]]]["threshold_raw"],
            row["last_s"],
            -row["pool_id"],
        )
        for row in await read_table(connection, "curve")
        if row["last_s"] > after_s and token_of[row["pool_id"]] not in gone
    ]
    return [(-pool_id, last_s) for _, last_s, pool_id in sorted(found, reverse=True)]


async def agree(connection: Connection, chain: Chain) -> None:
    assert await all_rows(connection, "curve", "pool_id") == await expected_curves(connection)
    for after_s in (0, await connection.fetchval("SELECT at_s - 9000 FROM facts.cursor")):
        shown = await curves.fullest(connection, after_s, 99)
        expected = await expected_fullest(connection, after_s)
        assert [(one.pool_id, one.last_s) for one in shown] == expected
        assert await curves.fullest(connection, after_s, 2) == shown[:2]
    assert await all_rows(connection, "inside", "block_number, log_index") == await deeds_inside(
        connection, chain
    )


@few
@given(
    seed=st.integers(0, 2**20),
    steps=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 30)), min_size=1, max_size=3),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
async def test_at_any_moment_they_are_what_a_slow_sum_says(
    index: Connection, seed: int, steps: list[tuple[int, int]], sizes: list[int]
) -> None:
    """So many blocks on, so many back, a few times over."""
    makes, chain = MadeUp(seed), Chain()
    makes.grow(chain, 30)
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks, sizes)
    for turn, (on, back) in enumerate(steps):
        start = len(chain.blocks)
        makes.grow(chain, on)
        await append_blocks(index, writer, chain.blocks[start:], sizes)
        await agree(index, chain)
        at = chain.blocks[-1].ref
        chain = chain.fork(max(chain.parent.number, at.number - back), f"fork {turn}")
        to = chain.blocks[-1].ref if chain.blocks else chain.parent
        if to != at:
            await writer.rewind(index, at, to)
            await agree(index, chain)
    rebuilt = [count async for count in rebuild(index, NETWORK)]
    assert rebuilt
    await agree(index, chain)


async def test_made_up_chains_have_insiders_of_every_sort(index: Connection) -> None:
    found: dict[str, int] = defaultdict(int)
    for seed in range(12):
        chain = Chain()
        MadeUp(seed).grow(chain, 70)
        await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
        for row in await read_table(index, "inside"):
            found[row["what"]] += 1
    assert found.keys() == {"sold", "moved", "burned"}
    assert min(found.values()) >= 5


def begins() -> Chain:
    """A launch by DEV, who then sends BOB his first eth; CAROL has hers from somebody else."""
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), v3_opened(HIGH, WETH), sender=DEV))
    chain.block(sent(sender=DEV, to=BOB, value_wei=5), sent(sender=ALICE, to=CAROL, value_wei=5))
    return chain


async def after(connection: Connection, *own: Log, sender: Address = DEV) -> list[tuple[Any, ...]]:
    """Who did what with how much, after a transaction with these logs."""
    chain = begins()
    chain.block(sent(*own, sender=sender))
    await append_blocks(connection, await begin_index(connection, chain.parent), chain.blocks)
    names = {row["id"]: "0x" + row["address"].hex() for row in await read_table(connection, "address")}
    return [
        (
            row["what"],
            names[row["wallet_id"]],
            names.get(row["other_id"]),
            int(row["token_raw"]),
            row["eth_wei"],
        )
        for row in sorted(await read_table(connection, "inside"), key=lambda row: row["log_index"])
    ]


POOL = v3_at(HIGH, WETH)
SELL = v3_swap(POOL, -9, 500) if WETH < HIGH else v3_swap(POOL, 500, -9)


@pytest.mark.parametrize("wallet", [DEV, BOB])
async def test_a_sell_is_one_deed_whatever_the_tokens_passed_by(index: Connection, wallet: Address) -> None:
    sold_it = [("sold", wallet, None, 500, 9)]
    direct = moved(HIGH, wallet, POOL, 500), SELL
    assert await after(index, *direct, sender=wallet) == sold_it
    through = moved(HIGH, wallet, ROUTER, 500), moved(HIGH, ROUTER, POOL, 500), SELL
    assert await after(index, *through, sender=wallet) == sold_it
    on_the_curve = moved(HIGH, wallet, CURVE, 500), sold(CURVE, wallet, wallet, 9, 500)
    assert await after(index, *on_the_curve, sender=wallet) == sold_it


async def test_a_small_sell_hides_no_move(index: Connection) -> None:
    kept = moved(HIGH, DEV, ALICE, 10_000), moved(HIGH, DEV, POOL, 500), SELL
    assert await after(index, *kept) == [("moved", DEV, ALICE, 10_000, None), ("sold", DEV, None, 500, 9)]
    through = moved(HIGH, DEV, ROUTER, 10_000), moved(HIGH, ROUTER, POOL, 500), SELL
    assert await after(index, *through) == [("moved", DEV, ROUTER, 9_500, None), ("sold", DEV, None, 500, 9)]


async def test_nobody_else_is_an_insider(index: Connection) -> None:
    for wallet in (ALICE, CAROL):
        assert await after(index, moved(HIGH, wallet, POOL, 500), SELL, sender=wallet) == []
        assert await after(index, moved(HIGH, wallet, DEV, 500), sender=wallet) == []
    assert await after(index, moved(HIGH, ALICE, DEAD, 500), sender=ALICE) == [
        ("burned", ALICE, DEAD, 500, None)
    ]


@pytest.mark.parametrize(
    "taker", [NETWORK.universal_router, NETWORK.v4_pool_manager, CURVE, POOL, HIGH, DEV, min(ENTRY_POINTS)]
)
async def test_what_machinery_gets_is_moved_to_nobody(index: Connection, taker: Address) -> None:
    assert await after(index, moved(HIGH, DEV, taker, 500)) == []


@pytest.mark.parametrize("taker", [DEAD, ZERO_ADDRESS])
async def test_a_burn_is_a_burn_and_no_move(index: Connection, taker: Address) -> None:
    assert await after(index, moved(HIGH, DEV, taker, 500)) == [("burned", DEV, taker, 500, None)]
    assert await after(index, moved(HIGH, ZERO_ADDRESS, taker, 500)) == []


@pytest.mark.parametrize("sizes", [[1], [9]])
async def test_who_is_funded_later_was_no_insider(index: Connection, sizes: list[int]) -> None:
    """In one batch as in several; and he becomes none: for one wei anybody would be."""
    chain = begins()
    chain.block(sent(moved(HIGH, PAYEE, ALICE, 500), sender=PAYEE))
    chain.block(sent(sender=DEV, to=PAYEE, value_wei=5))
    chain.block(sent(moved(HIGH, PAYEE, ALICE, 600), sender=PAYEE))
    chain.block(
        sent(sender=DEV, to=address(0xFA57), value_wei=5),
        sent(moved(HIGH, address(0xFA57), BOB, 700), sender=address(0xFA57)),
    )
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks, sizes)
    assert [row["token_raw"] for row in await read_table(index, "inside")] == [700]


@pytest.mark.parametrize("sizes", [[1], [9]])
@pytest.mark.parametrize(
    ("before", "later", "expected"),
    [(OTHERS_PAID, 0, [600]), (OTHERS_PAID + 1, 0, []), (OTHERS_PAID, 1, [600]), (OTHERS_PAID + 1, 1, [])],
)
async def test_whom_an_exchange_paid_is_no_insider_of_its_launches(
    index: Connection, sizes: list[int], before: int, later: int, expected: list[int]
) -> None:
    """By what it had paid until then, in one batch as in several. What it does itself counts all the same."""
    chain, crowd = begins(), [address(0xC0000 + n) for n in range(before + later)]
    paid = [sent(sender=DEV, to=one, value_wei=5) for one in crowd]
    chain.block(sent(sender=DEV, to=PAYEE, value_wei=5), *paid[:before])
    chain.block(sent(moved(HIGH, PAYEE, ALICE, 600), sender=PAYEE))
    chain.block(*paid[before:])
    chain.block(sent(moved(HIGH, DEV, ALICE, 700), sender=DEV))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks, sizes)
    assert [row["token_raw"] for row in await read_table(index, "inside")] == [*expected, 700]


async def test_of_whom_the_deployer_paid_only_what_it_does_itself_counts(index: Connection) -> None:
    """Who buys on a curve first is the first to send it eth, and has the curve give out tokens."""
    gives = moved(HIGH, BOB, ALICE, 500)
    assert await after(index, gives, sender=ALICE) == await after(index, gives, sender=DEV) == []
    assert await after(index, gives, sender=BOB) == [("moved", BOB, ALICE, 500, None)]
    # Whoever fetches it from the deployer.
    fetched = moved(HIGH, DEV, ALICE, 500)
    assert await after(index, fetched, sender=ALICE) == [("moved", DEV, ALICE, 500, None)]
    run = executing(), gives, operated(BOB)
    assert await after(index, *run, sender=ALICE) == [("moved", BOB, ALICE, 500, None)]


async def test_old_deeds_are_not_written_and_go_some_day(index: Connection) -> None:
    chain = begins()
    chain.block(sent(moved(HIGH, DEV, ALICE, 500), moved(HIGH, ALICE, DEAD, 7)))
    day_s = 86_400
    newest_s = chain.blocks[-1].ref.timestamp_s + 9 * day_s
    writer = await begin_index(index, chain.parent)
    await writer.append(index, chain.blocks, newest_s)
    assert await read_table(index, "inside") == []
    writer = await begin_index(index, chain.parent)
    await writer.append(index, chain.blocks, newest_s - 2 * day_s)
    assert len(await read_table(index, "inside")) == 2
    await insiders.forget(index, chain.blocks[-1].ref.timestamp_s)
    assert len(await read_table(index, "inside")) == 2
    await insiders.forget(index, chain.blocks[-1].ref.timestamp_s + 1)
    assert await read_table(index, "inside") == []


async def test_a_curve_from_before_the_first_block_is_not_made_up(index: Connection) -> None:
    """Its launch is known, and how its trading began is not."""
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV)))
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks)
    await index.execute("DELETE FROM facts.curve")
    chain.block(sent(bought(CURVE, ALICE, ALICE, 700, 500), bought_back(CURVE, 3)))
    await append_blocks(index, writer, chain.blocks[1:])
    assert await read_table(index, "curve") == []
    assert [row["kept_raw"] for row in await read_table(index, "trade")] == [7]
    await writer.rewind(index, chain.blocks[1].ref, chain.blocks[0].ref)
    assert await read_table(index, "curve") == await read_table(index, "buyback") == []


async def test_a_rewind_deletes_what_was_counted_at_later_blocks(index: Connection) -> None:
    chain = begins()
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks)
    first, last = (block.ref.number for block in chain.blocks)
    for span, number in (("24h", first), ("7d", last)):
        await index.execute("INSERT INTO facts.winners_counted VALUES ($1, $2, 0)", span, number)
        await index.execute("INSERT INTO facts.winner VALUES ($1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)", span)
        await index.execute("INSERT INTO facts.fair_token VALUES ($1, $1)", number)
    await writer.rewind(index, chain.blocks[1].ref, chain.blocks[0].ref)
    assert [row["span"] for row in await read_table(index, "winner")] == ["24h"]
    assert [row["span"] for row in await read_table(index, "winners_counted")] == ["24h"]
    assert [row["token_id"] for row in await read_table(index, "fair_token")] == [first]
