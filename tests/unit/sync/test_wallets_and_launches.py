"""Launches and their steps, transfers of what was launched, and where wallets came from."""

import pytest
from msgspec.structs import replace

from roundtrip.chain.blocks.spans import BlockRead
from roundtrip.domain.base.events import WalletFunded, WalletMet
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.sync.batch import Batch
from support.told_blocks import (
    ENTRY_POINT,
    START_S,
    bought,
    executing,
    launched,
    moved,
    operated,
    rescued,
    sent,
    swept,
    v1_launched,
    v3_at,
    v3_minted,
    v3_opened,
    v4_at,
    v4_moved,
    v4_opened,
)
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH, LOW, SyncStory
from unit.venues.logs import NETWORK

# --- launches --------------------------------------------------------------------------------------


def test_a_launch_is_told_once_with_who_sent_it() -> None:
    story = SyncStory()
    batch = story.block(sent(launched(HIGH, CURVE, DEV), sender=BOB))
    (launch,) = batch.launches
    assert (launch.launched.token, launch.launched.deployer, launch.sender) == (HIGH, DEV, BOB)
    assert (launch.launched.at, launch.launched.generation) == (CURVE, 2)
    assert batch.rows() == 2
    again = story.block(sent(launched(HIGH, CURVE, DEV), v1_launched(HIGH, DEV, v3_at(HIGH, LOW))))
    assert (again.launches, again.pools) == ([], [])


def test_a_first_generation_launch_opens_no_curve() -> None:
    """Also where its pool was opened before the first block that was read."""
    batch = SyncStory().block(sent(v1_launched(HIGH, DEV, v3_at(HIGH, LOW))))
    assert (len(batch.launches), batch.pools) == (1, [])


def test_twice_in_one_block_is_once() -> None:
    batch = SyncStory().block(sent(launched(HIGH, CURVE, DEV)), sent(launched(HIGH, CURVE, DEV)))
    assert (len(batch.launches), len(batch.pools)) == (1, 1)


def test_steps_are_of_launched_tokens_only() -> None:
    story = SyncStory()
    assert story.block(sent(swept(HIGH), rescued(HIGH))).steps == []
    assert (
        story.block(sent(swept(HIGH), launched(HIGH, CURVE, DEV), rescued(HIGH))).steps[0].spot.log_index == 2
    )
    swept_step, rescued_step = story.block(sent(swept(HIGH)), sent(rescued(HIGH), swept(LOW))).steps
    assert (swept_step.moved.step, swept_step.moved.quote_raw) == ("swept", 42 * 10**17)
    assert (rescued_step.moved.step, rescued_step.moved.quote_raw) == ("rescued", None)


# --- transfers -------------------------------------------------------------------------------------


def test_transfers_are_of_launched_tokens_only() -> None:
    story = SyncStory()
    assert story.block(sent(moved(HIGH, ALICE, BOB, 5))).transfers == []
    story.block(sent(launched(HIGH, CURVE, DEV)))
    batch = story.block(
        sent(moved(HIGH, ALICE, BOB, 5), moved(LOW, ALICE, BOB, 6), moved(HIGH, BOB, CAROL, 0))
    )
    assert [(row.spot.log_index, row.moved.amount_raw) for row in batch.transfers] == [(0, 5), (2, 0)]


def test_a_tokens_first_move_is_kept_though_its_launch_is_told_after_it() -> None:
    """The token mints everything in its constructor, before the factory tells of it."""
    story = SyncStory()
    mint = moved(HIGH, ZERO_ADDRESS, CURVE, 10**27)
    batch = story.block(sent(mint, launched(HIGH, CURVE, DEV), moved(HIGH, CURVE, ALICE, 5)))
    assert [row.moved.amount_raw for row in batch.transfers] == [10**27, 5]


def test_transfers_that_are_too_old_are_left_out_but_whom_they_reached_was_met() -> None:
    story = SyncStory()
    story.block(sent(launched(HIGH, CURVE, DEV)))
    old = story.block(sent(moved(HIGH, ALICE, BOB, 5)), transfers_from_s=START_S + 3)
    assert old.transfers == []
    assert WalletMet(BOB, 101, START_S + 2) in old.met
    assert len(story.block(sent(moved(HIGH, ALICE, BOB, 5)), transfers_from_s=START_S + 3).transfers) == 1


# --- origins ---------------------------------------------------------------------------------------


def of(wallet: Address, batch: Batch) -> list[Address | None]:
    """Who is told to have funded it, each time."""
    return [one.funder for one in batch.funded if one.wallet == wallet]


def test_a_wallet_is_met_once() -> None:
    story = SyncStory()
    assert story.block(sent(sender=ALICE), sent(sender=ALICE)).met == [WalletMet(ALICE, 100, START_S + 1)]
    assert story.block(sent(sender=ALICE), sent(sender=BOB)).met == [WalletMet(BOB, 101, START_S + 2)]


def test_the_funder_is_who_first_sent_eth() -> None:
    story = SyncStory()
    batch = story.block(
        sent(sender=ALICE, to=BOB, value_wei=0), sent(sender=DEV, to=BOB, value_wei=1),
        sent(sender=CAROL, to=BOB, value_wei=10**18),
    )  # fmt: skip
    assert of(BOB, batch) == [DEV]
    assert [met.wallet for met in batch.met] == [ALICE, BOB, DEV, CAROL]
    assert story.block(sent(sender=CAROL, to=BOB, value_wei=5)).funded == []


