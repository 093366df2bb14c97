"""Tokens that one transaction bought and left at a router, for another transaction of the same block to
fetch."""

from dataclasses import dataclass, field
from typing import Any

from roundtrip.domain.base.types import Address

from .book_packing import read_ints, read_texts


@dataclass(slots=True)
class ParkedStock:
    """The stocks of block ``number`` only. ``stocks``: the amount at each address and its cost in millionths
    of a dollar; None: not known."""

    number: int = 0
    stocks: dict[Address, tuple[int, int | None]] = field(default_factory=dict)

    def put(self, number: int, place: Address, raw: int, cost: int | None) -> None:
        """Adds to the stock of ``place`` in this block."""
        if number != self.number:
            self.number, self.stocks = number, {}
        had_raw, cost_before = self.stocks.get(place, (0, 0))
        self.stocks[place] = (
            had_raw + raw,
            None if cost_before is None or cost is None else cost_before + cost,
        )

    def take(self, number: int, place: Address, raw: int) -> tuple[int, int | None] | None:
        """Removes up to ``raw`` from the stock, and returns the amount with its share of the cost; None:
        there is no stock."""
        if number != self.number:
            self.stocks = {}
        stock = self.stocks.pop(place, None)
        if stock is None:
            return None
        parked_raw, cost = stock
        if raw >= parked_raw:
            return stock
        share = None if cost is None else cost * raw // parked_raw
        self.stocks[place] = (parked_raw - raw, None if cost is None or share is None else cost - share)
        return raw, share

    def as_json(self) -> list[Any]:
        """The whole state, for ``read_parked``."""
        raws, costs = [raw for raw, _ in self.stocks.values()], [cost for _, cost in self.stocks.values()]
        return [self.number, list(self.stocks), raws, costs]


def read_parked(encoded: Any) -> ParkedStock:
    """Decodes ``as_json``. Raises ValueError or TypeError for anything else."""
    number, places, raws, costs = encoded
    if not all(cost is None or type(cost) is int for cost in costs):
        raise ValueError("what should be a number is none")
    stocks = dict(
        zip(map(Address, read_texts(places)), zip(read_ints(raws), costs, strict=True), strict=True)
    )
    return ParkedStock(read_ints([number])[0], stocks)
