"""The form of a trade."""

import pytest

from roundtrip.console.pages.trade import TradeForm
from roundtrip.domain.base.errors import CallerFault


@pytest.mark.parametrize("slippage", ["nan", "inf", "1e400", "-1", "x", "1" * 400])
def test_a_slippage_that_is_no_number_is_told(slippage: str) -> None:
    form = TradeForm("buy", "0x12", "0x34", "1", "", slippage)
    with pytest.raises(CallerFault, match="The slippage must be a number"):
        form.params()
