"""What keeps a position, by its holder alone: nothing that anybody could move counts as kept."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.types import BURN_ADDRESS, Address
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.liquidity.depth import Withdrawal
from roundtrip.services.liquidity.findings import judge_holder
from roundtrip.services.liquidity.locks import Holder
from unit.venues.network import CONTRACTS, address

WALLET, DELEGATED, CONTRACT, UNREAD, LOCKER, APPROVED = (address(0x51 + n) for n in range(6))
NETWORK = replace(CONTRACTS, beside=(LOCKER,))
HOLDERS = {
    WALLET: Holder(WALLET, b"", None),
    DELEGATED: Holder(DELEGATED, bytes.fromhex("ef0100") + bytes(20), None),
    CONTRACT: Holder(CONTRACT, b"\x60", None),
    UNREAD: Holder(UNREAD, Missing("node", "no answer"), None),
}


@pytest.mark.parametrize(
    ("holder", "approved", "held_by", "wallet"),
    [
        (None, None, "unknown", None),
        (BURN_ADDRESS, None, "burned", None),
        (WALLET, None, "free", WALLET),
        (WALLET, APPROVED, "free", WALLET),
        (DELEGATED, None, "free", DELEGATED),
        (CONTRACT, None, "unknown", None),
        (CONTRACT, APPROVED, "free", APPROVED),
        (CONTRACT, NETWORK.multicall3, "free", NETWORK.multicall3),
        (UNREAD, None, "unknown", None),
        (LOCKER, None, "launchpad", None),
        (LOCKER, APPROVED, "free", APPROVED),
        (NETWORK.multicall3, None, "unknown", None),
        (NETWORK.universal_router, None, "unknown", None),
        (NETWORK.v3_position_manager, None, "unknown", None),
    ],
)
def test_a_holder(
    holder: Address | None, approved: Address | None, held_by: str, wallet: Address | None
) -> None:
    withdrawal = None if wallet is None else Withdrawal(wallet)
    assert judge_holder(holder, approved, HOLDERS, NETWORK) == (held_by, withdrawal)
