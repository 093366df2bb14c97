"""How likely two wallets belong to one person: a score of the evidence, in whole numbers.

Two sorts of evidence. Funding: one sent the other its first eth, or a third wallet sent both theirs; worth
less the more wallets that funder has paid first, and more where both payments came within minutes. Trades:
both bought the same tokens within blocks of each other; a token counts less the more wallets bought it in
that moment, and all of them count only as far as they are a good part of what either wallet traded: a wallet
that buys everything coincides with every other and is related to none.

Either can be chance or a stranger's doing (anyone may send anyone eth). A score is a hint, not proof.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.types import BPS, Address

MAX_SCORE = 100

EXCHANGE_WALLETS = 500
"""A wallet that sent more wallets than this their first eth is an exchange or a bridge: its customers have
nothing in common."""

WINDOW_BLOCKS = 10
"""Two buys at most so far apart are of one moment: a second, on a chain that makes ten blocks a second."""
WINDOW_S = 2
"""The limit where blocks come slowly and ten of them are no moment. Block times are whole seconds, so those
of one second may differ by two."""

MIN_SHARED = 3
"""The fewest shared tokens where only trades link two wallets: one or two are chance."""
FULL_WEIGHT_BPS = 5 * BPS
"""As much as five tokens that no third wallet bought in that moment: more adds no certainty."""
MIN_SHARE_BPS = BPS // 10
"""Less than a tenth of what either traded is chance: a wallet that trades all day coincides with many."""
FULL_SHARE_BPS = BPS // 2
"""Half of what either traded counts as the full share."""
TOKENS_SCORE = 80
"""The most that trades alone can score."""
MIN_SCORE = 5
"""A lower score is noise, and names no wallet."""

MoneyKind = Literal["same_funder", "funded_by", "funded"]

FAMILIES = ((10, 40), (100, 25), (EXCHANGE_WALLETS, 15))
"""Points for a common funder, by the number of wallets that it was first to pay, at most."""
DIRECT_FAMILIES = ((10, 70), (100, 45), (EXCHANGE_WALLETS, 25))
"""The same where one of the two is the funder."""
CLOSE_FUNDINGS = ((600, 25), (3600, 10))
"""Seconds between the two fundings, at most, and extra points: one person's wallets are made in one go."""


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """The first known block in which a wallet appears, its time in seconds since 1970, and the sender of its
    first eth in a plain transfer; None: no sender is known."""

    first_number: int
    first_s: int
    funder: Address | None


@dataclass(frozen=True, slots=True)
class Money:
    """A funding link. ``family``: how many wallets the funder sent their first eth. ``apart_s``: with a
    common funder, the seconds between the two payments; None: unknown, or one of the two is the funder."""

    kind: MoneyKind
    family: int
    apart_s: int | None = None


@dataclass(frozen=True, slots=True)
class SameTokens:
    """``shared``: tokens that both bought in one moment, of ``of_tokens`` that were examined, of
    ``own_tokens`` that the wallet ever traded; ``other_tokens``: the number that the other one did.
    ``weight_bps``: the sum over shared tokens of 1 / the number of other wallets that bought it in that
    moment."""

    shared: int
    of_tokens: int
    own_tokens: int
    other_tokens: int
    weight_bps: int


def is_exchange(family: int) -> bool:
    """Whether a funder of ``family`` wallets counts as an exchange."""
    return family > EXCHANGE_WALLETS


def weight_bps(others: int) -> int:
    """The weight of a shared token that ``others`` other wallets bought in that moment, the compared one
    included."""
    return BPS // max(1, others)


def money_score(money: Money) -> int:
    """Of 100: how strong the evidence of a funding link is; 0: the funder is an exchange."""
    families = FAMILIES if money.kind == "same_funder" else DIRECT_FAMILIES
    base = next((score for max_family, score in families if money.family <= max_family), 0)
    if not base or money.apart_s is None:
        return base
    return base + next((extra for within_s, extra in CLOSE_FUNDINGS if money.apart_s <= within_s), 0)


def tokens_score(same: SameTokens) -> int:
    """Of 100: how strong the evidence of shared tokens is, by their part of what either wallet traded."""
    weight = min(same.weight_bps, FULL_WEIGHT_BPS) * BPS // FULL_WEIGHT_BPS
    share_of_both = _of_both_bps(same)
    if share_of_both < MIN_SHARE_BPS:
        return 0
    share = min(share_of_both, FULL_SHARE_BPS) * BPS // FULL_SHARE_BPS
    return TOKENS_SCORE * weight * share // (BPS * BPS)


def _of_both_bps(same: SameTokens) -> int:
    """The smaller of two shares: of the examined tokens, and of the other wallet's. The other wallet's tokens
    were not examined; of the wallet's own unexamined ones, the same proportion is assumed to be shared."""
    if not same.of_tokens or not same.other_tokens:
        return 0
    of_own = same.shared * BPS // same.of_tokens
    own_tokens = max(same.own_tokens, same.of_tokens)
    of_other = same.shared * own_tokens * BPS // (same.of_tokens * same.other_tokens)
    return min(of_own, of_other)


def score(money: Iterable[Money], same: SameTokens | None) -> int:
    """Of 100: the doubts that each piece of evidence leaves, multiplied. 0: no link. Trades alone link from
    ``MIN_SHARED`` on."""
    parts = [money_score(link) for link in money]
    if same is not None and (same.shared >= MIN_SHARED or any(parts)):
        parts.append(tokens_score(same))
    doubt = MAX_SCORE
    for part in parts:
        doubt = doubt * (MAX_SCORE - part) // MAX_SCORE
    total = MAX_SCORE - doubt
    return total if total >= MIN_SCORE else 0
