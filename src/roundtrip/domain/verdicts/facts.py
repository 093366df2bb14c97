"""What to know of a token before buying it: a line each, with a sign. What is not known is never good."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from roundtrip.domain.base.figures import format_count, format_duration, format_percent
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.outlook import Prospect
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.market.exposure import INSIDERS_HIGH_BPS, INSIDERS_MINDED_BPS, LeavingLiquidity

from .deciding import DecidingFigure
from .risks import MARKED_LOSS_BPS, MUCH_FREE_BPS, YOUNG_S
from .words import is_tradable

MAX_FACTS = 5
"""Facts that a page lists: the worst."""
TOP10_BOUNDS_BPS = 3000, 5000
"""The share of the supply, held by the ten biggest wallets, from which this is a warning, and from which it
is bad."""
_NEARLY_ALL_BPS = 9900

Sign = Literal["bad", "mind", "good"]
_WORST_FIRST: tuple[Sign, ...] = ("bad", "mind", "good")


class TokenFact(NamedTuple):
    """One line. ``bad``: a danger. ``mind``: a warning, or not known. ``good``: it was measured and speaks
    for the token. ``part``: the id of the page's part that says more; empty: none does."""

    sign: Sign
    text: str
    part: str = ""


def sort_facts(facts: Iterable[TokenFact]) -> list[TokenFact]:
    """The worst first; equal ones as they came."""
    return sorted(facts, key=lambda fact: _WORST_FIRST.index(fact.sign))


def select_facts(facts: Iterable[TokenFact], level: Level, code: str) -> list[TokenFact]:
    """Those to show beside this verdict, at most ``MAX_FACTS``. ``facts``: as ``sort_facts``. Good ones are
    left out at danger and unknown; all, where there is no token to trade."""
    if not is_tradable(code):
        return []
    return [fact for fact in facts if level in ("ok", "warn") or fact.sign != "good"][:MAX_FACTS]


def _sign(bps: int, mind_bps: int, bad_bps: int) -> Sign:
    if bps >= bad_bps:
        return "bad"
    return "mind" if bps >= mind_bps else "good"


# --- who holds it ------------------------------------------------------------------------------------


class BundleShare(NamedTuple):
    """A bundle of launch buyers. ``has_funder``: one wallet funded them; else one transaction bought for all
    of them. ``has_deployer``: the deployer is known to be one of them."""

    wallets: int
    held_bps: int
    has_funder: bool
    has_deployer: bool


@dataclass(frozen=True, slots=True)
class HolderShares:
    """Shares of the supply. ``insiders_bps``: None: not known. ``deployer_bps`` None: no deployer is
    known. ``bundle``: the largest. ``purse``: of the largest group of tied wallets (``holders/purses.py``)
    without the deployer, how many they are, and their share; ``has_deployers_purse``: whether the deployer
    has one, too. ``is_complete``: every transfer was read."""

    insiders_bps: int | None
    top10_bps: int
    is_complete: bool
    deployer_bps: int | None = None
    bundle: BundleShare | None = None
    purse: tuple[int, int] | None = None
    has_deployers_purse: bool = False


def describe_stored_insiders(bps: int | None) -> list[TokenFact]:
    """What is known while the holders are being read."""
    if bps is None:
        return []
    sign = _sign(bps, INSIDERS_MINDED_BPS, INSIDERS_HIGH_BPS)
    return [TokenFact(sign, f"Insiders held {format_percent(bps)} when they were last read.", "holders")]


def describe_holders(shares: HolderShares | None) -> list[TokenFact]:
    """Insiders, one purse, and the ten biggest. None: not known yet."""
    if shares is None:
        return [TokenFact("mind", "Holders: not known yet.", "holders")]
    insiders = _describe_insiders(shares)
    facts = [insiders]
    # The deployer's is counted above. Strangers with one payer are one big holder.
    if shares.purse is not None:
        wallets, bps = shares.purse
        sign = _sign(bps, INSIDERS_MINDED_BPS, INSIDERS_HIGH_BPS)
        if sign != "good":
            which = "another" if shares.has_deployers_purse else "one"
            text = f"{format_count(wallets, 'wallet')} of {which} purse hold {format_percent(bps)}."
            facts.append(TokenFact(sign, text, "holders"))
    sign = _sign(shares.top10_bps, *TOP10_BOUNDS_BPS)
    if sign != "good" or (shares.is_complete and insiders.sign == "good"):
        text = f"The ten biggest wallets hold {format_percent(shares.top10_bps)}."
        facts.append(TokenFact(sign, text, "holders"))
    return facts


_INSIDERS_UNKNOWN = TokenFact("mind", "What insiders hold is not known.", "holders")


