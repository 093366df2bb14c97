"""By what purse a wallet is told from others."""

import pytest

from roundtrip.domain.market.fairness import FAIRNESS, Fairness, WalletOrigin, WalletOrigins

DAY_S = 86_400
BEGAN_S = 1_760_000_000
OLD_S, YOUNG_S = BEGAN_S - DAY_S, BEGAN_S - DAY_S + 1
BUYER, FUNDER, EXCHANGE, UNMET = range(1, 5)


def test_the_thresholds_are_those_that_were_decided() -> None:
    assert Fairness(young_s=DAY_S, least_buyers=20, most_funded=500) == FAIRNESS


@pytest.mark.parametrize(
    ("buyer_s", "funder", "funder_s", "purse"),
    [
        (OLD_S, None, OLD_S, BUYER),
        (YOUNG_S, None, OLD_S, None),
        (OLD_S, FUNDER, OLD_S, FUNDER),
        (YOUNG_S, FUNDER, OLD_S, FUNDER),
        # Whoever funded an old wallet was there then, or so a chain should have it.
        (OLD_S, FUNDER, YOUNG_S, None),
        (YOUNG_S, FUNDER, YOUNG_S, None),
        (OLD_S, EXCHANGE, OLD_S, BUYER),
        (OLD_S, EXCHANGE, YOUNG_S, BUYER),
        (YOUNG_S, EXCHANGE, OLD_S, EXCHANGE),
        (YOUNG_S, EXCHANGE, YOUNG_S, None),
        (YOUNG_S, UNMET, OLD_S, None),
    ],
)
def test_a_purse_is_an_old_wallet_or_an_old_funder(
    buyer_s: int, funder: int | None, funder_s: int, purse: int | None
) -> None:
    origins = {
        BUYER: WalletOrigin(buyer_s, funder),
        FUNDER: WalletOrigin(funder_s, None),
        EXCHANGE: WalletOrigin(funder_s, None),
    }
    wallets = WalletOrigins(origins, {FUNDER: 500, EXCHANGE: 501})
    assert wallets.purse(BUYER, BEGAN_S) == purse
    assert wallets.is_shared(purse) == (purse in (None, EXCHANGE))
    assert wallets.purse(UNMET, BEGAN_S) is None
