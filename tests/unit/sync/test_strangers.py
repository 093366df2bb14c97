"""What anybody's contract may send to be taken for somebody else's: none of it becomes a fact."""

import dataclasses

import pytest

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.sync.batch import Batch
from roundtrip.venues.base import Log
from support.told_blocks import (
    ENTRY_POINT,
    HOOK,
    USDG,
    WETH,
    bought,
    executing,
    hook_fee,
    launched,
    moved,
    operated,
    rescued,
    sent,
    sold,
    swept,
    v1_launched,
    v3_at,
    v3_burnt,
    v3_minted,
    v3_opened,
    v3_priced,
    v3_swap,
    v4_at,
    v4_moved,
    v4_opened,
    v4_swap,
)
from unit.sync.telling import ALICE, BOB, CURVE, DEV, HIGH, LOW, SyncStory, traders
from unit.venues.logs import NETWORK, STRANGER

POOL = v4_at(HIGH, ZERO_ADDRESS, HOOK)
MORE, MORE_CURVE = Address("0x" + "0f" * 20), Address("0x" + "0e" * 20)


def build_story() -> SyncStory:
    """A launched token with a curve and a pool, a v3 pool, and a price of eth."""
    story = SyncStory()
    at = v3_at(WETH, USDG)
    story.block(
        sent(launched(HIGH, CURVE, DEV), v4_opened(HIGH, ZERO_ADDRESS, HOOK), v3_opened(LOW, WETH)),
        sent(v3_opened(WETH, USDG), v3_priced(at, 1 << 80), v3_minted(at, DEV, 5, 5, 5)),
    )
    return story


def says_nothing(batch: Batch) -> bool:
    """No fact but that a wallet was met who sent the transaction."""
    lists = dataclasses.asdict(batch)
    del lists["parent_hash"], lists["blocks"], lists["met"]
    return not any(lists.values())


def by(emitter: Address, log: Log) -> Log:
    return log._replace(address=emitter)


@pytest.mark.parametrize(
    "log",
    [
        bought(STRANGER, ALICE, ALICE, 7, 5),
        sold(STRANGER, ALICE, ALICE, 7, 5),
        # At a place that is known, but is of another kind.
        bought(v3_at(LOW, WETH), ALICE, ALICE, 7, 5),
        v3_swap(CURVE, 7, -5),
        v3_minted(CURVE, ALICE, 7, 5, 5),
        v3_swap(STRANGER, 7, -5),
        v3_burnt(STRANGER, ALICE, 7, 5, 5),
        v3_priced(STRANGER, 1 << 96),
        # A pool that the factory did not make, or not there.
        by(STRANGER, v3_opened(HIGH, WETH)),
        by(STRANGER, v4_opened(MORE, ZERO_ADDRESS)),
        by(STRANGER, v4_swap(POOL, -7, 5)),
        by(STRANGER, v4_moved(POOL, ALICE, 5)),
        by(HOOK, v4_swap(POOL, -7, 5)),
        by(STRANGER, launched(MORE, MORE_CURVE, DEV)),
        by(STRANGER, v1_launched(MORE, DEV, v3_at(MORE, WETH))),
        by(STRANGER, swept(HIGH)),
        by(STRANGER, rescued(HIGH)),
        moved(STRANGER, HIGH, ALICE, 5),
        moved(MORE, ALICE, BOB, 5),
        v4_swap(v4_at(MORE, ZERO_ADDRESS), -7, 5),
    ],
)
def test_a_strangers_log_is_no_fact(log: Log) -> None:
    assert says_nothing(build_story().block(sent(log)))


def test_a_strangers_fee_takes_nothing_off_a_trade() -> None:
    fee = by(STRANGER, hook_fee(POOL, HIGH, 3))
    (trade,) = build_story().block(sent(v4_swap(POOL, -7, 5), fee)).trades
    assert trade.token_raw == 5


def test_a_strangers_operation_is_nobodys() -> None:
    swap, fake = v4_swap(POOL, -7, 5), operated(BOB, by=STRANGER)
    own = executing(by=STRANGER), swap, fake
    assert traders(build_story().block(sent(*own, sender=ALICE, to=ENTRY_POINT))) == [ALICE]
    real = executing(), *own, operated(DEV)
    assert traders(build_story().block(sent(*real, sender=ALICE, to=ENTRY_POINT))) == [DEV]
    # Nor does it begin one.
    late = executing(by=STRANGER), swap, operated(DEV)
    assert traders(build_story().block(sent(*late, sender=ALICE, to=ENTRY_POINT))) == [ALICE]


def test_a_strangers_contract_that_a_wallet_calls_trades_for_that_wallet_only() -> None:
    """Buyer and recipient of a curve's log are whoever the caller says; the sender is not."""
    buy = bought(CURVE, BOB, BOB, 7, 5)
    assert traders(build_story().block(sent(buy, sender=ALICE, to=STRANGER))) == [ALICE]


def test_a_curve_that_is_to_be_counts_from_its_launch_on() -> None:
    """Somebody knows where a curve will be and has logs sent in its name before: they are not remembered."""
    story = build_story()
    buy = bought(MORE_CURVE, ALICE, ALICE, 7, 5)
    assert says_nothing(story.block(sent(buy)))
    batch = story.block(sent(buy, launched(MORE, MORE_CURVE, DEV), buy))
    assert [trade.spot.log_index for trade in batch.trades] == [2]


def test_a_pool_that_is_to_be_counts_from_its_opening_on() -> None:
    story = build_story()
    swap = v3_swap(v3_at(MORE, WETH), -5, 7)
    assert says_nothing(story.block(sent(swap)))
    batch = story.block(sent(v3_opened(MORE, WETH), swap))
    assert len(batch.trades) == 1


def test_without_a_launchpad_no_router_stands_between() -> None:
    plain = dataclasses.replace(
        NETWORK, launchpad_factory=None, launchpad_hook=None, launchpad_router=None, launchpad_v1_factories=()
    )
    story = SyncStory(plain)
    story.block(sent(v3_opened(LOW, WETH), launched(HIGH, CURVE, DEV)))
    own = v3_swap(v3_at(LOW, WETH), -5, 7), bought(CURVE, BOB, BOB, 1, 1)
    batch = story.block(sent(*own, sender=ALICE, to=None))
    assert traders(batch) == [ALICE]
