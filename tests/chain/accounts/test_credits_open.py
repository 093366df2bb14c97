"""When payments go where: what was paid before an address was open, while, and after."""

import pytest

from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.types import Address
from roundtrip.services.accounts.credits import open_payments
from roundtrip.services.runtime.context import Context
from roundtrip.store.accounts import credits
from roundtrip.store.accounts.credits import GRACE_BLOCKS
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.nodes import over
from support.paying import USDG, PayingShop, a_shop, answer_of, refusal, some_address, with_payments


@pytest.fixture
async def shop(ctx: Context, rpc: SyncRpc, built: Built) -> PayingShop:
    return await a_shop(ctx, rpc, built)


async def test_what_was_paid_before_payments_opened_is_not_counted(shop: PayingShop) -> None:
    later = some_address()
    early = [shop.payer.pay(shop.wallet, later, 5 * USDG) for _ in range(2)]
    await shop.ctx.heads.refresh()
    opened_at = shop.ctx.heads.current().block.number
    moved = with_payments(shop.ctx, later)
    # Asking what there is opens it.
    await answer_of(moved, "credits", shop.account)
    tx = shop.payer.pay(shop.wallet, later, 5 * USDG)
    replaced, closed = shop.pay(), shop.pay()
    shop.payer.finalize()
    for early_tx in early:
        code, text = await refusal(moved, shop.account, early_tx)
        assert (code, f"count after block {opened_at:,}" in text) == ("no_payment", True), text
    assert (await answer_of(moved, "redeem_payment", shop.account, tx=tx))["credited"] == 5_000
    assert (await answer_of(moved, "redeem_payment", shop.account, tx=replaced))["credited"] == 5_000
    # As if an hour of blocks had been made since.
    await moved.pool.execute(
        "UPDATE accounts.pay_to SET to_block = to_block - $1 WHERE to_block = $2", GRACE_BLOCKS, opened_at
    )
    code, text = await refusal(moved, shop.account, closed)
    assert (code, f"up to block {opened_at:,}" in text) == ("no_payment", True), text


async def test_what_was_paid_while_an_address_was_open_is_counted_later(shop: PayingShop) -> None:
    tx = shop.pay()
    await shop.ctx.heads.refresh()
    moved = with_payments(shop.ctx)
    assert (await refusal(moved, shop.account, tx))[0] == "no_such_tx"
    shop.payer.finalize()
    assert (await answer_of(moved, "redeem_payment", shop.account, tx=tx))["credited"] == 5_000


async def test_a_posted_payment_opens_too(shop: PayingShop) -> None:
    await shop.ctx.heads.refresh()
    taking = with_payments(shop.ctx)
    assert taking.payments is not None
    assert (await refusal(taking, shop.account, "0x" + "12" * 32))[0] == "no_such_tx"
    places = await credits_of(taking)
    assert places[taking.payments.pay_to] == (shop.ctx.heads.current().block.number, None)


async def credits_of(ctx: Context) -> dict[Address, tuple[int, int | None]]:
    async with ctx.pool.acquire() as connection:
        return {span.address: (span.from_block, span.to_block) for span in await credits.paid_to(connection)}


async def test_while_it_cannot_be_opened_nobody_is_told_where_to_pay(shop: PayingShop) -> None:
    taking = over(with_payments(shop.ctx), "http://127.0.0.1:1")
    answer = await answer_of(taking, "credits", shop.account)
    assert (answer["open"], answer["pay"]) == (False, None)
    with pytest.raises(RoundtripError) as caught:
        await answer_of(taking, "redeem_payment", shop.account, tx="0x" + "12" * 32)
    assert caught.value.code == "upstream"
    assert taking.payments is not None
    assert taking.payments.pay_to not in await credits_of(taking)


async def test_what_is_opened_again_is_open_without_a_gap(shop: PayingShop) -> None:
    assert shop.ctx.payments is not None
    first = (await credits_of(shop.ctx))[shop.pay_to]
    await shop.ctx.heads.refresh()
    other = with_payments(shop.ctx)
    assert other.payments is not None
    await open_payments(other, other.payments)
    tx = shop.pay()
    # The service is set back to the first address, and opens it by being asked.
    await answer_of(shop.ctx, "credits", shop.account)
    assert (await credits_of(shop.ctx))[shop.pay_to] == first
    shop.payer.finalize()
    assert (await answer_of(shop.ctx, "redeem_payment", shop.account, tx=tx))["credited"] == 5_000


async def test_a_post_that_opens_goes_by_what_it_opened(shop: PayingShop) -> None:
    """The newest block that it knows of is from before the payment."""
    taking = with_payments(shop.ctx)
    assert taking.payments is not None
    tx = shop.payer.pay(shop.wallet, taking.payments.pay_to, 5 * USDG)
    shop.payer.finalize()
    assert (await answer_of(taking, "redeem_payment", shop.account, tx=tx))["credited"] == 5_000
