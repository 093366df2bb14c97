"""What practice positions are sold as: so much of a token, where it keeps its balances, held so long."""

from datetime import datetime

from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.services.valuation.holdings import HoldingToSell
from roundtrip.store.practice.practice import Slot, StoredPosition


def holding_of(
    kept: StoredPosition, at: datetime, amount_raw: int, before_raw: int, slot: Slot | None
) -> HoldingToSell:
    """``amount_raw`` of a position at that time; whoever has to wait waits from his last buy on."""
    token, held_s = kept.position.token, max(0, int((at - kept.bought_at).total_seconds()))
    where = None if slot is None else BalanceSlot(token, slot.layout, slot.base)
    return HoldingToSell(token, amount_raw, None, where, before_raw, held_s, kept.at)
