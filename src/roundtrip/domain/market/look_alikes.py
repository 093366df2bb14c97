"""Which older, larger token another one passes for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base import names
from roundtrip.domain.base.confusables import list_readings
from roundtrip.domain.base.types import Address

COUNTED_TRADERS = 1_000
"""Wallets that traded a token are counted up to this number."""
MIN_TRADERS = 10
"""A token that fewer wallets traded is nothing that anybody would pass for."""


class ListedToken(NamedTuple):
    """A token that the network's configuration names. Its symbol is as its issuer publishes it."""

    symbol: str
    address: Address


def find_listed(token: Address, symbol: str | None, listed: Iterable[ListedToken]) -> ListedToken | None:
    """The listed token whose symbol this one's is, or may be read as. None: there is none, or it is listed
    itself."""
    tokens = list(listed)
    if symbol is None or any(token == known.address for known in tokens):
        return None
    readings = list_readings(symbol)
    return next((known for known in tokens if names.symbol_key(known.symbol) in readings), None)


@dataclass(frozen=True, slots=True)
class Namesake:
    """A token with a symbol or a name in question, which strangers wrote. ``by_symbol``: its symbol is in
    question; else its name is. ``first_s``: its launch or its first pool, in seconds since 1970; None: it
    has neither. ``traders``: wallets that ever traded it, at most ``COUNTED_TRADERS``."""

    token: Address
    symbol: str | None
    name: str | None
    by_symbol: bool
    first_s: int | None
    traders: int


def choose_original(own: Namesake, others: Iterable[Namesake]) -> Namesake | None:
    """The token that most wallets traded, of those that are older than ``own`` and that more wallets traded;
    of equals the oldest. None: there is none. Where both were traded by as many as are counted, the older one
    counts as the larger."""
    originals = [other for other in others if _is_older(other, own) and _is_larger(other, own)]
    return min(originals, key=lambda other: (-other.traders, other.first_s or 0, other.token), default=None)


def _is_older(other: Namesake, own: Namesake) -> bool:
    return other.first_s is not None and (own.first_s is None or other.first_s < own.first_s)


def _is_larger(other: Namesake, own: Namesake) -> bool:
    return other.traders >= MIN_TRADERS and (other.traders > own.traders or other.traders >= COUNTED_TRADERS)