def test_who_was_given_tokens_before_may_be_funded_later() -> None:
    story = SyncStory()
    story.block(sent(launched(HIGH, CURVE, DEV), moved(HIGH, DEV, ALICE, 5), sender=DEV))
    batch = story.block(sent(sender=BOB, to=ALICE, value_wei=5))
    assert of(ALICE, batch) == [BOB]
    assert WalletFunded(ALICE, BOB, 101, START_S + 2) in batch.funded


def test_nobody_becomes_the_funder_of_a_wallet_that_acted_before() -> None:
    """Else one wei would tie any wallet to whoever pays it."""
    story = SyncStory()
    assert story.block(sent(sender=ALICE)).funded == [WalletFunded(ALICE, None, 100, START_S + 1)]
    assert of(ALICE, story.block(sent(sender=BOB, to=ALICE, value_wei=1))) == []


def test_within_a_block_the_transactions_order_decides() -> None:
    acted, paid = sent(sender=ALICE), sent(sender=BOB, to=ALICE, value_wei=1)
    assert of(ALICE, SyncStory().block(acted, paid)) == [None]
    assert of(ALICE, SyncStory().block(paid, acted)) == [BOB]


def test_an_account_whose_operation_was_run_acted() -> None:
    own = sent(executing(), operated(ALICE), sender=BOB, to=ENTRY_POINT)
    story = SyncStory()
    batch = story.block(own)
    assert of(ALICE, batch) == [None]
    assert ALICE in [met.wallet for met in batch.met]
    assert of(ALICE, story.block(sent(sender=CAROL, to=ALICE, value_wei=1))) == []
    paid = sent(sender=CAROL, to=ALICE, value_wei=1)
    assert of(ALICE, SyncStory().block(paid, own)) == [CAROL]
    assert of(ALICE, SyncStory().block(own, paid)) == [None]


def test_nobody_funds_himself() -> None:
    """Who came by his first eth in a way that is not seen here would hide that by sending himself some."""
    story = SyncStory()
    assert of(ALICE, story.block(sent(sender=ALICE, to=ALICE, value_wei=5))) == [None]
    assert of(ALICE, story.block(sent(sender=BOB, to=ALICE, value_wei=5))) == []


@pytest.mark.parametrize("own", ["0x64", "0x68", "0x6a"])
def test_what_the_chain_itself_sends_funds_nobody(own: str) -> None:
    story = SyncStory()
    batch = story.block(sent(sender=BOB, to=ALICE, value_wei=5, type=own))
    assert (of(ALICE, batch), [met.wallet for met in batch.met]) == ([None], [ALICE, BOB])
    # Nor does who pays it afterwards.
    assert of(ALICE, story.block(sent(sender=BOB, to=ALICE, value_wei=5, type="0x0"))) == []


def test_a_call_funds_nobody() -> None:
    """The first buyer of a curve is not its funder."""
    story = SyncStory()
    assert of(CURVE, story.block(sent(sender=BOB, to=CURVE, value_wei=5, input="0xd0"))) == [None]
    assert of(CURVE, story.block(sent(sender=ALICE, to=CURVE, value_wei=5))) == []


@pytest.mark.parametrize("nothing", ["0x0", "0x00", "0x" + "0" * 64])
def test_no_eth_is_no_eth_however_it_is_written(nothing: str) -> None:
    story = SyncStory()
    block = story.chain.block(sent(sender=BOB, to=ALICE, value_wei=5))
    transactions = tuple(replace(tx, value=nothing) for tx in block.transactions)
    batch = story.read([BlockRead(block.ref, block.parent_hash, transactions, block.entries)])
    assert (of(ALICE, batch), [met.wallet for met in batch.met]) == ([], [BOB])


def test_eth_that_a_new_contract_is_given_funds_nobody() -> None:
    batch = SyncStory().block(sent(sender=ALICE, to=None, value_wei=5))
    assert ([one.wallet for one in batch.funded], [met.wallet for met in batch.met]) == ([ALICE], [ALICE])


def test_whom_an_entry_point_paid_for_is_no_funders_child() -> None:
    """Eth that a contract passes on is no plain transfer."""
    story = SyncStory()
    story.block(sent(launched(HIGH, CURVE, DEV)))
    own = sent(bought(CURVE, ALICE, BOB, 7, 5), sender=CAROL, to=ENTRY_POINT, value_wei=7)
    assert {one.wallet for one in story.block(own).funded} == {ENTRY_POINT, CAROL}


# --- liquidity -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("token", "figures"), [(HIGH, (22, 11)), (LOW, (11, 22))])
def test_liquidity_tells_its_sides(token: object, figures: tuple[int, int]) -> None:
    story, weth = SyncStory(), NETWORK.weth
    own = HIGH if token == HIGH else LOW
    at = v3_at(own, weth)
    batch = story.block(
        sent(v3_opened(own, weth), v3_minted(at, BOB, 9, 11, 22), v3_minted(at, BOB, 0, 0, 0))
    )
    (change,) = batch.liquidity
    assert (change.owner, change.sender, change.liquidity_delta) == (BOB, ALICE, 9)
    assert (change.token_raw, change.quote_raw) == figures


def test_a_v4_pools_liquidity_tells_no_amounts() -> None:
    story = SyncStory()
    at = v4_at(HIGH, ZERO_ADDRESS)
    batch = story.block(sent(v4_opened(HIGH, ZERO_ADDRESS), v4_moved(at, BOB, -9), v4_moved(at, BOB, 0)))
    (change,) = batch.liquidity
    assert (change.liquidity_delta, change.token_raw, change.quote_raw) == (-9, None, None)
