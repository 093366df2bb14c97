"""The balances that a token reports at one block, compared with the sum of its transfers.

The token writes its own logs, and may lie: one that rebases or seizes tokens changes balances without a
log, and one that mints in secret hides the largest holder. So the balance of every wallet that may matter
is read."""

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random

from roundtrip.chain.holders.views import Views, fetch_views
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.holders.balance_drift import has_drifted
from roundtrip.domain.holders.book import HolderBook, HolderColumns
from roundtrip.services.runtime.context import Context

MAX_RANDOM = 30
"""How many of the other wallets are read, too."""
MAX_BUYERS = 300
"""Buyers of the launch that are read: those who bought most."""
MAX_IF_DRIFTING = 1000
"""How many more wallets are read if the logs drift: those that ever received most."""


@dataclass(frozen=True, slots=True)
class Balances:
    """At the block ``at``. ``by_wallet``: of wallets whose balance was read. ``unread``: wallets
    without an answer. ``contracts``: whether each wallet is one, None: not known. ``drifts``: the balances
    differ from those by the logs."""

    at: BlockRef
    supply_raw: int
    by_wallet: Mapping[Address, int]
    unread: frozenset[Address]
    contracts: Mapping[Address, bool | None]
    drifts: bool = False


async def read_balances(
    ctx: Context, book: HolderBook, at: BlockRef, supply_raw: int, wallets: Iterable[Address], meter: Meter
) -> Balances:
    """Reads the balances of ``wallets``, of the launch's buyers, of pools, and of some random wallets, at the
    block ``at``. If the book does not end there, they are not compared with it: what the logs would say there
    is not known. Raises NodeFault if the node did not answer, ServiceFull."""
    to_read = _wallets_to_read(book, wallets, Random(ctx.entropy()))  # noqa: S311
    balances = compare_to_logs(book, at, supply_raw, await _read_views(ctx, book, to_read, at, meter))
    if not balances.drifts:
        return balances
    largest_receivers = heapq.nlargest(
        MAX_IF_DRIFTING, book.wallets, key=lambda wallet: book.wallets[wallet].received_raw
    )
    return compare_to_logs(
        book, at, supply_raw, await _read_views(ctx, book, {*to_read, *largest_receivers}, at, meter)
    )


async def _read_views(
    ctx: Context, book: HolderBook, wallets: Collection[Address], at: BlockRef, meter: Meter
) -> Views:
    limit = ctx.policy.read_gas_limit
    return await fetch_views(ctx.node, book.beginning.token, wallets, wallets, at, limit, ctx.chain_id, meter)


def _wallets_to_read(book: HolderBook, requested: Iterable[Address], random: Random) -> set[Address]:
    """The wallets that may matter: the requested ones, buyers of the launch and before it, some at random,
    pools and burn addresses."""
    wallets, early = book.wallets, book.launching.quiet
    # An early buy counts as the launch unless the deployer funded its wallet, which is not known yet: so the
    # buyers of both possible launches are read.
    launches = [launch for launch in (book.launch(), book.launch(early)) if launch is not None]
    buyers = [buy for launch in launches for buy in launch.buys]
    largest_buys = heapq.nlargest(MAX_BUYERS, buyers, key=lambda buy: buy.bought_raw)
    everyone = list(wallets)
    random_wallets = random.sample(everyone, min(MAX_RANDOM, len(everyone)))
    return {
        *requested,
        *early,
        *(buy.wallet for buy in largest_buys),
        *random_wallets,
        # A pool may hold some that only unreadable logs moved there.
        *book.beginning.places.pools,
        *BURN_ADDRESSES,
    }


def compare_to_logs(book: HolderBook, at: BlockRef, supply_raw: int, views: Views) -> Balances:
    """The balances of ``views``, with whether the logs drift from them; never if the book ends at another
    block than ``at``. ``supply_raw``: used if the token did not report it now."""
    supply = supply_raw if views.supply_raw is None else views.supply_raw
    by_wallet = {wallet: raw for wallet, raw in views.balances.items() if raw is not None}
    unread = frozenset(views.balances.keys() - by_wallet.keys())
    balances = Balances(at, supply, by_wallet, unread, views.contracts)
    if book.block != at:
        return balances
    by_logs = {
        wallet: book.wallets[wallet].balance_raw if wallet in book.wallets else 0 for wallet in by_wallet
    }
    wallet_drifts = any(
        has_drifted(by_logs[wallet], raw, supply)
        for wallet, raw in by_wallet.items()
        if wallet != ZERO_ADDRESS
    )
    return replace(
        balances, drifts=wallet_drifts or _sum_drifts(book, by_wallet.get(ZERO_ADDRESS, 0), supply)
    )


def _sum_drifts(book: HolderBook, reported_burned_raw: int, supply_raw: int) -> bool:
    """Whether all balances by the logs, with the one that the token reports for the zero address, differ from
    the supply. By the logs, what was sent to the zero address is gone, and most tokens report no balance
    there; those that do still count it in the supply."""
    zero_holding = book.wallets.get(ZERO_ADDRESS, HolderColumns())
    # By the logs the zero address sends what is minted, so its balance is what exists, below zero.
    existing_raw = -zero_holding.balance_raw
    # A balance above what was ever sent there would hide a secret mint.
    is_inflated = reported_burned_raw > zero_holding.received_raw and has_drifted(
        zero_holding.received_raw, reported_burned_raw, supply_raw
    )
    return is_inflated or has_drifted(existing_raw + reported_burned_raw, supply_raw, supply_raw)
