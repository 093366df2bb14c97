"""Credits (paid calls beyond the day's limit): shows an account's balance, and redeems payments. Reads a
transaction as a wallet's payment, and explains why one is no payment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.chain.rpc.background import run_in_background
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet import payments as chain_payments
from roundtrip.chain.wallet.payments import MinedPayment
from roundtrip.chain.wallet.transactions import SentTransaction
from roundtrip.domain.accounts.account import MAX_CREDITS, Account, CreditPayment, Payments, calls_for
from roundtrip.domain.base.errors import CallerFault, NodeFault, RoundtripError
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import Address, TxHash, plain_decimal
from roundtrip.services.accounts.issue_key import Limits, present_limits
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing, accounts
from roundtrip.services.support.money import USDG_DECIMALS
from roundtrip.store.accounts import credits as credits_store
from roundtrip.store.accounts.credits import PayToSpan

_NOTHING = "Nothing was credited."


def tx_in_a_block(transaction: MinedPayment | SentTransaction | None) -> MinedPayment:
    """The transaction if it is mined and succeeded. Raises CallerFault (no_such_tx, tx_failed)."""
    if transaction is None:
        raise CallerFault(
            "no_such_tx",
            "The chain does not know this transaction: it was never sent on this chain, was dropped, or is "
            f"too new. {_NOTHING}",
        )
    if isinstance(transaction, SentTransaction):
        raise CallerFault(
            "no_such_tx",
            f"The transaction is not in a block yet. {_NOTHING} Send the hash again once its block is final.",
        )
    if not transaction.succeeded:
        raise CallerFault("tx_failed", f"The transaction failed, so it paid nothing. {_NOTHING}")
    return transaction


def own_raw(payment: MinedPayment, usdg: Address, wallet: Address, spans: Sequence[PayToSpan]) -> int:
    """The usdg (base units) that the wallet sent in the transaction to pay-to addresses: those at which
    payments counted in its block."""
    return sum(
        transfer.amount_raw
        for _, transfer in payment.transfers
        if transfer.token == usdg
        and transfer.sender == wallet
        and any(
            span.address == transfer.recipient and span.was_open_at(payment.block_number) for span in spans
        )
        # A transfer to oneself pays nothing.
        and transfer.recipient != wallet
    )


def not_final(ctx: Context, payment: MinedPayment) -> CallerFault:
    """The error for a payment in a block that may still be reorged out."""
    return CallerFault(
        "no_such_tx",
        f"The transaction is in block {payment.block_number:,}, which is not final yet: the newest final "
        f"block is {payment.finalized.number:,}. {_NOTHING} Send the hash again in "
        f"{_time_to_final(ctx, payment)}.",
    )


def _time_to_final(ctx: Context, payment: MinedPayment) -> str:
    """About how long until the payment is final, if the final block stays as far behind the head as it is
    now."""
    final = payment.finalized
    try:
        head = ctx.heads.current().block
    except RoundtripError:
        return "a few minutes"
    blocks, seconds = head.number - final.number, head.timestamp_s - final.timestamp_s
    if blocks <= 0 or seconds <= 0:
        return "a few minutes"
    wait_s = -(-(payment.block_number - final.number) * seconds // blocks)
    if wait_s < 120:
        return f"about {max(1, wait_s)} s"
    return f"about {-(-wait_s // 60)} minutes"


def why_none(
    payment: MinedPayment, ctx: Context, wallet: Address, spans: Sequence[PayToSpan], amount_raw: int
) -> str:
    """Why a transaction in which the wallet paid ``amount_raw`` (base units of usdg) buys no call."""
    assert ctx.payments is not None
    usdg, number = ctx.contracts.usdg, payment.block_number
    if amount_raw:
        paid = plain_decimal(amount_raw, USDG_DECIMALS)
        return (
            f"{paid} usdg is less than the price of one call: 1 usdg buys {ctx.payments.calls_per_usdg:,} "
            "calls. Payments of several transactions do not add up."
        )
    span_by_address = {span.address: span for span in spans}
    transfers = [t for _, t in payment.transfers if t.amount_raw and t.sender != t.recipient]
    from_wallet = [transfer for transfer in transfers if transfer.token == usdg and transfer.sender == wallet]
    reached = [span_by_address[t.recipient] for t in from_wallet if t.recipient in span_by_address]
    if reached:
        return f"The payment is in block {number:,}. {_span_text(reached[0])}"
    if from_wallet:
        return f"Your wallet sent its usdg to {from_wallet[0].recipient}, not to {ctx.payments.pay_to}."
    to_us = [transfer for transfer in transfers if transfer.recipient in span_by_address]
    others = [transfer for transfer in to_us if transfer.token == usdg]
    if others:
        return (
            f"Wallet {others[0].sender} paid, but your key belongs to {wallet}. Only payments from the key's "
            "own wallet count. Send the hash with a key of the wallet that paid."
        )
    if to_us:
        return f"The transaction paid token {to_us[0].token}, not usdg. usdg is {usdg}."
    if payment.sent.value_wei and payment.sent.to in span_by_address:
        return f"The transaction paid eth. Pay in usdg, which is {usdg}."
    return f"The transaction sent no usdg from your wallet {wallet} to {ctx.payments.pay_to}."


def _span_text(span: PayToSpan) -> str:
    until = "" if span.to_block is None else f" and up to block {span.last_block():,}"
    return f"Payments to {span.address} count after block {span.from_block:,}{until}."


SYMBOL = "USDG"


class PaymentParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payment to credit."""

    tx: Annotated[
        str,
        msgspec.Meta(
            description="Hash of the transaction that paid, 0x and 64 hex digits.",
            pattern="^0x[0-9a-fA-F]{64}\\Z",
        ),
    ]

    def tx_hash(self) -> TxHash:
        """The hash in lower case."""
        return TxHash(self.tx.lower())


