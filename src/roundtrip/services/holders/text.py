"""Formats who holds a token as plain sentences, warnings first."""

from collections.abc import Iterable

from roundtrip.domain.base.figures import format_count, format_percent
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.holders import findings
from roundtrip.domain.holders.balance_drift import sum_balances
from roundtrip.domain.holders.book import WINDOW_BLOCKS
from roundtrip.domain.holders.deployer_summary import DeployerDeeds
from roundtrip.domain.holders.findings import Bundle, Shares
from roundtrip.services.holder_record.findings import (
    HolderFindings,
    HolderRecord,
    Why,
    funders_unknown,
    launches_bought,
)
from roundtrip.services.support.answer_fields import scam_text
from roundtrip.services.support.index_reader import quote_token
from roundtrip.store.index.tokens import Label

_PERCENT_BPS = BPS // 100

_TWICE = 20
_MAX_TENTHS = 10_000
"""In tenths of the supply: below ``_TWICE`` a percentage is shown, above ``_MAX_TENTHS`` no exact
multiple."""

WHY_TEXT: dict[Why, str] = {
    "drifts": "Its transfers do not add up to the balances that it reports. Wallets may have got, sold or "
    "moved more than is shown here. The biggest holders are ranked by the reported balances.",
    "pruned": "The node no longer has its oldest transfers: wallets that held it only then are missing.",
    "capped": "It has more transfers than we read: what is missing is not known.",
    "venues_unread": "Some of its pools could not be read: some buys and sells may be shown as moves.",
    "claims": "Some of it was bought and left in the v4 pool manager, as claims or liquidity. No transfer "
    "shows the owners of that: they are not among its holders, buyers or sellers.",
    "unverified": "Its transfers could not be compared with the balances that it reports.",
}


NO_RACE = (
    "Nobody raced to buy first, so there are no snipers: no liquidity had been added for "
    f"{WINDOW_BLOCKS} blocks."
)
"""Of a launch that is no opening."""


def token_text(record: HolderRecord) -> str:
    """The token in a sentence: its symbol in quotes, escaped so that it cannot end them, and its address."""
    return quote_token(Label(record.token, record.symbol, None, None, None))


def percent(record: HolderRecord, raw: int) -> str:
    """A percentage of the supply, never rounded up, and "under 0.01 %" instead of "0 %" for an amount above
    zero; "an unknown share" if the token reports no supply."""
    if raw > 0 and record.supply_raw <= 0:
        return "an unknown share"
    bps = record.bps(raw)
    return format_percent(bps) if bps or raw <= 0 else "under 0.01 %"


def status_text(record: HolderRecord) -> list[str]:
    """Why the answer is not complete; empty if it is."""
    if record.status == "reading":
        return [
            f"{token_text(record)} is a busy token: {record.transfers_read:,} of its transfers are read "
            "so far. This answer covers only its launch. Ask again in 30 seconds."
        ]
    if record.status == "partial":
        return ["This answer is incomplete: every count is a minimum.", *why_text(record)]
    return []


def why_text(record: HolderRecord) -> list[str]:
    """The reasons why the answer is partial; empty if it is not."""
    return [_oversupplied_text(record) if why == "oversupplied" else WHY_TEXT[why] for why in record.why]


def _oversupplied_text(record: HolderRecord) -> str:
    sum_raw = 0 if record.inputs is None else sum_balances(record.inputs.balances)
    tenths = sum_raw * 10 // max(1, record.supply_raw)
    part = f"{tenths // 10:,}.{tenths % 10} times"
    if tenths < _TWICE:
        part = f"{format_percent(sum_raw * BPS // max(1, record.supply_raw))} of"
    elif tenths > _MAX_TENTHS:
        part = f"more than {_MAX_TENTHS // 10:,} times"
    return f"Balances add up to {part} the supply that the token reports."


def text_of(record: HolderRecord, summary: HolderFindings) -> str:
    """The text of the token_holders answer."""
    sentences = status_text(record)
    if record.full_inputs is None:
        return " ".join(
            [*sentences, *launch_text(record), *large_buy_text(record), *_bundle_text(record, summary)]
        )
    sentences += [
        *_holders_text(record, summary),
        *_scam_text(record, summary),
        *_deployer_text(record, summary),
    ]
    sentences += [*_snipers_text(record, summary), *large_buy_text(record), *_bundle_text(record, summary)]
    return " ".join(
        [
            *sentences,
            *_suspicious_text(record, summary),
            *_purse_text(record, summary),
            *smart_text(record, summary),
            *_crowd_text(record, summary),
        ]
    )


