"""Finds wallets of a token with one purse: tied by who sent their first eth, or by one launch transaction.
docs/holders.md defines the terms."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base.types import Address, TxHash

from .book import LaunchBuys
from .findings import (
    MAX_FUNDED,
    UNKNOWN,
    HolderInputs,
    balance_raw,
    is_deployer,
    launch_groups,
    may_group,
    outside,
    suspicious,
)
from .launch_groups import BuyerGroup, join_groups

_MIN_TIED = 2
_SPANS_S = ((100, 86_400), (MAX_FUNDED, 3_600))
"""Up to so many wallets that a funder was first to pay, two of his payments tie if they are at most so many
seconds apart. One person's wallets are paid in one go; a faucet pays strangers all day."""


@dataclass(frozen=True, slots=True)
class Purse:
    """Wallets that are tied, directly or through others; the largest holder first. ``holding``: how many of
    them hold the token. ``funder``, ``tx_hash``: what ties most of them; None: another kind of tie does."""

    wallets: tuple[Address, ...]
    holding: int
    funder: Address | None
    tx_hash: TxHash | None
    held_raw: int
    has_deployer: bool


class PurseCount(NamedTuple):
    """Of the traced wallets (``HolderInputs.wallets``) that hold the token. ``unknown``: those that may share
    a purse with others, because their funder, or whom else he paid, is not known; each counts as a purse of
    its own."""

    wallets: int
    purses: int
    unknown: int


def funder_groups(inputs: HolderInputs) -> list[BuyerGroup]:
    """Traced wallets that one funder paid close together, and the funder where he is traced. Whom the
    deployer paid belongs to him, whenever it was."""
    skipped, paid = outside(inputs), dict[Address, list[tuple[int, Address]]]()
    for wallet, known in inputs.wallets.items():
        funder = known.funder
        if funder in (None, wallet) or wallet in skipped or known.is_contract:
            continue
        if may_group(inputs, funder) and (known.funded_s is not None or is_deployer(inputs, funder)):
            paid.setdefault(funder, []).append((known.funded_s or 0, wallet))
    groups = []
    for funder, payments in paid.items():
        own = (funder,) if funder in inputs.wallets else ()
        clusters = _split(sorted(payments), _span_s(inputs, funder))
        groups += [BuyerGroup(funder, None, (*own, *wallets)) for wallets in clusters]
    return [group for group in groups if len(group.wallets) >= _MIN_TIED]


def _span_s(inputs: HolderInputs, funder: Address) -> int | None:
    """The span of ``_SPANS_S`` for a funder; None: his payments tie however far apart."""
    if is_deployer(inputs, funder):
        return None
    return next(span_s for most, span_s in _SPANS_S if inputs.families[funder] <= most)


def _split(payments: Sequence[tuple[int, Address]], span_s: int | None) -> Iterator[tuple[Address, ...]]:
    """Splits payments, given by time, where two in a row are further apart than ``span_s``."""
    together: list[Address] = []
    for number, (at_s, wallet) in enumerate(payments):
        if together and span_s is not None and at_s - payments[number - 1][0] > span_s:
            yield tuple(together)
            together = []
        together.append(wallet)
    yield tuple(together)


def purses(inputs: HolderInputs, launch: LaunchBuys | None) -> list[Purse]:
    """Every purse with two wallets or more; the one that holds most comes first."""
    skipped = outside(inputs)
    groups = [] if launch is None else launch_groups(inputs, launch, _MIN_TIED)
    found = []
    for joined in join_groups([*groups, *funder_groups(inputs)]):
        members = {wallet for group in joined for wallet in group.wallets} - skipped
        if len(members) < _MIN_TIED:
            continue
        held = {wallet: balance_raw(inputs, wallet) for wallet in members}
        by_size = sorted(joined, key=lambda group: (-len(group.wallets), group.funder or group.tx_hash))
        found.append(
            Purse(
                wallets=tuple(sorted(members, key=lambda wallet: (-held[wallet], wallet))),
                holding=sum(1 for raw in held.values() if raw),
                funder=next((group.funder for group in by_size if group.funder), None),
                tx_hash=next((group.tx_hash for group in by_size if group.tx_hash), None),
                held_raw=sum(held.values()),
                has_deployer=any(is_deployer(inputs, wallet) for wallet in members),
            )
        )
    return sorted(found, key=lambda purse: (-purse.held_raw, purse.wallets))


def insiders(inputs: HolderInputs, launch: LaunchBuys | None, found: Sequence[Purse]) -> tuple[Address, ...]:
    """Every wallet that is suspicious by itself, or shares a purse of ``found`` with the deployer, once."""
    tied = (wallet for purse in found if purse.has_deployer for wallet in purse.wallets)
    return tuple(dict.fromkeys((*suspicious(inputs, launch), *tied)))


def count_purses(inputs: HolderInputs, found: Sequence[Purse]) -> PurseCount:
    """How many purses the traced wallets have that hold the token."""
    skipped = outside(inputs)
    holding = {
        wallet for wallet in inputs.wallets if wallet not in skipped and balance_raw(inputs, wallet) > 0
    }
    tied = {wallet for purse in found for wallet in purse.wallets}
    alone = holding - tied
    unknown = sum(1 for wallet in alone if not _is_traced(inputs, wallet))
    return PurseCount(
        wallets=len(alone) + sum(purse.holding for purse in found),
        purses=len(alone) + sum(1 for purse in found if purse.holding),
        unknown=unknown,
    )


def _is_traced(inputs: HolderInputs, wallet: Address) -> bool:
    """Whether it is known with whom the wallet shares a purse, if with anybody."""
    known = inputs.wallets.get(wallet, UNKNOWN)
    if known.funder is None:
        return known.funder_known
    if is_deployer(inputs, known.funder):
        return True
    return known.funder in inputs.families and (
        known.funded_s is not None or not may_group(inputs, known.funder)
    )
