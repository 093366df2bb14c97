"""Verdicts in words for people. The word depends only on code and level, so every page, card, alert and the
terminal show the same one. The level is the colour. Risks are listed separately (``risks``)."""

from collections.abc import Collection

from roundtrip.domain.check.venue_code import Level

_LEVEL_WORDS = {"ok": "Can sell", "warn": "Careful", "danger": "Danger", "unknown": "Not known"}
_CODE_WORDS = {
    "cannot_sell": "Honeypot: you cannot sell",
    "cannot_buy": "Nobody can buy it now",
    "toll_pool": "The pool keeps a large part",
    "thin_pool": "Thin pool, moves the price",
    "high_fees": "High fees",
    "heavy_fees": "Very high fees",
    "no_pool": "No pool to trade in",
    "empty_pool": "Nothing to buy now",
    "no_contract": "No contract here",
    "not_a_token": "Not a token",
    "quote_asset": "Money",
    "tx_reverts": "It would fail",
    "heavy_loss": "Loses half or more",
    "high_loss": "Loses much",
    "nothing_received": "Nothing comes back",
}
_NOTHING_TO_SELL = frozenset({"no_contract", "not_a_token", "quote_asset"})
_WITHOUT_TRADES = ("no_pool", "empty_pool")
_CODE_TEXTS = {
    "ok": "it sells",
    "cannot_sell": "selling is blocked, held back, or ends within the hour",
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
    """The words for a verdict, as colour alone is not accessible. ``level``: that of the verdict; unknown for
    one that is too old to count."""
    if level == "unknown":
        return _LEVEL_WORDS[level]
    if (level, code) == ("warn", "ok"):
        return "Sells, with a warning"
    return _CODE_WORDS.get(code, _LEVEL_WORDS[level])


def simulation_word(level: Level, code: str, approvals: Collection[bool], sells_back: bool) -> str:
    """The words of simulated calls, whose colour is the level: what they allow comes before what they move,
    and calls that only go through are not called safe. ``approvals``: of each, whether it has no limit;
    ``sells_back``: whether the sell of what came was tried."""
    if level in ("ok", "warn") and code != "tx_reverts":
        if approvals:
            return "Allows everything" if any(approvals) else "Allows a spender"
        if code == "ok" and not sells_back:
            return "Goes through"
    return level_word(level, code)


def is_tradable(code: str) -> bool:
    """Whether there is a token to trade at all."""
    return code not in _NOTHING_TO_SELL


def has_pool(code: str) -> bool:
    """Whether a pool trades it now."""
    return code not in _WITHOUT_TRADES


def code_text(level: str, code: str) -> str:
    """Plain words to put after a verdict's code: ``: no pool to trade in``. Empty for unknown codes."""
    if (level, code) == ("warn", "ok"):
        return ": it sells, but read the warning"
    return f": {_CODE_TEXTS[code]}" if code in _CODE_TEXTS else ""
