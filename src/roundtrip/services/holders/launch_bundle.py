"""The tool launch_bundle: who bought in a token's first three seconds, and which buyers are tied."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

import msgspec

from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import Address
from roundtrip.domain.holders import findings
from roundtrip.domain.holders.book import LaunchBuy
from roundtrip.domain.holders.findings import MIN_BUNDLE, Bundle, Tag
from roundtrip.services.holder_record.findings import HolderFindings, HolderRecord, funders_unknown, summarize
from roundtrip.services.support.answer_fields import WalletAddress, says

from .present import MAX_LISTED, common_fields, launch_answer
from .schema import Bps, LaunchTime, OfHolders, PurseNumber
from .text import (
    NO_RACE,
    bundle_text,
    busy_funder_text,
    deployer_is_among,
    large_buy_text,
    launch_buyers,
    launch_text,
    no_buyers_text,
    percent,
    status_text,
    token_text,
    unpaid_text,
)

_MIN_PAIR = 2
_MAX_NAMED = 3


class LaunchBuyer(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet that bought in the launch window."""

    address: WalletAddress
    bought_bps: Annotated[
        Bps, says("What it bought in the window, in hundredths of a percent of the total supply.")
    ]
    held_bps: Annotated[
        Bps | None,
        says("What it holds now, in hundredths of a percent of the total supply. null: not known yet."),
    ]
    sold_bps: Annotated[
        int | None,
        says(
            "How much it sold of all that ever reached it, in hundredths of a percent. null: not known yet."
        ),
    ]
    transaction: Annotated[str, says("Its first buy.")]
    funder: Annotated[
        str | None,
        says(
            "The wallet that sent its first eth in a plain transfer. null: none or not "
            "known, see funderKnown."
        ),
    ]
    funder_known: Annotated[
        bool,
        says(
            "Where funder is null. true: no wallet sent its first eth in a plain transfer (a "
            "contract, bridge or exchange may have). false: it could not be found out."
        ),
    ]
    tags: Annotated[list[Tag], says("What is known of the wallet.")]
    purse: PurseNumber


class LaunchGroup(msgspec.Struct, frozen=True, rename="camel"):
    """Launch buyers that belong together."""

    funder: Annotated[
        str | None, says("The wallet that funded all of them. null: they share a transaction instead.")
    ]
    same_transaction: Annotated[bool, says("Whether one transaction filled all of them.")]
    transaction: Annotated[str | None, says("That transaction. null: they share a funder instead.")]
    is_bundle: Annotated[bool, says("Whether three or more of them share the funder or transaction.")]
    count: Annotated[int, says("Wallets in the group, listed or not.")]
    wallets: Annotated[list[LaunchBuyer], says("Its wallets, as far as they are listed.")]
    bought_bps: Annotated[
        Bps, says("What the group bought in the window, in hundredths of a percent of the total supply.")
    ]
    held_bps: Annotated[
        Bps | None,
        says(
            "What the group holds now, in hundredths of a percent of the total supply. null: not known yet."
        ),
    ]


class LaunchBundle(OfHolders, frozen=True, rename="camel"):
    """Who bought a token in its launch window, grouped by funder and transaction."""

    launch: Annotated[LaunchTime | None, says("The launch. null: not known, or there was none.")]
    buyers: Annotated[
        int | None, says("Wallets that bought in the window, the deployer included. null: not known.")
    ]
    bought_bps: Annotated[
        Bps | None, says("What they bought, in hundredths of a percent of the total supply. null: not known.")
    ]
    held_bps: Annotated[
        Bps | None,
        says("What they hold now, in hundredths of a percent of the total supply. null: not known yet."),
    ]
    groups: Annotated[list[LaunchGroup], says("Buyers that belong together: bundles first, then pairs.")]
    others: Annotated[list[LaunchBuyer], says("Buyers without a known tie to another launch buyer.")]
    not_listed: Annotated[int, says("Launch buyers beyond the 100 that are listed.")]
    funders_unknown: Annotated[int, says("Launch buyers with a funder that could not be found out.")]


def present_launch_bundle(record: HolderRecord) -> LaunchBundle:
    """Builds the answer."""
    summary = summarize(record)
    grouped_buyers = _group_buyers(record, summary)
    grouped_wallets = {wallet for bundle, _ in grouped_buyers for wallet in bundle.wallets}
    buys = {buy.wallet: buy for buy in record.launch.buys} if record.launch else {}
    single_wallets = [wallet for wallet in buys if wallet not in grouped_wallets]
    slots_left, groups = MAX_LISTED, list[LaunchGroup]()
    for bundle, is_bundle in grouped_buyers:
        listed = bundle.wallets[:slots_left]
        slots_left -= len(listed)
        if listed:
            rows = [_buyer(record, summary, buys[wallet]) for wallet in listed]
            groups.append(_group(record, bundle, is_bundle, rows))
    return LaunchBundle(
        **common_fields(record, *_text(record, summary)),
        launch=launch_answer(record),
        buyers=None if record.launch is None else len(buys) + record.launch.left_out,
        bought_bps=_bought_bps(record),
        held_bps=None if record.launch is None else _held_bps(record, buys),
        groups=groups,
        others=[_buyer(record, summary, buys[wallet]) for wallet in single_wallets[:slots_left]],
        not_listed=max(0, len(buys) - MAX_LISTED) + (record.launch.left_out if record.launch else 0),
        funders_unknown=len(funders_unknown(record)),
    )


