"""The two wallets and blocks that probes are run with: unlike each other, and made of nothing but entropy."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.blocks.environments import draw
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, parse_address
from roundtrip.domain.check.evidence import Environment
from unit.services.heads import COINBASE, HEAD

QUICK = settings(max_examples=100, deadline=None)
Entropy = st.binary(min_size=32, max_size=32)

OF_THE_BLOCK = {"coinbase", "base_fee_wei"}
"""The next block's own: the same for both."""
BY_CHANCE = {"nonce", "approved_s"}
"""Drawn from few enough values to be the same now and then."""
PEOPLE = ("buyer", "receiver", "reader")


@QUICK
@given(Entropy)
def test_the_two_differ_in_everything_a_contract_can_see(entropy: bytes) -> None:
    careful, careless = draw(entropy, HEAD, POLICY)
    same = {f.name for f in fields(Environment) if getattr(careful, f.name) == getattr(careless, f.name)}
    assert OF_THE_BLOCK <= same <= OF_THE_BLOCK | BY_CHANCE


def test_nonces_differ_almost_always() -> None:
    nonces = [[e.nonce for e in draw(bytes([n]) * 32, HEAD, POLICY)] for n in range(100)]
    assert sum(first == second for first, second in nonces) < 5
    assert len({nonce for pair in nonces for nonce in pair}) > 100


@QUICK
@given(Entropy)
def test_the_same_entropy_draws_the_same(entropy: bytes) -> None:
    assert draw(entropy, HEAD, POLICY) == draw(bytes(entropy), replace(HEAD), POLICY)


@QUICK
@given(Entropy, Entropy)
def test_other_entropy_draws_other_people(one: bytes, other: bytes) -> None:
    if one == other:
        return
    first, second = (
        {getattr(e, who) for e in draw(seed, HEAD, POLICY) for who in PEOPLE} for seed in (one, other)
    )
    assert not first & second


@QUICK
@given(Entropy)
def test_people_are_six_different_addresses_and_none_is_zero(entropy: bytes) -> None:
    found = [getattr(e, who) for e in draw(entropy, HEAD, POLICY) for who in PEOPLE]
    assert len({*found, ZERO_ADDRESS, COINBASE}) == 8
    assert all(parse_address(one) == one for one in found)


@QUICK
@given(Entropy)
def test_every_figure_is_one_that_people_have(entropy: bytes) -> None:
    careful, careless = draw(entropy, HEAD, POLICY)
    for one in (careful, careless):
        assert 1 <= one.nonce <= 300
        assert one.max_fee_wei >= one.base_fee_wei + one.tip_wei
        assert len(bytes.fromhex(one.prev_randao[2:])) == 32
        assert one.gas_float_wei >= POLICY.gas_float_wei
        assert 0 < one.approved_s < POLICY.later_s
    assert 5 * 10**16 <= careful.gas_float_wei <= 10**17
    assert 10**18 <= careless.gas_float_wei <= 20 * 10**18
    assert (careful.tip_wei, careful.size_bps, careful.late_s, careful.own_usdg_raw) == (0, 10_000, 0, 0)
    assert 10**6 <= careless.tip_wei <= 10**8
    assert 1000 <= careless.size_bps <= 9900
    assert 1 <= careless.late_s <= 14
    assert 10**6 <= careless.own_usdg_raw <= 40 * 10**6
    assert (careful.company, careless.company) == (False, True)
    assert (careful.approves_all, careless.approves_all) == (False, True)
    assert (careful.sell_gas_ladder, careless.sell_gas_ladder) == ((), (POLICY.buy_gas_limit,))


@pytest.mark.parametrize("changes", [{"base_fee_wei": 5}, {"coinbase": Address("0x" + "c1" * 20)}])
def test_the_block_is_the_next_one(changes: dict[str, object]) -> None:
    head = replace(HEAD, **changes)  # type: ignore[arg-type]
    for before, after in zip(draw(b"1" * 32, HEAD, POLICY), draw(b"1" * 32, head, POLICY), strict=True):
        assert (after.base_fee_wei, after.coinbase) == (head.base_fee_wei, head.coinbase)
        assert (after.buyer, after.nonce, after.prev_randao) == (
            before.buyer,
            before.nonce,
            before.prev_randao,
        )
        assert after.max_fee_wei == 2 * head.base_fee_wei + after.tip_wei
