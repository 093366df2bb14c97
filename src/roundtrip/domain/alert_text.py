"""What an alert says, in a sentence. Tokens are their addresses: a symbol is a stranger's text."""

from .alerts import Draft
from .rule_index import Source
from .rules import DECIMALS, WITHOUT_SHARE, Happening, Verb
from .types import Address, plain_decimal

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


def told(source: Source, happening: Happening) -> Draft:
    """The row of something that happened, for one whose rule or follow it is about."""
    follows, spot = source.kind == "follow", happening.spot
    return Draft(
        mite_id=source.mite_id,
        kind=source.kind,
        source_id=source.id,
        at_s=spot.at_s,
        said=said(happening, source.name if follows else None),
        verb=happening.verb,
        # It stands first in a rule's text, and has no space in it.
        who=(source.name or happening.wallet) if follows else source.name.split(" ", 1)[0],
        wallet=happening.wallet,
        token=happening.token,
        eth_wei=happening.eth_wei,
        micro_usd=happening.micro_usd,
        share_ppm=happening.share_ppm(),
        tx_hash=spot.tx_hash,
        block_number=spot.block_number,
        log_index=spot.log_index,
        rule=None if follows else source.name,
    )


def said(happening: Happening, name: str | None = None) -> str:
    """``name``: what the mite calls the wallet; None: nothing."""
    # A launch that its deployer bought nothing of, a graduation of a pool that raised nothing.
    of_nothing = happening.eth_wei == 0 and happening.verb in WITHOUT_SHARE
    worth = "" if of_nothing else _worth(happening)
    sentence = (_DID if worth else _DID_SO_MUCH)[happening.verb]
    did = sentence.format(f" {worth}", short(happening.token))
    if happening.verb == "graduating":
        return f"{did}."
    return f"{name or short(happening.wallet)} {did}."


def said_of_more(name: str, more: int) -> str:
    """``name``: the rule's canonical text, or what the mite calls the wallet. ``more``: of that minute."""
    return f"And {more} more in that minute: {name}."


def short(address: Address) -> str:
    """Enough of an address for a person to know it again."""
    return f"{address[:6]}…{address[-4:]}"


def _worth(happening: Happening) -> str:
    """What it was worth, as far as that is known: in eth, in dollars, as a share."""
    share_ppm = happening.share_ppm()
    if happening.eth_wei is not None:
        return f"{_rounded(happening.eth_wei, DECIMALS['eth'])} eth"
    if happening.micro_usd is not None:
        return f"{_rounded(happening.micro_usd, DECIMALS['usd'])} usd"
    return "" if share_ppm is None else f"{_rounded(share_ppm, DECIMALS['%'])}%"


def _rounded(raw: int, decimals: int) -> str:
    """At most so many digits that say something; digits before the point stay. Rounded down."""
    cut = max(0, min(len(str(raw)) - _DIGITS, decimals))
    return plain_decimal(raw // 10**cut * 10**cut, decimals)
