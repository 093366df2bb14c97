"""What a reason of a refused call says: routers and pools hide the token's own."""

NO_REASON = "no reason given"
TRANSFER_REFUSED = "the token refused the transfer and gave no reason"

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
