"""Calls past the day's limit that are paid for: what an account has, and payments that are counted."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from roundtrip.chain.rpc.background import beside
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet import payments as chain_payments
from roundtrip.chain.wallet.payments import MinedPayment
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.accounts.credits import MOST_CREDITS, CreditPayment, Payments, calls_for
from roundtrip.domain.base.errors import CallerFault, NodeFault, RoundtripError
from roundtrip.domain.base.types import TxHash, plain_decimal
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.money import USDG_DECIMALS
from roundtrip.store.accounts import credits as credits_store
from roundtrip.store.accounts.credits import PayToSpan

from .credits_schema import CreditsStatus, HolderLimits, PaymentParams, Redeemed, pay
from .database import accounts
from .key_schema import limits
from .payments import not_final, own_raw, tx_in_a_block, why_none

_TRY_AGAIN_S = 1.0


async def credits_status(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[CreditsStatus]:
    """What the account has. Raises ServiceFull. Payments are open once that is written down: nobody is told
    where to pay before it counts."""
    async with accounts(ctx) as connection:
        balance = await credits_store.balance(connection, account.id, _now_ms(ctx))
        places = await credits_store.paid_to(connection)
    payments = ctx.payments
    if payments is not None and not _is_open(places, payments):
        try:
            await open_payments(ctx, payments)
        except NodeFault:
            payments = None
    holder = ctx.allowances.holder
    return UseCaseAnswer(
        CreditsStatus(
            open=payments is not None,
            balance=balance,
            free=limits(ctx.allowances.key),
            holders=HolderLimits(
                holder.per_minute, holder.per_day, min=ctx.holder_min, live=ctx.has_own_token
            ),
            pay=None if payments is None else pay(payments, ctx.contracts.usdg),
        )
    )


async def redeem_payment(ctx: Context, params: PaymentParams, account: Account) -> UseCaseAnswer[Redeemed]:
    """Counts a payment, once for ever. Raises CallerFault (not_open, already_used, no_such_tx, tx_failed,
    no_payment), after each of which nothing is counted that was not before; NodeFault where the chain left
    open whether it is a payment, ServiceFull."""
    tx_hash, meter = params.tx_hash(), Meter()
    if ctx.payments is None:
        raise CallerFault("not_open", "Payments are not open: every key is free up to its daily limit.")
    async with accounts(ctx) as connection:
        if await credits_store.is_counted(connection, tx_hash, account.id):
            raise _already_used()
        places = await credits_store.paid_to(connection)
    if not _is_open(places, ctx.payments):
        places = await open_payments(ctx, ctx.payments)
    paying = tx_in_a_block(await chain_payments.find(ctx.node, tx_hash, ctx.chain_id, meter))
    amount_raw = own_raw(paying, ctx.contracts.usdg, account.wallet, places)
    credited = calls_for(amount_raw, ctx.payments.calls_per_usdg)
    if not credited:
        await _none_unless_used(ctx, tx_hash, why_none(paying, ctx, account.wallet, places, amount_raw))
    if credited > MOST_CREDITS:
        raise _too_many()
    if not paying.is_final():
        raise not_final(ctx, paying)
    await chain_payments.confirm(ctx.node, paying, ctx.contracts.usdg, account.wallet, ctx.chain_id, meter)
    balance = await _count(ctx, account, paying, amount_raw, credited)
    answer = Redeemed(credited, plain_decimal(amount_raw, USDG_DECIMALS), balance)
    return UseCaseAnswer(answer, meter=meter)


async def _none_unless_used(ctx: Context, tx_hash: TxHash, why: str) -> None:
    """Raises CallerFault (already_used, no_payment)."""
    async with accounts(ctx) as connection:
        used = await credits_store.is_counted(connection, tx_hash, None)
    raise _already_used() if used else CallerFault("no_payment", why)


async def _count(ctx: Context, account: Account, paying: MinedPayment, amount_raw: int, credited: int) -> int:
    """The balance, once it is written down. Raises CallerFault (already_used, no_payment), ServiceFull."""
    payment = CreditPayment(paying.sent.hash, amount_raw, paying.block_number, paying.block_hash)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        balance = await credits_store.redeem(connection, account.id, payment, credited, now)
        if balance is None:
            raise _already_used()
        if balance > MOST_CREDITS:
            raise _too_many()
    return balance


def _already_used() -> CallerFault:
    return CallerFault("already_used", "This transaction was counted before; each counts once.")


def _too_many() -> CallerFault:
    return CallerFault(
        "no_payment", f"With it the account would have more than {MOST_CREDITS} credits. Nothing was counted."
    )


def _now_ms(ctx: Context) -> int:
    return int(ctx.now_s() * 1000)


# --- where payments go -----------------------------------------------------------------------------


async def open_payments(ctx: Context, payments: Payments) -> list[PayToSpan]:
    """Writes down that payments go there from the next block on; all places. Raises NodeFault while the
    newest block is not known, ServiceFull."""
    head = ctx.heads.current().block.number
    async with accounts(ctx) as connection:
        await credits_store.open_pay_to(connection, payments.pay_to, head)
        return await credits_store.paid_to(connection)


@contextlib.asynccontextmanager
async def opening(ctx: Context, again_s: float = _TRY_AGAIN_S) -> AsyncIterator[None]:
    """Opens payments in the background while the block of ``async with`` runs, where there are any to be
    taken: as soon as chain and database are there."""
    if ctx.payments is None:
        yield
        return
    async with beside(_open(ctx, ctx.payments, again_s), "payments"):
        yield


async def _open(ctx: Context, payments: Payments, again_s: float) -> None:
    while True:
        try:
            await open_payments(ctx, payments)
            return
        except RoundtripError:
            await asyncio.sleep(again_s)


def _is_open(places: list[PayToSpan], payments: Payments) -> bool:
    return any(one.address == payments.pay_to and one.to_block is None for one in places)
