"""Answers about the caller's own wallet start from a head that is read at that moment: never from before the
block whose receipt the wallet holds, though no poll has seen it."""

import pytest

from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.signing import Signer, prepared
from support.simulated import simulated
from support.wallet import UnsignedStep, calldata


@pytest.fixture
def wallet(rpc: SyncRpc, built: Built) -> Signer:
    return Signer(rpc, built.contracts, "quick", eth=6)


@pytest.mark.parametrize("key", ["plain", "v4_eth", "curve", "graduated"])
async def test_a_second_buy_goes_through_and_all_is_what_both_brought(
    ctx: Context, built: Built, wallet: Signer, key: str
) -> None:
    token, polled = built.tokens[key], ctx.heads.current().block.number
    for _ in range(2):
        trade = await prepared(ctx, "buy", token, wallet.address, amount="0.3")
        done = wallet.trade(trade)
        assert (done.ok, done.token_raw) == (True, trade.raw)
    sale = await prepared(ctx, "sell", token, wallet.address, amount="all")
    assert sale.spend_raw == wallet.tokens(token)
    assert sale.answer["block"] == polled + 2


async def test_a_simulation_sees_what_the_wallet_holds_since_the_last_block(
    ctx: Context, built: Built, wallet: Signer
) -> None:
    token, polled = built.tokens["plain"], ctx.heads.current().block.number
    wallet.trade(await prepared(ctx, "buy", token, wallet.address, amount="0.1"))
    # To the token itself: a plain one takes that.
    transfer = UnsignedStep(token, calldata("transfer(address,uint256)", token, wallet.tokens(token)))
    answer = await simulated(ctx, wallet.address, transfer)
    assert [call["ok"] for call in answer.answer["calls"]] == [True]
    assert answer.answer["block"] == polled + 1
