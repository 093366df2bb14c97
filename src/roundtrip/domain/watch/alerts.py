"""Alerts of an account, one row each. The sentences of alerts. Tokens are shown by their full addresses: a
symbol is a stranger's text, and an address with the same first and last digits can be made."""

from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.figures import format_amount, format_count, format_eth
from roundtrip.domain.base.types import Address, Numeric, TxHash
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import DECIMALS, WITHOUT_SHARE, Happening, Verb

Kind = Literal["rule", "follow", "bag_guard", "unlock", "service", "test"]
MAX_RULES, MAX_FOLLOWS, MAX_CHANNELS, MAX_WATCHED = 50, 200, 5, 50
"""Of one account."""
MAX_A_MINUTE = 20
"""Rows that one rule, follow or held token raises in a minute of the chain's clock; the account gets the
number of the others."""
MINUTE_S = 60
INBOX_S = 7 * 86_400
"""How long rows are kept."""
BAG = "bag guard"
"""The bag guard's name where rules and follows have names."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A row before it has an id. ``source_id``: the id of the rule, the follow or the channel; for the bag
    guard, ``bag_guard.guard_source_id``. ``who``: the account's name for the wallet, or the rule's ``who``.
    ``at_s``: when it happened. ``rule``: the canonical text. ``said``: the sentence. ``more``: not a fact,
    but the number of alerts that got no row. ``level``: of a changed
    verdict. ``block_number`` and the other fields of a fact are None where the row is about none."""

    account_id: int
    kind: Kind
    source_id: int | None
    at_s: int
    said: str
    verb: str | None = None
    who: str | None = None
    wallet: Address | None = None
    token: Address | None = None
    eth_wei: Numeric | None = None
    micro_usd: Numeric | None = None
    share_ppm: int | None = None
    tx_hash: TxHash | None = None
    block_number: int | None = None
    log_index: int | None = None
    rule: str | None = None
    more: int = 0
    level: str | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """A stored row. ``symbol``: as the token returned it, cut but not cleaned."""

    id: int
    draft: Draft
    retracted: bool = False
    symbol: str | None = None


_SENTENCES: dict[Verb, str] = {
    "buying": "{who} bought {token} for {worth}{share}.",
    "selling": "{who} sold {token} for {worth}{share}.",
    "launching": "{who} launched {token} with a first buy of {worth}.",
    "graduating": "{token} graduated with {worth} raised.",
    "moving": "{who} moved {token} worth {worth}{share}.",
    "draining": "{who} removed liquidity worth {worth} from a pool of {token}{share}.",
    "removing": "{who} removed liquidity worth {worth} from a pool of {token}{share}.",
}
"""``share`` is empty or ", 1.5 % of its supply"."""
_SENTENCES_OF_A_SHARE: dict[Verb, str] = {
    "buying": "{who} bought {share} of {token}.",
    "selling": "{who} sold {share} of {token}.",
    "launching": "{who} launched {token}.",
    "graduating": "{token} graduated.",
    "moving": "{who} moved {share} of {token}.",
    "draining": "{who} removed {share} of a pool of {token}.",
    "removing": "{who} removed {share} of a pool of {token}.",
}
"""Used where the value is unknown. ``share`` is "1.5 % of the supply"."""
_SENTENCES_WITHOUT_FIGURES: dict[Verb, str] = {
    "buying": "{who} bought {token}.",
    "selling": "{who} sold {token}.",
    "launching": "{who} launched {token}.",
    "graduating": "{token} graduated.",
    "moving": "{who} moved {token}.",
    "draining": "{who} removed liquidity from a pool of {token}.",
    "removing": "{who} removed liquidity from a pool of {token}.",
}
"""Used where neither the value nor the share is known."""
_WHOLES: dict[Verb, str] = {"draining": "what the pool had", "removing": "its active liquidity"}
_WHOLES_OF_A_TOKEN: dict[Verb, str] = {"draining": "liquidity", "removing": "active liquidity"}
"""What a share is of; of other verbs, the supply."""


