"""The worlds are what they claim to be: who can take liquidity out really does, and nobody else."""

from collections.abc import Iterator

import pytest

from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from truth.liquidity_reality import (
    BPS,
    active_liquidity,
    liquidity_left,
    loss_if_it_left,
    opens_at,
    undone,
    who_can_now,
    withdraw,
)
from truth.liquidity_world import EDGE, EXPECTED, WORLDS, LiquidityGround, now_s


@pytest.fixture(scope="module")
def ground(places: world.DevnetFolders, built: Built) -> Iterator[LiquidityGround]:
    """A local chain of its own to put worlds on."""
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as rpc:
        yield LiquidityGround(rpc, built)


TAKEN = [name for name, expected in EXPECTED.items() if any(one.can_withdraw_now for one in expected)]
FEE = 0.003


def loss_by_formula(left: float) -> float:
    """Of 0.1 eth into a pool of 10, over all prices, of which this part is left when the wallet sells."""
    paid, quote, token = 0.1 * (1 - FEE), 10.0, 8e8
    got = token * paid / (quote + paid)
    quote, token, sold = (quote + paid) * left, (token - got) * left, got * (1 - FEE)
    return BPS * (1 - quote * sold / (token + sold) / 0.1)


@pytest.mark.parametrize("name", WORLDS)
def test_each_position_leaves_by_the_ways_it_has_and_no_sooner(ground: LiquidityGround, name: str) -> None:
    with undone(ground):
        put = WORLDS[name](ground)
        assert len(put.positions) >= len(EXPECTED[name])
        for position, expected in zip(put.positions, EXPECTED[name], strict=False):
            assert liquidity_left(ground, position) == position.liquidity > 0
            can_now = {put.roles[role] for role in expected.can_withdraw_now}
            assert who_can_now(ground, position) == can_now == position.free_to(now_s(ground.rpc) + 1)
            later = [way for way in position.exits if way.at_s > now_s(ground.rpc)]
            assert all(opens_at(ground, position, way) for way in later)
            assert bool(later) >= bool(expected.until_s)


@pytest.mark.parametrize("name", TAKEN)
def test_nobody_else_goes_these_ways(ground: LiquidityGround, name: str) -> None:
    with undone(ground):
        put = WORLDS[name](ground)
        taken, stranger = next(one for one in put.positions if one.exits), put.roles["stranger"]
        way = taken.exits[0]
        acts = tuple(act._replace(sender=stranger) for act in way.acts)
        assert not withdraw(ground, taken, way._replace(takes=way.takes and stranger, acts=acts))
        assert liquidity_left(ground, taken) == taken.liquidity


@pytest.mark.parametrize(
    "name", ["several wallets", "several wallets, v4", "one-sided", "two hundred wallets"]
)
def test_the_depth_is_the_sum_of_what_is_in_range(ground: LiquidityGround, name: str) -> None:
    with undone(ground):
        put = WORLDS[name](ground)
        in_range = [one.liquidity for one in put.positions if one.tick_lower == -EDGE]
        assert active_liquidity(ground, put.pool) == sum(in_range) < 2**128
        assert len(in_range) == {"one-sided": 1, "two hundred wallets": 200}.get(name, 3)


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("several wallets", 0.5),
        ("several wallets, v4", 0.5),
        ("time lock of a part", 1.0),
        ("direct position", 0.0),
        ("back door, v4", 0.0),
        ("two hundred wallets", 0.995),
        ("one-sided", 0.0),
    ],
)
def test_a_buyer_loses_what_the_formula_says(ground: LiquidityGround, name: str, left: float) -> None:
    with undone(ground):
        put = WORLDS[name](ground)
        leaving = put.positions[:1] if left < 1 else ()
        lost_bps = loss_if_it_left(ground, put.pool, leaving)
        assert lost_bps == pytest.approx(loss_by_formula(left) if left else BPS, abs=1)
        assert liquidity_left(ground, put.positions[0]) == put.positions[0].liquidity


def test_a_buyer_of_a_taxed_quotes_token_sells_on_its_curve_then(ground: LiquidityGround) -> None:
    with undone(ground):
        put = WORLDS["taxed quote"](ground)
        now_bps, left_bps = (loss_if_it_left(ground, put.pool, gone) for gone in ((), put.positions))
        # What a contract sends is a fiftieth less, and the curve takes more than the pool.
        assert 200 < now_bps < left_bps - 100 < 2000
