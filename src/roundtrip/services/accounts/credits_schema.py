"""The parameters and the answers of paid calls."""

from typing import Annotated

import msgspec

from roundtrip.domain.accounts.credits import Payments
from roundtrip.domain.base.types import Address, TxHash

from .key_schema import Limits

SYMBOL = "USDG"


class PaymentParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which payment."""

    tx: Annotated[
        str,
        msgspec.Meta(description="The hash of the transaction that paid.", pattern=r"^0x[0-9a-fA-F]{64}\Z"),
    ]

    def tx_hash(self) -> TxHash:
        """In lower case."""
        return TxHash(self.tx.lower())


class HolderLimits(msgspec.Struct, frozen=True, rename="camel"):
    """How often a key may ask whose wallet holds enough of the service's own token."""

    per_minute: int
    per_day: Annotated[int, msgspec.Meta(description="A day of UTC.")]
    min: Annotated[int, msgspec.Meta(description="Whole tokens that are enough.")]
    live: Annotated[bool, msgspec.Meta(description="Whether there is such a token yet.")]


class Pay(msgspec.Struct, frozen=True, rename="camel"):
    """How calls are paid for."""

    pay_to: Annotated[str, msgspec.Meta(description="Where payments go.")]
    asset: Annotated[str, msgspec.Meta(description="The token to pay in, by its address.")]
    symbol: str
    calls_per_usdg: Annotated[int, msgspec.Meta(description="Calls that one whole usdg buys.")]
    how: Annotated[str, msgspec.Meta(description="What to do, in plain sentences.")]


class CreditsStatus(msgspec.Struct, frozen=True):
    """What an account has paid for, and how it pays."""

    open: Annotated[bool, msgspec.Meta(description="Whether payments are taken.")]
    balance: Annotated[
        int,
        msgspec.Meta(description="Calls past the day's limit that are paid for and not made yet."),
    ]
    free: Annotated[Limits, msgspec.Meta(description="What every key has without paying.")]
    holders: HolderLimits
    pay: Annotated[Pay | None, msgspec.Meta(description="null while payments are not taken.")]


class Redeemed(msgspec.Struct, frozen=True):
    """A payment that was counted just now."""

    credited: Annotated[int, msgspec.Meta(description="Calls that it bought.")]
    usdg: Annotated[str, msgspec.Meta(description="What was paid: a plain decimal number.")]
    balance: Annotated[int, msgspec.Meta(description="As GET /v1/credits has it, with these.")]


def pay(payments: Payments, usdg: Address) -> Pay:
    """As answers tell it."""
    calls = payments.calls_per_usdg
    how = (
        f"Send usdg to {payments.pay_to} in a plain transfer, from the wallet that the key belongs to: one "
        f"usdg buys {calls} {'call' if calls == 1 else 'calls'} past the day's limit. Wait until its block "
        'is final, then send the transaction\'s hash to POST /v1/credits as {"tx": "0x..."}. A transaction '
        "is counted once; what is sent from another wallet is not counted."
    )
    return Pay(payments.pay_to, usdg, SYMBOL, calls, how)
