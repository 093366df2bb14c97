"""Groups launch buyers that belong together: those with one funder, and those filled in one transaction."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from roundtrip.domain.base.types import Address, TxHash

from .book import LaunchBuy


class BuyerGroup(NamedTuple):
    """Launch buyers with one funder, who is among them if he bought, or filled in one transaction: one of
    ``funder`` and ``tx_hash`` is None. Ordered by first buy."""

    funder: Address | None
    tx_hash: TxHash | None
    wallets: tuple[Address, ...]


def group_buyers(
    buys: Sequence[LaunchBuy], funders: Mapping[Address, Address], never: Collection[str], min_size: int
) -> list[BuyerGroup]:
    """Every group of at least ``min_size`` wallets. ``funders``: the funder of each wallet, only those that
    may group. ``never``: transactions that do not group."""
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
    by_link = [BuyerGroup(funder, None, tuple(wallets)) for funder, wallets in paid.items()]
    by_link += [BuyerGroup(None, tx_hash, tuple(wallets)) for tx_hash, wallets in filled.items()]
    return [group for group in by_link if len(group.wallets) >= min_size]


def join_groups(groups: Iterable[BuyerGroup]) -> list[list[BuyerGroup]]:
    """Joins groups that share a wallet, directly or through other groups."""
    parents: dict[Address, Address] = {}
    all_groups = list(groups)
    for group in all_groups:
        first = _root(parents, group.wallets[0])
        for wallet in group.wallets[1:]:
            parents[_root(parents, wallet)] = first
    joined: defaultdict[Address, list[BuyerGroup]] = defaultdict(list)
    for group in all_groups:
        joined[_root(parents, group.wallets[0])].append(group)
    return list(joined.values())


def _root(parents: dict[Address, Address], wallet: Address) -> Address:
    while (parent := parents.setdefault(wallet, wallet)) != wallet:
        parents[wallet] = wallet = parents.setdefault(parent, parent)
    return wallet
