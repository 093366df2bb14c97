"""Who holds a token, and how they came by it: what is said of a folded book and of what the chain and the
index know of its wallets. Definitions for people stand in docs/holders.md.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from roundtrip.domain.base.types import BPS, BURN_ADDRESSES, Address, TxHash

from .book import HolderBook, HolderColumns, LaunchBuys
from .deployer import Maker
from .launch_groups import BuyerGroup, groups, join_groups
from .ranking import evenness, largest

TOP = 10
FRESH_S = 3 * 86_400
"""A wallet is fresh that was made so short a time before its first buy."""
LEAST_BUNDLE = 3
"""So many launch buyers of one funder, or in one transaction, are a bundle."""
MOST_FUNDED = 500
"""Who sent more wallets their first eth groups nobody: an exchange or a bridge."""
LEAST_BOUGHT = 100_000
"""Whoever bought no more than one in so many of all may have been sent it: it is no choice of his."""
LEAST_PAID_MICRO_USD = 10 * 10**6
DUST = 1000
"""Who has no more than one in so many of what reached him has nothing left."""

Tag = Literal["deployer", "creator", "sniper", "bundle", "fresh", "winner", "contract", "funded_by_deployer"]


@dataclass(frozen=True, slots=True)
class KnownWallet:
    """What is known of a wallet beside the token. ``first_s``: when anything first reached it; None: not
    known. ``funder``: who sent it its first eth in a plain transfer, ``funded_tx``, where that is known;
    ``funder_known``: whether None means that nobody did. ``is_contract`` None: not known."""

    first_s: int | None = None
    funder: Address | None = None
    funder_known: bool = False
    is_contract: bool | None = None
    funded_tx: TxHash | None = None


UNKNOWN = KnownWallet()


@dataclass(frozen=True, slots=True)
class HolderInputs:
    """Everything that the answer is made of, at one block.

    ``supply_raw``: as the token tells it. ``balances``: what ``balanceOf`` tells of every wallet that was
    asked. ``drifts``: whether logs and balances disagree: then the top is by ``balances``.
    ``families``: how many wallets each funder sent a first eth. ``never_group``: transactions of entry
    points, and funders that are contracts, or a deployer who is as busy as an exchange. ``first``: who has
    most by the logs, enough of them to find the biggest wallets; None: all are looked through.
    """

    book: HolderBook
    supply_raw: int
    balances: Mapping[Address, int]
    drifts: bool
    maker: Maker | None
    wallets: Mapping[Address, KnownWallet]
    families: Mapping[Address, int] = field(default_factory=dict)
    winners: frozenset[Address] = frozenset()
    never_group: frozenset[str] = frozenset()
    first: tuple[Address, ...] | None = None


@dataclass(frozen=True, slots=True)
class RankedHolder:
    """One of the biggest holders. ``entry_cap_micro_usd``: what the whole supply would have cost at what its
    buys cost together, in millionths of a dollar; None: it never bought, or the worth of one buy is not
    known."""

    address: Address
    balance_raw: int
    sold_bps: int
    tags: tuple[Tag, ...]
    entry_cap_micro_usd: int | None = None


@dataclass(frozen=True, slots=True)
class Snipers:
    """Who bought in the launch window, the deployer left out. ``sold_out``: how many of them sold and have no
    more than a thousandth of what reached them."""

    wallets: tuple[Address, ...]
    bought_raw: int
    held_raw: int
    sold_out: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """Launch buyers that one funder paid, or one transaction filled. Several links make one bundle where they
    share wallets."""

    wallets: tuple[Address, ...]
    funder: Address | None
    tx_hash: TxHash | None
    bought_raw: int
    held_raw: int


@dataclass(frozen=True, slots=True)
class Shares:
    """Raw amounts of the whole. ``wallets``: how many wallets hold some. ``beside_raw``: in lockers, escrows
    and the like, and at the token itself."""

    wallets: int
    top_raw: int
    in_pools_raw: int
    burned_raw: int
    beside_raw: int


@dataclass(frozen=True, slots=True)
class Concentration:
    """Over wallets that hold some by the logs. ``gini_bps``: 0, all have the same, to 10,000. ``nakamoto``:
    the fewest wallets that have more than half of what wallets have."""

    gini_bps: int
    nakamoto: int


# --- balances --------------------------------------------------------------------------------------


def balance_raw(told: HolderInputs, wallet: Address) -> int:
    """What the token says that it has, else what the logs say; never below zero."""
    asked = told.balances.get(wallet)
    return max(0, _holding(told, wallet).balance_raw if asked is None else asked)


def outside(told: HolderInputs) -> frozenset[Address]:
    """Who is no wallet: pools, what is beside them, burn addresses, and the token itself."""
    places = told.book.beginning.places
    return places.pools | places.beside | BURN_ADDRESSES | {told.book.beginning.token}


def has_sold_out(told: HolderInputs, wallet: Address) -> bool:
    """Whether it sold at least half of what it bought, and has no more than a thousandth of that left; of one
    that bought nothing, of what reached it. What went to and fro between two wallets reached each of them
    many times."""
    holding = _holding(told, wallet)
    came_raw = holding.bought_raw or holding.received_raw
    return (
        holding.sold_raw > 0
        and holding.sold_raw * 2 >= came_raw
        and balance_raw(told, wallet) * DUST <= came_raw
    )


def has_bought(told: HolderInputs, wallet: Address) -> bool:
    """Whether it bought what can be told from dust that a stranger bought for it."""
    bought_raw = _holding(told, wallet).bought_raw
    return bought_raw > 0 and bought_raw * LEAST_BOUGHT >= told.supply_raw


def holds_on_purpose(told: HolderInputs, wallet: Address) -> bool:
    """Whether it bought what it has, and has a hundredth of a percent of all or paid ten dollars: anybody may
    send anybody a base unit."""
    held_raw, paid = balance_raw(told, wallet), _holding(told, wallet).spent_micro_usd
    is_much = held_raw * BPS >= told.supply_raw or (paid is not None and paid >= LEAST_PAID_MICRO_USD)
    return held_raw > 0 and is_much and has_bought(told, wallet)


def entry_cap_micro_usd(told: HolderInputs, wallet: Address) -> int | None:
    """What today's supply would have cost at its buys, in millionths of a dollar. None: it never bought, or
    the worth of one buy is not known, or of all of them too little to tell."""
    holding = _holding(told, wallet)
    if not holding.spent_micro_usd or holding.bought_raw <= 0:
        return None
    return holding.spent_micro_usd * told.supply_raw // holding.bought_raw


def sold_bps(told: HolderInputs, wallet: Address) -> int:
    """How much of all that ever reached it it sold; 0 where nothing did."""
    holding = _holding(told, wallet)
    return min(BPS, holding.sold_raw * BPS // holding.received_raw) if holding.received_raw > 0 else 0


def _holding(told: HolderInputs, wallet: Address) -> HolderColumns:
    return told.book.wallets.get(wallet) or HolderColumns()


# --- who has how much ------------------------------------------------------------------------------


def top(
    told: HolderInputs, most: int = TOP, snipers: Collection[Address] = (), bundled: Collection[Address] = ()
) -> list[RankedHolder]:
    """The biggest holders, the biggest first; of equals the lower address. Whose ``balances`` were not asked
    stands there by the logs, unless they drift. ``snipers``, ``bundled``: who is tagged so."""
    return [_holder(told, wallet, raw, snipers, bundled) for wallet, raw in biggest(told, most)]


def biggest(told: HolderInputs, most: int) -> list[tuple[Address, int]]:
    """As ``top``, with nothing but what they have: also whom to ask for ``balances``."""
    asked, skipped = told.balances, outside(told)
    wallets = told.book.wallets
    by_logs: Iterable[tuple[Address, HolderColumns]] = ()
    if not told.drifts:
        by_logs = wallets.items() if told.first is None else ((one, wallets[one]) for one in told.first)
    others = ((wallet, holding.balance_raw) for wallet, holding in by_logs if wallet not in asked)
    return largest(chain(asked.items(), others), most, skipped)


def _holder(
    told: HolderInputs, wallet: Address, raw: int, snipers: Collection[Address], bundled: Collection[Address]
) -> RankedHolder:
    tagged = tags(told, wallet, snipers, bundled)
    return RankedHolder(wallet, raw, sold_bps(told, wallet), tagged, entry_cap_micro_usd(told, wallet))


def shares(told: HolderInputs) -> Shares:
    """How the supply is spread over sorts of places. What is a pool and something else counts as a pool."""
    places = told.book.beginning.places
    burning = BURN_ADDRESSES - places.pools
    return Shares(
        wallets=_some_hold(told) if told.drifts else told.book.holders(),
        top_raw=sum(raw for _, raw in biggest(told, TOP)),
        in_pools_raw=_sum(told, places.pools),
        burned_raw=_sum(told, burning),
        beside_raw=_sum(told, (places.beside | {told.book.beginning.token}) - places.pools - burning),
    )


def _some_hold(told: HolderInputs) -> int:
    """Wallets that the token itself says have some: where logs lie, whom they name may have nothing."""
    skipped = outside(told)
    return sum(1 for wallet, raw in told.balances.items() if raw > 0 and wallet not in skipped)


def concentration(told: HolderInputs) -> Concentration | None:
    """None: no wallet holds any, or the logs drift: then nobody knows what all have."""
    if told.drifts:
        return None
    skipped, wallets = outside(told), told.book.wallets.items()
    held = (holding.balance_raw for wallet, holding in wallets if wallet not in skipped)
    found = evenness(sorted(raw for raw in held if raw > 0))
    return None if found is None else Concentration(*found)


def _sum(told: HolderInputs, wallets: Collection[Address]) -> int:
    return sum(balance_raw(told, wallet) for wallet in wallets)


# --- the launch ------------------------------------------------------------------------------------


def snipers(told: HolderInputs, launch: LaunchBuys | None = None) -> Snipers | None:
    """None: nobody bought in the launch window, or there was no launch. ``launch``: the book's, where it is
    at hand."""
    launch = launch or told.book.launch()
    deployer = told.maker.deployer if told.maker else None
    buys = [buy for buy in launch.buys if buy.wallet != deployer] if launch else []
    wallets = tuple(dict.fromkeys(buy.wallet for buy in buys))
    if not wallets:
        return None
    return Snipers(
        wallets=wallets,
        bought_raw=sum(buy.bought_raw for buy in buys),
        held_raw=_sum(told, wallets),
        sold_out=sum(1 for wallet in wallets if has_sold_out(told, wallet)),
    )


def launch_groups(told: HolderInputs, launch: LaunchBuys, least: int = LEAST_BUNDLE) -> list[BuyerGroup]:
    """Launch buyers of one funder who may group, or of one transaction that may. Groups may share wallets."""
    funders = {}
    for buy in launch.buys:
        funder = told.wallets.get(buy.wallet, UNKNOWN).funder
        if funder is not None and _may_group(told, funder):
            funders[buy.wallet] = funder
    return groups(launch.buys, funders, told.never_group, least)


def _may_group(told: HolderInputs, funder: Address) -> bool:
    """Not before it is known that it paid few; the deployer however many: he is no exchange."""
    family = told.families.get(funder)
    is_few = family is not None and family <= MOST_FUNDED
    return (is_few or _is_deployer(told, funder)) and not _is_everybodys(told, funder)


def _is_deployer(told: HolderInputs, wallet: Address) -> bool:
    return told.maker is not None and wallet == told.maker.deployer


def busy_funders(told: HolderInputs, launch: LaunchBuys) -> list[tuple[Address, int]]:
    """Funders of three or more launch buyers who group nobody for having paid so many; and how many buyers,
    the most first."""
    paid: dict[Address, set[Address]] = {}
    for buy in launch.buys:
        funder = told.wallets.get(buy.wallet, UNKNOWN).funder
        if funder is not None and told.families.get(funder, 0) > MOST_FUNDED:
            paid.setdefault(funder, set()).add(buy.wallet)
    left = [
        (funder, len(wallets))
        for funder, wallets in paid.items()
        if len(wallets) >= LEAST_BUNDLE and not _may_group(told, funder)
    ]
    return sorted(left, key=lambda one: (-one[1], one[0]))


def _is_everybodys(told: HolderInputs, funder: Address) -> bool:
    is_contract = told.wallets.get(funder, UNKNOWN).is_contract
    return bool(is_contract) or funder in told.never_group or funder in outside(told)


def bundles(told: HolderInputs, launch: LaunchBuys, least: int = LEAST_BUNDLE) -> list[Bundle]:
    """The one that bought most first. ``least``: how many wallets one link has to have."""
    bought: dict[Address, int] = {}
    for buy in launch.buys:
        bought[buy.wallet] = bought.get(buy.wallet, 0) + buy.bought_raw
    found = []
    for together in join_groups(launch_groups(told, launch, least)):
        members = {wallet for group in together for wallet in group.wallets}
        wallets = tuple(wallet for wallet in bought if wallet in members)
        by_size = sorted(together, key=lambda group: (-len(group.wallets), group.funder or group.tx_hash))
        found.append(
            Bundle(
                wallets=wallets,
                funder=next((group.funder for group in by_size if group.funder), None),
                tx_hash=next((group.tx_hash for group in by_size if group.tx_hash), None),
                bought_raw=sum(bought[wallet] for wallet in wallets),
                held_raw=_sum(told, wallets),
            )
        )
    return sorted(found, key=lambda bundle: (-bundle.bought_raw, bundle.wallets))


# --- insiders --------------------------------------------------------------------------------------


def suspicious(told: HolderInputs, launch: LaunchBuys | None) -> tuple[Address, ...]:
    """Every wallet in suspicious hands, each once: deployer, snipers, and bundles with them, who all
    bought in the launch window, and whom the deployer funded. A launch may name any stranger as its creator:
    he is only where one of these is so, or where a contract launched it, since then he may be behind that."""
    found: list[Address] = []
    if told.maker is not None:
        found.append(told.maker.deployer)
        if told.wallets.get(told.maker.deployer, UNKNOWN).is_contract is not False:
            found += told.maker.creators
    if launch is not None:
        found += [buy.wallet for buy in launch.buys]
    found += sorted(wallet for wallet in told.wallets if is_deployers(told, wallet))
    skipped = outside(told)
    return tuple(wallet for wallet in dict.fromkeys(found) if wallet not in skipped)


def is_deployers(told: HolderInputs, wallet: Address) -> bool:
    """Whether the deployer sent it its first eth; however many others, too."""
    if told.maker is None or wallet == told.maker.deployer:
        return False
    deployer = told.maker.deployer
    pays = told.wallets.get(wallet, UNKNOWN).funder == deployer
    return pays and not _is_everybodys(told, deployer)


def tags(
    told: HolderInputs, wallet: Address, snipers: Collection[Address], bundled: Collection[Address]
) -> tuple[Tag, ...]:
    """In the order of ``Tag``."""
    maker, known = told.maker, told.wallets.get(wallet, UNKNOWN)
    holds: dict[Tag, bool] = {
        "deployer": maker is not None and wallet == maker.deployer,
        "creator": maker is not None and wallet in maker.creators,
        "sniper": wallet in snipers,
        "bundle": wallet in bundled,
        "fresh": _is_fresh(known, _holding(told, wallet)),
        "winner": wallet in told.winners and has_bought(told, wallet),
        "contract": bool(known.is_contract),
        "funded_by_deployer": is_deployers(told, wallet),
    }
    return tuple(tag for tag, holds_it in holds.items() if holds_it)


def _is_fresh(known: KnownWallet, holding: HolderColumns) -> bool:
    if known.first_s is None or holding.first_buy_s is None:
        return False
    return 0 <= holding.first_buy_s - known.first_s <= FRESH_S
