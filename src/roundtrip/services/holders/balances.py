"""What a token itself tells of its holders at one block, held against what its transfers add up to.

Logs are the token's own words, and a token may say anything: one that rebases or takes of what is held moves
balances without a word, and one that mints in secret hides who has most. So whoever may matter is asked of.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random

from roundtrip.chain.holders.views import Views, views_of
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.holders.balance_drift import has_drifted
from roundtrip.domain.holders.book import HolderBook, HolderColumns
from roundtrip.services.runtime.context import Context

MOST_BY_CHANCE = 30
"""Some of the others are asked of, too."""
MOST_BUYERS = 300
MOST_WHERE_LOGS_LIE = 1000
"""Of a token whose logs lie: so many of those to whom most ever came."""


@dataclass(frozen=True, slots=True)
class Balances:
    """At the block ``at``. ``told``: by wallet, of those that were asked and answered. ``unread``: who gave
    no answer. ``contracts``: of whom it is known whether they are one. ``drifts``: the logs are not to be
    believed."""

    at: BlockRef
    supply_raw: int
    told: Mapping[Address, int]
    unread: frozenset[Address]
    contracts: Mapping[Address, bool | None]
    drifts: bool = False


async def balances(
    ctx: Context, book: HolderBook, at: BlockRef, supply_raw: int, who: Iterable[Address], meter: Meter
) -> Balances:
    """Of ``who``, of the launch's buyers, of places, and of some by chance, as of the block ``at``. Where the
    book does not go so far, nothing is held against it: then nobody knows what the logs would say. Raises
    NodeFault when the node did not answer, ServiceFull."""
    asked = _wallets_to_read(book, who, Random(ctx.entropy()))  # noqa: S311
    found = held_against(book, at, supply_raw, await _read(ctx, book, asked, at, meter))
    if not found.drifts:
        return found
    more = heapq.nlargest(
        MOST_WHERE_LOGS_LIE, book.wallets, key=lambda wallet: book.wallets[wallet].received_raw
    )
    return held_against(book, at, supply_raw, await _read(ctx, book, {*asked, *more}, at, meter))


async def _read(
    ctx: Context, book: HolderBook, wallets: Collection[Address], at: BlockRef, meter: Meter
) -> Views:
    limit = ctx.policy.read_gas_limit
    return await views_of(ctx.node, book.beginning.token, wallets, wallets, at, limit, ctx.chain_id, meter)


def _wallets_to_read(book: HolderBook, who: Iterable[Address], chance: Random) -> set[Address]:
    """Who may matter: these, where it lies, who bought first, and some by chance."""
    wallets, launch = book.wallets, book.launch()
    buyers = () if launch is None else launch.buys
    first = heapq.nlargest(MOST_BUYERS, buyers, key=lambda buy: buy.bought_raw)
    everyone = list(wallets)
    some = chance.sample(everyone, min(MOST_BY_CHANCE, len(everyone)))
    pools = [one for one in book.beginning.places.pools if one in wallets]
    return {*who, *(buy.wallet for buy in first), *some, *pools, *BURN_ADDRESSES}


def held_against(book: HolderBook, at: BlockRef, supply_raw: int, views: Views) -> Balances:
    """What the token told, with whether its logs drift from it; never where the book goes elsewhere than
    ``at``. ``supply_raw``: where the token did not tell it now."""
    supply = supply_raw if views.supply_raw is None else views.supply_raw
    told = {wallet: raw for wallet, raw in views.balances.items() if raw is not None}
    unread = frozenset(views.balances.keys() - told.keys())
    found = Balances(at, supply, told, unread, views.contracts)
    if book.block != at:
        return found
    by_logs = {wallet: book.wallets[wallet].balance_raw if wallet in book.wallets else 0 for wallet in told}
    off = any(
        has_drifted(by_logs[wallet], raw, supply) for wallet, raw in told.items() if wallet != ZERO_ADDRESS
    )
    return replace(found, drifts=off or _is_short(book, told.get(ZERO_ADDRESS, 0), supply))


def _is_short(book: HolderBook, thrown_raw: int, supply_raw: int) -> bool:
    """Whether all that wallets have by the logs, with what the token tells of nobody, ``thrown_raw``, is not
    the supply. What was sent to nobody is gone by the logs, and most tokens tell no balance of it; of those
    that do it still counts in the supply, and it was sent there."""
    nobody = book.wallets.get(ZERO_ADDRESS, HolderColumns())
    there_are = -nobody.balance_raw
    # More than was ever sent there fills the gap that a secret mint left.
    made_up = thrown_raw > nobody.received_raw and has_drifted(nobody.received_raw, thrown_raw, supply_raw)
    return made_up or has_drifted(there_are + thrown_raw, supply_raw, supply_raw)
