"""What is said of an unlock."""

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.unlocks import ComingUnlock, describe_unlock

TOKEN, HOLDER = Address("0x" + "ab" * 20), Address("0x" + "cd" * 20)
AT_S = 1_795_874_400
"""28 November 2026, 14:00 UTC."""


@pytest.mark.parametrize(
    ("left_s", "lead"),
    [
        (86_400, "In a day"),
        (86_400 - 299, "In a day"),
        (3_600 * 23, "In 23 hours"),
        (3_601, "In 1 hour"),
        (3_599, "In 59 minutes"),
        (62, "In 1 minute"),
        (1, "In 1 minute"),
        (86_401, "In a day"),
        (26 * 3_600, "In 26 hours"),
        (47 * 3_600 + 1_800, "In 2 days"),
        (30 * 86_400 - 7_200, "In 29 days"),
        (30 * 86_400, "In 30 days"),
    ],
)
def test_it_says_when_how_much_and_by_whom(left_s: int, lead: str) -> None:
    unlock = describe_unlock(ComingUnlock(TOKEN, HOLDER, AT_S, 6_200, 1), AT_S - left_s)
    assert unlock == (
        f"{lead}, on 28 Nov 2026 14:00 UTC, 62 % of the active liquidity of a pool of {TOKEN} can "
        f"be withdrawn by {HOLDER}."
    )


@pytest.mark.parametrize("share_bps", [None, 0])
def test_a_share_that_is_not_known_is_not_said(share_bps: int | None) -> None:
    unlock = describe_unlock(ComingUnlock(TOKEN, HOLDER, AT_S, share_bps, 2), AT_S - 86_400)
    assert f"UTC, locked liquidity of {TOKEN} can be withdrawn" in unlock
