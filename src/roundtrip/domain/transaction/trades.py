"""Which wallet each trade of one transaction belongs to. Pure.

A pool logs the amounts it took and gave, not the wallet that traded: the transaction's sender may have traded
with a victim's tokens, or on behalf of another wallet. A trade belongs to the wallet that paid for it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from roundtrip.domain.base.events import CurveTraded, Transferred
from roundtrip.domain.base.types import ZERO_ADDRESS, Address

from .account import TRADES, EthWrapped, TransactionFacts, TransactionStep
from .sums import NetChanges


@dataclass(slots=True)
class TradeOwners:
    """Assigns trades to wallets. ``internal``: pools and the network's contracts, which trade for others.
    ``accounts``: those of the transaction's operations."""

    facts: TransactionFacts
    changes: NetChanges
    internal: Collection[Address]
    accounts: Collection[Address]
    _unspent: dict[tuple[Address, Address], int] = field(default_factory=dict)
    _gainers: dict[Address, list[Address]] = field(default_factory=dict)

    def assign(self, steps: Sequence[TransactionStep]) -> list[TransactionStep]:
        """The steps, where a trade keeps its ``actor`` only if that wallet paid for it, and ``to`` is the
        recipient of the proceeds if another wallet got them."""
        assigned = list(steps)
        trades = [number for number, step in enumerate(assigned) if step.kind in TRADES]
        proven = {number for number in trades if self._names_owner(assigned[number])}
        for number in sorted(proven):
            self._spend(assigned[number])
        # The last hop of a route over several pools may be logged first.
        for order in (trades, trades[::-1]):
            for number in order:
                if number not in proven and self._is_paid(assigned[number]):
                    proven.add(number)
                    self._spend(assigned[number])
        for number in trades:
            step = assigned[number] if number in proven else replace(assigned[number], actor=None)
            assigned[number] = replace(step, to=self._find_recipient(step))
        return assigned

    def list_gainers(self, asset: Address) -> list[Address]:
        """Wallets with a net gain of the asset, the largest first, that got some of it from an internal
        address or from an address that only passed it on."""
        if asset not in self._gainers:
            recipients = {
                log.recipient
                for _, log in self.facts.logs
                if isinstance(log, Transferred)
                and log.token == asset
                and (log.sender in self.internal or not self.changes[log.sender].get(asset))
            }
            gainers = [wallet for wallet in recipients if self.changes[wallet].get(asset, 0) > 0]
            outside = [wallet for wallet in gainers if not self._is_internal(wallet)]
            self._gainers[asset] = sorted(outside, key=lambda wallet: (-self.changes[wallet][asset], wallet))
        return self._gainers[asset]

    def list_losers(self, assets: Collection[Address]) -> list[Address]:
        """Wallets with a net loss of one of the assets."""
        return [
            wallet
            for wallet, changes in self.changes.items()
            if not self._is_internal(wallet) and any(changes.get(asset, 0) < 0 for asset in assets)
        ]

    def _is_internal(self, wallet: Address) -> bool:
        return wallet in self.internal or wallet == ZERO_ADDRESS

    def _names_owner(self, step: TransactionStep) -> bool:
        """Whether the log itself names the owner: a curve logs its caller; the launchpad's router, as the
        caller, buys for the recipient."""
        log = step.log
        return isinstance(log, CurveTraded) and (
            log.wallet == step.actor or (log.wallet == self.facts.router and log.recipient == step.actor)
        )

    def _is_paid(self, step: TransactionStep) -> bool:
        actor, paid = step.actor, step.paid
        if actor is None or paid is None:
            return False
        return self._read_unspent(actor, paid.asset) >= paid.raw or self._is_paid_unlogged(step, actor)

    def _is_paid_unlogged(self, step: TransactionStep, actor: Address) -> bool:
        """An account, or a wallet that runs code of its own, can pay eth that appears in no log. It counts as
        the payer if it gained the most of what was bought, and no other wallet is seen paying."""
        assert step.paid is not None
        assert step.got is not None
        runs_code = actor in self.accounts or actor == self.facts.sender == self.facts.to
        if not runs_code or step.paid.asset not in (ZERO_ADDRESS, self.facts.weth):
            return False
        wrappers = {log.account for _, log in self.facts.logs if isinstance(log, EthWrapped) and log.wraps}
        payers = wrappers | set(self.list_losers((self.facts.weth,)))
        if any(not self._is_internal(payer) for payer in payers - {actor}):
            return False
        return self.list_gainers(step.got.asset)[:1] == [actor]

    def _key(self, wallet: Address, asset: Address) -> tuple[Address, Address]:
        return wallet, ZERO_ADDRESS if asset == self.facts.weth else asset

    def _read_unspent(self, wallet: Address, asset: Address) -> int:
        """What the wallet gave away, less the cost of its proven trades, plus their proceeds. Eth and weth
        are one asset here."""
        key = self._key(wallet, asset)
        if key not in self._unspent:
            is_eth = key[1] == ZERO_ADDRESS
            given = -self.changes.get(wallet, {}).get(self.facts.weth if is_eth else asset, 0)
            sends = is_eth and wallet == self.facts.sender != self.facts.to
            self._unspent[key] = given + (self.facts.value_wei if sends else 0)
        return self._unspent[key]

    def _spend(self, step: TransactionStep) -> None:
        if step.actor is None or step.paid is None or step.got is None:
            return
        for moved, sign in ((step.paid, -1), (step.got, 1)):
            self._unspent[self._key(step.actor, moved.asset)] = (
                self._read_unspent(step.actor, moved.asset) + sign * moved.raw
            )

    def _find_recipient(self, step: TransactionStep) -> Address | None:
        """The wallet that got the proceeds, unless it is the trade's actor."""
        if isinstance(step.log, CurveTraded):
            return None if step.log.recipient == step.actor else step.log.recipient
        assert step.got is not None
        if step.actor is not None and self.changes.get(step.actor, {}).get(step.got.asset, 0) > 0:
            return None
        return next(iter(self.list_gainers(step.got.asset)), None)
