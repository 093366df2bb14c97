"""Formats who holds a token as plain sentences, warnings first."""

from roundtrip.domain.base.types import BPS, plain_decimal
from roundtrip.domain.holders import findings
from roundtrip.domain.holders.deployer_summary import DeployerDeeds
from roundtrip.domain.holders.findings import Bundle, Shares
from roundtrip.services.support.index_reader import quote_token
from roundtrip.services.wallets.names import scam_text
from roundtrip.store.index.tokens import Label

from .findings import HolderFindings, HolderRecord, Why, funders_unknown, launches_bought

_PERCENT_BPS = BPS // 100

WHY_TEXT: dict[Why, str] = {
    "drifts": "Its transfers do not add up to what it tells: what wallets got, sold and moved may be more "
    "than is told, and the biggest holders are by what it says of them.",
    "pruned": "The node no longer has its oldest transfers: who had it only then is missing.",
    "capped": "It has more transfers than are read: what is missing is not known.",
    "venues_unread": "Not all of its pools could be read: some buys and sells may be told as moves.",
    "claims": "Some of it was bought and left in the v4 manager, as claims or liquidity whose owners no "
    "transfer tells: they are not among its holders, buyers or sellers.",
    "unverified": "What its transfers add up to could not be held against the balances that it tells.",
}


def token_text(record: HolderRecord) -> str:
    """The token in a sentence: its symbol in quotes, escaped so that it cannot end them, and its address."""
    return quote_token(Label(record.token, record.symbol, None, None, None))


def percent(record: HolderRecord, raw: int) -> str:
    """A percentage of the supply, never rounded up, and "under 0.01 %" instead of "0 %" for an amount above
    zero; "an unknown share" if the token reports no supply."""
    if raw > 0 and record.supply_raw <= 0:
        return "an unknown share"
    bps = record.bps(raw)
    return f"{plain_decimal(bps, 2)} %" if bps or raw <= 0 else "under 0.01 %"


def status_text(record: HolderRecord) -> list[str]:
    """Why the answer is not complete; empty if it is."""
    if record.status == "reading":
        return [
            f"{token_text(record)} is a busy token: {record.transfers_read:,} of its transfers are read "
            "so far, and only its launch is told yet. Ask again in half a minute."
        ]
    if record.status == "partial":
        return ["This is not all there is, and counts are a floor.", *(WHY_TEXT[why] for why in record.why)]
    return []


def text_of(record: HolderRecord, summary: HolderFindings) -> str:
    """The text of the token_holders answer."""
    sentences = status_text(record)
    if record.full_inputs is None:
        return " ".join([*sentences, *launch_text(record), *_bundle_text(record, summary)])
    sentences += [
        *_holders_text(record, summary),
        *_scam_text(record, summary),
        *_deployer_text(record, summary),
    ]
    sentences += [*_snipers_text(record, summary), *_bundle_text(record, summary)]
    return " ".join(
        [
            *sentences,
            *_suspicious_text(record, summary),
            *smart_text(record, summary),
            *_crowd_text(record, summary),
        ]
    )


def launch_text(record: HolderRecord) -> list[str]:
    """The launch block, or that no launch was found so far."""
    if record.launch is None and record.status == "reading":
        return ["Its launch is not known yet."]
    if record.launch is None:
        return ["Its launch was not found: who bought first is not known."]
    return [f"It was launched in block {record.launch.block_number}."]


def _holders_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    shares = summary.shares
    if shares is None:
        return []
    floor = "At least " if record.status == "partial" else ""
    count = "1 wallet holds" if shares.wallets == 1 else f"{shares.wallets:,} wallets hold"
    biggest = "the biggest has" if len(summary.top) == 1 else f"the {len(summary.top)} biggest have"
    holders = f"{floor}{count} {token_text(record)}: {biggest} {percent(record, shares.top_raw)} of all, "
    if not summary.top:
        holders = f"No wallet {'is known to hold' if floor else 'holds'} {token_text(record)}: "
    sentences = [
        f"{holders}{percent(record, shares.in_pools_raw)} lies in pools, "
        f"{percent(record, shares.burned_raw)} is burned."
    ]
    sentences += [*_rest_text(record, shares), *_beside_text(record, shares), *_token_deeds_text(record)]
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
    """How many of the biggest holders were made for this token, and of how many the age is known."""
    if summary.top and not summary.aged_in_top:
        return ["How old the biggest wallets are is not known."]
    unknown = len(summary.top) - summary.aged_in_top
    if summary.fresh_in_top:
        known = f" of {summary.aged_in_top} whose age is known" if unknown else ""
        were = "was" if summary.fresh_in_top == 1 else "were"
        return [
            f"Of the biggest {summary.fresh_in_top}{known} {were} made within three days before the first "
            "buy."
        ]
    return [f"How old {unknown} of the {len(summary.top)} biggest are is not known."] if unknown else []


