"""Who holds a token, in plain sentences: what to beware of first."""

from roundtrip.domain.base.types import BPS, plain_decimal
from roundtrip.domain.holders import findings
from roundtrip.domain.holders.deployer_summary import DeployerDeeds
from roundtrip.domain.holders.findings import Bundle, Shares
from roundtrip.services.support.index_reader import quote_token
from roundtrip.services.wallets.names import scam_text
from roundtrip.store.index.tokens import Label

from .findings import HolderFindings, HolderRecord, Why, funders_unknown, repeats

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


def token_text(gathered: HolderRecord) -> str:
    """The token in a sentence: its symbol in quotes, which it cannot end, and its address."""
    return quote_token(Label(gathered.token, gathered.symbol, None, None, None))


def percent(gathered: HolderRecord, raw: int) -> str:
    """Of the supply, never rounded up, and no "0 %" for what is there; a token that says it has no supply has
    no shares."""
    if raw > 0 and gathered.supply_raw <= 0:
        return "an unknown share"
    bps = gathered.bps(raw)
    return f"{plain_decimal(bps, 2)} %" if bps or raw <= 0 else "under 0.01 %"


def status_text(gathered: HolderRecord) -> list[str]:
    """Why it is not all; nothing where it is."""
    if gathered.status == "reading":
        return [
            f"{token_text(gathered)} is a busy token: {gathered.transfers_read:,} of its transfers are read "
            "so far, and only its launch is told yet. Ask again in half a minute."
        ]
    if gathered.status == "partial":
        return ["This is not all there is, and counts are a floor.", *(WHY_TEXT[why] for why in gathered.why)]
    return []


def text_of(gathered: HolderRecord, found: HolderFindings) -> str:
    """Plain sentences, one after the other."""
    said = status_text(gathered)
    if gathered.read is None:
        return " ".join([*said, *launch_text(gathered), *_bundle_text(gathered, found)])
    said += [*_holders_text(gathered, found), *_scam_text(gathered, found), *_deployer_text(gathered, found)]
    said += [*_snipers_text(gathered, found), *_bundle_text(gathered, found)]
    return " ".join(
        [
            *said,
            *_suspicious_text(gathered, found),
            *smart_text(gathered, found),
            *_crowd_text(gathered, found),
        ]
    )


def launch_text(gathered: HolderRecord) -> list[str]:
    """Where the launch was, or that none was found, so far."""
    if gathered.launch is None and gathered.status == "reading":
        return ["Its launch is not known yet."]
    if gathered.launch is None:
        return ["Its launch was not found: who bought first is not known."]
    return [f"It was launched in block {gathered.launch.block_number}."]


def _holders_text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    shares = found.shares
    if shares is None:
        return []
    least = "At least " if gathered.status == "partial" else ""
    count = "1 wallet holds" if shares.wallets == 1 else f"{shares.wallets:,} wallets hold"
    biggest = "the biggest has" if len(found.top) == 1 else f"the {len(found.top)} biggest have"
    whose = f"{least}{count} {token_text(gathered)}: {biggest} {percent(gathered, shares.top_raw)} of all, "
    if not found.top:
        whose = f"No wallet {'is known to hold' if least else 'holds'} {token_text(gathered)}: "
    said = [
        f"{whose}{percent(gathered, shares.in_pools_raw)} lies in pools, "
        f"{percent(gathered, shares.burned_raw)} is burned."
    ]
    said += [*_of_the_rest(gathered, shares), *_beside_text(gathered, shares), *_own_deeds_text(gathered)]
    return said + _ages_text(found)


def _scam_text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    """Which of the biggest, and whether the deployer, enough people mark as a scam."""
    whose = {one.address: f"{one.address}, one of the biggest," for one in found.top}
    if gathered.maker is not None:
        whose[gathered.maker.deployer] = f"Its deployer {gathered.maker.deployer}"
    return [scam_text(who, gathered.scams[one]) for one, who in whose.items() if one in gathered.scams]


def _ages_text(found: HolderFindings) -> list[str]:
    """How many of the biggest were made for it, and of how many that is known."""
    if found.top and not found.aged_in_top:
        return ["How old the biggest wallets are is not known."]
    unknown = len(found.top) - found.aged_in_top
    if found.fresh_in_top:
        known = f" of {found.aged_in_top} whose age is known" if unknown else ""
        were = "was" if found.fresh_in_top == 1 else "were"
        return [
            f"Of the biggest {found.fresh_in_top}{known} {were} made within three days before the first buy."
        ]
    return [f"How old {unknown} of the {len(found.top)} biggest are is not known."] if unknown else []


