"""What trades were worth in their block, and who is believed about that."""

from dataclasses import dataclass

import pytest

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.market.moving import MAX_MICRO_USD
from roundtrip.sync.batch import Batch
from roundtrip.venues.base import Log
from support.told_blocks import (
    Q96,
    USDG,
    WETH,
    bought,
    hook_fee,
    launched,
    sent,
    v3_at,
    v3_minted,
    v3_opened,
    v3_priced,
    v3_swap,
    v4_at,
    v4_opened,
    v4_swap,
)
from unit.sync.priced import at_usd, swap
from unit.sync.telling import ALICE, CURVE, DEV, HIGH, LOW, NVDA, SPY, Story
from unit.venues.logs import NETWORK
from unit.venues.network import address

ETH = 10**18
DEEP, SHALLOW = v3_at(WETH, USDG, 500), v3_at(WETH, USDG, 3000)
HOOK = NETWORK.launchpad_hook or ZERO_ADDRESS


@dataclass
class Worth:
    """A story with places to buy HIGH for eth and usdg, LOW for weth, and a third for NVDA."""

    story: Story

    def of(self, quote: Address, quote_raw: int = 10**18) -> tuple[int | None, int | None]:
        """What a buy for so much would be worth now."""
        places = {ZERO_ADDRESS: CURVE, NVDA: address(0x75)}
        if quote in places:
            batch = self.story.block(sent(bought(places[quote], ALICE, ALICE, quote_raw, 5)))
        elif quote == WETH:
            batch = self.story.block(sent(v3_swap(v3_at(LOW, WETH), -5, quote_raw)))
        else:
            batch = self.story.block(sent(v3_swap(v3_at(HIGH, USDG), quote_raw, -5)))
        (trade,) = batch.trades
        return trade.eth_wei, trade.micro_usd

    def block(self, *logs: Log, after_s: int = 1) -> Batch:
        return self.story.block(sent(*logs), after_s=after_s)

    def eth_usd(self) -> float | None:
        """What an eth is worth now, in dollars."""
        _, micro_usd = self.of(ZERO_ADDRESS)
        return None if micro_usd is None else round(micro_usd / 10**6, 3)


@pytest.fixture
def worth() -> Worth:
    story = Story()
    story.block(
        sent(launched(HIGH, CURVE, DEV), launched(address(0x74), address(0x75), DEV, NVDA)),
        sent(v3_opened(HIGH, USDG), v3_opened(LOW, WETH), v4_opened(WETH, USDG), v4_opened(HIGH, NVDA, HOOK)),
        sent(v3_opened(WETH, USDG, 500), v3_opened(WETH, USDG, 3000), v3_opened(NVDA, USDG, 500)),
    )
    return Worth(story)


def test_without_a_price_only_what_needs_none_is_told(worth: Worth) -> None:
    assert worth.of(ZERO_ADDRESS) == (ETH, None)
    assert worth.of(WETH) == (ETH, None)
    assert worth.of(USDG, 2_000_000) == (None, 2_000_000)
    assert worth.of(NVDA) == (None, None)


def test_with_prices_everything_is_told_in_eth_and_in_dollars(worth: Worth) -> None:
    worth.block(swap(DEEP, 2500), swap(v3_at(NVDA, USDG, 500), 100))
    eth_wei, micro_usd = worth.of(ZERO_ADDRESS)
    assert eth_wei == ETH
    assert micro_usd == pytest.approx(2500 * 10**6)
    assert worth.of(WETH) == (ETH, micro_usd)
    eth_wei, micro_usd = worth.of(USDG, 2_500_000_000)
    assert eth_wei == pytest.approx(ETH)
    assert micro_usd == 2_500_000_000
    eth_wei, micro_usd = worth.of(NVDA)
    assert eth_wei == pytest.approx(ETH / 25)
    assert micro_usd == pytest.approx(100 * 10**6)


