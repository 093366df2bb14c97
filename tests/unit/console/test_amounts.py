"""What a page says of a sell of what was bought."""

from types import SimpleNamespace

import pytest

from roundtrip.console.support.render import Templates

BACK = SimpleNamespace(amount="1", asset="eth", symbol="ETH")


@pytest.mark.parametrize(
    ("back", "share_bps", "says", "never"),
    [
        (None, 0, "What it buys could not be sold back", "Not all"),
        (BACK, 5000, "Not all of what it buys could be sold back at once", "buys could not be"),
    ],
)
def test_a_sell_that_was_refused_is_told_with_what_sold(
    back: SimpleNamespace | None, share_bps: int, says: str, never: str
) -> None:
    sold = SimpleNamespace(reverts="max tx", back=back, share_bps=share_bps, after_s=13)
    source = '{% import "amounts.html" as show %}{{ show.sell_back(sold) }}'
    text = Templates({})._environment.from_string(source).render(sold=sold)
    assert says in text
    assert never not in text
    assert (back is not None) == ("50.00\xa0% of what it buys, sold back" in text)
