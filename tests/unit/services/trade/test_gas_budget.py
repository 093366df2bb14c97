"""The gas that a caller's own calls get in all simulations of one request."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundtrip.chain.wallet.calls import WalletCalls
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.trade.judge import CallResult
from roundtrip.services.rehearsal.sell_back import exit_gas, other_venues_gas
from roundtrip.services.trade.touched_assets import GasBudget, usual_limits, with_gas_limits
from roundtrip.venues.base import Call
from unit.domain.trades import ran
from unit.venues.network import address

WALLET = address(0x71)
CALL = Call(address(0x99), "0x12", 10**17)


def case(draw: int) -> Any:
    """One call of a wallet, in an environment with this random number."""
    policy = POLICY
    return SimpleNamespace(
        ctx=SimpleNamespace(policy=policy),
        wallet=WALLET,
        calls=(CALL,),
        fund=True,
        environment=SimpleNamespace(prev_randao=hex(draw)),
        most_gas=lambda: policy.buy_gas_limit,
    )


@pytest.mark.parametrize("venues", [2, 4, 8])
def test_whatever_limit_is_drawn_an_ordinary_trade_is_sold_on_every_venue(venues: int) -> None:
    """A pool that a stranger adds must not use up the gas of the pool that was bought in."""
    result = ran(CallResult(True, 148_856, None))
    rounds = SimpleNamespace(venues_to_sell_on=lambda: [None] * venues)
    token = SimpleNamespace(buy_round=rounds)
    for draw in range(0, 25_000, 250):
        sent = cast(Any, case(draw))
        limits = usual_limits(sent, result)
        least_gas = exit_gas(limits, 1, POLICY)
        other_gas = other_venues_gas(limits, [cast(Any, token)], POLICY)
        planned = GasBudget(POLICY.trade_gas_budget).plan(
            with_gas_limits(sent, 160_000, result, 0), least_gas, other_gas
        )
        assert planned is not None
        assert planned[1] >= least_gas + other_gas


def test_the_usual_limit_goes_before_the_other_venues_and_they_before_higher_limits() -> None:
    usual, higher = (WalletCalls(WALLET, (CALL,), (limit,), None) for limit in (100, 500))
    assert GasBudget(1_000).plan([usual, higher], 300, 300) == ([usual], 300 + 300 + 300 * 3 // 4)
    assert GasBudget(500).plan([usual, higher], 300, 900) == ([usual], 400)
    assert GasBudget(399).plan([usual, higher], 300, 900) is None
