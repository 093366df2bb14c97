"""Which buyers of a launch belong together: whom one wallet paid, and whom one transaction filled."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from roundtrip.domain.base.types import Address, TxHash

from .book import LaunchBuy


class BuyerGroup(NamedTuple):
    """Launch buyers behind one funder, he among them where he bought, or filled in one transaction: one of
    the two is None. In the order of their first buys."""

    funder: Address | None
    tx_hash: TxHash | None
    wallets: tuple[Address, ...]


def groups(
    buys: Sequence[LaunchBuy], funders: Mapping[Address, Address], never: Collection[str], least: int
) -> list[BuyerGroup]:
    """Every group of so many wallets. ``funders``: who paid whom, of those who may group at all. ``never``:
    transactions that group nobody."""
    paid: defaultdict[Address, dict[Address, None]] = defaultdict(dict)
    filled: defaultdict[TxHash, dict[Address, None]] = defaultdict(dict)
    paying = {funders[buy.wallet] for buy in buys if buy.wallet in funders}
    for buy in buys:
        if buy.wallet in paying:
            paid[buy.wallet][buy.wallet] = None
        if buy.wallet in funders:
            paid[funders[buy.wallet]][buy.wallet] = None
        for tx_hash in buy.txs or (buy.tx_hash,):
            if tx_hash not in never:
                filled[tx_hash][buy.wallet] = None
    found = [BuyerGroup(funder, None, tuple(wallets)) for funder, wallets in paid.items()]
    found += [BuyerGroup(None, tx_hash, tuple(wallets)) for tx_hash, wallets in filled.items()]
    return [group for group in found if len(group.wallets) >= least]


def join_groups(found: Iterable[BuyerGroup]) -> list[list[BuyerGroup]]:
    """Groups that share a wallet, directly or over others, put together."""
    parents: dict[Address, Address] = {}
    kept = list(found)
    for group in kept:
        first = _root(parents, group.wallets[0])
        for wallet in group.wallets[1:]:
            parents[_root(parents, wallet)] = first
    together: defaultdict[Address, list[BuyerGroup]] = defaultdict(list)
    for group in kept:
        together[_root(parents, group.wallets[0])].append(group)
    return list(together.values())


def _root(parents: dict[Address, Address], wallet: Address) -> Address:
    while (parent := parents.setdefault(wallet, wallet)) != wallet:
        parents[wallet] = wallet = parents.setdefault(parent, parent)
    return wallet