def _rest_text(record: HolderRecord, shares: Shares) -> list[str]:
    """The share of what is neither burned nor in pools: if most is burned, every share of the supply looks
    small."""
    rest_raw = record.supply_raw - shares.burned_raw - shares.in_pools_raw
    if shares.burned_raw * 2 < record.supply_raw or rest_raw <= 0 or shares.top_raw <= 0:
        return []
    part = plain_decimal(min(BPS, shares.top_raw * BPS // rest_raw), 2)
    return [f"Of what is neither burned nor in pools the biggest have {part} %."]


def _beside_text(record: HolderRecord, shares: Shares) -> list[str]:
    if record.bps(shares.beside_raw) < _PERCENT_BPS:
        return []
    return [
        f"{percent(record, shares.beside_raw)} lies at the token itself or in routers, lockers and the "
        "launchpad's machinery."
    ]


def _token_deeds_text(record: HolderRecord) -> list[str]:
    """What the token contract itself did."""
    if record.inputs is None:
        return []
    book, sentences = record.inputs.book, []
    if record.bps(book.minted_into_pools_raw) >= _PERCENT_BPS:
        minted = percent(record, book.minted_into_pools_raw)
        sentences.append(
            f"{minted} was minted straight into pools after the token was made: whoever can do so can take "
            "what they hold."
        )
    if record.bps(book.sold_by_token_raw) >= _PERCENT_BPS:
        sentences.append(f"{percent(record, book.sold_by_token_raw)} was sold by the token itself.")
    return sentences


# --- the deployer ----------------------------------------------------------------------------------


def _deployer_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    maker = record.maker
    if maker is None:
        return ["Who deployed it is not known."]
    if summary.deeds is None and record.unsure_maker is not None:
        return [
            f"Who deployed it is not known for sure: {maker.deployer} sent the transaction of its first "
            "transfer, and it may be older than that."
        ]
    if summary.deeds is None:
        return [f"What its deployer {maker.deployer} did with it is not known for sure."]
    sentences = [f"Its deployer {maker.deployer} {_deeds_text(record, summary.deeds)}."]
    if record.unsure_maker is not None:
        sentences.append(
            "That it was deployed by this wallet is not known for sure: it may be older than its first "
            "transfer."
        )
    return sentences + _liquidity_text(record, summary.deeds, summary.shares)


def _liquidity_text(record: HolderRecord, deeds: DeployerDeeds, shares: Shares | None) -> list[str]:
    """That the liquidity which the deployer put into pools is gone."""
    if shares is None or record.bps(deeds.pooled_raw) < _PERCENT_BPS:
        return []
    if record.bps(shares.in_pools_raw) >= _PERCENT_BPS:
        return []
    return [
        f"Of the {percent(record, deeds.pooled_raw)} that it put into pools next to nothing lies in any "
        "now: the liquidity was taken out, or all of it was bought."
    ]


def _deeds_text(record: HolderRecord, deeds: DeployerDeeds) -> str:
    received, held = percent(record, deeds.received_raw), percent(record, deeds.held_raw)
    sold, moved = percent(record, deeds.sold_raw), percent(record, deeds.moved_raw)
    outflows = f"{sold} was sold, {moved} moved to others, {percent(record, deeds.pooled_raw)} put into pools"
    if deeds.burned_raw > 0:
        outflows += f", {percent(record, deeds.burned_raw)} burned"
    if deeds.status == "never_held":
        return "never held any"
    if deeds.status == "holds_all":
        return f"still holds {held}, as good as all that ever reached it"
    if deeds.status == "holds_some":
        return f"still holds {held} of the {received} that reached it; {outflows}"
    if deeds.status == "sold_out":
        return f"has sold out: of the {received} that reached it {outflows}"
    nothing_left = f"has nothing left: of the {received} that reached it {outflows}"
    if deeds.status == "burned_out":
        return nothing_left
    if deeds.pooled_raw > deeds.moved_raw:
        return f"{nothing_left}; who put it there may take it out again"
    return f"{nothing_left}; who has it now may be the same person"


# --- the launch ------------------------------------------------------------------------------------


def _snipers_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    if record.launch is None:
        return launch_text(record)
    if not record.launch.buys:
        return [no_buyers_text(record)]
    if summary.snipers is None:
        return ["Nobody else than its deployer bought in its launch window."]
    count = len(summary.snipers.wallets)
    wallets = "1 wallet" if count == 1 else f"{count:,} wallets"
    bought, held = percent(record, summary.snipers.bought_raw), percent(record, summary.snipers.held_raw)
    return [
        f"In its launch window {wallets} bought {bought} and now {'has' if count == 1 else 'have'} {held}; "
        f"{summary.snipers.sold_out or 'none'} sold out."
    ]


def no_buyers_text(record: HolderRecord) -> str:
    """That a launch has no buyers, as far as known."""
    verb = "bought" if record.status == "complete" else "is known to have bought"
    return f"Nobody {verb} in its launch window."


def busy_funder_text(record: HolderRecord) -> list[str]:
    """Launch buyers with a common funder that is too busy to group them."""
    if record.inputs is None or record.launch is None:
        return []
    return [
        f"{count} launch buyers share a funder that paid over {findings.MOST_FUNDED} wallets, {funder}: an "
        "exchange, or somebody who hides a bundle so."
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
        f"No wallet paid {unpaid:,} of the launch buyers their first eth in a plain transfer: it may have "
        "come from a contract, a bridge or an exchange, and these tie nobody."
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
        others_count = len(bundles) - 1
        others = (
            f" {others_count} more like that {'was' if others_count == 1 else 'were'} found."
            if others_count
            else ""
        )
        return [bundle_text(record, bundles[0]) + others]
    if unknown:
        return [
            f"No bundle was found, but who funded {unknown} of the launch buyers is not known: one may be "
            "hidden."
        ]
    none_found = "No three launch buyers share a transaction, or a funder that is no exchange or contract."
    return [none_found, *unpaid_text(record)]


def bundle_text(record: HolderRecord, bundle: Bundle) -> str:
    """One bundle in a sentence."""
    links = [f"paid by {bundle.funder}"] if bundle.funder else []
    links += ["filled in one transaction"] if bundle.tx_hash else []
    bought, held = percent(record, bundle.bought_raw), percent(record, bundle.held_raw)
    return (
        f"{len(bundle.wallets)} launch buyers are a bundle, {' or '.join(links)}: they bought {bought} and "
        f"now have {held}."
    )


def _suspicious_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    inputs = record.full_inputs
    if inputs is None or not summary.suspicious:
        return []
    raw = sum(findings.balance_raw(inputs, wallet) for wallet in summary.suspicious)
    if not raw:
        return []
    buyers = "launch buyers" if record.launch and record.launch.buys else None
    kinds = ["deployer", buyers, "whom the deployer funded"] if inputs.maker else [buyers]
    *first, last = [kind for kind in kinds if kind is not None]
    subject = f"{', '.join(first)} and {last}" if first else last
    return [f"{subject[0].upper()}{subject[1:]} hold {percent(record, raw)} in all."]


# --- winners and the crowd -------------------------------------------------------------------------


def smart_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    """How many winners hold it."""
    if summary.smart is None:
        return ["Which wallets of the winners list hold it could not be looked up."]
    holding, sold_out = len(summary.smart.holding), summary.smart.sold_out
    if not holding and not sold_out:
        if record.status != "complete":
            return ["No wallet of the winners list is known to hold what it bought, or to have sold it all."]
        return ["No wallet of the winners list bought it and holds it, or sold out of it."]
    hold = (
        "1 wallet of the winners list bought it and holds"
        if holding == 1
        else f"{holding or 'No'} wallets of the winners list bought it and hold"
    )
    return [f"{hold} it; {sold_out or 'none'} sold out of it."]


def _crowd_text(record: HolderRecord, summary: HolderFindings) -> list[str]:
    count = len(launches_bought(record, summary))
    if record.crowd is None or not count:
        return []
    launches = record.crowd.deployer_launches
    return [
        f"{count} of the {len(summary.top)} biggest bought other launches of its deployer, too, who launched "
        f"{launches:,} token{'' if launches == 1 else 's'} in all."
    ]