def _describe_insiders(shares: HolderShares) -> TokenFact:
    """The share is ``insiders_bps``."""
    share_bps, deployer_bps = shares.insiders_bps, shares.deployer_bps or 0
    parts = _list_parts(deployer_bps, shares.bundle)
    if share_bps is None:
        if not parts:
            return _INSIDERS_UNKNOWN
        # Insiders hold at least these parts.
        return TokenFact(
            "bad", f"What all insiders hold is not known; of them {' and '.join(parts)}.", "holders"
        )
    sign = _sign(share_bps, INSIDERS_MINDED_BPS, INSIDERS_HIGH_BPS)
    if (not share_bps and shares.deployer_bps is None) or (sign == "good" and not shares.is_complete):
        return _INSIDERS_UNKNOWN
    bundle_bps = 0 if shares.bundle is None else shares.bundle.held_bps
    has_deployer = shares.bundle is not None and shares.bundle.has_deployer
    rest_bps = share_bps - (bundle_bps if has_deployer else deployer_bps + bundle_bps)
    of_them = f": {', '.join(parts)}" if parts else ""
    if parts and rest_bps > 0:
        of_them += f", others {format_percent(rest_bps)}"
    elif rest_bps < 0:
        of_them += " (these overlap)"
    return TokenFact(sign, f"Insiders hold {format_percent(share_bps)}{of_them}.", "holders")


def _list_parts(deployer_bps: int, bundle: BundleShare | None) -> list[str]:
    """What the deployer and the bundle hold; a deployer among its wallets is counted once."""
    parts = [f"the deployer {format_percent(deployer_bps)}"] if deployer_bps else []
    if bundle is None or not bundle.held_bps:
        return parts
    if bundle.has_deployer:
        others_bps = bundle.held_bps - deployer_bps
        more = f"{bundle.wallets - 1} more of its bundle {format_percent(others_bps)}"
        return [*parts, *([more] if others_bps else [])]
    tie = "with one funder" if bundle.has_funder else "in one transaction"
    return [*parts, f"a bundle of {bundle.wallets} {tie} {format_percent(bundle.held_bps)}"]


# --- what the check found ----------------------------------------------------------------------------

_FLAG_FACTS: Mapping[str, tuple[Sign, str]] = {
    "deployer_sold": ("bad", "The deployer sold half or more of what it got."),
    "serial_deployer": ("bad", "The deployer launched many tokens, and few graduated."),
    "no_liquidity": ("bad", "There is nearly no liquidity: a larger sell brings little."),
    "hook": ("mind", "A stranger's contract, a hook, runs in every trade."),
    "dynamic_fee": ("mind", "The pool's fee can change with every trade."),
    "snipe_tax_active": ("mind", "Whoever buys now pays the extra tax on first buyers."),
    "curve_closed": ("mind", "Its curve is closed: no trade until its pool opens."),
}


def describe_flags(flags: Iterable[str]) -> list[TokenFact]:
    """What the flags mean for a buyer."""
    return [TokenFact(*_FLAG_FACTS[flag], "flags") for flag in flags if flag in _FLAG_FACTS]


_MINDED = {(topic, standing) for topic in ("owner", "code") for standing in ("may", "not_known")} | {
    ("holders", "not_known")
}


def describe_outlook(
    outlook: Iterable[Prospect], owner: Address | str | None, deep: bool
) -> Iterator[TokenFact]:
    """Who can change the token. Where nothing was found there is no fact: that is no promise. ``deep``: what
    its owner can do was tried."""
    prospects = list(outlook)
    owner_harms = ("owner", "can") in {(prospect.topic, prospect.standing) for prospect in prospects}
    for prospect in prospects:
        if prospect.standing == "can":
            yield TokenFact("bad", prospect.text, "outlook")
        elif (prospect.topic, prospect.standing) == ("owner", "may") and owner:
            untried = "" if deep else "; what it can do was not tried"
            if not owner_harms:
                yield TokenFact("mind", f"Its owner {owner} can still act{untried}.", "outlook")
        elif (prospect.topic, prospect.standing) in _MINDED:
            yield TokenFact("mind", prospect.text, "outlook")


def describe_taxes(
    buy_bps: int | None, sell_bps: int | None, together_bps: int | None, figure: DecidingFigure | None = None
) -> list[TokenFact]:
    """The taxes on a buy, on a sell, and on a round trip; None: not known. ``figure``: what decided the
    verdict, which is said instead of taxes that would not have caused it alone."""
    worst_bps = max(buy_bps or 0, sell_bps or 0, together_bps or 0)
    if figure is not None and figure.replaces_tax() and worst_bps < POLICY.warn_loss_bps:
        return [TokenFact(_sign(figure.bps, 0, POLICY.warn_loss_bps), f"{figure.text}.", "cost")]
    if worst_bps >= MARKED_LOSS_BPS:
        text = _describe_tax(buy_bps, sell_bps, worst_bps)
        return [TokenFact(_sign(worst_bps, 0, POLICY.warn_loss_bps), text, "cost")]
    if buy_bps is not None and sell_bps is not None and worst_bps == 0:
        return [TokenFact("good", "No buy tax, no sell tax.", "cost")]
    return []


