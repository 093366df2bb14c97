"""Whose a trade is where account abstraction's entry points stand between."""

import pytest

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.venues.entry_point import ENTRY_POINTS
from support.told_blocks import (
    ENTRY_POINT,
    HOOK,
    ROUTER,
    WETH,
    LoggedTransaction,
    bought,
    executing,
    launched,
    moved,
    next_group,
    operated,
    sent,
    sold,
    v3_at,
    v3_opened,
    v3_swap,
    v4_at,
    v4_opened,
    v4_swap,
)
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH, SyncStory, traders
from unit.venues.logs import NETWORK

POOL = v4_at(HIGH, ZERO_ADDRESS, HOOK)
SWAP = v4_swap(POOL, -7, 5)
SMART, OTHER_SMART = Address("0x" + "5a" * 20), Address("0x" + "5b" * 20)
BUNDLER = Address("0x" + "b0" * 20)
"""A contract of a bundler's own, through which he calls an entry point."""
OTHER_ENTRY_POINT = max(ENTRY_POINTS)

either_way = pytest.mark.parametrize("to", [ENTRY_POINT, BUNDLER], ids=["straight", "through a contract"])


def whose(*transactions: LoggedTransaction) -> list[Address]:
    """The traders of a block, once every place is there."""
    story = SyncStory()
    story.block(sent(launched(HIGH, CURVE, DEV), v4_opened(HIGH, ZERO_ADDRESS, HOOK), v3_opened(HIGH, WETH)))
    return traders(story.block(*transactions))


@either_way
def test_behind_an_entry_point_stands_the_account_of_the_operation(to: Address) -> None:
    own = executing(), SWAP, moved(HIGH, DEV, BOB, 1), operated(SMART), SWAP, SWAP, operated(OTHER_SMART)
    found = whose(sent(*own, sender=DEV, to=to), sent(SWAP, sender=ALICE))
    assert found == [SMART, OTHER_SMART, OTHER_SMART, ALICE]


@pytest.mark.parametrize("recipient", [SMART, ROUTER, NETWORK.universal_router, ZERO_ADDRESS, CAROL])
def test_whom_an_operation_has_paid_is_its_accounts_own_business(recipient: Address) -> None:
    """Anybody may have a swap pay a famous wallet through an entry point: that wallet did nothing."""
    swaps = (
        v3_swap(v3_at(HIGH, WETH), 7, -5, recipient=recipient), bought(CURVE, SMART, recipient, 7, 5),
        sold(CURVE, SMART, recipient, 7, 5), bought(CURVE, ROUTER, recipient, 7, 5),
    )  # fmt: skip
    found = whose(sent(executing(), *swaps, operated(SMART), sender=DEV, to=ENTRY_POINT))
    assert found == [SMART] * 4


@either_way
def test_what_happens_while_operations_are_validated_is_the_senders(to: Address) -> None:
    """A bundler puts somebody's signed operation first and trades in the validation of his own."""
    own = SWAP, executing(), operated(SMART), operated(OTHER_SMART)
    assert whose(sent(*own, sender=ALICE, to=to)) == [ALICE]


def test_operations_in_groups_are_validated_until_the_first_group_is_run() -> None:
    """Version 0.6 says before their validation already that it is going to run them."""
    own = executing(), SWAP, next_group(), SWAP, operated(SMART), next_group(), SWAP, operated(OTHER_SMART)
    assert whose(sent(*own, next_group(), SWAP, sender=ALICE)) == [ALICE, SMART, OTHER_SMART, ALICE]


@either_way
def test_what_happens_after_the_last_operation_is_the_senders(to: Address) -> None:
    own = executing(), operated(SMART), SWAP
    assert whose(sent(*own, sender=ALICE, to=to)) == [ALICE]


def test_between_two_bundles_of_one_transaction_the_sender_trades() -> None:
    """Before the second, its operations are validated."""
    bundle = executing(), SWAP, operated(SMART)
    assert whose(sent(*bundle, SWAP, *bundle, sender=ALICE, to=BUNDLER)) == [SMART, ALICE, SMART]


def test_each_block_and_each_transaction_has_its_own_operations() -> None:
    story = SyncStory()
    story.block(sent(v4_opened(HIGH, ZERO_ADDRESS, HOOK)))
    bundle = sent(executing(), SWAP, operated(SMART), sender=DEV)
    halves = sent(executing(), SWAP, sender=ALICE), sent(SWAP, operated(SMART), sender=BOB)
    blocks = [story.chain.block(*own) for own in ((bundle,), halves, (bundle,))]
    assert traders(story.read(blocks)) == [SMART, ALICE, BOB, SMART]


def test_an_entry_point_that_ran_no_operation_leaves_the_sender() -> None:
    found = whose(
        sent(executing(), SWAP, sender=ALICE, to=ENTRY_POINT), sent(operated(SMART), to=ENTRY_POINT),
        sent(SWAP, sender=ALICE, to=ENTRY_POINT), sent(executing(), operated(SMART), to=ENTRY_POINT),
    )  # fmt: skip
    assert found == [ALICE, ALICE]


def test_an_operation_of_an_entry_point_that_has_not_begun_takes_no_trade() -> None:
    own = SWAP, operated(SMART, by=OTHER_ENTRY_POINT)
    assert whose(sent(executing(), *own, sender=ALICE, to=BUNDLER)) == [ALICE]


def test_an_entry_point_within_another_has_its_own_operations_and_no_more() -> None:
    other = OTHER_ENTRY_POINT
    inner = SWAP, executing(by=other), SWAP, operated(OTHER_SMART, by=other), SWAP
    found = whose(sent(executing(), *inner, operated(SMART), sender=ALICE, to=ENTRY_POINT))
    assert found == [SMART, OTHER_SMART, SMART]


def test_an_entry_point_within_a_validation_runs_its_own_operations() -> None:
    other = OTHER_ENTRY_POINT
    inner = executing(by=other), SWAP, operated(OTHER_SMART, by=other), SWAP
    found = whose(sent(SWAP, *inner, executing(), operated(SMART), sender=ALICE, to=ENTRY_POINT))
    assert found == [ALICE, OTHER_SMART, ALICE]
