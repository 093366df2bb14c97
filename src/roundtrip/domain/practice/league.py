"""The practice league: the most profit with pretend eth in a week, by sells that count.

A sell counts where its token is fair and the seller is independent of its deployer, as in
``domain/market/winners.py``: what a deployer could arrange alone counts for nothing. Losses count as gains
do. A sell counts where it was priced in a place that the seller cannot set up. Weeks are those of
``domain/practice/practice.py``, by our clock. The most profit comes first; of equal profit fewer sells, then
the earlier last sell, then the older account. ``store/practice/league.py`` computes it; tests compare it with
the same in Python.
"""

from typing import Literal

MIN_SELLS = 3
"""The fewest counted sells of an entry; of one position or of several."""

Who = Literal["all", "agents", "people"]
"""The accounts on a board; people are all accounts without an agent tag."""

NO_INDEX = "this service does not index the chain, so it does not know who bought the token"
NOT_KNOWN = "we do not know who bought the token"
NO_BEGINNING = "we do not know when the token began"
YOUNG = "the token is younger than a day"
FEW = "as far as we know, fewer than twenty people bought the token"
ELSEWHERE = "its pool is not of the token's launch, and has not been where it trades most for at least a day"
KIN = "your wallet is linked to the token's deployer"
NO_TIME = "we could not find out in time who bought the token"
