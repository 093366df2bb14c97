"""What each error code means, for the documents."""

from types import MappingProxyType

MEANINGS = MappingProxyType(
    {
        "bad_address": "not an address of 0x and 40 hex digits",
        "bad_input": "a parameter is missing, unknown or wrong; the message names it",
        "bad_json": "the body is not a JSON object",
        "bad_key": "the key is not live",
        "bad_signature": "the signature is not the wallet's, or the signed text is out of date",
        "key_needed": "the operation needs a key",
        "not_found": "there is nothing at the path, or no such transaction, key or session",
        "not_open": "the service takes no payments",
        "not_a_token": "the address is not a token",
        "no_route": "no venue was found to trade the token on",
        "method_not_allowed": "the path exists, with another method",
        "too_many_keys": "the wallet has as many live keys as it may have",
        "already_used": "the payment was counted before",
        "would_fail": "the trade would fail, or could not be shown to work",
        "too_small": "the amount is too small to trade",
        "nothing_to_sell": "the wallet or the account holds nothing to sell",
        "no_such_tx": "the chain does not know the transaction, or its block is not final yet",
        "tx_failed": "the transaction failed",
        "no_payment": "the transaction has no payment that counts",
        "rate_limited": "over the limit of calls a minute; wait as retry-after says",
        "daily_limit": "over the limit of calls a day; wait as retry-after says",
        "internal": "an error of this service",
        "upstream": "the chain's node gave no usable answer; the message says why",
        "holders_failed": "the token's transfers could not be read; ask again",
        "busy": "the service is overloaded or a part of it is unavailable; ask again",
        "budget_spent": "the service's budget of requests to the node is used up for now",
        "holders_busy": "too many tokens are being read; ask again",
        "holders_budget": "the budget for reading transfers is used up for now",
        "holders_no_archive": "no node here keeps the token's old transfers",
    }
)
"""By code, without a full stop."""
