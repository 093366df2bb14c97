"""The sentences of alerts. Tokens are shown by their full addresses: a symbol is a stranger's text, and an
address with the same first and last digits can be made."""

from roundtrip.domain.base.types import Address, plain_decimal

from .alerts import Draft
from .rule_index import AlertSource
from .rules import DECIMALS, WITHOUT_SHARE, Happening, Verb

_DIGITS = 4
_SENTENCES: dict[Verb, str] = {
    "buying": "bought{} of {}",
    "selling": "sold{} of {}",
    "launching": "launched {1}, and bought{0} of it at once",
    "graduating": "{1} graduated, with{0} raised",
    "moving": "moved{} of {}",
    "draining": "took{} of the liquidity of {} away",
}
_SENTENCES_WITHOUT_AMOUNT: dict[Verb, str] = {
    "buying": "bought {1}",
    "selling": "sold {1}",
    "launching": "launched {1}",
    "graduating": "{1} graduated",
    "moving": "moved {1}",
    "draining": "took liquidity of {1} away",
}
"""Used where the value is unknown."""


def draft_alert(source: AlertSource, happening: Happening) -> Draft:
    """The alert row of a happening, for an account whose rule or follow it matches, or that holds the
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
    worth, share_ppm, token = _worth(happening), happening.share_ppm(), happening.token
    amount = worth or "some"
    if happening.verb == "selling":
        sentence, whole = f"The deployer of {token}, which you hold, sold {amount} of it", "the supply"
    else:
        sentence = f"{happening.wallet} took {amount} of the liquidity of {token}, which you hold, away"
        whole = "what the pool had"
    if share_ppm is None or worth.endswith("%"):
        return f"{sentence}."
    return f"{sentence}: {_round_amount(share_ppm, DECIMALS['%'])}% of {whole}."


def verdict_change_text(token: Address, old: str, new: str, why: str) -> str:
    """A held token's verdict has changed. ``old``, ``new``: level and code. ``why``: the sentence of the
    check that shows it, with strangers' words in quotes; empty: unknown."""
    because = f" {why}" if why else ""
    return f"The verdict on {token}, which you hold, was {old} and is {new} now.{because}"


def describe_happening(happening: Happening, name: str | None = None) -> str:
    """``name``: the account's name for the wallet; None: it has none."""
    # A launch whose deployer bought nothing, a graduation of a pool that raised nothing.
    is_zero = happening.eth_wei == 0 and happening.verb in WITHOUT_SHARE
    worth = "" if is_zero else _worth(happening)
    template = (_SENTENCES if worth else _SENTENCES_WITHOUT_AMOUNT)[happening.verb]
    sentence = template.format(f" {worth}", happening.token)
    if happening.verb == "graduating":
        return f"{sentence}."
    return f"{name or happening.wallet} {sentence}."


def more_alerts_text(name: str, more: int) -> str:
    """``name``: the rule's canonical text, or the account's name for the wallet. ``more``: alerts of that
    minute that were left out."""
    return f"And {more} more in that minute: {name}."


def _worth(happening: Happening) -> str:
    """The value, as far as it is known: in eth, in dollars, as a share."""
    share_ppm = happening.share_ppm()
    if happening.eth_wei is not None:
        return f"{_round_amount(happening.eth_wei, DECIMALS['eth'])} eth"
    if happening.micro_usd is not None:
        return f"{_round_amount(happening.micro_usd, DECIMALS['usd'])} usd"
    return "" if share_ppm is None else f"{_round_amount(share_ppm, DECIMALS['%'])}%"


def _round_amount(raw: int, decimals: int) -> str:
    """Keeps at most ``_DIGITS`` significant digits; digits before the point stay. Rounded down."""
    cut = max(0, min(len(str(raw)) - _DIGITS, decimals))
    return plain_decimal(raw // 10**cut * 10**cut, decimals)
