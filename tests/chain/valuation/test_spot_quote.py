"""What 0.1 eth buys and what that pays, as a flag is held against: on the real local chain."""

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.holdings import ProbeBuy, probe_buy
from roundtrip_development.devnet.world import Built


async def test_it_is_what_a_check_says(ctx: Context, built: Built) -> None:
    token = Address(built.tokens["plain"])
    found = await probe_buy(ctx, ctx.heads.current(), token, Meter())
    assert isinstance(found, ProbeBuy)
    result = (await check(ctx, CheckParams(token))).answer
    assert result.trade is not None
    assert result.token.decimals is not None
    assert result.trade.tokens_out == plain_decimal(found.token_raw, result.token.decimals)
    loss_bps = result.trade.round_trip_loss_bps
    assert loss_bps is not None
    assert 0 < loss_bps < 1000
    assert found.pays_wei == 10**17 * (10_000 - loss_bps) // 10_000


async def test_it_is_bought_where_it_is_told(ctx: Context, built: Built) -> None:
    token = Address(built.tokens["plain"])
    result = (await check(ctx, CheckParams(token))).answer
    assert result.trade is not None
    venue = result.venue
    assert venue is not None
    at = venue.pool or venue.pool_id
    head = ctx.heads.current()
    assert isinstance(await probe_buy(ctx, head, token, Meter(), at), ProbeBuy)
    elsewhere = await probe_buy(ctx, head, token, Meter(), "0x" + "a7" * 20)
    assert isinstance(elsewhere, Missing)


@pytest.mark.parametrize(("name", "step"), [("owner_only_sell", "sell"), ("no_pool", "buy")])
async def test_what_cannot_be_traded_is_refused(ctx: Context, built: Built, name: str, step: str) -> None:
    token = Address(built.tokens[name])
    found = await probe_buy(ctx, ctx.heads.current(), token, Meter())
    assert isinstance(found, RefusedCall)
    assert found.step == step
