"""What a transaction comes to as a payment of one wallet, and what is said of one that comes to nothing."""

from collections.abc import Sequence

from roundtrip.chain.wallet.payments import MinedPayment
from roundtrip.chain.wallet.transactions import SentTransaction
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.domain.base.events import Transferred
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.money import USDG_DECIMALS
from roundtrip.store.accounts.credits import PayToSpan

_NOTHING = "Nothing was counted."


def tx_in_a_block(found: MinedPayment | SentTransaction | None) -> MinedPayment:
    """A transaction that went through. Raises CallerFault (no_such_tx, tx_failed)."""
    if found is None:
        raise CallerFault(
            "no_such_tx",
            "The chain knows no such transaction: it was never sent here, was dropped, or is so new that it "
            f"has not come round yet. {_NOTHING}",
        )
    if isinstance(found, SentTransaction):
        raise CallerFault(
            "no_such_tx",
            f"The transaction is in no block yet. {_NOTHING} Send it again once its block is final.",
        )
    if not found.succeeded:
        raise CallerFault("tx_failed", f"The transaction failed, so nothing was paid. {_NOTHING}")
    return found


def own_raw(paying: MinedPayment, usdg: Address, wallet: Address, places: Sequence[PayToSpan]) -> int:
    """What the wallet paid in it: all its transfers of usdg to where payments went at that block."""
    return sum(
        one.amount_raw
        for one in _of(paying, usdg, wallet)
        if any(to.address == one.recipient and to.was_open_at(paying.block_number) for to in places)
        # What somebody pays to himself he still has.
        and one.recipient != wallet
    )


def _of(paying: MinedPayment, token: Address, wallet: Address) -> list[Transferred]:
    return [one for _, one in paying.transfers if one.token == token and one.sender == wallet]


def not_final(ctx: Context, paying: MinedPayment) -> CallerFault:
    """The transaction is a payment, and may still be undone."""
    return CallerFault(
        "no_such_tx",
        f"The transaction is there, in block {paying.block_number}, and not final yet: final is what is in "
        f"block {paying.finalized.number} and before. {_NOTHING} Send it again in {_soon(ctx, paying)}.",
    )


def _soon(ctx: Context, paying: MinedPayment) -> str:
    """About how long until it is final, if finality goes on as far behind as it is."""
    final = paying.finalized
    try:
        head = ctx.heads.current().block
    except RoundtripError:
        return "some minutes"
    blocks, seconds = head.number - final.number, head.timestamp_s - final.timestamp_s
    if blocks <= 0 or seconds <= 0:
        return "some minutes"
    wait_s = -(-(paying.block_number - final.number) * seconds // blocks)
    if wait_s < 120:
        return f"about {max(1, wait_s)} s"
    return f"about {-(-wait_s // 60)} minutes"


def why_none(
    paying: MinedPayment, ctx: Context, wallet: Address, places: Sequence[PayToSpan], amount_raw: int
) -> str:
    """Why a transaction in which the wallet paid ``amount_raw`` buys not a single call."""
    assert ctx.payments is not None
    usdg, number = ctx.contracts.usdg, paying.block_number
    if amount_raw:
        paid = plain_decimal(amount_raw, USDG_DECIMALS)
        return (
            f"{paid} usdg is less than one call costs, of which {ctx.payments.calls_per_usdg} cost 1 usdg; "
            "payments of several transactions do not add up."
        )
    known = {one.address: one for one in places}
    moved = [one for _, one in paying.transfers if one.amount_raw and one.sender != one.recipient]
    own = [one for one in moved if one.token == usdg and one.sender == wallet]
    reached = [known[one.recipient] for one in own if one.recipient in known]
    if reached:
        return f"It is in block {number}. {_when(reached[0])}"
    if own:
        return f"Its usdg went from your wallet to {own[0].recipient}, and not to {ctx.payments.pay_to}."
    to_us = [one for one in moved if one.recipient in known]
    others = [one for one in to_us if one.token == usdg]
    if others:
        return (
            f"It was paid by {others[0].sender}, and your key is of {wallet}: only what a key's own wallet "
            "pays is counted. A key of the wallet that paid can send it."
        )
    if to_us:
        return f"What it paid was no usdg, but {to_us[0].token}. Usdg is {usdg}."
    if paying.sent.value_wei and paying.sent.to in known:
        return f"What it paid was eth. Calls are paid for in usdg, which is {usdg}."
    return f"No usdg went from your wallet, {wallet}, to {ctx.payments.pay_to} in it."


def _when(place: PayToSpan) -> str:
    until = "" if place.to_block is None else f" and up to block {place.last_block()}"
    return f"Payments to {place.address} count after block {place.from_block}{until}."