def _describe_tax(buy_bps: int | None, sell_bps: int | None, worst_bps: int) -> str:
    if buy_bps is None or sell_bps is None or not (buy_bps or sell_bps):
        return f"Taxes take {format_percent(worst_bps)} of a round trip."
    ways = [("buy", buy_bps), ("sell", sell_bps)]
    return f"A tax takes {' and '.join(f'{format_percent(bps)} of each {way}' for way, bps in ways if bps)}."


def describe_pool_cost(pool_bps: int | None, impact_bps: int | None) -> Iterator[TokenFact]:
    """What the pool keeps of a round trip, and how far the buy moves the price; None: not known."""
    for bps, what in ((pool_bps, "The pool and its hook keep {} of a round trip."),
                      (impact_bps, "Your own buy moves the price: {} fewer tokens than a small one."),
                      ):  # fmt: skip
        if bps is not None and bps >= MARKED_LOSS_BPS:
            sign = _sign(bps, 0, POLICY.warn_loss_bps)
            yield TokenFact(sign, what.format(format_percent(bps)), "cost")


def describe_deployer(launches: int, graduated: int, sold_own: int) -> TokenFact:
    """The record of the wallet that launched it."""
    text = f"Deployer: {format_count(launches, 'launch', 'launches')}, {graduated} graduated, "
    text += f"sold half or more of its own tokens in {sold_own or 'none'}."
    return TokenFact("mind" if sold_own or not graduated else "good", text)


def describe_age(age_s: int | None) -> list[TokenFact]:
    """The time from its launch to the check; None: not known."""
    if age_s is None or age_s <= 0:
        return []
    text = f"Launched {format_duration(age_s)} ago."
    return [TokenFact("mind" if age_s < YOUNG_S else "good", text, "holders")]


# --- who can withdraw the liquidity ------------------------------------------------------------------

_FREE = "{} of the liquidity can be withdrawn now."
_UNSURE = "Who can withdraw {} of the liquidity is not known."


def describe_stored_liquidity(leaving: LeavingLiquidity | None) -> TokenFact:
    """What is known while the positions are being read; None: nothing. It has the colour of the risk beside
    the word, and says that it is of before."""
    sign: Sign = "mind"
    if leaving is None:
        text = "Liquidity: who can withdraw it is not known yet."
    elif leaving.free_bps:
        sign, text = _sign(leaving.free_bps, 1, MUCH_FREE_BPS), _FREE.format(format_percent(leaving.free_bps))
    elif leaving.unproven_bps:
        text = _UNSURE.format(format_percent(leaving.unproven_bps))
    else:
        sign = "good"
        text = "Nobody could withdraw the liquidity when it was last read: it was locked, burned or kept."
    return TokenFact(sign, text, "liquidity")


@dataclass(frozen=True, slots=True)
class LiquidityShares:
    """Shares of the liquidity in range. ``leaving``: as ``LeavingLiquidity``. ``kept_bps``: burned, or the
    launchpad's. ``has_free_beside``: somebody can withdraw liquidity now, in or out of range.
    ``is_complete``: all pools were read."""

    leaving: LeavingLiquidity
    kept_bps: int
    locked_bps: int
    has_free_beside: bool
    is_complete: bool


def describe_liquidity(shares: LiquidityShares | None) -> TokenFact:
    """Who can withdraw it. None: the positions were read, and it is not known."""
    if shares is None:
        return TokenFact("mind", "Liquidity: who can withdraw it is not known.", "liquidity")
    free_bps, unsure_bps = shares.leaving.free_bps, shares.leaving.unproven_bps
    sign: Sign = "mind"
    if free_bps:
        sign, text = _sign(free_bps, 1, MUCH_FREE_BPS), _FREE.format(format_percent(free_bps))
    elif shares.has_free_beside:
        sign, text = "bad", "Some liquidity, most of it out of range, can be withdrawn now."
    elif not shares.is_complete:
        text = "Not all of its pools were read: who can withdraw the rest is not known."
    elif unsure_bps:
        text = _UNSURE.format(format_percent(unsure_bps))
    elif shares.kept_bps >= _NEARLY_ALL_BPS:
        sign, text = "good", "Nobody can withdraw the liquidity: it is burned or the launchpad's."
    else:
        text = f"{format_percent(shares.locked_bps)} of the liquidity is locked: see until when."
    return TokenFact(sign, text, "liquidity")
