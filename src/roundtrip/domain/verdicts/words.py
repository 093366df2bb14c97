"""Verdicts in words for people."""

_LEVEL_WORDS = {"ok": "Sells", "warn": "Careful", "danger": "Danger", "unknown": "Not known"}
_CODE_WORDS = {"cannot_sell": "Trap", "quote_asset": "Money"}
_CODE_TEXTS = {
    "ok": "it sells",
    "cannot_sell": "selling is blocked or held back",
    "cannot_buy": "every pool refuses a buy",
    "toll_pool": "the pool keeps the largest part of the loss",
    "thin_pool": "price impact is the largest part of the loss",
    "high_fees": "fees and taxes are high",
    "heavy_fees": "fees and taxes are very high",
    "no_pool": "no pool to trade in",
    "empty_pool": "no pool can fill a buy",
    "no_contract": "no contract at this address",
    "not_a_token": "a contract, but not a token",
    "quote_asset": "tokens are priced in it",
    "unproven": "we could not find out",
}


def level_word(level: str, code: str) -> str:
    """One word for a verdict, as colour alone is not accessible. Only cannot_sell is "Trap"; quote assets are
    "Money", as nothing is proven of them."""
    return _CODE_WORDS.get(code, _LEVEL_WORDS[level])


def code_text(level: str, code: str) -> str:
    """Plain words to put after a verdict's code: ``: no pool to trade in``. Empty for unknown codes."""
    if (level, code) == ("warn", "ok"):
        return ": it sells, but read the warning"
    return f": {_CODE_TEXTS[code]}" if code in _CODE_TEXTS else ""
