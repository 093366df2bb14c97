"""What a real wallet meets: it buys, and sells in the next block, soon, an hour and a day later, each by
transactions on the local chain. Its encoding is that of the tests, and shares nothing with what is compared.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from roundtrip.config.networks import contracts_from
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import Venue
from roundtrip_development.devnet.deploy import ContractDeployer, calldata
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.trader import Market, MarketTrader
from support.wallet import Fill, Wallet

from .zoo import Case, amount_raw

NEXT_S, SOON_S, HOUR_S, DAY_S = 1, 13, 3600, 86_400
DELAYS_S = (NEXT_S, SOON_S, HOUR_S, DAY_S)
WARN_BPS, DANGER_BPS, BPS = 1500, 5000, 10_000
"""Losses from which a token is not fair, and is a trap: the published lines of docs/verdicts.md."""

Kind = Literal["fair", "snag", "closed", "trap"]
_BEST: tuple[Kind, ...] = ("fair", "snag", "trap", "closed")


@dataclass(frozen=True, slots=True)
class Met:
    """The result of a token at its best venue.

    fair: all of it sold at every delay, for a loss under 15 %, the price's move included. snag: it sells,
    but not at once, or not all of it, or for 15 % and more. trap: after an hour or after a day less than half
    sells, in whole or in halves, or half of the money is lost. closed: no wallet can buy it.
    """

    kind: Kind
    why: str


def met(rpc: SyncRpc, built: Built, case: Case) -> Met:
    """Trades at every place and undoes it. The best place counts: a trader may choose."""
    found = []
    for venue in case.venues:
        with _undone(rpc):
            found.append(_met_at(rpc, built, case, venue))
    return min(found, key=lambda one: _BEST.index(one.kind))


def bought_before(rpc: SyncRpc, built: Built, case: Case) -> Case:
    """With a wallet that really bought a hundredth of what is tried, as tokens have that are traded."""
    for venue in case.venues:
        buyer = _Buyer(rpc, built, case, venue, "before")
        spent_raw = case.amount_raw(venue, contracts_from(built.contracts))
        if buyer.buy(spent_raw // 100):
            # An eth_call on the block of the buy is in that block.
            rpc.call("evm_mine")
            return replace(case, holder=buyer.address)
    return case


@contextmanager
def _undone(rpc: SyncRpc) -> Iterator[None]:
    snapshot = rpc.call("evm_snapshot")
    yield
    # anvil has lost a transaction sent right after a revert that made its nonce free again.
    rpc.call("evm_mine")
    assert rpc.call("evm_revert", snapshot)


class _Buyer:
    """One wallet at one place."""

    def __init__(self, rpc: SyncRpc, built: Built, case: Case, venue: Venue, when: str = "now") -> None:
        self._wallet = Wallet(rpc, built.contracts, f"zoo {case.name} {venue.at()} {when}")
        self.address = Address(self._wallet.address)
        self._case, self._venue = case, venue
        at = venue.pool if venue.kind == "launchpad_curve" else None
        hook = {} if venue.hook is None else {"hook": venue.hook}
        self._trader = MarketTrader(
            self._wallet,
            built.contracts,
            Market(case.token, venue.quote_address, at or "", venue.fee_pips, venue.tick_spacing, **hook),
        )
        self._get_money(rpc, built)

    def _get_money(self, rpc: SyncRpc, built: Built) -> None:
        contracts, quote = contracts_from(built.contracts), self._venue.quote_address
        needed_raw = 2 * amount_raw(quote, self._case.wei, contracts)
        if quote == contracts.usdg:
            self._wallet.get_usdg(needed_raw)
        elif quote == built.contracts["share"]:
            giver = ContractDeployer(rpc, built.accounts[0])
            data = calldata("transfer(address,uint256)", self._wallet.address, needed_raw)
            giver.receipt(giver.send(quote, data))
        elif quote == contracts.weth and self._venue.kind != "amm_v3":
            assert self._wallet.send(quote, calldata("deposit()"), needed_raw).ok

    def held(self) -> int:
        return self._wallet.tokens(self._case.token)

    def buy(self, spent_raw: int) -> int | None:
        venue = self._venue
        if venue.kind != "amm_v3":
            return self._trader.buy(spent_raw)
        return self._wallet.buy(self._case.token, venue.quote, venue.fee_pips, spent_raw)

    def sell(self, tokens_raw: int) -> Fill:
        venue = self._venue
        if venue.kind != "amm_v3":
            return self._trader.sell(tokens_raw)
        return self._wallet.sell(self._case.token, venue.quote, venue.fee_pips, tokens_raw)


def _met_at(rpc: SyncRpc, built: Built, case: Case, venue: Venue) -> Met:
    buyer, spent_raw = (
        _Buyer(rpc, built, case, venue),
        case.amount_raw(venue, contracts_from(built.contracts)),
    )
    with _undone(rpc):
        little = buyer.buy(spent_raw // 1000)
    bought_raw = buyer.buy(spent_raw)
    if not bought_raw:
        return Met("closed", "no wallet can buy it")
    sales = {delay_s: _sold(rpc, buyer, spent_raw, delay_s) for delay_s in DELAYS_S}
    moved_bps = max(0, BPS - bought_raw * 1000 * BPS // (little * 1000 * 1000)) if little else 0
    return _judged(sales, moved_bps)


@dataclass(frozen=True, slots=True)
class _Sale:
    """``share_bps`` of what was held was sold, and ``loss_bps`` of what that had cost was lost."""

    share_bps: int
    loss_bps: int


def _sold(rpc: SyncRpc, buyer: _Buyer, spent_raw: int, delay_s: int) -> _Sale | None:
    """All of it so long after the buy; where that is refused, half of it; None when that is, too."""
    for share_bps in (BPS, BPS // 2):
        with _undone(rpc):
            now_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
            if delay_s > NEXT_S:
                rpc.call("evm_setNextBlockTimestamp", now_s + delay_s)
                rpc.call("evm_mine")
            held_raw = buyer.held()
            fill = buyer.sell(held_raw * share_bps // BPS)
        # One unit in ten thousand may be left, as dust is.
        if fill.ok and fill.sold_raw * BPS >= held_raw * (share_bps // 2 - 1):
            cost_raw = max(1, spent_raw * fill.sold_raw // held_raw)
            sold_bps = min(BPS, -(-fill.sold_raw * BPS // held_raw))
            return _Sale(sold_bps, -((fill.back_raw - cost_raw) * BPS // cost_raw))
    return None


def _judged(sales: dict[int, _Sale | None], moved_bps: int) -> Met:
    said = ", ".join(
        f"{delay_s} s: " + ("refused" if one is None else f"{one.share_bps} bps, {one.loss_bps} lost")
        for delay_s, one in sales.items()
    )
    late = (sales[HOUR_S], sales[DAY_S])
    if any(one is None for one in late):
        return Met("trap", said)
    worst_bps = max([moved_bps, *(one.loss_bps for one in sales.values() if one is not None)])
    if worst_bps >= DANGER_BPS:
        return Met("trap", f"{said}; {worst_bps} bps lost")
    whole = all(one is not None and one.share_bps >= BPS - 1 for one in sales.values())
    kind: Kind = "fair" if whole and worst_bps < WARN_BPS else "snag"
    return Met(kind, f"{said}; {worst_bps} bps lost at most")
