"""What an error speaks of: the call, or the node that gave it. Of several nodes another may then know better.

Codes are of EIP-1474, of geth and of nitro; texts are the words that nodes and providers use, in part.
"""

from typing import Literal

from .client import REVERTED, RpcError

Concern = Literal["call", "behind", "pruned", "method", "limited", "batch", "range", "node"]
"""``call``: any node would say so. ``behind``: the node does not know the block yet. ``pruned``: it has let
the state, or the logs, go. ``method``: it does not serve it. ``limited``: it is asked too much. ``batch``:
too many calls in one request. ``range``: less at once than was asked for. ``node``: something else of its
own."""

_WORDS: dict[Concern, str] = {
    "behind": "it does not know that block",
    "pruned": "it has let that block's state or logs go",
    "method": "it does not serve that",
    "limited": "it is asked too much",
    "batch": "too many calls in one request",
    "range": "too much at once",
}

_METHOD_NOT_FOUND, _INVALID_PARAMS, _INTERNAL = -32601, -32602, -32603
_TOO_MANY_REQUESTS = 429
_PRUNED_HISTORY = 4444
"""Of EIP-4444, as geth, reth and nethermind answer eth_getLogs."""
_VM_ERROR = -32015
_SIMULATION_ERRORS = range(-38099, -37999)

_OF_THE_CALL = ("revert", "out of gas", "insufficient funds", "intrinsic gas", "gas required", "evm error")
"""A contract's own words come after the first of these: nothing a stranger writes is read below."""
_SAID: tuple[tuple[Concern, tuple[str, ...]], ...] = (
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
            # Of logs and receipts: erigon, nethermind, geth of its block 0.
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
    _INTERNAL: "node",
    -32001: "behind",
    -32003: "range",
    -32004: "method",
    -32005: "limited",
    _PRUNED_HISTORY: "pruned",
    _TOO_MANY_REQUESTS: "limited",
}


def concern(error: RpcError) -> Concern:
    """What it speaks of. What is not known is the call's own: asking everyone would find nothing out."""
    said = error.message[:400].lower()
    if error.code in (REVERTED, _VM_ERROR) or error.code in _SIMULATION_ERRORS:
        return "call"
    if any(words in said for words in _OF_THE_CALL):
        return "call"
    for about, phrases in _SAID:
        if any(words in said for words in phrases):
            return about
    return _BY_CODE.get(error.code, "call")


def in_our_words(error: RpcError) -> str:
    """What it speaks of and its code. What a node writes may hold anything, also whose key it was asked
    with."""
    about = _WORDS.get(concern(error))
    return f"error {error.code}" if about is None else f"{about}, error {error.code}"
