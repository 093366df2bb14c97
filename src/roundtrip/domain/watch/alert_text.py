"""What an alert says, in a sentence. Tokens are their addresses, whole: a symbol is a stranger's text, and
whoever wants an address with the same beginning and end has one made."""

from roundtrip.domain.base.types import Address, plain_decimal

from .alerts import Draft
from .rule_index import AlertSource
from .rules import DECIMALS, WITHOUT_SHARE, Happening, Verb

_DIGITS = 4
_DID: dict[Verb, str] = {
    "buying": "bought{} of {}",
    "selling": "sold{} of {}",
    "launching": "launched {1}, and bought{0} of it at once",
    "graduating": "{1} graduated, with{0} raised",
    "moving": "moved{} of {}",
    "draining": "took{} of the liquidity of {} away",
}
_DID_SO_MUCH: dict[Verb, str] = {
    "buying": "bought {1}",
    "selling": "sold {1}",
    "launching": "launched {1}",
    "graduating": "{1} graduated",
    "moving": "moved {1}",
    "draining": "took liquidity of {1} away",
}
"""Where nobody knows what it was worth."""


def draft_alert(source: AlertSource, happening: Happening) -> Draft:
    """The row of something that happened, for one whose rule or follow it is about, or who holds the
    token."""
    spot = happening.spot
    return Draft(
        account_id=source.account_id,
        kind=source.kind,
        source_id=source.id,
        at_s=spot.at_s,
        said=_said_to(source, happening),
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
    # It stands first in a rule's text, and has no space in it.
    return (source.name or happening.wallet) if source.kind == "follow" else source.name.split(" ", 1)[0]


def _said_to(source: AlertSource, happening: Happening) -> str:
    if source.kind != "bag_guard":
        return describe_happening(happening, source.name if source.kind == "follow" else None)
    worth, share_ppm, token = _worth(happening), happening.share_ppm(), happening.token
    much = worth or "some"
    if happening.verb == "selling":
        what, of_what = f"The deployer of {token}, which you hold, sold {much} of it", "the supply"
    else:
        what = f"{happening.wallet} took {much} of the liquidity of {token}, which you hold, away"
        of_what = "what the pool had"
    if share_ppm is None or worth.endswith("%"):
        return f"{what}."
    return f"{what}: {_round_amount(share_ppm, DECIMALS['%'])}% of {of_what}."


def said_of_verdict(token: Address, then: str, now: str, why: str) -> str:
    """A held token's verdict has changed. ``then``, ``now``: level and code. ``why``: the sentence of the
    check that shows it, with strangers' words in quotes; empty: not known."""
    because = f" {why}" if why else ""
    return f"The verdict on {token}, which you hold, was {then} and is {now} now.{because}"


def describe_happening(happening: Happening, name: str | None = None) -> str:
    """``name``: what the account calls the wallet; None: nothing."""
    # A launch that its deployer bought nothing of, a graduation of a pool that raised nothing.
    of_nothing = happening.eth_wei == 0 and happening.verb in WITHOUT_SHARE
    worth = "" if of_nothing else _worth(happening)
    sentence = (_DID if worth else _DID_SO_MUCH)[happening.verb]
    did = sentence.format(f" {worth}", happening.token)
    if happening.verb == "graduating":
        return f"{did}."
    return f"{name or happening.wallet} {did}."


def said_of_more(name: str, more: int) -> str:
    """``name``: the rule's canonical text, or what the account calls the wallet. ``more``: of that minute."""
    return f"And {more} more in that minute: {name}."


def _worth(happening: Happening) -> str:
    """What it was worth, as far as that is known: in eth, in dollars, as a share."""
    share_ppm = happening.share_ppm()
    if happening.eth_wei is not None:
        return f"{_round_amount(happening.eth_wei, DECIMALS['eth'])} eth"
    if happening.micro_usd is not None:
        return f"{_round_amount(happening.micro_usd, DECIMALS['usd'])} usd"
    return "" if share_ppm is None else f"{_round_amount(share_ppm, DECIMALS['%'])}%"


def _round_amount(raw: int, decimals: int) -> str:
    """At most so many digits that say something; digits before the point stay. Rounded down."""
    cut = max(0, min(len(str(raw)) - _DIGITS, decimals))
    return plain_decimal(raw // 10**cut * 10**cut, decimals)
