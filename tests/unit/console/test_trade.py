"""The form of a trade."""

import pytest

from roundtrip.console.pages.trade import TradeForm
from roundtrip.domain.base.errors import CallerFault


@pytest.mark.parametrize("slippage", ["nan", "inf", "1e400", "-1", "x", "1" * 400])
def test_a_slippage_that_is_no_number_is_told(slippage: str) -> None:
    form = TradeForm("buy", "0x12", "0x34", "1", "", slippage)
    with pytest.raises(CallerFault, match="The slippage must be a number"):
        form.params()


@pytest.mark.parametrize(
    ("side", "amount", "percent", "asks"),
    [
        ("sell", "", "50", {"percent": 50.0}), ("sell", "7", "100", {"amount": "7"}),
        ("sell", "7", "", {"amount": "7"}), ("buy", "0.1", "100", {"amount": "0.1"}),
    ],
)  # fmt: skip
def test_a_sell_is_of_a_share_or_of_an_amount_which_goes_before(
    side: str, amount: str, percent: str, asks: dict[str, object]
) -> None:
    form = TradeForm(side, "0x12", "0x34", amount, percent, "1")
    assert form.is_complete()
    assert form.params() == {"token": "0x12", "from": "0x34", "slippageBps": 100} | asks
