"""What a transaction comes to as a payment of one wallet, and how long until it is final."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundtrip.chain.wallet.payments import Finalized, MinedPayment
from roundtrip.chain.wallet.transactions import SentTransaction
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.events import Transferred
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.services.accounts.credits import not_final, own_raw, tx_in_a_block
from roundtrip.services.runtime.context import Context
from roundtrip.store.accounts.credits import GRACE_BLOCKS, PayToSpan

USDG, OTHER, WALLET, STRANGER, OLD, NEW = (Address("0x" + digit * 40) for digit in "123456")
PLACES = [PayToSpan(OLD, 50, 100), PayToSpan(NEW, 100, None)]
LAST_OF_OLD = 100 + GRACE_BLOCKS
SENT = SentTransaction(
    TxHash("0x" + "11" * 32), WALLET, USDG, 0, b"", 21_000, 0, 2, (90, "0x" + "22" * 32, 0)
)


def paying(
    *moved: tuple[Address, Address, Address, int], block: int = 90, final: int = 1_000
) -> MinedPayment:
    transfers = tuple((index, Transferred(*one)) for index, one in enumerate(moved))
    finalized = Finalized(final, "0x" + "ff" * 32, 1_000_000)
    return MinedPayment(SENT, block, "0x" + "22" * 32, 0, True, transfers, 0, finalized)


@pytest.mark.parametrize(
    ("block", "to_old", "to_new"),
    [(50, 0, 0), (51, 7, 0), (100, 7, 0), (101, 7, 9), (LAST_OF_OLD, 7, 9), (LAST_OF_OLD + 1, 0, 9)],
)
def test_each_place_counts_in_its_own_blocks(block: int, to_old: int, to_new: int) -> None:
    one = paying((USDG, WALLET, OLD, 7), block=block)
    other = paying((USDG, WALLET, NEW, 9), block=block)
    assert own_raw(one, USDG, WALLET, PLACES) == to_old
    assert own_raw(other, USDG, WALLET, PLACES) == to_new


def test_only_the_wallets_own_usdg_counts_and_adds_up() -> None:
    moved = (
        (USDG, WALLET, OLD, 1),
        (OTHER, WALLET, OLD, 10),
        (USDG, STRANGER, OLD, 100),
        (USDG, WALLET, STRANGER, 1_000),
        (USDG, OLD, WALLET, 10_000),
        (USDG, WALLET, OLD, 2),
    )
    assert own_raw(paying(*moved), USDG, WALLET, PLACES) == 3
    assert own_raw(paying(*moved), USDG, STRANGER, PLACES) == 100
    # Whoever is paid cannot pay himself.
    assert own_raw(paying((USDG, OLD, OLD, 5)), USDG, OLD, PLACES) == 0
    assert own_raw(paying((USDG, WALLET, OLD, 5)), USDG, WALLET, []) == 0


def test_what_is_in_no_block_or_failed_is_refused_with_its_code() -> None:
    for found, code in (
        (None, "no_such_tx"),
        (SENT, "no_such_tx"),
        (replace(paying(), succeeded=False), "tx_failed"),
    ):
        with pytest.raises(CallerFault) as caught:
            tx_in_a_block(found)
        assert caught.value.code == code
    assert tx_in_a_block(paying()) == paying()


class HeadAt:
    """The newest block, or none that is known."""

    def __init__(self, number: int | None, timestamp_s: int = 0) -> None:
        self._block = None if number is None else BlockRef(number, "0x" + "ee" * 32, timestamp_s)

    def current(self) -> Any:
        if self._block is None:
            raise NodeFault("the node has reported no block yet")
        return SimpleNamespace(block=self._block)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (HeadAt(1_200, 1_000_100), "in about 50 s."),
        (HeadAt(1_101, 1_000_001), "in about 1 s."),
        (HeadAt(1_200, 1_002_400), "in about 20 minutes."),
        (HeadAt(1_200, 1_000_241), "in about 3 minutes."),
        (HeadAt(None), "in a few minutes."),
        (HeadAt(1_000, 1_000_000), "in a few minutes."),
        (HeadAt(1_200, 999_000), "in a few minutes."),
    ],
)
def test_how_long_it_takes_until_a_block_is_final(head: HeadAt, expected: str) -> None:
    ctx = cast(Context, SimpleNamespace(heads=head))
    error = not_final(ctx, paying(block=1_100))
    assert error.code == "no_such_tx"
    assert error.message.endswith(expected), error.message
    assert "block 1,100, which is not final yet: the newest final block is 1,000" in error.message
