"""Every tool's cases, for all doors: what answers, and what fails with which code."""

from . import (
    accounts,
    bag,
    boards,
    channels,
    league,
    lookups,
    marks,
    practice,
    tokens,
    trades,
    wallets,
    watch,
)
from .base import Arguments, Bad, Good

_ALL = (tokens, wallets, lookups, boards, trades, accounts, watch, channels, practice, league, marks, bag)

GOOD: Good = {name: cases for module in _ALL for name, cases in module.GOOD.items()}
"""Cases that answer, by tool and name: what they ask."""

BAD: Bad = {name: cases for module in _ALL for name, cases in module.BAD.items()}
"""Cases that fail, by tool, with their code."""

__all__ = ["BAD", "GOOD", "Arguments"]