def test_a_fee_changes_what_a_trade_is_worth(worth: Worth) -> None:
    worth.block(swap(DEEP, 2500), swap(v3_at(NVDA, USDG, 500), 100))
    at = v4_at(HIGH, NVDA, HOOK)
    (trade,) = worth.block(v4_swap(at, -9 * ETH, 5), hook_fee(at, NVDA, ETH)).trades
    assert trade.quote_raw == 10 * ETH
    assert trade.micro_usd == pytest.approx(1000 * 10**6)
    assert trade.eth_wei == pytest.approx(4 * ETH // 10)


def test_a_trade_is_worth_what_prices_were_at_the_end_of_the_block_before(worth: Worth) -> None:
    """Within a block a price can be bent and bent back, and costs nothing."""
    buy = bought(CURVE, ALICE, ALICE, ETH, 5)
    first = worth.block(buy, swap(DEEP, 2500), buy, swap(DEEP, 2000), buy)
    assert [trade.micro_usd for trade in first.trades] == [None] * 3
    second = worth.block(swap(DEEP, 9000), buy, swap(DEEP, 2100))
    assert [trade.micro_usd for trade in second.trades] == [pytest.approx(2000 * 10**6)]
    assert worth.eth_usd() == pytest.approx(2100)


def test_where_the_network_names_the_pool_that_tells_what_an_eth_is_worth_no_other_does(worth: Worth) -> None:
    story = worth.story
    story.eth_usd_pool = SHALLOW
    worth.block(swap(DEEP, 9000, 10**30))
    assert worth.eth_usd() is None
    worth.block(swap(SHALLOW, 2000, 10**15))
    worth.block(swap(DEEP, 9000, 10**30))
    assert worth.eth_usd() == 2000


def test_a_block_tells_one_price_of_each_quote_the_last(worth: Worth) -> None:
    batch = worth.block(swap(DEEP, 2500), swap(DEEP, 2000), swap(v3_at(NVDA, USDG, 500), 100))
    eth, nvda = batch.prices.values()
    assert (eth.quote, eth.at, nvda.quote) == (WETH, DEEP, NVDA)
    assert eth.usdg_raw == pytest.approx(2000 * 10**6)
    assert worth.block().prices == {}


def test_a_price_says_how_deep_the_pool_was(worth: Worth) -> None:
    """Whichever side usdg is on: what the pool would hold of it over every price."""
    worth.block(launched(address(0x76), address(0x77), DEV, SPY), v3_opened(SPY, USDG, 500))
    root, liquidity = at_usd(2500), 10**18
    eth, spy = worth.block(
        swap(DEEP, 2500), v3_swap(v3_at(SPY, USDG, 500), 5, -7, Q96 * Q96 // root)
    ).prices.values()
    assert eth.depth_raw == liquidity * root // Q96
    assert spy.depth_raw == pytest.approx(eth.depth_raw)
    assert spy.usdg_raw == pytest.approx(eth.usdg_raw) == pytest.approx(2500 * 10**6)


def test_what_is_no_money_has_no_price(worth: Worth) -> None:
    assert worth.block(swap(v3_at(HIGH, USDG), 3)).prices == {}


def test_a_pool_that_is_begun_changes_no_price_that_there_is(worth: Worth) -> None:
    worth.block(swap(DEEP, 2500))
    assert worth.block(v3_priced(SHALLOW, at_usd(3)), v3_minted(SHALLOW, DEV, 9, 5, 5)).prices == {}
    assert worth.eth_usd() == 2500


def test_v4_pools_tell_no_price(worth: Worth) -> None:
    worth.block(v4_swap(v4_at(WETH, USDG), 5, -7))
    assert worth.eth_usd() is None


def test_of_several_pools_of_weth_the_first_where_money_lay_tells(worth: Worth) -> None:
    """However deep another one is for a moment: anybody can lend himself any depth for one transaction."""
    worth.block(swap(SHALLOW, 2000, 10**17))
    worth.block(swap(DEEP, 9000, 10**30))
    assert worth.eth_usd() == 2000
    worth.block(swap(SHALLOW, 2100, 10**15))
    assert worth.eth_usd() == 2100


def test_what_another_quote_is_worth_its_pool_of_the_usual_fee_tells(worth: Worth) -> None:
    worth.block(swap(DEEP, 2500), v3_opened(NVDA, USDG, 3000))
    worth.block(swap(v3_at(NVDA, USDG, 3000), 9000, 10**30))
    assert worth.of(NVDA) == (None, None)
    worth.block(swap(v3_at(NVDA, USDG, 500), 100))
    worth.block(swap(v3_at(NVDA, USDG, 3000), 9000, 10**30))
    assert worth.of(NVDA)[1] == pytest.approx(100 * 10**6)


def test_money_makes_a_new_pools_price_one(worth: Worth) -> None:
    worth.block(v3_priced(DEEP, at_usd(2500)))
    assert worth.eth_usd() is None
    worth.block(v3_minted(DEEP, DEV, 9, 10**15, 2_500_000))
    assert worth.eth_usd() == 2500


def test_a_pool_that_was_begun_first_keeps_no_other_from_telling(worth: Worth) -> None:
    worth.block(v3_priced(SHALLOW, at_usd(3)))
    worth.block(v3_priced(DEEP, at_usd(2500)), v3_minted(DEEP, DEV, 9, 10**15, 2_500_000))
    worth.block(swap(DEEP, 2500))
    assert worth.eth_usd() == 2500


def test_no_trade_is_worth_more_than_is_stored(worth: Worth) -> None:
    worth.block(swap(DEEP, 2500))
    assert worth.of(ZERO_ADDRESS, 2**127) == (2**127, MAX_MICRO_USD)
    assert worth.of(USDG, 2**127)[1] == MAX_MICRO_USD


def test_a_price_of_nothing_is_none(worth: Worth) -> None:
    worth.block(v3_swap(DEEP, 5, -7, 5000, 10**30))
    assert worth.of(ZERO_ADDRESS) == (ETH, None)
    assert worth.of(USDG, 7) == (None, 7)
