"""What one transaction bought to a router and left there, for another of the same block to fetch."""

from dataclasses import dataclass, field
from typing import Any

from roundtrip.domain.base.types import Address

from .book_packing import texts, wholes


@dataclass(slots=True)
class ParkedStock:
    """Of block ``number`` alone. ``stocks``: how much lies where, and what it cost in millionths of a dollar;
    None: not known."""

    number: int = 0
    stocks: dict[Address, tuple[int, int | None]] = field(default_factory=dict)

    def put(self, number: int, place: Address, raw: int, cost: int | None) -> None:
        """More of it, in this block."""
        if number != self.number:
            self.number, self.stocks = number, {}
        had, before = self.stocks.get(place, (0, 0))
        self.stocks[place] = (had + raw, None if before is None or cost is None else before + cost)

    def take(self, number: int, place: Address, raw: int) -> tuple[int, int | None] | None:
        """As much as there is of it, with its share of the cost, and it lies there no more; None: nothing."""
        if number != self.number:
            self.stocks = {}
        had = self.stocks.pop(place, None)
        if had is None:
            return None
        there, cost = had
        if raw >= there:
            return had
        share = None if cost is None else cost * raw // there
        self.stocks[place] = (there - raw, None if cost is None or share is None else cost - share)
        return raw, share

    def as_json(self) -> list[Any]:
        """All of it, for ``parked_of``."""
        raws, costs = [raw for raw, _ in self.stocks.values()], [cost for _, cost in self.stocks.values()]
        return [self.number, list(self.stocks), raws, costs]


def parked_of(told: Any) -> ParkedStock:
    """What ``as_json`` told. Raises ValueError or TypeError for anything else."""
    number, places, raws, costs = told
    if not all(cost is None or type(cost) is int for cost in costs):
        raise ValueError("what should be a number is none")
    stocks = dict(zip(map(Address, texts(places)), zip(wholes(raws), costs, strict=True), strict=True))
    return ParkedStock(wholes([number])[0], stocks)
