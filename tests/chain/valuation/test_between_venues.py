"""What a launch is worth whose curve has closed and whose pool has not opened, or that no eth buys."""

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.holding_sells import BETWEEN_VENUES, NO_PLACE
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued, slot_of, worth
from roundtrip_development.devnet.world import Built


async def valued(ctx: Context, token: str) -> Valued:
    await ctx.heads.refresh()
    head = ctx.heads.current()
    slot = await slot_of(ctx, head, Address(token), Meter())
    (value,) = await worth(ctx, head, [HoldingToSell(Address(token), 10**21, slot=slot)], Meter())
    return value


@pytest.mark.parametrize("key", ["curve_full", "swept"])
async def test_a_launch_between_its_venues_is_not_known_to_be_worth_nothing(
    ctx: Context, built: Built, key: str
) -> None:
    assert await valued(ctx, built.tokens[key]) == BETWEEN_VENUES


async def test_a_launch_that_was_called_off_has_no_place(ctx: Context, built: Built) -> None:
    assert await valued(ctx, built.tokens["rescued"]) == NO_PLACE


@pytest.mark.parametrize("key", ["graduated_other"])
async def test_what_trades_only_against_other_money_is_not_known_to_be_worth_nothing(
    ctx: Context, built: Built, key: str
) -> None:
    assert await valued(ctx, built.tokens[key]) == Missing(
        "token", "no pool that we know pays eth or usdg for it"
    )


@pytest.mark.parametrize("key", ["curve", "graduated"])
async def test_a_launch_with_a_venue_is_valued(ctx: Context, built: Built, key: str) -> None:
    assert isinstance(await valued(ctx, built.tokens[key]), SellValue)
