"""Reads a transaction as a wallet's payment, and explains why one is no payment."""

from collections.abc import Sequence

from roundtrip.chain.wallet.payments import MinedPayment
from roundtrip.chain.wallet.transactions import SentTransaction
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.money import USDG_DECIMALS
from roundtrip.store.accounts.credits import PayToSpan

_NOTHING = "Nothing was credited."


def tx_in_a_block(transaction: MinedPayment | SentTransaction | None) -> MinedPayment:
    """The transaction if it is mined and succeeded. Raises CallerFault (no_such_tx, tx_failed)."""
    if transaction is None:
        raise CallerFault(
            "no_such_tx",
            "The chain does not know this transaction: it was never sent on this chain, was "
            "dropped, or is too "
            f"new. {_NOTHING}",
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
    """The error for a payment in a block that may still be reorged out."""
    return CallerFault(
        "no_such_tx",
        f"The transaction is in block {payment.block_number:,}, which is not final yet: the newest "
        f"final block "
        f"is {payment.finalized.number:,}. {_NOTHING} Send the hash again in "
        f"{_time_to_final(ctx, payment)}.",
    )


def _time_to_final(ctx: Context, payment: MinedPayment) -> str:
    """About how long until the payment is final, if finality stays as far behind the head as it is."""
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
    """Why a transaction in which the wallet paid ``amount_raw`` buys no call."""
    assert ctx.payments is not None
    usdg, number = ctx.contracts.usdg, payment.block_number
    if amount_raw:
        paid = plain_decimal(amount_raw, USDG_DECIMALS)
        return (
            f"{paid} usdg is less than the price of one call: 1 usdg buys "
            f"{ctx.payments.calls_per_usdg:,} calls. "
            "Payments of several transactions do not add up."
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
