"""One address and the token, and many of them as columns of numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .book_packing import Column


@dataclass(slots=True)
class HolderColumns:
    """One address and the token. ``balance_raw``: by the logs; below zero where they lie. ``received_raw``:
    everything that ever reached and stayed beyond a transaction; what it takes back out of pools is not
    received again; of the zero address, all that was ever sent there. ``pooled_raw``: what it put into pools
    and did not take back. ``spent_micro_usd``: what all its buys cost, None for ever once that is not known
    of one. ``first_s``: when anything first reached it, 0: nothing did; ``first_buy_s`` None: it never
    bought."""

    balance_raw: int = 0
    received_raw: int = 0
    bought_raw: int = 0
    sold_raw: int = 0
    pooled_raw: int = 0
    spent_micro_usd: int | None = 0
    first_s: int = 0
    first_buy_s: int | None = None


def columns_of(holdings: Sequence[HolderColumns]) -> list[Column]:
    """Differences where they are mostly nothing: most wallets bought all they ever got, and have it."""
    return [
        [one.received_raw for one in holdings],
        [one.bought_raw - one.received_raw for one in holdings],
        [one.sold_raw for one in holdings],
        [one.pooled_raw for one in holdings],
        [one.balance_raw + one.sold_raw - one.received_raw for one in holdings],
        [one.spent_micro_usd for one in holdings],
        [one.first_s for one in holdings],
        [None if one.first_buy_s is None else one.first_buy_s - one.first_s for one in holdings],
    ]


def holdings_of(columns: Sequence[Column]) -> Iterator[HolderColumns]:
    """What ``columns_of`` told. Raises ValueError for anything else."""
    if not columns:
        return
    for row in zip(*columns, strict=True):
        received, bought, sold, pooled, balance, spent, first_s, first_buy_s = row
        if received is None or bought is None or sold is None or pooled is None or balance is None:
            raise ValueError("no holder book")
        if first_s is None:
            raise ValueError("no holder book")
        yield HolderColumns(
            balance - sold + received,
            received,
            bought + received,
            sold,
            pooled,
            spent,
            first_s,
            None if first_buy_s is None else first_buy_s + first_s,
        )