def launch_text(record: HolderRecord, name: str = "") -> list[str]:
    """The launch block, or that no launch was found so far. ``name``: of the token; empty: "it"."""
    subject, its_launch = (name, f"the launch of {name}") if name else ("It", "its launch")
    if record.launch is None and record.status == "reading":
        return ["Its launch is not known yet."]
    if record.launch is None:
        return [f"We did not find {its_launch}: who bought first is not known."]
    return [f"{subject} was launched in block {record.launch.block_number:,}."]


def large_buy_text(record: HolderRecord) -> list[str]:
    """The first large buy of a token that traded quietly before: it is not the launch."""
    large = record.large_buy
    if large is None:
        return []
    count = format_count(len(large.buys) + large.left_out, "wallet")
    bought = percent(record, sum(buy.bought_raw for buy in large.buys))
    return [
        f"The first large buy came later, in block {large.block_number:,}: {count} bought {bought} "
        f"within {WINDOW_BLOCKS} blocks."
    ]


def _holders_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    shares = summary.shares
    if shares is None:
        return []
    floor = "At least " if record.status == "partial" else ""
    count = format_count(shares.wallets, "wallet holds", "wallets hold")
    biggest = "the biggest has" if len(summary.top) == 1 else f"the {len(summary.top)} biggest have"
    holders = (
        f"{floor}{count} {token_text(record)}: {biggest} {percent(record, shares.top_raw)} of the supply, "
    )
    if not summary.top:
        holders = f"No wallet {'is known to hold' if floor else 'holds'} {token_text(record)}: "
    sentences = [
        f"{holders}{percent(record, shares.in_pools_raw)} is in pools, "
        f"{percent(record, shares.burned_raw)} is burned."
    ]
    sentences += [*_rest_text(record, shares), *_locked_text(record, shares), *_token_deeds_text(record)]
    return sentences + _ages_text(summary)


def _scam_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    """The biggest holders, and the deployer, that enough people mark as a scam."""
    subjects = {holder.address: f"{holder.address}, one of the biggest," for holder in summary.top}
    if record.maker is not None:
        subjects[record.maker.deployer] = f"Its deployer {record.maker.deployer}"
    return [
        scam_text(subject, record.scams[address])
        for address, subject in subjects.items()
        if address in record.scams
    ]


def _ages_text(summary: HolderFindings) -> list[str]:
    """How many of the biggest holders are new wallets, and of how many the age is not known."""
    top, aged = len(summary.top), summary.aged_in_top
    if top and not aged:
        return ["We do not know how old the biggest wallets are."]
    if summary.fresh_in_top:
        known = " whose age is known" if top - aged else ""
        were = "was" if summary.fresh_in_top == 1 else "were"
        return [
            f"Of the {format_count(aged, 'biggest wallet')}{known}, {summary.fresh_in_top} {were} first seen "
            "within the three days before the first buy."
        ]
    if top > aged:
        verb = "is" if top - aged == 1 else "are"
        return [f"We do not know how old {top - aged} of the {format_count(top, 'biggest wallet')} {verb}."]
    return []


