"""How long a reading of what buyers are exposed to counts, and when it is due again."""

import pytest

from roundtrip.domain.market.moving import (
    EXPOSED_FOR_S,
    NEVER_READ,
    READ_EVERY_S,
    LeavingLiquidity,
    TokenExposure,
)

NOW_S = 1_800_000_000.0
LEAVING = LeavingLiquidity(5_000, 100)


def read(ago_s: float) -> TokenExposure:
    return TokenExposure(700, NOW_S - ago_s, LEAVING, NOW_S - ago_s)


@pytest.mark.parametrize(
    ("exposure", "insiders", "leaving", "due"),
    [
        (NEVER_READ, None, None, True),
        (read(0), 700, LEAVING, False),
        (read(READ_EVERY_S), 700, LEAVING, False),
        (read(READ_EVERY_S + 1), 700, LEAVING, True),
        (read(EXPOSED_FOR_S + 1), None, None, True),
        # By a clock that was ahead: nobody knows how old it is.
        (read(-3600), None, None, True),
        # Could not be found out: it is tried again in its turn, and is no nought.
        (TokenExposure(None, NOW_S, None, NOW_S), None, None, False),
        (TokenExposure(700, NOW_S, None, None), 700, None, True),
    ],
)
def test_a_reading_counts_while_it_is_young(
    exposure: TokenExposure, insiders: int | None, leaving: LeavingLiquidity | None, due: bool
) -> None:
    assert exposure.insiders(NOW_S) == insiders
    assert exposure.liquidity(NOW_S) == leaving
    assert exposure.is_due(NOW_S) is due
