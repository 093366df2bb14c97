"""Simulations against what the same wallet meets when it really sends the same transactions: to the wei."""

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip_development.devnet.stories import STORIES
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.wallet import PoolSpec, UnsignedStep
from truth.animals import ANIMALS, V3, V4, Animal
from truth.check.test_launches import HOOKED, IN_POOL, ON_CURVE
from truth.simulated import TokenSpot, Trip, spot_of, trip

TRADED = [
    story.key for story in STORIES if story.pools and story.key not in ("loops_on_balance", "empty_pool")
]
CLOSING = "curve_nearly_full"
LAUNCHED = [key for key in (*ON_CURVE, *IN_POOL, *HOOKED) if key != CLOSING]
SLOW = {"gas_bomb", "odd_dear_approval"}
ZOO = list({(one.source, one.pools[0].version): one for one in ANIMALS if one.source not in SLOW}.values())
"""The others are dear to run and do nothing here that they do not do in a check."""


def places(ctx: Context, built: Built, token: str) -> list[TokenSpot]:
    """Everywhere it trades for money."""
    assert ctx.heads.venue_index is not None
    return [spot_of(built, venue) for venue in ctx.heads.venue_index.venues_of(Address(token))]


def assert_told(made: Trip, token: str) -> None:
    """Spent, received and gas are what they really are; what is sold back is what a real sell brings."""
    result = made.said
    assert [call["ok"] for call in result.answer["calls"]] == made.oks
    if not all(made.oks):
        assert result.code == "tx_reverts", result.text
        return
    assert (result.spent(), result.received()) == (made.spent, made.received)
    assert result.gas() == made.gas
    if token not in made.received:
        assert result.code == "nothing_received"
        return
    assert (result.code == "cannot_sell") == (not made.sells_within_a_day()), result.text
    assert result.code in ("ok", "high_loss", "heavy_loss", "cannot_sell"), result.text
    real = [fill for fill in made.fills() if fill.ok and fill.sold_raw]
    back = result.answer["sellBack"]["back"]
    if result.code != "cannot_sell" and real:
        assert int(back["raw"]) in {fill.back_raw for fill in real}


@pytest.mark.parametrize("key", [*TRADED, *LAUNCHED])
async def test_a_simulated_buy_is_what_a_wallet_meets(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    token = built.tokens[key]
    spots = places(ctx, built, token)
    # A launch that graduated has its curve behind it.
    if key.startswith("graduated"):
        spots = [spot for spot in spots if not spot.curve]
    made = await trip(ctx, rpc, built, token, spots, spots[0])
    assert_told(made, token)


def put(rpc: SyncRpc, built: Built, animal: Animal) -> str:
    story, deployer = animal.story(), ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    code = compile_contract(PROJECT / "contracts" / story.source)
    token = put_token(deployer, built.contracts, story, code)
    for signature, values in animal.calls:
        deployer.send(token, calldata(signature, *values))
    deployer.check_receipts()
    return token


@pytest.mark.parametrize(
    "animal", ZOO, ids=lambda a: f"{a.source}{list(a.extra)}v{a.pools[0].version}{'+' if a.calls else ''}"
)
async def test_a_simulated_buy_of_an_animal_is_what_a_wallet_meets(
    ctx: Context, rpc: SyncRpc, built: Built, animal: Animal
) -> None:
    token = put(rpc, built, animal)
    await ctx.heads.refresh()
    spots = places(ctx, built, token)
    made = await trip(ctx, rpc, built, token, spots, spots[0])
    assert_told(made, token)


async def test_a_buy_that_sells_the_curve_out_is_sold_in_its_pool_for_real(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    token, factory = built.tokens[CLOSING], built.contracts["launchpadFactory"]
    pool = TokenSpot("eth", PoolSpec("eth", 0, 4, 200, built.contracts["launchpadHook"]))
    opening = tuple(
        UnsignedStep(factory, calldata(f"{name}(address)", token))
        for name in ("graduate", "createGraduatedPool")
    )
    (curve,) = places(ctx, built, token)
    made = await trip(ctx, rpc, built, token, [pool], curve, opening)
    assert_told(made, token)
    assert made.said.answer["sellBack"]["venue"] == "launchpad_pool"


def test_what_is_left_out_is_only_what_is_dear() -> None:
    assert {V3[0].version, V4[0].version} == {3, 4}
    assert {animal.source for animal in ANIMALS} - {animal.source for animal in ZOO} == SLOW
