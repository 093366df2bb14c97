"""What an asset was worth in a transaction, and what a check before it said, as its page says it."""

from datetime import UTC, datetime

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.verdicts.changes import PastVerdict
from roundtrip.services.lookup.explain import find_verdict, value_asset
from roundtrip.store.index.prices import PastPrices, TradedWorth
from unit.domain.holding import TOKEN, address

WETH, USDG = address(0xE), address(0xD)
ETH = 10**18


def prices(usdg_raw: int | None) -> PastPrices:
    """``usdg_raw``: of an eth in block 7."""
    known = {} if usdg_raw is None else {(WETH, 7): usdg_raw}
    return PastPrices(WETH, USDG, frozenset({WETH}), frozenset({7}), known)


@pytest.mark.parametrize(
    ("asset", "raw", "usd"),
    [
        ("eth", ETH // 2, 1750.0), ("weth", ETH // 2, 1750.0), ("usdg", 1_500_000, 1.5),
        (TOKEN, 500, 20.0), (address(0xABC), 500, None),
    ],
)  # fmt: skip
def test_money_is_priced_and_a_token_is_worth_what_its_trades_were(
    asset: str, raw: int, usd: float | None
) -> None:
    traded = {TOKEN: TradedWorth(token_raw=1000, micro_usd=40_000_000)}
    assert value_asset(asset, raw, 7, prices(3500 * 10**6), traded) == usd


def test_without_a_price_a_worth_is_not_known_and_not_nothing() -> None:
    no_trades: dict[Address, TradedWorth] = {}
    assert value_asset("eth", ETH, 7, prices(None), no_trades) is None
    assert value_asset(TOKEN, 1, 7, prices(None), no_trades) is None


def test_the_verdict_then_is_of_the_last_check_up_to_the_block() -> None:
    past = [
        PastVerdict(datetime.fromtimestamp(block, UTC), block, "9", code, "warn", False, None)
        for block, code in ((9, "newer"), (7, "then"), (5, "older"))
    ]
    assert [found and found.code for found in (find_verdict(past, at) for at in (4, 6, 7, 8, 9))] == [
        None, "older", "then", "then", "newer",
    ]  # fmt: skip
