"""In how many simulations a crowd trades, so that each fits the gas of one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.rpc.data_fee import DataFee
from roundtrip.chain.rpc.dialect import GETH, NITRO
from roundtrip.chain.simulate.crowd_outcomes import CrowdBuys
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import CompletedBuy
from roundtrip.services.engine.crowd import WHOLE_CROWD, crowd_parts, fit_attempts_to
from unit.chain.samples import ENVIRONMENT
from unit.services.engine.crowds import HEAD, bought_on, drawn, measured, session


def buy(gas: int, approve_gas: int = 46_000) -> CompletedBuy:
    return CompletedBuy(10**17, 10**20, 10**17, gas, approve_gas=approve_gas)


@pytest.mark.parametrize(
    ("gas", "approve_gas", "parts"),
    [
        (150_000, 46_000, 1),
        (150_000, 1_200_000, 2),
        (300_000, 160_000, 1),
        (980_000, 46_000, 3),
        (2_650_000, 46_000, 6),
        (16_000_000, 46_000, 0),
    ],
    ids=["ordinary", "a dear approval", "some gas", "0.85 M a transfer", "2.5 M", "all it may"],
)
def test_the_parts_follow_the_gas_that_the_main_wallet_used(gas: int, approve_gas: int, parts: int) -> None:
    assert crowd_parts(session(), buy(gas, approve_gas), drawn()) == parts


@pytest.mark.parametrize(
    ("data_gas", "gas", "approve_gas", "parts"),
    [
        (22_780, 220_000, 70_000, 1),
        (22_780, 16_000_000, 2_000_000, 0),
        (1_139_000, 1_300_000, 1_200_000, 21),
        (1_139_000, 4_000_000, 1_200_000, 26),
    ],
)
def test_what_data_costs_adds_parts_and_what_the_token_does_none_beyond_six(
    data_gas: int, gas: int, approve_gas: int, parts: int
) -> None:
    """So a token cannot have each wallet trade alone."""
    fee = DataFee(data_gas * ENVIRONMENT.base_fee_wei)
    run = replace(session(), head=replace(HEAD, dialect=replace(NITRO, data_fee=fee)))
    assert crowd_parts(run, buy(gas, approve_gas), drawn()) == parts


@pytest.mark.parametrize(
    ("used_gas", "rounds"), [(0, 5), (300_000, 5), (900_000, 5), (2_000_000, 4), (16_000_000, 3)]
)
def test_what_a_refused_sell_used_leaves_fewer_rounds_of_nearly_all(used_gas: int, rounds: int) -> None:
    run = session()
    fitted = fit_attempts_to(run, buy(300_000), used_gas)
    assert fitted.setting.policy.nearly_rounds == rounds
    assert (fitted is run) == (rounds == POLICY.nearly_rounds)
    small = replace(run, head=replace(HEAD, dialect=replace(GETH, gas_pool=12_000_000)))
    assert fit_attempts_to(small, buy(300_000), 16_000_000).setting.policy.nearly_rounds == 1


def test_a_node_with_a_smaller_pool_gets_more_parts() -> None:
    small = replace(HEAD, dialect=replace(GETH, gas_pool=12_000_000))
    assert crowd_parts(replace(session(), head=small), buy(150_000), drawn()) > 1


@given(st.integers(1, 30), st.integers(1, 5))
def test_every_wallet_is_in_one_part(parts: int, again: int) -> None:
    trial = measured(bought_on())
    split = [part for first in WHOLE_CROWD.split(parts) for part in first.split(again)]
    chosen = [part.of(trial) for part in split]
    wallets = [wallet for of_part in chosen for wallet in of_part.crowd_wallets]
    assert sorted(wallets, key=repr) == sorted(trial.crowd_wallets, key=repr)
    for of_part in chosen:
        assert isinstance(of_part.crowd, CrowdBuys)
        assert of_part.crowd.wallets == of_part.crowd_wallets


def test_a_part_has_wallets_of_all_sizes() -> None:
    for part in WHOLE_CROWD.split(4):
        sizes = [wallet.size_wei for wallet in part.of(bought_on()).crowd_wallets]
        lowest, highest = POLICY.crowd_sizes_wei[0], POLICY.crowd_sizes_wei[-1]
        assert min(sizes) <= lowest[1]
        assert max(sizes) >= highest[0] // 4
