"""What the short codes mean with which routers and pools refuse a call."""

from collections.abc import Mapping
from types import MappingProxyType

_NOT_TAKEN = (
    "the router could not take the token: the wallet holds too little of it, has not approved the router, or "
    "the token refuses the transfer"
)
_NOT_SENT = "the token could not be sent on: it refuses the transfer, or the contract holds too little of it"
_TOO_LITTLE = "the swap brings less than its own minimum"
_TOO_MUCH = "the swap costs more than its own maximum"
_TICKS = "the position's price range is not one that the pool has"
_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        # Uniswap's TransferHelper, of v2 and v3, and the token library of v4.
        "STF": _NOT_TAKEN,
        "TRANSFER_FROM_FAILED": _NOT_TAKEN,
        "TransferHelper: TRANSFER_FROM_FAILED": _NOT_TAKEN,
        "TransferHelper::transferFrom: transferFrom failed": _NOT_TAKEN,
        "ST": _NOT_SENT,
        "TF": _NOT_SENT,
        "TRANSFER_FAILED": _NOT_SENT,
        "UniswapV2: TRANSFER_FAILED": _NOT_SENT,
        "ERC20TransferFailed": "the token refuses the transfer, or too little of it is there",
        "SA": "the token refuses the approval",
        "STE": "the eth could not be sent: its recipient takes none",
        # Uniswap v3 pools.
        "AS": "the amount to swap is zero",
        "SPL": "the price is already past the limit of the swap, as where the pool has nothing left to give",
        "LOK": "the pool is not open yet, or another call to it has not ended",
        "IIA": "less of the token reached the pool than was sent",
        "AI": "the pool is open already",
        "NP": "the position is empty",
        "LO": "the position is too large for its price range",
        "M0": "less of the pool's first token reached it than the position needs",
        "M1": "less of the pool's second token reached it than the position needs",
        "TLU": _TICKS,
        "TLM": _TICKS,
        "TUM": _TICKS,
        "UniswapV2: K": "less reached the pool than the swap has to pay, as with a token that takes a cut",
        "UniswapV2: LOCKED": "another call to the pool has not ended",
        # Minimums and maximums of routers and curves.
        "Too little received": _TOO_LITTLE,
        "V2TooLittleReceived": _TOO_LITTLE,
        "V3TooLittleReceived": _TOO_LITTLE,
        "V4TooLittleReceived": _TOO_LITTLE,
        "V4TooLittleReceivedPerHop": _TOO_LITTLE,
        "SlippageExceeded": _TOO_LITTLE,
        "Too much requested": _TOO_MUCH,
        "V2TooMuchRequested": _TOO_MUCH,
        "V3TooMuchRequested": _TOO_MUCH,
        "V4TooMuchRequested": _TOO_MUCH,
        "V4TooMuchRequestedPerHop": _TOO_MUCH,
    }
)


def find_meaning(reason: str | None) -> str | None:
    """What a cleaned reason means if it is a router's or a pool's code, as the end of a sentence; None: it is
    no known code. Any contract can give the same reason: show the reason, too."""
    return None if reason is None else _MEANINGS.get(reason)


def quote_reason(reason: str) -> str:
    """The cleaned reason in quotes; behind a code of routers and pools its meaning."""
    meaning = find_meaning(reason)
    return f'"{reason}"' if meaning is None else f'"{reason}", a code of routers and pools: {meaning}'
