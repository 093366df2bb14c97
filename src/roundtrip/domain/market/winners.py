"""Winners: the most profit closed in a span of time, of closings that cannot be self-made.

A closing counts where its token is fair, and its wallet is independent of the token's deployer. A board of
winners advises which wallets to follow, so nothing counts that a deployer could arrange alone:

- A young token: its first day may be the deployer's own doing.
- A crowd from one purse: buyers are counted as in ``domain/market/fairness.py``, by what existed a day before
  the token began.
- The deployer, its funder, wallets it funded, and wallets that share its funder; of an exchange's customers
  those that it paid within a day of the deployer.

``store/boards/winners.py`` computes this in SQL; tests compare it with ``tests/support/winner_rules.py``.
"""

from types import MappingProxyType
from typing import Literal

Window = Literal["24h", "7d", "30d", "all"]
"""The span of a board, the shortest first."""
SPANS: MappingProxyType[str, int | None] = MappingProxyType(
    {"24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400, "all": None}
)
"""Seconds that each board looks back; None: to the beginning."""
MAX_WINNERS = 100
"""Ranks of a board that are stored."""
