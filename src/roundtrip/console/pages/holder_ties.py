"""Draws the ties among a token's holders: wallets as dots in rows, beside the purse or the funder that they
share."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from roundtrip.services.holders.launch_bundle import LaunchBundle, LaunchBuyer, LaunchGroup
from roundtrip.services.holders.schema import PurseAnswer, TokenHolders

MAX_IN_PURSE, MAX_DRAWN = 6, 16
"""Wallets that are drawn of one purse, and in all. The table beneath has the rest."""
_MAX_OF_GROUP = 8
"""Wallets of a launch group in its drawing: more would overlap. The list below it has the rest."""
_ROW, _TOP, _DOT_X = 38, 24, 160
"""In units of the drawing: the height of a row, the y of the first dot, and the x of all."""


@dataclass(frozen=True, slots=True)
class TiedWallet:
    """A wallet with its share of the supply; ``purse``: its number. ``x``, ``y``: its place in a drawing 360
    wide, with a radius that grows with its share."""

    address: str
    bps: int
    purse: int | None
    tags: Sequence[str]
    x: int = _DOT_X
    y: int = 0
    radius: float = 0.0


@dataclass(frozen=True, slots=True)
class TieGroup:
    """The wallets of one purse; ``number``, ``purse`` None: those without one. ``middle``: the purse's y."""

    number: int | None
    purse: PurseAnswer | None
    middle: int
    dots: list[TiedWallet]


@dataclass(frozen=True, slots=True)
class TieDrawing:
    """The groups, and all wallets that are tied. ``not_drawn``: how many of these have no dot."""

    groups: list[TieGroup]
    height: int
    wallets: list[TiedWallet]
    not_drawn: int


def draw_ties(held: TokenHolders, launched: LaunchBundle) -> TieDrawing | None:
    """The drawing. Wallets of one purse are neighbours, so that no line crosses a name. None: no tie is
    known."""
    purses = held.forensics.purses
    rows = purses.rows if purses else []
    wallets = sorted(
        _list_tied(held, launched, rows), key=lambda wallet: (wallet.purse or len(rows) + 1, -wallet.bps)
    )
    groups: list[TieGroup] = []
    most_bps = max([wallet.bps for wallet in wallets], default=0) or 1
    drawn = 0
    for number in (*range(1, len(rows) + 1), None):
        purse = rows[number - 1] if number is not None else None
        if purse is not None and not purse.holding:
            continue  # Its wallets hold nothing: only the table has them.
        members = [wallet for wallet in wallets if wallet.purse == number]
        shown = members[: min(MAX_IN_PURSE, MAX_DRAWN - drawn)]
        if not shown or (number is None and not groups):
            continue
        y = _TOP + _ROW * drawn
        dots = [
            replace(wallet, y=y + _ROW * place, radius=_radius(wallet.bps, most_bps))
            for place, wallet in enumerate(shown)
        ]
        # A purse's name needs the room of two rows.
        drawn += max(2, len(shown)) if number else len(shown)
        middle = (dots[0].y + max(dots[-1].y, dots[0].y + _ROW)) // 2
        groups.append(TieGroup(number, purse, middle, dots))
    if not groups:
        return None
    not_drawn = len(wallets) - sum(len(group.dots) for group in groups)
    return TieDrawing(groups, _TOP + _ROW * drawn, wallets, not_drawn)


def _radius(bps: int, most_bps: int) -> float:
    return round(5 + 9 * math.sqrt(bps / most_bps), 1)


def _list_tied(held: TokenHolders, launched: LaunchBundle, rows: Sequence[PurseAnswer]) -> list[TiedWallet]:
    """The ten biggest, the deployer, and the launch buyers that have a purse."""
    tied = {top.address: TiedWallet(top.address, top.supply_bps, top.purse, top.tags) for top in held.top}
    for buyer in (*(wallet for group in launched.groups for wallet in group.wallets), *launched.others):
        if buyer.purse and buyer.held_bps is not None:
            tied.setdefault(buyer.address, TiedWallet(buyer.address, buyer.held_bps, buyer.purse, buyer.tags))
    deployer = held.deployer
    if deployer is not None and deployer.address not in tied:
        own = next((number for number, row in enumerate(rows, 1) if row.has_deployer), None)
        tied[deployer.address] = TiedWallet(deployer.address, deployer.held_bps, own, ["deployer"])
    return list(tied.values())


class DrawnBuyer(LaunchBuyer, frozen=True):
    """A launch buyer with its place, and a radius that grows with what it bought."""

    x: int
    y: int
    radius: float


class GroupDrawing(LaunchGroup, frozen=True):
    """A group of launch buyers, with its first wallets in rows beside what ties them (at ``middle``), 360
    wide."""

    nodes: list[DrawnBuyer]
    not_drawn: int
    height: int
    middle: int


def lay_out_group(group: LaunchGroup) -> GroupDrawing:
    """The drawing of the group."""
    drawn = group.wallets[:_MAX_OF_GROUP]
    most_bps = max([wallet.bought_bps for wallet in drawn], default=0) or 1
    nodes = [
        DrawnBuyer(
            **msgspec.structs.asdict(wallet), x=_DOT_X, y=_TOP + _ROW * place,
            radius=_radius(wallet.bought_bps, most_bps),
        )
        for place, wallet in enumerate(drawn)
    ]  # fmt: skip
    height = max(_ROW * len(nodes) + 10, 110)
    return GroupDrawing(
        **msgspec.structs.asdict(group), nodes=nodes, not_drawn=group.count - len(nodes), height=height,
        middle=height // 2 - 4,
    )  # fmt: skip
