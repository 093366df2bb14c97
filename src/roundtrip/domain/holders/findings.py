"""Derives who holds a token, and how they acquired it, from a folded book and from what the chain and the
index know of its wallets. docs/holders.md defines the terms."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from roundtrip.domain.base.types import BPS, BURN_ADDRESSES, Address, TxHash

from .book import HolderBook, HolderColumns, LaunchBuys
from .deployer import Maker
from .launch_groups import BuyerGroup, group_buyers, join_groups
from .ranking import evenness, largest

TOP = 10
FRESH_S = 3 * 86_400
"""A wallet is fresh if its first activity precedes its first buy by at most this long."""
MIN_BUNDLE = 3
"""This many launch buyers with one funder, or in one transaction, are a bundle."""
MAX_FUNDED = 500
"""A funder that sent more wallets their first eth groups nothing: it is an exchange or a bridge."""
MIN_BOUGHT_PART = 100_000
"""A wallet that bought at most one part in this many of the supply may have been sent it by a stranger."""
MIN_PAID_MICRO_USD = 10 * 10**6
DUST = 1000
"""A wallet that holds at most one part in this many of what it acquired has nothing left."""

Tag = Literal["deployer", "creator", "sniper", "bundle", "fresh", "winner", "contract", "funded_by_deployer"]


@dataclass(frozen=True, slots=True)
class KnownWallet:
    """What is known of a wallet apart from the token. ``first_s``: when anything first reached it; None: not
    known. ``funder``: the wallet that sent its first eth in a plain transfer, ``funded_tx``, at ``funded_s``,
    where that is known; ``funder_known``: whether None means that no wallet did. ``is_contract`` None: not
    known."""

    first_s: int | None = None
    funder: Address | None = None
    funder_known: bool = False
    is_contract: bool | None = None
    funded_tx: TxHash | None = None
    funded_s: int | None = None


UNKNOWN = KnownWallet()


@dataclass(frozen=True, slots=True)
class HolderInputs:
    """The input of every finding, at one block.

    ``supply_raw``: as the token reports it. ``balances``: ``balanceOf`` of every wallet that was asked.
    ``drifts``: whether logs and balances disagree; the top is then ranked by ``balances``. ``families``: how
    many wallets each funder sent a first eth. ``never_group``: transactions of entry points, and funders that
    are contracts, those that may be one included; and a deployer as busy as an exchange. ``leaders``: the
    wallets with the largest balances by the logs, enough to find the biggest holders; None: every wallet is
    searched."""

    book: HolderBook
    supply_raw: int
    balances: Mapping[Address, int]
    drifts: bool
    maker: Maker | None
    wallets: Mapping[Address, KnownWallet]
    families: Mapping[Address, int] = field(default_factory=dict)
    winners: frozenset[Address] = frozenset()
    never_group: frozenset[str] = frozenset()
    leaders: tuple[Address, ...] | None = None


@dataclass(frozen=True, slots=True)
class RankedHolder:
    """One of the biggest holders. ``entry_cap_micro_usd``: what the whole supply would have cost at the
    average price of its buys, in millionths of a dollar; None: it never bought, or the value of one buy is
    not known. ``first_s``: as in ``KnownWallet``."""

    address: Address
    balance_raw: int
    sold_bps: int
    tags: tuple[Tag, ...]
    entry_cap_micro_usd: int | None = None
    first_s: int | None = None


@dataclass(frozen=True, slots=True)
class Snipers:
    """The buyers in the launch window except the deployer. ``sold_out``: how many of them have sold out
    (``has_sold_out``)."""

    wallets: tuple[Address, ...]
    bought_raw: int
    held_raw: int
    sold_out: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """Launch buyers with one funder, or filled in one transaction. Links that share wallets form one
    bundle."""

    wallets: tuple[Address, ...]
    funder: Address | None
    tx_hash: TxHash | None
    bought_raw: int
    held_raw: int


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of the supply, as raw amounts. ``wallets``: how many wallets hold some. ``locked_raw``: in
    lockers, escrows and the like, and at the token itself."""

    wallets: int
    top_raw: int
    in_pools_raw: int
    burned_raw: int
    locked_raw: int


@dataclass(frozen=True, slots=True)
class Concentration:
    """Over wallets with a balance by the logs. ``gini_bps``: from 0, all balances are equal, to 10,000.
    ``nakamoto``: the fewest wallets that hold more than half of what all wallets hold."""

    gini_bps: int
    nakamoto: int


