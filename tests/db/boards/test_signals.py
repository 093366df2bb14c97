"""Deeds and liquidity at their edges, written by hand."""

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.signals import NARROW_TICKS
from roundtrip.store.boards import signals
from roundtrip.store.boards.signals import DeedSum, PoolWithdrawal
from roundtrip.store.index import tokens
from roundtrip.store.server.rows import Connection, as_bytes
from roundtrip.venues.base import Log
from support.tables import append_blocks, begin_index
from support.told_blocks import (
    USDG,
    WETH,
    Chain,
    launched,
    moved,
    sent,
    v3_at,
    v3_burnt,
    v3_minted,
    v3_opened,
    v3_swap,
)
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH

HOUR_S = 3600
IN_ETH, IN_USDG = v3_at(HIGH, WETH), v3_at(HIGH, USDG)


def begins() -> Chain:
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), v3_opened(HIGH, WETH), v3_opened(HIGH, USDG), sender=DEV))
    return chain


async def followed(index: Connection, chain: Chain, supply_raw: int | None) -> int:
    """When its newest block was made."""
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    await tokens.keep(index, HIGH, "S", None, 18, supply_raw, 1)
    return chain.blocks[-1].ref.timestamp_s


async def deeds(index: Connection, chain: Chain, supply_raw: int | None = 0) -> list[DeedSum]:
    newest_s = await followed(index, chain, supply_raw)
    return await signals.deeds(index, newest_s - HOUR_S, 100, 1000)


async def left(index: Connection, chain: Chain) -> list[PoolWithdrawal]:
    newest_s = await followed(index, chain, None)
    start = chain.parent.number + 1
    # Every quote is worth something, so that nothing has to be traded.
    each = {row["id"]: 1.0 for row in await index.fetch("SELECT id FROM facts.address")}
    return await signals.liquidity_left(index, newest_s - HOUR_S, newest_s, start, NARROW_TICKS, each)


@pytest.mark.parametrize(("later_s", "token_raw"), [(3599, 1100), (3600, 600)])
async def test_what_is_an_hour_old_adds_nothing(index: Connection, later_s: int, token_raw: int) -> None:
    chain = begins()
    chain.block(sent(moved(HIGH, DEV, ALICE, 500), sender=DEV))
    chain.block(sent(moved(HIGH, DEV, BOB, 600), sender=DEV), after_s=later_s)
    (one,) = await deeds(index, chain)
    assert (one.deed.what, one.token_raw) == ("moved", token_raw)


async def test_of_sells_of_which_one_is_not_told_the_sum_is_not(index: Connection) -> None:
    def sell(at: Address, quote: Address, quote_raw: int) -> Log:
        return v3_swap(at, -quote_raw, 500) if quote < HIGH else v3_swap(at, 500, -quote_raw)

    chain = begins()
    chain.block(sent(sell(IN_ETH, WETH, 5000), sender=DEV))
    (one,) = await deeds(index, chain)
    assert (one.token_raw, one.eth_wei) == (500, 5000)
    chain.block(sent(sell(IN_USDG, USDG, 7), sender=DEV))
    (one,) = await deeds(index, chain)
    assert (one.token_raw, one.eth_wei) == (1000, None)


async def test_the_largest_transaction_is_the_evidence_and_who_got_most_of_it(index: Connection) -> None:
    chain = begins()
    chain.block(sent(moved(HIGH, DEV, CAROL, 600), sender=DEV))
    largest = moved(HIGH, DEV, ALICE, 300), moved(HIGH, DEV, BOB, 400)
    for _ in range(2):
        chain.block(sent(*largest, sender=DEV))
    (one,) = await deeds(index, chain)
    newest_s, first = chain.blocks[-1].ref.timestamp_s, chain.blocks[2]
    (traced,) = (await signals.trace_deeds(index, newest_s - HOUR_S, [one.deed])).values()
    assert traced.evidence.tx_hash == first.transactions[0].hash
    assert (traced.evidence.block_number, traced.evidence.log_index) == (first.ref.number, 1)
    bob = await index.fetchval("SELECT id FROM facts.address WHERE address = $1", as_bytes(BOB))
    assert (one.token_raw, traced.recipients, traced.most_id, traced.most_raw) == (2000, 3, bob, 800)


@pytest.mark.parametrize("burnt", [3, 10])
async def test_who_first_added_has_not_begun_to_take(index: Connection, burnt: int) -> None:
    """In a block in which as much or more came in than went out."""
    chain = begins()
    chain.block(sent(v3_minted(IN_ETH, BOB, 100, 100, 100), sender=BOB))
    both = v3_minted(IN_ETH, ALICE, 10, 10, 10), v3_burnt(IN_ETH, ALICE, burnt, burnt, burnt)
    chain.block(sent(*both, sender=ALICE))
    chain.block(sent(v3_minted(IN_ETH, ALICE, 5, 5, 5), sender=ALICE))
    assert await left(index, chain) == []
    chain.block(sent(v3_burnt(IN_ETH, ALICE, 4, 4, 4), sender=ALICE))
    (one,) = await left(index, chain)
    assert (one.token_raw, one.quote_raw, one.weight) == (4, 4, 4 * 120)
    assert one.before == (100 + 10 - burnt + 5) * 120
    # What it puts back since has not left.
    chain.block(sent(v3_minted(IN_ETH, ALICE, 1, 1, 1), sender=ALICE))
    (one,) = await left(index, chain)
    assert (one.token_raw, one.weight) == (3, 3 * 120)
    chain.block(sent(v3_minted(IN_ETH, ALICE, 3, 3, 3), sender=ALICE))
    assert await left(index, chain) == []


async def test_the_largest_that_was_taken_since_is_the_evidence(index: Connection) -> None:
    """Not what was taken before, in a block in which more came in."""
    chain = begins()
    both = v3_minted(IN_ETH, ALICE, 100, 100, 100), v3_burnt(IN_ETH, ALICE, 50, 50, 50)
    chain.block(sent(*both, sender=ALICE))
    for burnt in (3, 4, 4):
        chain.block(sent(v3_burnt(IN_ETH, ALICE, burnt, burnt, burnt), sender=ALICE))
    (one,) = await left(index, chain)
    assert (one.weight, one.before) == (11 * 120, 50 * 120)
    assert one.evidence.tx_hash == chain.blocks[3].transactions[0].hash


async def test_an_insider_of_a_launchs_own_block_is_one(index: Connection) -> None:
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), moved(HIGH, DEV, ALICE, 2)))
    (one,) = await deeds(index, chain)
    assert (one.deed.what, one.token_raw) == ("moved", 2)
