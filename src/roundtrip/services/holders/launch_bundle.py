"""What launch_bundle answers: who bought in a token's first three seconds, and who of them are tied."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.domain.holders import findings
from roundtrip.domain.holders.book import LaunchBuy
from roundtrip.domain.holders.findings import MIN_BUNDLE, Bundle, Tag

from .findings import HolderFindings, HolderRecord, find, funders_unknown
from .present import MOST_LISTED, launch_answer, of_holders
from .schema import Bps, LaunchTime, OfHolders
from .text import (
    bundle_text,
    crowded_text,
    launch_text,
    nobody_text,
    percent,
    status_text,
    token_text,
    unpaid_text,
)

_LEAST_PAIR = 2
_SAID = 3


class LaunchBuyer(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that bought in the launch window."""

    address: str
    bought_bps: Annotated[Bps, msgspec.Meta(description="What it bought in the window.")]
    held_bps: Annotated[Bps | None, msgspec.Meta(description="null: not known yet.")]
    sold_bps: Annotated[
        int | None,
        msgspec.Meta(description="How much of all that ever reached it, it sold; null: not known yet."),
    ]
    transaction: Annotated[str, msgspec.Meta(description="Its first buy.")]
    funder: Annotated[str | None, msgspec.Meta(description="Who sent it its first eth, in a plain transfer.")]
    funder_known: Annotated[
        bool,
        msgspec.Meta(
            description="True beside null: no wallet sent its first eth in a plain transfer, and a contract, "
            "a bridge or an exchange may have. False: null says nothing."
        ),
    ]
    tags: list[Tag]


class LaunchGroup(msgspec.Struct, frozen=True, rename="camel"):
    """Launch buyers that belong together."""

    funder: str | None
    same_transaction: bool
    transaction: str | None
    is_bundle: Annotated[
        bool, msgspec.Meta(description="Three or more of them share a funder or a transaction.")
    ]
    count: Annotated[int, msgspec.Meta(description="All of its wallets, listed or not.")]
    wallets: list[LaunchBuyer]
    bought_bps: Bps
    held_bps: Annotated[Bps | None, msgspec.Meta(description="null: not known yet.")]


class LaunchBundle(OfHolders, frozen=True, rename="camel"):
    """Who bought a token in its launch window, grouped by funder and transaction."""

    launch: LaunchTime | None
    buyers: Annotated[int | None, msgspec.Meta(description="The deployer counts; null: not known.")]
    bought_bps: Bps | None
    held_bps: Bps | None
    groups: Annotated[list[LaunchGroup], msgspec.Meta(description="Bundles first, then pairs.")]
    others: Annotated[list[LaunchBuyer], msgspec.Meta(description="Who is tied to no other launch buyer.")]
    not_listed: Annotated[int, msgspec.Meta(description="Launch buyers beyond the 100 that are listed.")]
    funders_unknown: Annotated[
        int, msgspec.Meta(description="Launch buyers of whom it could not be found out who funded them.")
    ]


def present_launch_bundle(gathered: HolderRecord) -> LaunchBundle:
    """The answer."""
    found = find(gathered)
    together = _together(gathered, found)
    grouped = {wallet for bundle, _ in together for wallet in bundle.wallets}
    buys = {buy.wallet: buy for buy in gathered.launch.buys} if gathered.launch else {}
    singles = [wallet for wallet in buys if wallet not in grouped]
    room, groups = MOST_LISTED, list[LaunchGroup]()
    for bundle, is_bundle in together:
        listed = bundle.wallets[:room]
        room -= len(listed)
        if listed:
            rows = [_buyer(gathered, found, buys[wallet]) for wallet in listed]
            groups.append(_group(gathered, bundle, is_bundle, rows))
    return LaunchBundle(
        **of_holders(gathered, _text(gathered, found)),
        launch=launch_answer(gathered),
        buyers=None if gathered.launch is None else len(buys) + gathered.launch.left_out,
        bought_bps=_bought_bps(gathered),
        held_bps=None if gathered.launch is None else _held_bps(gathered, buys),
        groups=groups,
        others=[_buyer(gathered, found, buys[wallet]) for wallet in singles[:room]],
        not_listed=max(0, len(buys) - MOST_LISTED) + (gathered.launch.left_out if gathered.launch else 0),
        funders_unknown=len(funders_unknown(gathered)),
    )


