"""Sells, moves and burns of a batch, possibly of a launch's insiders. Pure: only the database knows who
those are."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base.events import Deed, TradeEvent, Transfer
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, TxHash
from roundtrip.venues.base import Contracts
from roundtrip.venues.entry_point import ENTRY_POINTS


@dataclass(frozen=True, slots=True)
class Machinery:
    """The network's own contracts: a transfer to one of them does not give tokens away."""

    addresses: frozenset[Address]

    @staticmethod
    def of(contracts: Contracts) -> "Machinery":
        """The contracts of one network."""
        return Machinery(contracts.all_addresses() | ENTRY_POINTS)


class _TxHolding(NamedTuple):
    """One wallet's amount of one token within one transaction."""

    tx_hash: TxHash
    token: Address
    wallet: Address


def list_deeds(
    trades: Sequence[TradeEvent], transfers: Sequence[Transfer], machinery: Machinery, from_s: int
) -> list[Deed]:
    """Every sell, every burn by a holder, and every transfer to an address that may keep the tokens. What a
    wallet sold in a transaction may pass through other addresses there: only the rest of what it sent to
    them counts as moved."""
    sold: dict[_TxHolding, int] = defaultdict(int)
    places: dict[TxHash, set[str]] = defaultdict(set)
    deeds = []
    for trade in trades:
        if trade.buys or trade.spot.at_s < from_s:
            continue
        sold[_TxHolding(trade.spot.tx_hash, trade.token, trade.trader)] += trade.token_raw
        places[trade.spot.tx_hash].add(trade.at)
        deeds.append(
            Deed("sold", trade.spot, trade.token, trade.trader, None, trade.token_raw, trade.eth_wei, True)
        )
    moves = []
    for transfer in transfers:
        spot, (token, sender, recipient, amount_raw), by = transfer
        if spot.at_s < from_s or sender == ZERO_ADDRESS or amount_raw == 0:
            continue
        if recipient in BURN_ADDRESSES:
            deeds.append(Deed("burned", spot, token, sender, recipient, amount_raw, None, by == sender))
        elif recipient in machinery.addresses or recipient in places.get(spot.tx_hash, ()):
            holding = _TxHolding(spot.tx_hash, token, sender)
            if holding in sold:
                sold[holding] -= min(sold[holding], amount_raw)
        elif recipient not in (sender, token) and sender not in machinery.addresses:
            moves.append(transfer)
    return deeds + list(_subtract_sales(moves, sold))


def _subtract_sales(moves: Iterable[Transfer], sold: dict[_TxHolding, int]) -> Iterable[Deed]:
    """The moves, less the amounts that were sold in the same transaction."""
    for spot, (token, sender, recipient, amount_raw), by in moves:
        holding = _TxHolding(spot.tx_hash, token, sender)
        resold_raw = min(sold.get(holding, 0), amount_raw)
        if resold_raw:
            sold[holding] -= resold_raw
        if amount_raw > resold_raw:
            rest_raw = amount_raw - resold_raw
            yield Deed("moved", spot, token, sender, recipient, rest_raw, None, by == sender)
