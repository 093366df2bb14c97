"""Which buys a check makes again: a side buy has the gas of the buy that it explains."""

import pytest

from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.request import GAS_POOL_SPENT
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import BuyOutcome, CompletedBuy, EnvironmentBuy, RefusedCall
from roundtrip.services.engine.buy_round import _more_buys
from roundtrip.services.engine.session import VenueTrial
from roundtrip.venues import amm_v3
from unit.domain.builders import LIQUID, NODE, small_buy, venue

LIMIT = POLICY.side_buy_gas_limit
PLACE = VenuePlace(venue().venue, amm_v3)


def bought(gas: int) -> CompletedBuy:
    return CompletedBuy(10**17, 10**20, 10**17, gas)


def refused(reason: str, gas: int) -> RefusedCall:
    return RefusedCall("buy", reason, gas)


def repeated(main: BuyOutcome, small: BuyOutcome) -> list[str]:
    outcomes = {"probe": main, "thousandth": small, "large": bought(140_000)}
    buys = tuple(EnvironmentBuy(size, 0, outcome) for size, outcome in outcomes.items())  # type: ignore[arg-type]
    return [trial.size for trial in _more_buys(VenueTrial(PLACE, LIQUID, buys, None), POLICY)]


@pytest.mark.parametrize(
    ("main", "small"),
    [
        (bought(140_000), refused("out of gas", LIMIT)),
        # The pool gives its own reason, and keeps a part of the gas.
        (bought(3_480_000), refused("TF", LIMIT * 63 // 64)),
        # The token stops before it runs out of gas.
        (bought(3_480_000), refused("TF", 200_000)),
        (bought(140_000), GAS_POOL_SPENT),
    ],
)
def test_a_side_buy_that_had_less_gas_than_it_needs_is_made_again(
    main: CompletedBuy, small: BuyOutcome
) -> None:
    assert repeated(main, small) == ["thousandth"]


@pytest.mark.parametrize("small", [small_buy(), refused("too small", 90_000), NODE])
def test_a_side_buy_that_gas_did_not_stop_is_not_made_again(small: BuyOutcome) -> None:
    assert repeated(bought(140_000), small) == []


def test_smaller_buys_are_made_where_the_usual_one_is_refused() -> None:
    assert repeated(refused("paused", 60_000), refused("paused", 60_000)) == ["tenth", "hundredth"]