class HolderLimits(Limits, frozen=True, rename="camel"):
    """The limits of a key if its wallet holds enough of the service's own token."""

    min: Annotated[int, says("Whole tokens that the wallet must hold at least.")]
    live: Annotated[bool, says("Whether that token exists yet; until then the limits apply to no key.")]


class Pay(msgspec.Struct, frozen=True, rename="camel"):
    """How to pay for calls."""

    pay_to: Annotated[str, says("Address that payments go to.")]
    asset: Annotated[str, says("Address of the token to pay in.")]
    symbol: Annotated[str, says("Symbol of that token.")]
    calls_per_usdg: Annotated[int, says("Calls that one whole usdg buys.")]
    how: Annotated[str, says("How to pay, step by step.")]


class CreditsStatus(msgspec.Struct, frozen=True):
    """What an account has paid for, and how it pays."""

    open: Annotated[bool, says("Whether the service takes payments.")]
    balance: Annotated[int, says("Paid calls that are left, for use after the day's limit.")]
    free: Annotated[Limits, says("The limits that every key has without paying.")]
    holders: Annotated[
        HolderLimits, says("The limits of a key if its wallet holds enough of the service's own token.")
    ]
    pay: Annotated[Pay | None, says("How to pay. null: the service takes no payments.")]


class Redeemed(msgspec.Struct, frozen=True):
    """A payment that was credited."""

    credited: Annotated[int, says("Calls that the payment bought.")]
    usdg: Annotated[str, says("The amount paid, in usdg, a decimal number.")]
    balance: Annotated[int, says("Paid calls that are left, these included.")]


def present_payments(payments: Payments, usdg: Address) -> Pay:
    """How to pay, as answers show it."""
    calls = payments.calls_per_usdg
    how = (
        f"Send usdg to {payments.pay_to} in a plain transfer, from the wallet that the key belongs "
        f"to. 1 usdg "
        f"buys {format_count(calls, 'call')} past the day's limit. Wait until the transfer's block is final, "
        'then send the transaction\'s hash to POST /v1/credits as {"tx": "0x..."}. Each transaction counts '
        "once. Payments from another wallet do not count."
    )
    return Pay(payments.pay_to, usdg, SYMBOL, calls, how)


_RETRY_S = 1.0
"""Wait before the pay-to address is stored once more."""


