"""Which NFT liquidity belongs to, and how much of a pool's active depth it is."""

import pytest

from roundtrip.domain.base.events import ActiveDepth, LiquidityChange
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.sync.batch import FoldContext
from roundtrip.sync.ledger import BatchFold, decode_blocks, list_missing
from roundtrip.venues.base import Log
from roundtrip.venues.decode import Decoder
from support.told_blocks import (
    HOOK,
    USDG,
    V3_POSITIONS,
    V4_POSITIONS,
    WETH,
    Chain,
    launched,
    nft_moved,
    sent,
    v3_at,
    v3_burnt,
    v3_minted,
    v3_numbered,
    v3_opened,
    v3_priced,
    v3_swap,
    v4_at,
    v4_moved,
    v4_opened,
    v4_swap,
)
from unit.sync.telling import ALICE, CURVE, DEV, HIGH, LOW, NVDA, Story
from unit.venues.logs import NETWORK, STRANGER

AT, OTHER, V4 = v3_at(HIGH, WETH), v3_at(LOW, WETH), v4_at(LOW, WETH)
MINT, BURN = v3_minted(AT, V3_POSITIONS, 9, 1, 2), v3_burnt(AT, V3_POSITIONS, 9, 1, 2)
NFT = nft_moved(V3_POSITIONS, 7, ZERO_ADDRESS, ALICE)
FEES = v3_burnt(AT, V3_POSITIONS, 0, 0, 0)


def fold_logs(*logs: Log, story: Story | None = None) -> list[LiquidityChange]:
    """The changes that one transaction with these logs makes."""
    story = story or Story()
    story.block(sent(v3_opened(HIGH, WETH), v3_opened(LOW, WETH), v4_opened(LOW, WETH)))
    return story.block(sent(*logs)).liquidity


# --- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("logs", "numbers"),
    [
        ((MINT, NFT, v3_numbered(7, 9, 1, 2)), [7]),
        ((MINT, v3_numbered(7, 9, 1, 2)), [7]),
        ((BURN, v3_numbered(7, 9, 1, 2, adds=False)), [7]),
        # Fees are collected before or after.
        ((FEES, BURN, v3_numbered(7, 9, 1, 2, adds=False), FEES), [7]),
        # Two positions with the same amounts, one after the other, and in another pool.
        ((MINT, v3_numbered(7, 9, 1, 2), MINT, v3_numbered(8, 9, 1, 2)), [7, 8]),
        (
            (v3_minted(OTHER, V3_POSITIONS, 9, 1, 2), v3_numbered(7, 9, 1, 2), BURN,
             v3_numbered(8, 9, 1, 2, adds=False)),
            [7, 8],
        ),
        # A contract adds liquidity in the manager's name, beside it.
        ((MINT, MINT, v3_numbered(7, 9, 1, 2)), [0, 7]),
        ((MINT, v3_numbered(7, 9, 1, 2), MINT), [7, 0]),
    ],
)  # fmt: skip
def test_the_v3_manager_numbers_what_it_has_just_moved(logs: tuple[Log, ...], numbers: list[int]) -> None:
    assert [change.number for change in fold_logs(*logs)] == numbers


@pytest.mark.parametrize(
    "logs",
    [
        (v3_numbered(7, 9, 1, 2), MINT),
        (MINT, v3_numbered(7, 8, 1, 2)),
        (MINT, v3_numbered(7, 9, 2, 1)),
        (MINT, v3_numbered(7, 9, 1, 2, adds=False)),
        (MINT, v3_numbered(7, 9, 1, 2)._replace(address=STRANGER)),
        (MINT, v3_numbered(7, 9, 1, 2)._replace(address=V4_POSITIONS)),
        (v3_minted(AT, DEV, 9, 1, 2), v3_numbered(7, 9, 1, 2)),
        # Of a pool that is none.
        (MINT, v3_minted(STRANGER, V3_POSITIONS, 9, 1, 2), v3_numbered(7, 9, 1, 2)),
    ],
)
def test_no_other_log_numbers_it(logs: tuple[Log, ...]) -> None:
    assert [change.number for change in fold_logs(*logs)] == [0]


def test_a_number_of_another_transaction_or_block_is_not_its() -> None:
    story = Story()
    assert fold_logs(MINT, story=story)[0].number == 0
    story.block(sent(v3_numbered(7, 9, 1, 2)))
    batch = story.block(sent(MINT), sent(v3_numbered(7, 9, 1, 2)))
    assert [change.number for change in batch.liquidity] == [0]