def _together(gathered: HolderRecord, found: HolderFindings) -> list[tuple[Bundle, bool]]:
    """Bundles, then pairs of those who are in none; each with whether it is a bundle."""
    told, launch = gathered.told, gathered.launch
    if found.bundles is None or told is None or launch is None:
        return []
    bundled = {wallet for bundle in found.bundles for wallet in bundle.wallets}
    rest = replace(launch, buys=tuple(buy for buy in launch.buys if buy.wallet not in bundled))
    pairs = findings.bundles(told, rest, _LEAST_PAIR)
    return [*((one, True) for one in found.bundles), *((one, False) for one in pairs)]


def _group(gathered: HolderRecord, bundle: Bundle, is_bundle: bool, rows: list[LaunchBuyer]) -> LaunchGroup:
    return LaunchGroup(
        funder=bundle.funder,
        same_transaction=bundle.tx_hash is not None,
        transaction=bundle.tx_hash,
        is_bundle=is_bundle,
        count=len(bundle.wallets),
        wallets=rows,
        bought_bps=gathered.bps(bundle.bought_raw),
        held_bps=_held_bps(gathered, bundle.wallets),
    )


def _buyer(gathered: HolderRecord, found: HolderFindings, buy: LaunchBuy) -> LaunchBuyer:
    known = gathered.told.wallets.get(buy.wallet, findings.UNKNOWN) if gathered.told else findings.UNKNOWN
    return LaunchBuyer(
        address=buy.wallet,
        bought_bps=gathered.bps(buy.bought_raw),
        held_bps=_held_bps(gathered, [buy.wallet]),
        sold_bps=None if gathered.read is None else findings.sold_bps(gathered.read, buy.wallet),
        transaction=buy.tx_hash,
        funder=known.funder,
        funder_known=known.funder is not None or known.funder_known,
        tags=list(found.tags.get(buy.wallet, ())),
    )


def _bought_bps(gathered: HolderRecord) -> int | None:
    launch = gathered.launch
    return None if launch is None else gathered.share_bps(sum(buy.bought_raw for buy in launch.buys))


def _held_raw(gathered: HolderRecord, wallets: Iterable[Address]) -> int | None:
    """None: of one of them it is not known."""
    held_raw = 0
    for wallet in wallets:
        raw = gathered.held_raw(wallet)
        if raw is None:
            return None
        held_raw += raw
    return held_raw


def _held_bps(gathered: HolderRecord, wallets: Iterable[Address]) -> int | None:
    held_raw = _held_raw(gathered, wallets)
    return None if held_raw is None else gathered.share_bps(held_raw)


# --- in words --------------------------------------------------------------------------------------


def _text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    said, launch = status_text(gathered), gathered.launch
    if gathered.status != "reading":
        said.append(f"This is about {token_text(gathered)}.")
    said += launch_text(gathered)
    if launch is None:
        return said
    if not launch.buys:
        return [*said, nobody_text(gathered)]
    buyers = len(launch.buys) + launch.left_out
    count = "1 wallet" if buyers == 1 else f"{buyers:,} wallets"
    bought = percent(gathered, sum(buy.bought_raw for buy in launch.buys))
    held_raw = _held_raw(gathered, (buy.wallet for buy in launch.buys))
    held = "" if held_raw is None else f"; together they now have {percent(gathered, held_raw)}"
    said.append(f"In its launch window {count} bought {bought} of the supply{held}.")
    if found.bundles is None:
        return [*said, "Who of them belong together is not known yet."]
    said += [bundle_text(gathered, bundle) for bundle in found.bundles[:_SAID]]
    if not found.bundles:
        said.append(f"No {MIN_BUNDLE} of them are known to share a funder or a transaction.")
    said += crowded_text(gathered) + unpaid_text(gathered)
    unknown = len(funders_unknown(gathered))
    if unknown:
        said.append(
            f"Who funded {unknown:,} of them is not known: there may be more of a bundle than is seen."
        )
    more = max(0, len(launch.buys) - MOST_LISTED) + launch.left_out
    if more:
        said.append(f"{more:,} more bought and are not listed.")
    return said