async def credits_status(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[CreditsStatus]:
    """The account's balance and how to pay. Stores the pay-to address before it shows it, so that no payment
    is sent before it counts. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        balance = await credits_store.balance(connection, account.id, _now_ms(ctx))
        spans = await credits_store.paid_to(connection)
    payments = ctx.payments
    if payments is not None and not _is_open(spans, payments):
        try:
            await open_payments(ctx, payments)
        except NodeFault:
            payments = None
    holder = ctx.allowances.holder
    return UseCaseAnswer(
        CreditsStatus(
            open=payments is not None,
            balance=balance,
            free=present_limits(ctx.allowances.key),
            holders=HolderLimits(
                holder.per_minute, holder.per_day, min=ctx.holder_min, live=ctx.has_own_token
            ),
            pay=None if payments is None else present_payments(payments, ctx.contracts.usdg),
        )
    )


async def redeem_payment(ctx: Context, params: PaymentParams, account: Account) -> UseCaseAnswer[Redeemed]:
    """Credits a payment; each payment counts only once. Raises CallerFault (not_open, already_used,
    no_such_tx, tx_failed, no_payment), NodeFault when the node does not show whether it is a payment, and
    ServiceFull. After an error nothing was credited."""
    tx_hash, meter = params.tx_hash(), Meter()
    if ctx.payments is None:
        raise CallerFault(
            "not_open", "This service accepts no payments. Every key is free up to its daily limit."
        )
    async with accounts(ctx) as connection:
        if await credits_store.is_counted(connection, tx_hash, account.id):
            raise _already_used()
        spans = await credits_store.paid_to(connection)
    if not _is_open(spans, ctx.payments):
        spans = await open_payments(ctx, ctx.payments)
    payment = tx_in_a_block(await chain_payments.find(ctx.node, tx_hash, ctx.chain_id, meter))
    amount_raw = own_raw(payment, ctx.contracts.usdg, account.wallet, spans)
    credited = calls_for(amount_raw, ctx.payments.calls_per_usdg)
    if not credited:
        await _refuse_payment(ctx, tx_hash, why_none(payment, ctx, account.wallet, spans, amount_raw))
    if credited > MAX_CREDITS:
        raise _too_many()
    if not payment.is_final():
        raise not_final(ctx, payment)
    await chain_payments.confirm(ctx.node, payment, ctx.contracts.usdg, account.wallet, ctx.chain_id, meter)
    balance = await _credit(ctx, account, payment, amount_raw, credited)
    answer = Redeemed(credited, plain_decimal(amount_raw, USDG_DECIMALS), balance)
    return UseCaseAnswer(answer, meter=meter)


async def _refuse_payment(ctx: Context, tx_hash: TxHash, why: str) -> None:
    """Raises CallerFault: already_used if another account redeemed it, else no_payment."""
    async with accounts(ctx) as connection:
        used = await credits_store.is_counted(connection, tx_hash, None)
    raise _already_used() if used else CallerFault("no_payment", why)


async def _credit(
    ctx: Context, account: Account, payment: MinedPayment, amount_raw: int, credited: int
) -> int:
    """Writes the payment; returns the new balance. Raises CallerFault (already_used, no_payment),
    ServiceFull."""
    record = CreditPayment(payment.sent.hash, amount_raw, payment.block_number, payment.block_hash)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        balance = await credits_store.redeem(connection, account.id, record, credited, now)
        if balance is None:
            raise _already_used()
        if balance > MAX_CREDITS:
            raise _too_many()
    return balance


def _already_used() -> CallerFault:
    return CallerFault("already_used", "This transaction was credited before. Each transaction counts once.")


def _too_many() -> CallerFault:
    return CallerFault(
        "no_payment",
        f"This payment would take the account over the limit of {MAX_CREDITS:,} credits. Nothing "
        f"was credited.",
    )


def _now_ms(ctx: Context) -> int:
    return int(ctx.now_s() * 1000)


# --- pay-to addresses ------------------------------------------------------------------------------


async def open_payments(ctx: Context, payments: Payments) -> list[PayToSpan]:
    """Stores that payments go to the configured address from the next block on. Returns all pay-to spans.
    Raises NodeFault while the newest block is not known, and ServiceFull."""
    head = ctx.heads.current().block.number
    async with accounts(ctx) as connection:
        await credits_store.open_pay_to(connection, payments.pay_to, head)
        return await credits_store.paid_to(connection)


@contextlib.asynccontextmanager
async def open_payments_in_background(ctx: Context, retry_s: float = _RETRY_S) -> AsyncIterator[None]:
    """Opens payments, if they are configured, in the background while the block of ``async with`` runs: as
    soon as node and database are available."""
    if ctx.payments is None:
        yield
        return
    async with run_in_background(_retry_opening(ctx, ctx.payments, retry_s), "payments"):
        yield


async def _retry_opening(ctx: Context, payments: Payments, retry_s: float) -> None:
    while True:
        try:
            await open_payments(ctx, payments)
            return
        except RoundtripError:
            await asyncio.sleep(retry_s)


def _is_open(spans: list[PayToSpan], payments: Payments) -> bool:
    return any(span.address == payments.pay_to and span.to_block is None for span in spans)