def test_a_v4_salt_is_the_number() -> None:
    changes = fold_logs(
        v4_moved(V4, V4_POSITIONS, 5, 3), v4_moved(V4, DEV, 5, 2**256 - 1), v4_moved(V4, DEV, 5)
    )
    assert [change.number for change in changes] == [3, 2**256 - 1, 0]


# --- active depth ----------------------------------------------------------------------------------


def depths(*logs: Log) -> list[int | None]:
    return [change.active_raw for change in fold_logs(*logs)]


def test_a_pool_begins_with_nothing_and_has_what_is_added_in_range() -> None:
    add, remove = v4_moved(V4, DEV, 70), v4_moved(V4, DEV, -30)
    assert depths(add, add, remove, remove) == [0, 70, 140, 110]
    first = v3_priced(AT, 1 << 96)
    assert depths(first, v3_minted(AT, DEV, 70, 1, 2), v3_burnt(AT, DEV, 30, 1, 2)) == [0, 70]


@pytest.mark.parametrize(
    ("tick", "before"), [(-601, 0), (-600, 10**18), (599, 10**18), (600, 0)]
)  # fmt: skip
def test_a_swap_says_what_is_active_and_a_change_out_of_range_is_none_of_it(tick: int, before: int) -> None:
    swap, remove = v4_swap(V4, -5, 7, tick=tick), v4_moved(V4, DEV, -30)
    assert depths(swap, remove, remove) == [before, max(0, before - 30)]
    # Of the pool's own kind, the hook's, and before a change in the same block.
    assert depths(v4_swap(V4, -5, 7, HOOK, tick=tick), remove) == [before]
    assert depths(remove, swap, remove)[1] == before


def test_money_for_money_tells_its_depth_too() -> None:
    story, deep = Story(), v3_at(WETH, USDG)
    story.block(sent(v3_opened(WETH, USDG)))
    batch = story.block(sent(v3_swap(deep, 5, -7, liquidity=400), v3_burnt(deep, DEV, 100, 1, 2)))
    assert [change.active_raw for change in batch.liquidity] == [400]
    assert batch.states == {(deep, 101): ActiveDepth(0, 300)}


def test_what_is_not_known_is_not_guessed() -> None:
    # A v3 pool whose price was not seen; one that has less than is taken out of it.
    add = v3_minted(AT, DEV, 70, 1, 2)
    assert depths(add, add, v3_swap(AT, 5, -7, liquidity=9), add) == [None, None, 9]
    remove = v3_burnt(AT, DEV, 10, 1, 2)
    assert depths(v3_swap(AT, 5, -7, liquidity=9), remove, add, v3_swap(AT, 5, -7, liquidity=9), add) == [
        None, None, 9,
    ]  # fmt: skip


def test_a_pool_that_becomes_money_is_known_from_its_next_swap_on() -> None:
    story, at = Story(), v4_at(HIGH, NVDA)
    story.block(sent(v4_opened(HIGH, NVDA), v4_moved(at, DEV, 5), v4_swap(at, -5, 7)))
    add = v4_moved(at, DEV, 5)
    batch = story.block(sent(launched(LOW, CURVE, DEV, NVDA), add, v4_swap(at, -5, 7), add))
    assert [change.active_raw for change in batch.liquidity] == [None, 10**18]


def test_each_block_keeps_the_state_at_its_end() -> None:
    story = Story()
    first = story.block(sent(v4_opened(LOW, WETH), v4_moved(V4, DEV, 5), v4_moved(V4, DEV, 6)))
    assert first.states == {(V4, 100): ActiveDepth(0, 11)}
    assert story.block(sent(v4_moved(V4, DEV, -11))).states == {(V4, 101): ActiveDepth(0, 0)}
    assert story.block(sent(v4_swap(V4, 5, -7, tick=4))).states == {(V4, 102): ActiveDepth(4, 10**18)}


def test_a_pool_of_blocks_that_are_not_read_in_full_has_no_state() -> None:
    blocks = [Chain().block(sent(v4_opened(LOW, WETH)))]
    decoded, known = decode_blocks(blocks, Decoder(NETWORK)), FoldContext()
    assert list_missing(decoded, known).pools == set()
    batch = BatchFold(known, NETWORK, "").fold(decoded, meets_wallets=False)
    assert (len(batch.pools), batch.states, known.states) == (1, {}, {})


def test_nfts_move_by_their_managers_logs_alone() -> None:
    batch = Story().block(
        sent(NFT, nft_moved(V4_POSITIONS, 2, ALICE, DEV), nft_moved(STRANGER, 7, ALICE, DEV))
    )
    assert [row.moved for row in batch.position_transfers] == [
        (V3_POSITIONS, 7, ZERO_ADDRESS, ALICE),
        (V4_POSITIONS, 2, ALICE, DEV),
    ]