def _rest_text(record: HolderRecord, shares: Shares) -> list[str]:
    """The share of what is neither burned nor in pools: if most is burned, every share of the supply looks
    small."""
    rest_raw = record.supply_raw - shares.burned_raw - shares.in_pools_raw
    if shares.burned_raw * 2 < record.supply_raw or rest_raw <= 0 or shares.top_raw <= 0:
        return []
    part = format_percent(min(BPS, shares.top_raw * BPS // rest_raw))
    return [f"The biggest have {part} of what is neither burned nor in pools."]


def _locked_text(record: HolderRecord, shares: Shares) -> list[str]:
    """What lockers and the like hold, and the token itself, from 1 % of the supply on."""
    if record.bps(shares.locked_raw) < _PERCENT_BPS:
        return []
    return [
        f"{percent(record, shares.locked_raw)} is held by the token contract itself, routers, lockers or the "
        "launchpad's contracts."
    ]


def _token_deeds_text(record: HolderRecord) -> list[str]:
    """What the token contract itself did."""
    if record.inputs is None:
        return []
    book, sentences = record.inputs.book, []
    if record.bps(book.minted_into_pools_raw) >= _PERCENT_BPS:
        minted = percent(record, book.minted_into_pools_raw)
        sentences.append(
            f"{minted} was minted straight into pools after the token was created. An account that can do "
            "that can take what the pools hold."
        )
    if record.bps(book.sold_by_token_raw) >= _PERCENT_BPS:
        sentences.append(f"The token contract itself sold {percent(record, book.sold_by_token_raw)}.")
    return sentences


# --- the deployer ----------------------------------------------------------------------------------


def _deployer_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    maker = record.maker
    if maker is None:
        return ["Its deployer is not known."]
    if summary.deeds is None and record.unsure_maker is not None:
        return [
            f"Its deployer is not certain: {maker.deployer} sent the transaction of its first transfer, but "
            "the token may be older than that."
        ]
    if summary.deeds is None:
        reported_raw = None if record.inputs is None else record.inputs.balances.get(maker.deployer)
        if reported_raw is None:
            return [f"What its deployer {maker.deployer} did with it is not certain."]
        return [
            f"Its deployer {maker.deployer} holds {percent(record, reported_raw)} now. What else it "
            "received, and where that went, is not certain."
        ]
    sentences = [f"Its deployer {maker.deployer} {_deeds_text(record, summary.deeds)}."]
    if record.unsure_maker is not None:
        sentences.append(
            "It is not certain that this wallet deployed it: the token may be older than its first transfer."
        )
    return sentences + _liquidity_text(record, summary.deeds, summary.shares)


def _liquidity_text(record: HolderRecord, deeds: DeployerDeeds, shares: Shares | None) -> list[str]:
    """A warning where the liquidity that the deployer put into pools is gone."""
    if shares is None or record.bps(deeds.pooled_raw) < _PERCENT_BPS:
        return []
    if record.bps(shares.in_pools_raw) >= _PERCENT_BPS:
        return []
    return [
        f"The deployer put {percent(record, deeds.pooled_raw)} into pools, and almost nothing is in any pool "
        "now: the liquidity was taken out, or all of it was bought."
    ]


def _deeds_text(record: HolderRecord, deeds: DeployerDeeds) -> str:
    received, held = percent(record, deeds.received_raw), percent(record, deeds.held_raw)
    sold, moved = percent(record, deeds.sold_raw), percent(record, deeds.moved_raw)
    outflows = f"{sold} was sold, {moved} moved to others, {percent(record, deeds.pooled_raw)} put into pools"
    if deeds.burned_raw > 0:
        outflows += f", {percent(record, deeds.burned_raw)} burned"
    if deeds.status == "never_held":
        return "never held any of it"
    if deeds.status == "holds_all":
        return f"still holds {held}: all or almost all that ever reached it"
    if deeds.status == "holds_some":
        return f"still holds {held} of the {received} that reached it: {outflows}"
    if deeds.status == "sold_out":
        return f"has sold out: of the {received} that reached it {outflows}"
    nothing_left = f"has nothing left: of the {received} that reached it {outflows}"
    if deeds.status == "burned_out":
        return nothing_left
    if deeds.pooled_raw > deeds.moved_raw:
        return f"{nothing_left}. What was put into pools may be taken out again"
    return f"{nothing_left}. The wallets that have it now may belong to the same person"


# --- the launch ------------------------------------------------------------------------------------


def _snipers_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    if record.launch is None:
        return launch_text(record)
    if not record.launch.buys:
        return [no_buyers_text(record)]
    if not record.launch.is_opening:
        buyers = format_count(len(record.launch.buys) + record.launch.left_out, "wallet")
        bought = percent(record, sum(buy.bought_raw for buy in record.launch.buys))
        return [f"{buyers} bought {bought} in its launch window.", NO_RACE]
    if summary.snipers is None:
        return ["Only its deployer bought in its launch window."]
    count = len(summary.snipers.wallets)
    bought, held = percent(record, summary.snipers.bought_raw), percent(record, summary.snipers.held_raw)
    besides = "Besides its deployer, " if deployer_is_among(record, launch_buyers(record)) else ""
    return [
        f"{besides}{format_count(count, 'wallet')} bought {bought} in its launch window and now "
        f"{'has' if count == 1 else 'have'} {held}; {summary.snipers.sold_out or 'none'} sold everything."
    ]


def launch_buyers(record: HolderRecord) -> list[Address]:
    """Who bought in the launch window; empty also where that is not known."""
    return [] if record.launch is None else [buy.wallet for buy in record.launch.buys]


def deployer_is_among(record: HolderRecord, wallets: Iterable[Address]) -> bool:
    """False also where the deployer is not known."""
    maker = None if record.inputs is None else record.inputs.maker
    return maker is not None and maker.deployer in wallets


def no_buyers_text(record: HolderRecord) -> str:
    """That a launch has no buyers, as far as known."""
    verb = "bought" if record.status == "complete" else "is known to have bought"
    return f"No wallet {verb} in its launch window."


def busy_funder_text(record: HolderRecord) -> list[str]:
    """Launch buyers with a common funder that is too busy to group them."""
    if record.inputs is None or record.launch is None:
        return []
    return [
        f"{format_count(count, 'launch buyer')} share the funder {funder}, which paid over "
        f"{findings.MAX_FUNDED:,} wallets: it may be an exchange, or it may hide a bundle."
        for funder, count in findings.busy_funders(record.inputs, record.launch)[:1]
    ]


def unpaid_text(record: HolderRecord) -> list[str]:
    """How many launch buyers have no known funder wallet: something else funded them."""
    if record.inputs is None or record.launch is None:
        return []
    known = (record.inputs.wallets.get(buy.wallet, findings.UNKNOWN) for buy in record.launch.buys)
    unpaid = sum(1 for wallet in known if wallet.funder is None and wallet.funder_known)
    if not unpaid:
        return []
    return [
        f"No wallet sent {format_count(unpaid, 'launch buyer')} the first eth in a plain transfer. It may "
        "have come from a contract, a bridge or an exchange, which link no wallets."
    ]


def _bundle_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    if summary.bundles is None:
        return [] if record.launch is None else ["Whether its launch was bundled is not known yet."]
    if record.launch is not None and not record.launch.buys:
        return []
    return [*_bundles_text(record, summary.bundles), *busy_funder_text(record)]


def _bundles_text(record: HolderRecord, bundles: tuple[Bundle, ...]) -> list[str]:
    unknown = len(funders_unknown(record))
    if bundles:
        sentences = [bundle_text(record, bundles[0])]
        if len(bundles) > 1:
            sentences.append(f"We found {format_count(len(bundles) - 1, 'more bundle')}.")
        return sentences
    if unknown:
        return [
            f"We found no bundle, but the funders of {format_count(unknown, 'launch buyer')} are not known: "
            "a bundle may be hidden."
        ]
    none_found = (
        "No three launch buyers share a transaction, or a funder that is not an exchange or a contract."
    )
    return [none_found, *unpaid_text(record)]


def bundle_text(record: HolderRecord, bundle: Bundle) -> str:
    """One bundle in a sentence."""
    links = [f"funded by {bundle.funder}"] if bundle.funder else []
    links += ["filled in one transaction"] if bundle.tx_hash else []
    bought, held = percent(record, bundle.bought_raw), percent(record, bundle.held_raw)
    among = ", its deployer among them," if deployer_is_among(record, bundle.wallets) else ""
    return (
        f"{len(bundle.wallets):,} launch buyers{among} are a bundle, {' or '.join(links)}: they bought "
        f"{bought} of the supply and now hold {held}."
    )


def _suspicious_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    inputs = record.full_inputs
    if inputs is None or not summary.suspicious:
        return []
    raw = sum(findings.balance_raw(inputs, wallet) for wallet in summary.suspicious)
    if not raw:
        return []
    buyers = None
    if record.launch is not None and record.launch.buys:
        tied = "bundled launch buyers" if summary.bundles else None
        buyers = "launch buyers" if record.launch.is_opening else tied
    kinds = (
        ["the deployer", buyers, "wallets that the deployer funded or shares a purse with"]
        if inputs.maker
        else [buyers]
    )
    *first, last = [kind for kind in kinds if kind is not None]
    subject = f"{', '.join(first)} and {last}" if first else last
    return [f"{subject[0].upper()}{subject[1:]} hold {percent(record, raw)} together."]


def _purse_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    """What the deployer's wallets hold that a common purse ties to him."""
    own = next((purse for purse in summary.purses or () if purse.has_deployer and purse.held_raw), None)
    if own is None:
        return []
    funder = f" from {own.funder}" if own.funder else ""
    return [
        f"{len(own.wallets):,} wallets, its deployer among them, seem to have one purse{funder}: they hold "
        f"{percent(record, own.held_raw)}."
    ]


# --- winners and the crowd -------------------------------------------------------------------------


def smart_text(record: HolderRecord, summary: HolderFindings, name: str = "it") -> list[str]:
    """How many winners hold it. ``name``: of the token."""
    if summary.smart is None:
        return [f"We could not look up which wallets on the winners list hold {name}."]
    holding, sold_out = len(summary.smart.holding), summary.smart.sold_out
    if not holding and not sold_out:
        if record.status != "complete":
            return [
                f"No wallet on the winners list is known to have bought {name} and to hold it, or to have "
                "sold everything."
            ]
        return [f"No wallet on the winners list bought {name} and holds it, or sold everything again."]
    wallets = format_count(holding, "wallet") if holding else "No wallet"
    verbs = "bought {} and hold it" if holding > 1 else "bought {} and holds it"
    return [f"{wallets} on the winners list {verbs.format(name)}; {sold_out or 'none'} sold everything."]


def _crowd_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    count = len(launches_bought(record, summary))
    if record.crowd is None or not count:
        return []
    launches = record.crowd.deployer_launches
    return [
        f"{count} of the {len(summary.top)} biggest also bought other launches of its deployer, who launched "
        f"{format_count(launches, 'token')} in all."
    ]
