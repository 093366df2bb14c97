"""Verdicts in words and colours for people."""

from typing import Literal

from .catch import Catch

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
}
ShownCatch = Catch | Literal["insiders", "insiders_unknown"]
"""Checks do not look at insiders. Where they hold much, or it is not known what they hold, a token that sells
is not shown as good."""
_CATCH_WORDS: dict[ShownCatch, str] = {
    "hour": "Sells now, not in an hour",
    "day": "Sells now, not in a day",
    "later": "You cannot sell at once",
    "parts": "Sells only in parts",
    "tax": "Can sell, high tax",
    "loss": "Can sell, at a high cost",
    "curve": "Can sell, curve nearly full",
    "insiders": "Can sell, but beware",
    "insiders_unknown": "Can sell, insiders not known",
}
_NOTHING_TO_SELL = frozenset({"no_contract", "not_a_token", "quote_asset"})
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


def level_word(level: str, code: str, catch: ShownCatch | None = None) -> str:
    """The words for a verdict, as colour alone is not accessible. ``level``: that of the verdict, or that
    whose colour it is shown in. ``catch``: what its code ok does not say; None: nothing, or it is not known
    here."""
    if level == "unknown" and (code, catch) != ("ok", "insiders_unknown"):
        return _LEVEL_WORDS[level]
    if code == "ok":
        if catch is not None:
            return _CATCH_WORDS[catch]
        return {"warn": "Sells, with a warning", "danger": "Sells now, not later"}.get(level, "Can sell")
    return _CODE_WORDS.get(code, _LEVEL_WORDS[level])


def level_colour(level: str, code: str, catch: ShownCatch | None = None) -> str:
    """The level whose colour and sign a verdict has: never better than ``level``. What sells for an hour or
    a day only has that of a danger; where nothing can be sold because it is no token, or it is not known what
    insiders hold, that of unknown."""
    if code in _NOTHING_TO_SELL:
        return "unknown"
    if code != "ok" or catch is None or level in ("danger", "unknown"):
        return level
    if catch == "insiders_unknown":
        return "unknown" if level == "ok" else level
    return "danger" if catch in ("hour", "day") else "warn"


def is_tradable(code: str) -> bool:
    """Whether there is a token to trade at all."""
    return code not in _NOTHING_TO_SELL


def code_text(level: str, code: str) -> str:
    """Plain words to put after a verdict's code: ``: no pool to trade in``. Empty for unknown codes."""
    if (level, code) == ("warn", "ok"):
        return ": it sells, but read the warning"
    return f": {_CODE_TEXTS[code]}" if code in _CODE_TEXTS else ""
