"""What a page says of a sell of what was bought."""

from types import SimpleNamespace

import pytest

from roundtrip.console.support.render import Templates


def render(source: str, eth_usd: float | None = None, **values: object) -> str:
    visit = SimpleNamespace(eth_usd=lambda: eth_usd)
    return Templates({})._environment.from_string(source).render(visit=visit, **values)


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
    text = render('{% import "amounts.html" as show with context %}{{ show.sell_back(sold) }}', sold=sold)
    assert says in text
    assert never not in text
    assert (back is not None) == ("50.00\xa0% of what it buys, sold back" in text)


@pytest.mark.parametrize(
    ("amount", "asset", "eth_usd", "says"),
    [
        ("0.1", "eth", 3500.0, "$350"), ("1,000.5", "weth", 2.0, "$2,001"),
        ("0.0000001", "eth", 3500.0, "$0.00035"),
        ("0.1", "usdg", 3500.0, ""), ("0.1", "eth", None, ""), (None, "eth", 3500.0, ""),
    ],
)  # fmt: skip
def test_eth_is_told_in_dollars_where_a_rate_is_known(
    amount: str | None, asset: str, eth_usd: float | None, says: str
) -> None:
    source = '{% from "ui/money.html" import dollars with context %}{{ dollars(amount, asset) }}'
    text = render(source, eth_usd, amount=amount, asset=asset)
    assert text.strip() == (f"<small>{says}</small>" if says else "")
