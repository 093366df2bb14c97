"""What may have been done by those behind a launch, read out of a batch: sells, moves and burns. Who they
are is for the database to know. Pure."""

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
    """Whom nobody gives tokens to keep: the network's own contracts."""

    addresses: frozenset[Address]

    @staticmethod
    def of(contracts: Contracts) -> "Machinery":
        """That of one network."""
        return Machinery(contracts.all_addresses() | ENTRY_POINTS)


class _TokenWay(NamedTuple):
    """Whose tokens, in which transaction."""

    tx_hash: TxHash
    token: Address
    wallet: Address


def done_by(
    trades: Sequence[TradeEvent], transfers: Sequence[Transfer], machinery: Machinery, from_s: int
) -> list[Deed]:
    """Every sell; every burn that is none of what was never given out; every move to somebody who may keep
    it. What a wallet sold in a transaction went through the hands of those it gave it to there: of what it
    gave to others only the rest counts as moved."""
    sold: dict[_TokenWay, int] = defaultdict(int)
    places: dict[TxHash, set[str]] = defaultdict(set)
    deeds = []
    for trade in trades:
        if trade.buys or trade.spot.at_s < from_s:
            continue
        sold[_TokenWay(trade.spot.tx_hash, trade.token, trade.trader)] += trade.token_raw
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
            way = _TokenWay(spot.tx_hash, token, sender)
            if way in sold:
                sold[way] -= min(sold[way], amount_raw)
        elif recipient not in (sender, token) and sender not in machinery.addresses:
            moves.append(transfer)
    return deeds + list(_without_sales(moves, sold))


def _without_sales(moves: Iterable[Transfer], sold: dict[_TokenWay, int]) -> Iterable[Deed]:
    """The moves, less what of them was sold."""
    for spot, (token, sender, recipient, amount_raw), by in moves:
        way = _TokenWay(spot.tx_hash, token, sender)
        passed_raw = min(sold.get(way, 0), amount_raw)
        if passed_raw:
            sold[way] -= passed_raw
        if amount_raw > passed_raw:
            left_raw = amount_raw - passed_raw
            yield Deed("moved", spot, token, sender, recipient, left_raw, None, by == sender)
