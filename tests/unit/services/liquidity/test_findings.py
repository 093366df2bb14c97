"""What keeps a position, by its holder alone: nothing that anybody could move counts as kept. And why there
is no pool: what could not be read is no absence."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundtrip.domain.base.types import BURN_ADDRESS, Address
from roundtrip.domain.base.venue import OtherPool
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.liquidity.depth import Withdrawal
from roundtrip.services.liquidity.findings import describe_absence, judge_holder
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


_UNREAD = Missing("node", "no answer")
_NOT_FOUND = "We could not find out in which pools it trades: this is not a pass."


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, ""),
        (
            {"role": "weth"},
            "This is weth, the money that tokens trade against: we do not look up its liquidity.",
        ),
        ({"code_bytes": 0}, "There is no contract at this address."),
        ({"balance_answers": False}, "The contract at this address does not answer like a token."),
        ({"total_supply_raw": None}, "The contract at this address does not answer like a token."),
        ({"code_bytes": _UNREAD}, _NOT_FOUND),
        ({"balance_answers": _UNREAD}, _NOT_FOUND),
        ({"total_supply_raw": _UNREAD}, _NOT_FOUND),
        ({"launch": _UNREAD}, _NOT_FOUND),
        ({"venues": [SimpleNamespace(facts=None), SimpleNamespace(facts=_UNREAD)]}, _NOT_FOUND),
        (
            {"complete": False},
            "It trades in no pool of the standard kinds. We do not know whether it has others: no pass.",
        ),
        (
            {"other_pools": (OtherPool(WALLET, LOCKER),), "others": 1},
            f"Its only pool is against a token that we do not trade through: {WALLET} against {LOCKER}. "
            "We did not read its liquidity.",
        ),
    ],
)
def test_a_token_without_a_pool(changes: dict[str, Any], text: str) -> None:
    read: dict[str, Any] = {
        "code_bytes": 9,
        "balance_answers": True,
        "total_supply_raw": 1,
        "launch": None,
        "venues": [],
        "other_pools": (),
    }
    result = SimpleNamespace(**(read | {"role": "token", "complete": True} | changes))
    bought = SimpleNamespace(
        role=result.role,
        candidates=result,
        data=SimpleNamespace(facts=result, launch=result.launch, venues=result.venues),
    )
    assert describe_absence(cast(Any, bought)) == text
