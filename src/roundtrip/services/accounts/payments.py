"""Reads a transaction as a wallet's payment, and explains why one is no payment."""

from collections.abc import Sequence

from roundtrip.chain.wallet.payments import MinedPayment
from roundtrip.chain.wallet.transactions import SentTransaction
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.money import USDG_DECIMALS
from roundtrip.store.accounts.credits import PayToSpan

_NOTHING = "Nothing was counted."


def tx_in_a_block(transaction: MinedPayment | SentTransaction | None) -> MinedPayment:
    """The transaction if it is mined and succeeded. Raises CallerFault (no_such_tx, tx_failed)."""
    if transaction is None:
        raise CallerFault(
            "no_such_tx",
            "The chain knows no such transaction: it was never sent here, was dropped, or is so new that it "
            f"has not come round yet. {_NOTHING}",
        )
    if isinstance(transaction, SentTransaction):
        raise CallerFault(
            "no_such_tx",
            f"The transaction is in no block yet. {_NOTHING} Send it again once its block is final.",
        )
    if not transaction.succeeded:
        raise CallerFault("tx_failed", f"The transaction failed, so nothing was paid. {_NOTHING}")
    return transaction


def own_raw(payment: MinedPayment, usdg: Address, wallet: Address, spans: Sequence[PayToSpan]) -> int:
    """The usdg that the wallet sent in the transaction to pay-to addresses that were open at its block."""
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
    """The error for a payment whose block may still be reorged out."""
    return CallerFault(
        "no_such_tx",
        f"The transaction is there, in block {payment.block_number}, and not final yet: final is what is in "
        f"block {payment.finalized.number} and before. {_NOTHING} Send it again in "
        f"{_time_to_final(ctx, payment)}.",
    )


def _time_to_final(ctx: Context, payment: MinedPayment) -> str:
    """About how long until the payment is final, if finality stays as far behind the head as it is."""
    final = payment.finalized
    try:
        head = ctx.heads.current().block
    except RoundtripError:
        return "some minutes"
    blocks, seconds = head.number - final.number, head.timestamp_s - final.timestamp_s
    if blocks <= 0 or seconds <= 0:
        return "some minutes"
    wait_s = -(-(payment.block_number - final.number) * seconds // blocks)
    if wait_s < 120:
        return f"about {max(1, wait_s)} s"
    return f"about {-(-wait_s // 60)} minutes"


def why_none(
    payment: MinedPayment, ctx: Context, wallet: Address, spans: Sequence[PayToSpan], amount_raw: int
) -> str:
    """Why a transaction in which the wallet paid ``amount_raw`` buys no call."""
    assert ctx.payments is not None
    usdg, number = ctx.contracts.usdg, payment.block_number
    if amount_raw:
        paid = plain_decimal(amount_raw, USDG_DECIMALS)
        return (
            f"{paid} usdg is less than one call costs, of which {ctx.payments.calls_per_usdg} cost 1 usdg; "
            "payments of several transactions do not add up."
        )
    span_by_address = {span.address: span for span in spans}
    transfers = [t for _, t in payment.transfers if t.amount_raw and t.sender != t.recipient]
    from_wallet = [transfer for transfer in transfers if transfer.token == usdg and transfer.sender == wallet]
    reached = [span_by_address[t.recipient] for t in from_wallet if t.recipient in span_by_address]
    if reached:
        return f"It is in block {number}. {_span_text(reached[0])}"
    if from_wallet:
        return (
            f"Its usdg went from your wallet to {from_wallet[0].recipient}, and not to {ctx.payments.pay_to}."
        )
    to_us = [transfer for transfer in transfers if transfer.recipient in span_by_address]
    others = [transfer for transfer in to_us if transfer.token == usdg]
    if others:
        return (
            f"It was paid by {others[0].sender}, and your key is of {wallet}: only what a key's own wallet "
            "pays is counted. A key of the wallet that paid can send it."
        )
    if to_us:
        return f"What it paid was no usdg, but {to_us[0].token}. Usdg is {usdg}."
    if payment.sent.value_wei and payment.sent.to in span_by_address:
        return f"What it paid was eth. Calls are paid for in usdg, which is {usdg}."
    return f"No usdg went from your wallet, {wallet}, to {ctx.payments.pay_to} in it."


def _span_text(span: PayToSpan) -> str:
    until = "" if span.to_block is None else f" and up to block {span.last_block()}"
    return f"Payments to {span.address} count after block {span.from_block}{until}."
