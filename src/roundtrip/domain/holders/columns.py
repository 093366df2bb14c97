"""The accounts of a token's addresses, and their encoding as columns of numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .book_packing import Column


@dataclass(slots=True)
class HolderColumns:
    """One address and the token. ``balance_raw``: by the logs; below zero if they lie. ``received_raw``:
    everything that ever reached the address and stayed beyond a transaction; what it takes back out of pools
    is not received again; for the zero address, everything ever sent there. ``pooled_raw``: what it put into
    pools and did not take back. ``spent_micro_usd``: the cost of all its buys; None for good once the cost of
    one is not known. ``first_s``: when anything first reached it, 0: nothing did; ``first_buy_s`` None: it
    never bought."""

    balance_raw: int = 0
    received_raw: int = 0
    bought_raw: int = 0
    sold_raw: int = 0
    pooled_raw: int = 0
    spent_micro_usd: int | None = 0
    first_s: int = 0
    first_buy_s: int | None = None


def columns_of(holdings: Sequence[HolderColumns]) -> list[Column]:
    """Columns of differences that are mostly zero: most wallets bought all that they received, and still hold
    it."""
    return [
        [holding.received_raw for holding in holdings],
        [holding.bought_raw - holding.received_raw for holding in holdings],
        [holding.sold_raw for holding in holdings],
        [holding.pooled_raw for holding in holdings],
        [holding.balance_raw + holding.sold_raw - holding.received_raw for holding in holdings],
        [holding.spent_micro_usd for holding in holdings],
        [holding.first_s for holding in holdings],
        [
            None if holding.first_buy_s is None else holding.first_buy_s - holding.first_s
            for holding in holdings
        ],
    ]


def read_holdings(columns: Sequence[Column]) -> Iterator[HolderColumns]:
    """Decodes ``columns_of``. Raises ValueError for anything else."""
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
