"""What ties the wallets of a token to one another, with the transaction that shows it; and how far the
token's logs differ from the balances that it reports."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.types import ZERO_ADDRESS, Address, TxHash

from .book import HolderColumns, LaunchBuys
from .findings import UNKNOWN, HolderInputs, is_funded_by_deployer, launch_groups
from .purses import funder_groups

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
    """How far the logs differ from what the token reports. ``supply_off_raw``: the sum of all balances by the
    logs, less the supply; negative: the sum is smaller."""

    wallets_asked: int
    wallets_off: int
    most_off_raw: int
    supply_off_raw: int


def ties(inputs: HolderInputs, launch: LaunchBuys | None) -> list[HolderTie]:
    """Every tie, the strongest kinds first."""
    all_ties = []
    if inputs.maker is not None:
        all_ties.append(HolderTie(inputs.maker.deployer, "deployed", None, inputs.maker.tx_hash))
        all_ties += [
            HolderTie(wallet, "funded_by_deployer", inputs.maker.deployer, inputs.wallets[wallet].funded_tx)
            for wallet in sorted(inputs.wallets)
            if is_funded_by_deployer(inputs, wallet)
        ]
    if launch is not None:
        all_ties += _bundle_ties(inputs, launch)
    tied = {(tie.wallet, tie.to) for tie in all_ties}
    all_ties += [tie for tie in _funder_ties(inputs) if (tie.wallet, tie.to) not in tied]
    if launch is not None:
        all_ties += _sniper_ties(inputs, launch)
    return all_ties


def _bundle_ties(inputs: HolderInputs, launch: LaunchBuys) -> Iterator[HolderTie]:
    groups = launch_groups(inputs, launch)
    for group in groups:
        for wallet in group.wallets:
            if group.tx_hash is not None:
                yield HolderTie(wallet, "same_transaction", None, group.tx_hash)
    for group in groups:
        for wallet in group.wallets:
            if group.funder is not None and wallet != group.funder:
                yield HolderTie(
                    wallet, "same_funder", group.funder, inputs.wallets.get(wallet, UNKNOWN).funded_tx
                )


def _funder_ties(inputs: HolderInputs) -> Iterator[HolderTie]:
    for group in funder_groups(inputs):
        for wallet in group.wallets:
            if wallet != group.funder:
                yield HolderTie(wallet, "same_funder", group.funder, inputs.wallets[wallet].funded_tx)


def _sniper_ties(inputs: HolderInputs, launch: LaunchBuys) -> Iterator[HolderTie]:
    for buy in launch.buys:
        if inputs.maker is None or buy.wallet != inputs.maker.deployer:
            yield HolderTie(buy.wallet, "sniped", None, buy.tx_hash)


def disagreement(inputs: HolderInputs) -> Disagreement:
    """Compares the logs with ``balances`` and the supply."""
    wallets = inputs.book.wallets
    # By the logs, what was sent to the zero address is gone; most tokens report no balance for it.
    reported = ((wallet, raw) for wallet, raw in inputs.balances.items() if wallet != ZERO_ADDRESS)
    differences = [abs(wallets.get(wallet, HolderColumns()).balance_raw - raw) for wallet, raw in reported]
    # Some tokens still count burned tokens in the supply and report them as a balance, others do not.
    zero_holding = wallets.get(ZERO_ADDRESS, HolderColumns())
    thrown_raw = min(inputs.balances.get(ZERO_ADDRESS, zero_holding.received_raw), zero_holding.received_raw)
    excess_raw = (
        sum(holding.balance_raw for holding in wallets.values())
        - zero_holding.balance_raw
        - inputs.supply_raw
    )
    return Disagreement(
        wallets_asked=len(differences),
        wallets_off=sum(1 for difference in differences if difference),
        most_off_raw=max(differences, default=0),
        supply_off_raw=min(excess_raw, excess_raw + thrown_raw, key=abs),
    )
