"""Whose the trades of one transaction are. Pure.

A pool tells what it took and gave, and not whose it was: whoever sent the transaction may have traded with a
victim's tokens, or for somebody else. A trade is somebody's who really gave what it cost."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from roundtrip.domain.base.events import CurveTraded, Transferred
from roundtrip.domain.base.types import ZERO_ADDRESS, Address

from .account import TRADES, EthWrapped, TransactionFacts, TransactionStep
from .sums import Nets


@dataclass(slots=True)
class Owners:
    """``inside``: pools and machinery, which trade for others. ``accounts``: of operations."""

    doing: TransactionFacts
    nets: Nets
    inside: Collection[Address]
    accounts: Collection[Address]
    _purses: dict[tuple[Address, Address], int] = field(default_factory=dict)
    _gainers: dict[Address, list[Address]] = field(default_factory=dict)

    def settle(self, steps: Sequence[TransactionStep]) -> list[TransactionStep]:
        """The steps, and of the trades only those somebody's who paid them, with whoever else has what they
        brought."""
        found = list(steps)
        trades = [number for number, step in enumerate(found) if step.kind in TRADES]
        proven = {number for number in trades if self._names_owner(found[number])}
        for number in sorted(proven):
            self._pay(found[number])
        # Of a way over several pools the last may be told first.
        for order in (trades, trades[::-1]):
            for number in order:
                if number not in proven and self._is_paid(found[number]):
                    proven.add(number)
                    self._pay(found[number])
        for number in trades:
            step = found[number] if number in proven else replace(found[number], who=None)
            found[number] = replace(step, to=self._has_it(step))
        return found

    def gainers(self, asset: Address) -> list[Address]:
        """Who has more of it than before, the most first, and had some from a pool, from the machinery or
        from whoever only hands it on."""
        if asset not in self._gainers:
            given = {
                one.recipient
                for _, one in self.doing.said
                if isinstance(one, Transferred)
                and one.token == asset
                and (one.sender in self.inside or not self.nets[one.sender].get(asset))
            }
            found = [wallet for wallet in given if self.nets[wallet].get(asset, 0) > 0]
            outside = [wallet for wallet in found if not self._is_inside(wallet)]
            self._gainers[asset] = sorted(outside, key=lambda wallet: (-self.nets[wallet][asset], wallet))
        return self._gainers[asset]

    def losers(self, assets: Collection[Address]) -> list[Address]:
        """Who has less of one of these."""
        return [
            wallet
            for wallet, own in self.nets.items()
            if not self._is_inside(wallet) and any(own.get(asset, 0) < 0 for asset in assets)
        ]

    def _is_inside(self, wallet: Address) -> bool:
        return wallet in self.inside or wallet == ZERO_ADDRESS

    def _names_owner(self, step: TransactionStep) -> bool:
        """A curve tells who called it; its launchpad's router calls it for whom it pays."""
        said = step.said
        return isinstance(said, CurveTraded) and (
            said.wallet == step.who or (said.wallet == self.doing.router and said.recipient == step.who)
        )

    def _is_paid(self, step: TransactionStep) -> bool:
        who, paid = step.who, step.paid
        if who is None or paid is None:
            return False
        return self._purse(who, paid.asset) >= paid.raw or self._pays_unseen(step, who)

    def _pays_unseen(self, step: TransactionStep, who: Address) -> bool:
        """An account, or a wallet that runs code of its own, pays eth that no log tells of: it paid if it has
        most of what was bought, and nobody else is seen paying."""
        assert step.paid is not None
        assert step.got is not None
        runs_code = who in self.accounts or who == self.doing.sender == self.doing.to
        if not runs_code or step.paid.asset not in (ZERO_ADDRESS, self.doing.weth):
            return False
        weth = {one.account for _, one in self.doing.said if isinstance(one, EthWrapped) and one.wraps}
        payers = weth | set(self.losers((self.doing.weth,)))
        if any(not self._is_inside(payer) for payer in payers - {who}):
            return False
        return self.gainers(step.got.asset)[:1] == [who]

    def _key(self, who: Address, asset: Address) -> tuple[Address, Address]:
        return who, ZERO_ADDRESS if asset == self.doing.weth else asset

    def _purse(self, who: Address, asset: Address) -> int:
        """What it gave away, less what the trades known to be its own cost, and what those brought."""
        key = self._key(who, asset)
        if key not in self._purses:
            is_eth = key[1] == ZERO_ADDRESS
            given = -self.nets.get(who, {}).get(self.doing.weth if is_eth else asset, 0)
            sends = is_eth and who == self.doing.sender != self.doing.to
            self._purses[key] = given + (self.doing.value_wei if sends else 0)
        return self._purses[key]

    def _pay(self, step: TransactionStep) -> None:
        if step.who is None or step.paid is None or step.got is None:
            return
        for moved, sign in ((step.paid, -1), (step.got, 1)):
            self._purses[self._key(step.who, moved.asset)] = (
                self._purse(step.who, moved.asset) + sign * moved.raw
            )

    def _has_it(self, step: TransactionStep) -> Address | None:
        """Who has what the trade brought, where that is not whose it is."""
        if isinstance(step.said, CurveTraded):
            return None if step.said.recipient == step.who else step.said.recipient
        assert step.got is not None
        if step.who is not None and self.nets.get(step.who, {}).get(step.got.asset, 0) > 0:
            return None
        return next(iter(self.gainers(step.got.asset)), None)