# --- balances --------------------------------------------------------------------------------------


def balance_raw(inputs: HolderInputs, wallet: Address) -> int:
    """The balance that the token reports, else the balance by the logs; never below zero."""
    reported = inputs.balances.get(wallet)
    return max(0, _holding(inputs, wallet).balance_raw if reported is None else reported)


def outside(inputs: HolderInputs) -> frozenset[Address]:
    """Addresses that are not wallets: pools, the contracts that belong to them, burn addresses, and the token
    itself."""
    places = inputs.book.beginning.places
    return places.pools | places.beside | BURN_ADDRESSES | {inputs.book.beginning.token}


def has_sold_out(inputs: HolderInputs, wallet: Address) -> bool:
    """Whether the wallet sold at least half of what it bought and holds at most a thousandth of that. For a
    wallet that bought nothing, what it received counts instead: tokens that go back and forth between two
    wallets reach each of them many times."""
    holding = _holding(inputs, wallet)
    acquired_raw = holding.bought_raw or holding.received_raw
    return (
        holding.sold_raw > 0
        and holding.sold_raw * 2 >= acquired_raw
        and balance_raw(inputs, wallet) * DUST <= acquired_raw
    )


def has_bought(inputs: HolderInputs, wallet: Address) -> bool:
    """Whether the wallet bought more than the dust that a stranger may have bought for it."""
    bought_raw = _holding(inputs, wallet).bought_raw
    return bought_raw > 0 and bought_raw * MIN_BOUGHT_PART >= inputs.supply_raw


def holds_on_purpose(inputs: HolderInputs, wallet: Address) -> bool:
    """Whether the wallet bought what it holds, and holds a hundredth of a percent of the supply or paid ten
    dollars: anyone can send anyone a base unit."""
    held_raw, paid = balance_raw(inputs, wallet), _holding(inputs, wallet).spent_micro_usd
    is_much = held_raw * BPS >= inputs.supply_raw or (paid is not None and paid >= MIN_PAID_MICRO_USD)
    return held_raw > 0 and is_much and has_bought(inputs, wallet)


def entry_cap_micro_usd(inputs: HolderInputs, wallet: Address) -> int | None:
    """What the current supply would have cost at the average price of the wallet's buys, in millionths of
    a dollar. None: it never bought, the value of one buy is not known, or all of them together round to
    zero."""
    holding = _holding(inputs, wallet)
    if not holding.spent_micro_usd or holding.bought_raw <= 0:
        return None
    return holding.spent_micro_usd * inputs.supply_raw // holding.bought_raw