def _of_the_rest(gathered: HolderRecord, shares: Shares) -> list[str]:
    """Where most is burned every share of all looks small."""
    rest_raw = gathered.supply_raw - shares.burned_raw - shares.in_pools_raw
    if shares.burned_raw * 2 < gathered.supply_raw or rest_raw <= 0 or shares.top_raw <= 0:
        return []
    part = plain_decimal(min(BPS, shares.top_raw * BPS // rest_raw), 2)
    return [f"Of what is neither burned nor in pools the biggest have {part} %."]


def _beside_text(gathered: HolderRecord, shares: Shares) -> list[str]:
    if gathered.bps(shares.beside_raw) < _PERCENT_BPS:
        return []
    return [
        f"{percent(gathered, shares.beside_raw)} lies at the token itself or in routers, lockers and the "
        "launchpad's machinery."
    ]


def _own_deeds_text(gathered: HolderRecord) -> list[str]:
    """What the token itself did, past every hand."""
    if gathered.told is None:
        return []
    book, said = gathered.told.book, []
    if gathered.bps(book.minted_into_pools_raw) >= _PERCENT_BPS:
        minted = percent(gathered, book.minted_into_pools_raw)
        said.append(
            f"{minted} was minted straight into pools after the token was made: whoever can do so can take "
            "what they hold."
        )
    if gathered.bps(book.sold_by_token_raw) >= _PERCENT_BPS:
        said.append(f"{percent(gathered, book.sold_by_token_raw)} was sold by the token itself.")
    return said


# --- the deployer ----------------------------------------------------------------------------------


def _deployer_text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    maker = gathered.maker
    if maker is None:
        return ["Who deployed it is not known."]
    if found.deeds is None and gathered.unsure_maker is not None:
        return [
            f"Who deployed it is not known for sure: {maker.deployer} sent the transaction of its first "
            "transfer, and it may be older than that."
        ]
    if found.deeds is None:
        return [f"What its deployer {maker.deployer} did with it is not known for sure."]
    said = [f"Its deployer {maker.deployer} {_deeds_text(gathered, found.deeds)}."]
    if gathered.unsure_maker is not None:
        said.append(
            "That it was deployed by this wallet is not known for sure: it may be older than its first "
            "transfer."
        )
    return said + _pulled_text(gathered, found.deeds, found.shares)


def _pulled_text(gathered: HolderRecord, deeds: DeployerDeeds, shares: Shares | None) -> list[str]:
    """That what he put into pools is no longer there."""
    if shares is None or gathered.bps(deeds.pooled_raw) < _PERCENT_BPS:
        return []
    if gathered.bps(shares.in_pools_raw) >= _PERCENT_BPS:
        return []
    return [
        f"Of the {percent(gathered, deeds.pooled_raw)} that it put into pools next to nothing lies in any "
        "now: the liquidity was taken out, or all of it was bought."
    ]


def _deeds_text(gathered: HolderRecord, deeds: DeployerDeeds) -> str:
    received, held = percent(gathered, deeds.received_raw), percent(gathered, deeds.held_raw)
    sold, moved = percent(gathered, deeds.sold_raw), percent(gathered, deeds.moved_raw)
    went = f"{sold} was sold, {moved} moved to others, {percent(gathered, deeds.pooled_raw)} put into pools"
    if deeds.burned_raw > 0:
        went += f", {percent(gathered, deeds.burned_raw)} burned"
    if deeds.status == "never_held":
        return "never held any"
    if deeds.status == "holds_all":
        return f"still holds {held}, as good as all that ever reached it"
    if deeds.status == "holds_some":
        return f"still holds {held} of the {received} that reached it; {went}"
    if deeds.status == "sold_out":
        return f"has sold out: of the {received} that reached it {went}"
    told = f"has nothing left: of the {received} that reached it {went}"
    if deeds.status == "burned_out":
        return told
    if deeds.pooled_raw > deeds.moved_raw:
        return f"{told}; who put it there may take it out again"
    return f"{told}; who has it now may be the same person"


# --- the launch ------------------------------------------------------------------------------------


def _snipers_text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    if gathered.launch is None:
        return launch_text(gathered)
    if not gathered.launch.buys:
        return [nobody_text(gathered)]
    if found.snipers is None:
        return ["Nobody else than its deployer bought in its launch window."]
    count = len(found.snipers.wallets)
    wallets = "1 wallet" if count == 1 else f"{count:,} wallets"
    bought, held = percent(gathered, found.snipers.bought_raw), percent(gathered, found.snipers.held_raw)
    return [
        f"In its launch window {wallets} bought {bought} and now {'has' if count == 1 else 'have'} {held}; "
        f"{found.snipers.sold_out or 'none'} sold out."
    ]


def nobody_text(gathered: HolderRecord) -> str:
    """Of a launch without buyers: where something is missing they may be in that."""
    had = "bought" if gathered.status == "complete" else "is known to have bought"
    return f"Nobody {had} in its launch window."


def crowded_text(gathered: HolderRecord) -> list[str]:
    """Who shares a funder that groups nobody for having paid so many."""
    if gathered.told is None or gathered.launch is None:
        return []
    return [
        f"{count} launch buyers share a funder that paid over {findings.MOST_FUNDED} wallets, {funder}: an "
        "exchange, or somebody who hides a bundle so."
        for funder, count in findings.busy_funders(gathered.told, gathered.launch)[:1]
    ]


def unpaid_text(gathered: HolderRecord) -> list[str]:
    """How many launch buyers no wallet paid, as far as known: something did."""
    if gathered.told is None or gathered.launch is None:
        return []
    known = (gathered.told.wallets.get(buy.wallet, findings.UNKNOWN) for buy in gathered.launch.buys)
    unpaid = sum(1 for one in known if one.funder is None and one.funder_known)
    if not unpaid:
        return []
    return [
        f"No wallet paid {unpaid:,} of the launch buyers their first eth in a plain transfer: it may have "
        "come from a contract, a bridge or an exchange, and these tie nobody."
    ]


def _bundle_text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    if found.bundles is None:
        return [] if gathered.launch is None else ["Whether its launch was bundled is not known yet."]
    if gathered.launch is not None and not gathered.launch.buys:
        return []
    return [*_bundles_text(gathered, found.bundles), *crowded_text(gathered)]


def _bundles_text(gathered: HolderRecord, bundles: tuple[Bundle, ...]) -> list[str]:
    unknown = len(funders_unknown(gathered))
    if bundles:
        more = len(bundles) - 1
        others = f" {more} more like that {'was' if more == 1 else 'were'} found." if more else ""
        return [bundle_text(gathered, bundles[0]) + others]
    if unknown:
        return [
            f"No bundle was found, but who funded {unknown} of the launch buyers is not known: one may be "
            "hidden."
        ]
    said = "No three launch buyers share a transaction, or a funder that is no exchange or contract."
    return [said, *unpaid_text(gathered)]


def bundle_text(gathered: HolderRecord, bundle: Bundle) -> str:
    """One bundle in a sentence."""
    links = [f"paid by {bundle.funder}"] if bundle.funder else []
    links += ["filled in one transaction"] if bundle.tx_hash else []
    bought, held = percent(gathered, bundle.bought_raw), percent(gathered, bundle.held_raw)
    return (
        f"{len(bundle.wallets)} launch buyers are a bundle, {' or '.join(links)}: they bought {bought} and "
        f"now have {held}."
    )


def _suspicious_text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    told = gathered.read
    if told is None or not found.suspicious:
        return []
    raw = sum(findings.balance_raw(told, wallet) for wallet in found.suspicious)
    if not raw:
        return []
    buyers = "launch buyers" if gathered.launch and gathered.launch.buys else None
    kinds = ["deployer", buyers, "whom the deployer funded"] if told.maker else [buyers]
    *first, last = [kind for kind in kinds if kind is not None]
    who = f"{', '.join(first)} and {last}" if first else last
    return [f"{who[0].upper()}{who[1:]} hold {percent(gathered, raw)} in all."]


# --- winners and the crowd -------------------------------------------------------------------------


def smart_text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    """How many winners hold it."""
    if found.smart is None:
        return ["Which wallets of the winners list hold it could not be looked up."]
    holding, sold_out = len(found.smart.holding), found.smart.sold_out
    if not holding and not sold_out:
        if gathered.status != "complete":
            return ["No wallet of the winners list is known to hold what it bought, or to have sold it all."]
        return ["No wallet of the winners list bought it and holds it, or sold out of it."]
    hold = (
        "1 wallet of the winners list bought it and holds"
        if holding == 1
        else f"{holding or 'No'} wallets of the winners list bought it and hold"
    )
    return [f"{hold} it; {sold_out or 'none'} sold out of it."]


def _crowd_text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    again = len(repeats(gathered, found))
    if gathered.crowd is None or not again:
        return []
    launches = gathered.crowd.deployer_launches
    return [
        f"{again} of the {len(found.top)} biggest bought other launches of its deployer, too, who launched "
        f"{launches:,} token{'' if launches == 1 else 's'} in all."
    ]
