"""Reasons of refused calls: of routers and pools, which hide the token's own, and words for a missing one."""

from collections.abc import Iterable

from roundtrip.domain.base import names

from .evidence import RefusedCall

NO_REASON = "no reason given"
TRANSFER_REFUSED = "the token refused the transfer and gave no reason"
"""Where the transfer was also tried directly, without the router."""
REASON_WITHHELD = "the token refused the transfer, and the router gave no reason for it"

ROUTER_REASONS = frozenset(
    {
        "ERC20TransferFailed",
        "ST",
        "STF",
        "TF",
        "TRANSFER_FAILED",
        "TRANSFER_FROM_FAILED",
        "TransferHelper::transferFrom: transferFrom failed",
        "TransferHelper: TRANSFER_FROM_FAILED",
        "WrappedError",
    }
)
"""Reasons by which routers and pools report that a token's transfer failed without a reason of its own."""

NOTHING_ARRIVED = "nothing arrived for what was paid"
POOL_GAVE_NOTHING = "the pool gave nothing for what was paid"
"""Reasons of a buy that was paid for and brought nothing: the second where the pool's own event says so."""

POOL_GOT_LESS = frozenset({"IIA"})
"""Revert reasons of a v3 pool that received less than was sent to it."""

SETTLED_SHORT = "CurrencyNotSettled"
"""v4's own reason where it received less than was sold."""

PULL_REASONS = frozenset(
    {
        "STF",
        "TRANSFER_FROM_FAILED",
        "TransferHelper::transferFrom: transferFrom failed",
        "TransferHelper: TRANSFER_FROM_FAILED",
    }
)
"""Those of ``ROUTER_REASONS`` that report a transfer from the wallet."""

TOO_LITTLE = frozenset(
    {
        "Too little received",
        "V2TooLittleReceived",
        "V3TooLittleReceived",
        "V4TooLittleReceived",
        "V4TooLittleReceivedPerHop",
        "SlippageExceeded",
    }
)
"""Reasons by which routers and curves refuse a swap that brings less than its own minimum."""

TOO_MUCH = frozenset(
    {
        "Too much requested",
        "V2TooMuchRequested",
        "V3TooMuchRequested",
        "V4TooMuchRequested",
        "V4TooMuchRequestedPerHop",
    }
)
"""Reasons by which routers and curves refuse a swap that costs more than its own maximum."""


def first_reason(refusals: Iterable[object]) -> str | None:
    """The first cleaned reason that a token gives; None: it gives none."""
    given = [names.reason(told.reason or "") for told in refusals if isinstance(told, RefusedCall)]
    return next((reason for reason in given if reason and reason not in ROUTER_REASONS), None)
