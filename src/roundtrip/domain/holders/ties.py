"""What ties the wallets of a token to one another, with the transaction that shows it; and how far its logs
are from what it tells of itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.types import ZERO_ADDRESS, Address, TxHash

from .book import HolderColumns, LaunchBuys
from .findings import UNKNOWN, HolderInputs, is_deployers, launch_groups

TieKind = Literal["deployed", "sniped", "same_transaction", "same_funder", "funded_by_deployer"]


@dataclass(frozen=True, slots=True)
class HolderTie:
    """``to``: the funder, where there is one. ``tx_hash`` None: not known."""

    wallet: Address
    kind: TieKind
    to: Address | None
    tx_hash: TxHash | None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """How far the logs are from what the token tells. ``supply_off_raw``: what all have by the logs, less the
    supply; below zero: they have less."""

    wallets_asked: int
    wallets_off: int
    most_off_raw: int
    supply_off_raw: int


def ties(told: HolderInputs, launch: LaunchBuys | None) -> list[HolderTie]:
    """Every one, the most telling kinds first."""
    found = []
    if told.maker is not None:
        found.append(HolderTie(told.maker.deployer, "deployed", None, told.maker.tx_hash))
        found += [
            HolderTie(wallet, "funded_by_deployer", told.maker.deployer, told.wallets[wallet].funded_tx)
            for wallet in sorted(told.wallets)
            if is_deployers(told, wallet)
        ]
    if launch is not None:
        found += [*_bundle_ties(told, launch), *_sniper_ties(told, launch)]
    return found


def _bundle_ties(told: HolderInputs, launch: LaunchBuys) -> Iterator[HolderTie]:
    together = launch_groups(told, launch)
    for group in together:
        for wallet in group.wallets:
            if group.tx_hash is not None:
                yield HolderTie(wallet, "same_transaction", None, group.tx_hash)
    for group in together:
        for wallet in group.wallets:
            if group.funder is not None and wallet != group.funder:
                yield HolderTie(
                    wallet, "same_funder", group.funder, told.wallets.get(wallet, UNKNOWN).funded_tx
                )


def _sniper_ties(told: HolderInputs, launch: LaunchBuys) -> Iterator[HolderTie]:
    for buy in launch.buys:
        if told.maker is None or buy.wallet != told.maker.deployer:
            yield HolderTie(buy.wallet, "sniped", None, buy.tx_hash)


def disagreement(told: HolderInputs) -> Disagreement:
    """The logs held against ``balances`` and the supply."""
    wallets = told.book.wallets
    # What was sent to nobody is gone by the logs, and most tokens tell no balance of it.
    asked = ((wallet, raw) for wallet, raw in told.balances.items() if wallet != ZERO_ADDRESS)
    off = [abs(wallets.get(wallet, HolderColumns()).balance_raw - raw) for wallet, raw in asked]
    # What was thrown away still counts in the supply of one token, which tells of it, and no longer in
    # another's.
    nobody = wallets.get(ZERO_ADDRESS, HolderColumns())
    thrown_raw = min(told.balances.get(ZERO_ADDRESS, nobody.received_raw), nobody.received_raw)
    without = sum(holding.balance_raw for holding in wallets.values()) - nobody.balance_raw - told.supply_raw
    return Disagreement(
        wallets_asked=len(off),
        wallets_off=sum(1 for one in off if one),
        most_off_raw=max(off, default=0),
        supply_off_raw=min(without, without + thrown_raw, key=abs),
    )
