"""Each signal fires on what it names and is silent beside it; what cannot be measured is neither."""

from collections.abc import Mapping

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.market.signals import SIGNALS, SignalFacts

SUPPLY, ETH = 10**27, 10**18
ONE_PERCENT = SUPPLY // 100


def of(token_raw: int, eth_wei: int | None = None, supply_raw: int | None = SUPPLY) -> SignalFacts:
    return SignalFacts(token_raw, supply_raw, eth_wei)


FIRES: Mapping[str, tuple[SignalFacts, ...]] = {
    "insider_sold": (
        of(ONE_PERCENT),
        of(ONE_PERCENT, 0),
        of(1, ETH // 10),
        of(1, ETH // 10, None),
        of(ONE_PERCENT, ETH),
    ),
    "insider_moved": (of(ONE_PERCENT), of(SUPPLY)),
    "liquidity_left": (
        SignalFacts(pool_bps=1000),
        SignalFacts(pool_bps=10_000, eth_wei=ETH // 10),
        SignalFacts(eth_wei=ETH),
        SignalFacts(5, None, ETH, 1000),
    ),
    "serial_launcher": (
        SignalFacts(launches=5),
        SignalFacts(launches=6, graduated=1),
        SignalFacts(launches=1000, graduated=199),
    ),
    "large_burn": (of(ONE_PERCENT), of(SUPPLY)),
}
"""What each is about."""
SILENT: Mapping[str, tuple[SignalFacts, ...]] = {
    "insider_sold": (
        of(ONE_PERCENT - 1),
        of(ONE_PERCENT - 1, ETH // 10 - 1),
        of(SUPPLY, ETH // 10 - 1, None),
    ),
    "insider_moved": (of(ONE_PERCENT - 1), of(0)),
    "liquidity_left": (
        SignalFacts(pool_bps=999),
        SignalFacts(pool_bps=999, eth_wei=50 * ETH),
        SignalFacts(pool_bps=10_000, eth_wei=ETH // 10 - 1),
        SignalFacts(eth_wei=ETH - 1),
    ),
    "serial_launcher": (
        SignalFacts(),
        SignalFacts(launches=4),
        SignalFacts(launches=5, graduated=1),
        SignalFacts(launches=1000, graduated=200),
    ),
    "large_burn": (of(ONE_PERCENT - 1), of(0)),
}
"""What lies just beside it."""
UNTOLD: Mapping[str, tuple[SignalFacts, ...]] = {
    "insider_sold": (of(SUPPLY, None, None), of(1, None, 0)),
    "insider_moved": (of(SUPPLY, None, None), of(1, None, 0)),
    "liquidity_left": (SignalFacts(), SignalFacts(token_raw=SUPPLY, supply_raw=SUPPLY)),
    "serial_launcher": (),
    "large_burn": (of(SUPPLY, None, None), of(1, None, 0)),
}
"""What it cannot tell."""


def test_every_signal_is_tried_here() -> None:
    assert SIGNALS.keys() == FIRES.keys() == SILENT.keys() == UNTOLD.keys()
    assert all(FIRES.values())
    assert all(SILENT.values())


@pytest.mark.parametrize("name", FIRES)
def test_a_signal_fires_on_what_it_names(name: str) -> None:
    assert [SIGNALS[name](seen, POLICY) for seen in FIRES[name]] == [True] * len(FIRES[name])


@pytest.mark.parametrize("name", SILENT)
def test_a_signal_is_silent_beside_it(name: str) -> None:
    assert [SIGNALS[name](seen, POLICY) for seen in SILENT[name]] == [False] * len(SILENT[name])


@pytest.mark.parametrize("name", UNTOLD)
def test_what_cannot_be_measured_is_neither(name: str) -> None:
    assert [SIGNALS[name](seen, POLICY) for seen in UNTOLD[name]] == [None] * len(UNTOLD[name])
