"""Which buyers of a launch belong together."""

from roundtrip.domain.holders.book import LaunchBuy
from roundtrip.domain.holders.launch_groups import BuyerGroup, group_buyers
from unit.domain.tokens import ANN, BOB, CAT, hashed


def test_dust_bought_before_does_not_hide_that_one_transaction_filled_them() -> None:
    buys = [
        LaunchBuy(wallet, 50, hashed(number), 5, (hashed(number), hashed(9)))
        for number, wallet in enumerate((ANN, BOB, CAT))
    ]
    together = BuyerGroup(None, hashed(9), (ANN, BOB, CAT))
    assert group_buyers(buys, {}, (), 2) == [together]
    assert group_buyers(buys, {}, {hashed(9)}, 2) == []
    assert group_buyers([LaunchBuy(one, 5, hashed(9), 5) for one in (ANN, BOB, CAT)], {}, (), 2) == [together]
