"""Whether an error concerns the call, or the node that returned it: then another node may answer.

Codes are those of EIP-1474, geth and nitro; texts are fragments of the messages of nodes and providers.
"""

from typing import Literal

from .rpc_error import REVERTED, RpcError

Concern = Literal["call", "behind", "pruned", "method", "limited", "batch", "range", "node"]
"""``call``: any node would return it. ``behind``: the node does not know the block yet. ``pruned``: the node
dropped the state, or the logs. ``method``: the node does not serve the method. ``limited``: a rate limit.
``batch``: too many calls in one request. ``range``: too much data requested at once. ``node``: any other
fault of the node."""

_DESCRIPTIONS: dict[Concern, str] = {
    "behind": "the node does not have that block",
    "pruned": "the node no longer has that block's state or logs",
    "method": "the node does not support this method",
    "limited": "the node limits our calls",
    "batch": "too many calls in one request",
    "range": "too much at once",
}

_METHOD_NOT_FOUND, _INTERNAL = -32601, -32603
_TOO_MANY_REQUESTS = 429
_PRUNED_HISTORY = 4444
"""EIP-4444, as geth, reth and nethermind answer eth_getLogs."""
_RANGE_LIMITED = -32614
"""A provider's limit of blocks for eth_getLogs."""
_VM_ERROR = -32015
_SIMULATION_ERRORS = range(-38099, -37999)

_CALL_PHRASES = ("revert", "out of gas", "insufficient funds", "intrinsic gas", "gas required", "evm error")
"""A contract's own text follows one of these. They are matched first, so that no contract's text is matched
below."""
_PHRASES: tuple[tuple[Concern, tuple[str, ...]], ...] = (
    ("batch", ("batch too large", "batch size", "batch limit", "requests in batch", "batch of more")),
    (
        "behind",
        (
            "header not found",
            "header for hash not found",
            "unknown block",
            "block not found",
            "blocknotfound",
            "could not find block",
            "hash is not currently canonical",
            "beyond current head",
            # nitro, for logs of a range that ends past its head. No narrower range helps.
            "invalid block range params",
            "blockoutofrange",
            "after last accepted block",
        ),
    ),
    (
        "pruned",
        (
            "missing trie node",
            "pruned",
            "historical state",
            "state not available",
            "state is not available",
            "state histories",
            "archive",
            # For logs and receipts: erigon, nethermind, and geth for its block 0.
            "due to pruning",
            "but data before",
            "receipt not available",
            "failed to get logs for block",
        ),
    ),
    (
        "method",
        (
            "method not found",
            "method not available",
            "method is not available",
            "method not supported",
            "method is not supported",
            "unsupported method",
            "does not exist/is not available",
            "method not allowed",
        ),
    ),
    ("range", ("block range", "log response size", "more than 10000 results", "response too large")),
    (
        "limited",
        (
            "rate limit",
            "ratelimit",
            "too many requests",
            "request limit",
            "compute units",
            "quota",
            "throttl",
        ),
    ),
)
_BY_CODE: dict[int, Concern] = {
    0: "node",
    _METHOD_NOT_FOUND: "method",
    _RANGE_LIMITED: "range",
    _INTERNAL: "node",
    -32001: "behind",
    -32003: "range",
    -32004: "method",
    -32005: "limited",
    _PRUNED_HISTORY: "pruned",
    _TOO_MANY_REQUESTS: "limited",
}


def concern(error: RpcError) -> Concern:
    """What an error concerns. An unknown error counts as the call's: other nodes would not help."""
    message = error.message[:400].lower()
    if error.code in (REVERTED, _VM_ERROR) or error.code in _SIMULATION_ERRORS:
        return "call"
    if any(phrase in message for phrase in _CALL_PHRASES):
        return "call"
    for subject, phrases in _PHRASES:
        if any(phrase in message for phrase in phrases):
            return subject
    return _BY_CODE.get(error.code, "call")


def describe_error(error: RpcError) -> str:
    """What an error concerns, in our words, and its code. The node's own message may hold a contract's text;
    ``node_words.quote_error`` shows it."""
    description = _DESCRIPTIONS.get(concern(error))
    return f"error {error.code}" if description is None else f"{description}, error {error.code}"