def draft_alert(source: AlertSource, happening: Happening) -> Draft:
    """The alert row of a happening, for an account with a matching rule or follow, or one that holds the
    token."""
    spot = happening.spot
    return Draft(
        account_id=source.account_id,
        kind=source.kind,
        source_id=source.id,
        at_s=spot.at_s,
        said=_alert_text(source, happening),
        verb=happening.verb,
        who=_who(source, happening),
        wallet=happening.wallet,
        token=happening.token,
        eth_wei=happening.eth_wei,
        micro_usd=happening.micro_usd,
        share_ppm=happening.share_ppm(),
        tx_hash=spot.tx_hash,
        block_number=spot.block_number,
        log_index=spot.log_index,
        rule=source.name if source.kind == "rule" else None,
    )


def _who(source: AlertSource, happening: Happening) -> str:
    if source.kind == "bag_guard":
        return "deployer" if happening.verb == "selling" else happening.wallet
    # The first word of a rule's text; it has no space in it.
    return (source.name or happening.wallet) if source.kind == "follow" else source.name.split(" ", 1)[0]


def _alert_text(source: AlertSource, happening: Happening) -> str:
    if source.kind != "bag_guard":
        return describe_happening(happening, source.name if source.kind == "follow" else None)
    worth, share, token = _worth(happening), _share(happening), happening.token
    if happening.verb == "selling":
        sold = f"{share} of the supply" if share else "some of it"
        return f"The deployer of {token}, which you hold, sold {sold}{f' for {worth}' if worth else ''}."
    of_pool = f", {share} of what the pool had" if share else ""
    liquidity = f"liquidity worth {worth}" if worth else "liquidity"
    return f"{happening.wallet} removed {liquidity} from a pool of {token}, which you hold{of_pool}."


def verdict_change_text(token: Address, old: str, new: str, why: str, is_held: bool = True) -> str:
    """The verdict on a held or watched token has changed. ``old``, ``new``: level and code; ``old`` empty: no
    check came before. ``why``: the sentence of the check that shows it, with strangers' words in quotes;
    empty: unknown."""
    because = f" {why}" if why else ""
    verb = "hold" if is_held else "watch"
    change = f"its verdict changed from {old} to {new}" if old else f"its first checks say {new}"
    return f"You {verb} {token}: {change}.{because}"


def describe_happening(happening: Happening, name: str | None = None) -> str:
    """One sentence: who did what, for how much. ``name``: the account's name for the wallet; None: it has
    none."""
    has_share = happening.verb not in WITHOUT_SHARE
    # Skips the figure for a launch without a first buy, and for a graduation that raised nothing.
    worth = "" if happening.eth_wei == 0 and not has_share else _worth(happening)
    share = _share(happening) if has_share else ""
    who, token = name or happening.wallet, happening.token
    if worth:
        whole = _WHOLES.get(happening.verb, "its supply")
        of_whole = f", {share} of {whole}" if share else ""
        return _SENTENCES[happening.verb].format(who=who, token=token, worth=worth, share=of_whole)
    templates = _SENTENCES_OF_A_SHARE if share else _SENTENCES_WITHOUT_FIGURES
    of_whole = f"{share} of the {_WHOLES_OF_A_TOKEN.get(happening.verb, 'supply')}"
    return templates[happening.verb].format(who=who, token=token, share=of_whole)


def more_alerts_text(name: str, more: int) -> str:
    """``name``: the rule's canonical text, or the account's name for the wallet. ``more``: alerts of that
    minute that got no row."""
    return f"{format_count(more, 'more alert')} in that minute, not listed: {name}."


def _worth(happening: Happening) -> str:
    """The value in eth, else in dollars; empty: unknown."""
    if happening.eth_wei is not None:
        return format_eth(happening.eth_wei)
    if happening.micro_usd is not None:
        return f"{format_amount(happening.micro_usd, DECIMALS['usd'])} usd"
    return ""


def _share(happening: Happening) -> str:
    """The percentage of the supply, or of the pool's liquidity; empty: unknown or too small to show."""
    share_ppm = happening.share_ppm()
    return f"{format_amount(share_ppm, DECIMALS['%'])} %" if share_ppm else ""