def _group_buyers(record: HolderRecord, summary: HolderFindings) -> list[tuple[Bundle, bool]]:
    """Bundles, then pairs of buyers that are in no bundle; each with whether it is a bundle."""
    inputs, launch = record.inputs, record.launch
    if summary.bundles is None or inputs is None or launch is None:
        return []
    bundled = {wallet for bundle in summary.bundles for wallet in bundle.wallets}
    rest = replace(launch, buys=tuple(buy for buy in launch.buys if buy.wallet not in bundled))
    pairs = findings.bundles(inputs, rest, _MIN_PAIR)
    return [*((bundle, True) for bundle in summary.bundles), *((pair, False) for pair in pairs)]


def _group(record: HolderRecord, bundle: Bundle, is_bundle: bool, rows: list[LaunchBuyer]) -> LaunchGroup:
    return LaunchGroup(
        funder=bundle.funder,
        same_transaction=bundle.tx_hash is not None,
        transaction=bundle.tx_hash,
        is_bundle=is_bundle,
        count=len(bundle.wallets),
        wallets=rows,
        bought_bps=record.bps(bundle.bought_raw),
        held_bps=_held_bps(record, bundle.wallets),
    )


def _buyer(record: HolderRecord, summary: HolderFindings, buy: LaunchBuy) -> LaunchBuyer:
    known = record.inputs.wallets.get(buy.wallet, findings.UNKNOWN) if record.inputs else findings.UNKNOWN
    return LaunchBuyer(
        address=buy.wallet,
        bought_bps=record.bps(buy.bought_raw),
        held_bps=_held_bps(record, [buy.wallet]),
        sold_bps=None if record.full_inputs is None else findings.sold_bps(record.full_inputs, buy.wallet),
        transaction=buy.tx_hash,
        funder=known.funder,
        funder_known=known.funder is not None or known.funder_known,
        tags=list(summary.tags.get(buy.wallet, ())),
        purse=summary.purse_number(buy.wallet),
    )


def _bought_bps(record: HolderRecord) -> int | None:
    launch = record.launch
    return None if launch is None else record.share_bps(sum(buy.bought_raw for buy in launch.buys))


def _held_raw(record: HolderRecord, wallets: Iterable[Address]) -> int | None:
    """None: the balance of one of them is not known."""
    held_raw = 0
    for wallet in wallets:
        raw = record.held_raw(wallet)
        if raw is None:
            return None
        held_raw += raw
    return held_raw


def _held_bps(record: HolderRecord, wallets: Iterable[Address]) -> int | None:
    held_raw = _held_raw(record, wallets)
    return None if held_raw is None else record.share_bps(held_raw)


# --- text --------------------------------------------------------------------------------------


def _text(record: HolderRecord, summary: HolderFindings) -> tuple[list[str], list[str]]:
    """The sentences about all launch buyers, and a row for each of the first three bundles."""
    sentences, launch = status_text(record), record.launch
    # While it is read, the first sentence names the token.
    sentences += launch_text(record, "" if record.status == "reading" else token_text(record))
    sentences += large_buy_text(record)
    if launch is None:
        return sentences, []
    if not launch.buys:
        return [*sentences, no_buyers_text(record)], []
    count = format_count(len(launch.buys) + launch.left_out, "wallet")
    bought = percent(record, sum(buy.bought_raw for buy in launch.buys))
    held_raw = _held_raw(record, (buy.wallet for buy in launch.buys))
    held = "" if held_raw is None else f"; together they now have {percent(record, held_raw)}"
    among = ", its deployer among them," if deployer_is_among(record, launch_buyers(record)) else ""
    sentences.append(f"In its launch window {count}{among} bought {bought} of the supply{held}.")
    sentences += [] if launch.is_opening else [NO_RACE]
    if summary.bundles is None:
        return [*sentences, "Which of them belong together is not known yet."], []
    if not summary.bundles:
        sentences.append(f"No {MIN_BUNDLE} of them are known to share a funder or a transaction.")
    sentences += busy_funder_text(record) + unpaid_text(record)
    unknown = len(funders_unknown(record))
    if unknown:
        sentences.append(
            f"The funders of {unknown:,} of them are not known: a bundle may be bigger than shown, or hidden."
        )
    not_listed = max(0, len(launch.buys) - MAX_LISTED) + launch.left_out
    if not_listed:
        sentences.append(f"{not_listed:,} more bought and are not listed.")
    return sentences, [bundle_text(record, bundle) for bundle in summary.bundles[:_MAX_NAMED]]