def sold_bps(inputs: HolderInputs, wallet: Address) -> int:
    """How much of all that ever reached the wallet it sold; 0 where nothing did."""
    holding = _holding(inputs, wallet)
    return min(BPS, holding.sold_raw * BPS // holding.received_raw) if holding.received_raw > 0 else 0


def _holding(inputs: HolderInputs, wallet: Address) -> HolderColumns:
    return inputs.book.wallets.get(wallet) or HolderColumns()


# --- who has how much ------------------------------------------------------------------------------


def top(
    inputs: HolderInputs,
    limit: int = TOP,
    snipers: Collection[Address] = (),
    bundled: Collection[Address] = (),
) -> list[RankedHolder]:
    """The biggest holders, largest first; of equals the lower address. A wallet without an entry in
    ``balances`` is ranked by the logs, unless they drift. ``snipers``, ``bundled``: the wallets with these
    tags."""
    return [_holder(inputs, wallet, raw, snipers, bundled) for wallet, raw in biggest(inputs, limit)]


def biggest(inputs: HolderInputs, limit: int) -> list[tuple[Address, int]]:
    """As ``top``, with only address and balance; also used to choose the wallets to read ``balances`` of."""
    reported, skipped = inputs.balances, outside(inputs)
    wallets = inputs.book.wallets
    by_logs: Iterable[tuple[Address, HolderColumns]] = ()
    if not inputs.drifts:
        by_logs = (
            wallets.items()
            if inputs.leaders is None
            else ((wallet, wallets[wallet]) for wallet in inputs.leaders)
        )
    by_logs_only = ((wallet, holding.balance_raw) for wallet, holding in by_logs if wallet not in reported)
    return largest(chain(reported.items(), by_logs_only), limit, skipped)


def _holder(
    inputs: HolderInputs,
    wallet: Address,
    raw: int,
    snipers: Collection[Address],
    bundled: Collection[Address],
) -> RankedHolder:
    tagged, first_s = tags(inputs, wallet, snipers, bundled), inputs.wallets.get(wallet, UNKNOWN).first_s
    cap_micro_usd = entry_cap_micro_usd(inputs, wallet)
    return RankedHolder(wallet, raw, sold_bps(inputs, wallet), tagged, cap_micro_usd, first_s)


def shares(inputs: HolderInputs) -> Shares:
    """How the supply is divided. An address that is a pool and something else counts as a pool."""
    places = inputs.book.beginning.places
    burning = BURN_ADDRESSES - places.pools
    return Shares(
        wallets=_count_balances(inputs) if inputs.drifts else inputs.book.holders(),
        top_raw=sum(raw for _, raw in biggest(inputs, TOP)),
        in_pools_raw=_sum(inputs, places.pools),
        burned_raw=_sum(inputs, burning),
        locked_raw=_sum(inputs, (places.beside | {inputs.book.beginning.token}) - places.pools - burning),
    )


def _count_balances(inputs: HolderInputs) -> int:
    """Wallets with a balance according to the token itself: where logs drift, a wallet that they name may
    hold nothing."""
    skipped = outside(inputs)
    return sum(1 for wallet, raw in inputs.balances.items() if raw > 0 and wallet not in skipped)


def concentration(inputs: HolderInputs) -> Concentration | None:
    """How unevenly wallets hold the token. None: no wallet has a balance, or the logs drift, so that balances
    are not known."""
    if inputs.drifts:
        return None
    skipped, wallets = outside(inputs), inputs.book.wallets.items()
    held = (holding.balance_raw for wallet, holding in wallets if wallet not in skipped)
    gini_and_nakamoto = evenness(sorted(raw for raw in held if raw > 0))
    return None if gini_and_nakamoto is None else Concentration(*gini_and_nakamoto)


def _sum(inputs: HolderInputs, wallets: Collection[Address]) -> int:
    return sum(balance_raw(inputs, wallet) for wallet in wallets)


# --- the launch ------------------------------------------------------------------------------------


def snipers(inputs: HolderInputs, launch: LaunchBuys | None = None) -> Snipers | None:
    """The snipers of the launch. None: no wallet but the deployer bought in its window, nobody raced for it,
    or there was no launch. ``launch``: the book's, if the caller has it already."""
    launch = launch or inputs.book.launch()
    deployer = inputs.maker.deployer if inputs.maker else None
    buys = [buy for buy in launch.buys if buy.wallet != deployer] if launch and launch.is_opening else []
    wallets = tuple(dict.fromkeys(buy.wallet for buy in buys))
    if not wallets:
        return None
    return Snipers(
        wallets=wallets,
        bought_raw=sum(buy.bought_raw for buy in buys),
        held_raw=_sum(inputs, wallets),
        sold_out=sum(1 for wallet in wallets if has_sold_out(inputs, wallet)),
    )


def launch_groups(inputs: HolderInputs, launch: LaunchBuys, min_size: int = MIN_BUNDLE) -> list[BuyerGroup]:
    """Launch buyers that share a funder, or a transaction, that may group. Groups may share wallets."""
    funders = {}
    for buy in launch.buys:
        funder = inputs.wallets.get(buy.wallet, UNKNOWN).funder
        if funder is not None and may_group(inputs, funder):
            funders[buy.wallet] = funder
    return group_buyers(launch.buys, funders, inputs.never_group, min_size)


def may_group(inputs: HolderInputs, funder: Address) -> bool:
    """A funder may group once it is known to have funded few wallets. The deployer may group however many he
    funded: he is not an exchange."""
    family = inputs.families.get(funder)
    is_few = family is not None and family <= MAX_FUNDED
    return (is_few or is_deployer(inputs, funder)) and not _is_shared_funder(inputs, funder)


def is_deployer(inputs: HolderInputs, wallet: Address) -> bool:
    """Whether the wallet deployed the token."""
    return inputs.maker is not None and wallet == inputs.maker.deployer


def busy_funders(inputs: HolderInputs, launch: LaunchBuys) -> list[tuple[Address, int]]:
    """Funders of three or more launch buyers that do not group them because they funded too many wallets;
    with the number of buyers, largest first."""
    paid: dict[Address, set[Address]] = {}
    for buy in launch.buys:
        funder = inputs.wallets.get(buy.wallet, UNKNOWN).funder
        if funder is not None and inputs.families.get(funder, 0) > MAX_FUNDED:
            paid.setdefault(funder, set()).add(buy.wallet)
    counts = [
        (funder, len(wallets))
        for funder, wallets in paid.items()
        if len(wallets) >= MIN_BUNDLE and not may_group(inputs, funder)
    ]
    return sorted(counts, key=lambda count: (-count[1], count[0]))


def _is_shared_funder(inputs: HolderInputs, funder: Address) -> bool:
    is_contract = inputs.wallets.get(funder, UNKNOWN).is_contract
    return bool(is_contract) or funder in inputs.never_group or funder in outside(inputs)


def bundles(inputs: HolderInputs, launch: LaunchBuys, min_size: int = MIN_BUNDLE) -> list[Bundle]:
    """The bundle that bought most comes first. ``min_size``: the minimum number of wallets of one link."""
    bought: dict[Address, int] = {}
    for buy in launch.buys:
        bought[buy.wallet] = bought.get(buy.wallet, 0) + buy.bought_raw
    joined = []
    for groups_of_bundle in join_groups(launch_groups(inputs, launch, min_size)):
        members = {wallet for group in groups_of_bundle for wallet in group.wallets}
        wallets = tuple(wallet for wallet in bought if wallet in members)
        by_size = sorted(
            groups_of_bundle, key=lambda group: (-len(group.wallets), group.funder or group.tx_hash)
        )
        joined.append(
            Bundle(
                wallets=wallets,
                funder=next((group.funder for group in by_size if group.funder), None),
                tx_hash=next((group.tx_hash for group in by_size if group.tx_hash), None),
                bought_raw=sum(bought[wallet] for wallet in wallets),
                held_raw=_sum(inputs, wallets),
            )
        )
    return sorted(joined, key=lambda bundle: (-bundle.bought_raw, bundle.wallets))


# --- insiders --------------------------------------------------------------------------------------


def suspicious(inputs: HolderInputs, launch: LaunchBuys | None) -> tuple[Address, ...]:
    """Every suspicious wallet, once: the deployer, snipers, bundles, and wallets that the deployer funded. A
    launch may name any stranger as its creator: he counts only if one of these rules covers him, or if the
    deployer is a contract, or may be one, since he may control it."""
    wallets: list[Address] = []
    if inputs.maker is not None:
        wallets.append(inputs.maker.deployer)
        if inputs.wallets.get(inputs.maker.deployer, UNKNOWN).is_contract is not False:
            wallets += inputs.maker.creators
    if launch is not None and launch.is_opening:
        wallets += [buy.wallet for buy in launch.buys]
    elif launch is not None:
        wallets += [wallet for bundle in bundles(inputs, launch) for wallet in bundle.wallets]
    wallets += sorted(wallet for wallet in inputs.wallets if is_funded_by_deployer(inputs, wallet))
    skipped = outside(inputs)
    return tuple(wallet for wallet in dict.fromkeys(wallets) if wallet not in skipped)


def is_funded_by_deployer(inputs: HolderInputs, wallet: Address) -> bool:
    """Whether the deployer sent the wallet its first eth, however many others he funded."""
    if inputs.maker is None or wallet == inputs.maker.deployer:
        return False
    deployer = inputs.maker.deployer
    was_funder = inputs.wallets.get(wallet, UNKNOWN).funder == deployer
    return was_funder and not _is_shared_funder(inputs, deployer)


def tags(
    inputs: HolderInputs, wallet: Address, snipers: Collection[Address], bundled: Collection[Address]
) -> tuple[Tag, ...]:
    """The tags that apply to the wallet, in the order of ``Tag``."""
    maker, known = inputs.maker, inputs.wallets.get(wallet, UNKNOWN)
    applicable: dict[Tag, bool] = {
        "deployer": maker is not None and wallet == maker.deployer,
        "creator": maker is not None and wallet in maker.creators,
        "sniper": wallet in snipers,
        "bundle": wallet in bundled,
        "fresh": _is_fresh(known, _holding(inputs, wallet)),
        "winner": wallet in inputs.winners and has_bought(inputs, wallet),
        "contract": bool(known.is_contract),
        "funded_by_deployer": is_funded_by_deployer(inputs, wallet),
    }
    return tuple(tag for tag, applies in applicable.items() if applies)


def _is_fresh(known: KnownWallet, holding: HolderColumns) -> bool:
    if known.first_s is None or holding.first_buy_s is None:
        return False
    return 0 <= holding.first_buy_s - known.first_s <= FRESH_S
