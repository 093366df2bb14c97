"""How likely two wallets are one person's: a score of what is named beside it, in whole numbers.

Two sorts of evidence. Money: one first sent eth to the other, or a third one to both; worth less the more
wallets the giver has sent a first eth to, and more where it came within minutes. Trades: both bought the same
tokens within blocks of each other; a token counts less the more wallets bought it in that moment, and all of
it counts only as far as it makes up a good part of what either wallet traded: who buys everything stands
beside everybody and is no kin of theirs.

Either can be chance or somebody else's doing (anybody may send anybody eth). A score is a hint, no proof.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.types import BPS

MOST_SCORE = 100

EXCHANGE_WALLETS = 500
"""Who first sent eth to more wallets than this is an exchange or a bridge: its customers have nothing in
common."""

WINDOW_BLOCKS = 10
"""Two buys so far apart are of one moment: a second, on a chain that makes ten blocks a second."""
WINDOW_S = 2
"""And no further apart than this: where blocks come slowly ten of them are no moment. Block times are whole
seconds, so those of one second may differ by two."""

LEAST_SHARED = 3
"""So many tokens have to be shared where nothing but trades links two wallets: one or two are chance."""
FULL_WEIGHT_BPS = 5 * BPS
"""As much as five tokens that nobody else bought in that moment: more is not more certain."""
LEAST_SHARE_BPS = BPS // 10
"""Less than a tenth of what either traded is chance: who trades all day stands beside many now and then."""
FULL_SHARE_BPS = BPS // 2
"""Where half of what either traded was bought beside the other, that is all that can be asked."""
TOKENS_SCORE = 80
"""What trades alone can make."""
LEAST_SCORE = 5
"""Below this it is noise, and nobody is named for it."""

MoneyKind = Literal["same_funder", "funded_by", "funded"]

FAMILIES = ((10, 40), (100, 25), (EXCHANGE_WALLETS, 15))
"""What a giver in common is worth, by how many wallets it has sent a first eth to at most."""
DIRECT_FAMILIES = ((10, 70), (100, 45), (EXCHANGE_WALLETS, 25))
"""The same where one of the two is the giver."""
CLOSE_FUNDINGS = ((600, 25), (3600, 10))
"""What it adds that both got theirs within so many seconds: wallets of one person are made in one go."""


@dataclass(frozen=True, slots=True)
class Money:
    """Who first sent whom eth. ``family``: how many wallets the giver sent a first eth to. ``apart_s``: of a
    giver in common, the seconds between the two; None: not known, or it is one of the two."""

    kind: MoneyKind
    family: int
    apart_s: int | None = None


@dataclass(frozen=True, slots=True)
class SameTokens:
    """``shared``: tokens that both bought in one moment, of ``of_tokens`` that were looked at, out of
    ``own_tokens`` that the wallet ever traded; ``other_tokens``: as many the other one did. ``weight_bps``:
    the sum over shared tokens of one in as many wallets as bought it beside."""

    shared: int
    of_tokens: int
    own_tokens: int
    other_tokens: int
    weight_bps: int


def is_exchange(family: int) -> bool:
    """Whether whoever first sent so many wallets eth is taken for one."""
    return family > EXCHANGE_WALLETS


def weight_bps(others: int) -> int:
    """What a shared token is worth where so many other wallets bought it in that moment, the one that is
    looked at among them."""
    return BPS // max(1, others)


def money_score(money: Money) -> int:
    """Of 100."""
    families = FAMILIES if money.kind == "same_funder" else DIRECT_FAMILIES
    base = next((score for most, score in families if money.family <= most), 0)
    if not base or money.apart_s is None:
        return base
    return base + next((more for within_s, more in CLOSE_FUNDINGS if money.apart_s <= within_s), 0)


def tokens_score(same: SameTokens) -> int:
    """Of 100: how telling the shared tokens are, by how much of what either traded they are."""
    weight = min(same.weight_bps, FULL_WEIGHT_BPS) * BPS // FULL_WEIGHT_BPS
    of_both = _of_both_bps(same)
    if of_both < LEAST_SHARE_BPS:
        return 0
    share = min(of_both, FULL_SHARE_BPS) * BPS // FULL_SHARE_BPS
    return TOKENS_SCORE * weight * share // (BPS * BPS)


def _of_both_bps(same: SameTokens) -> int:
    """The smaller of two shares: of the tokens that were looked at, and of the other's. The other one's were
    not looked at; of the wallet's own that were not either, as many are taken for shared in proportion."""
    if not same.of_tokens or not same.other_tokens:
        return 0
    of_own = same.shared * BPS // same.of_tokens
    own_tokens = max(same.own_tokens, same.of_tokens)
    of_other = same.shared * own_tokens * BPS // (same.of_tokens * same.other_tokens)
    return min(of_own, of_other)


def score(money: Iterable[Money], same: SameTokens | None) -> int:
    """Of 100: what is left to doubt by each piece of evidence, multiplied. 0: no link. Tokens alone link
    from ``LEAST_SHARED`` on."""
    parts = [money_score(one) for one in money]
    if same is not None and (same.shared >= LEAST_SHARED or any(parts)):
        parts.append(tokens_score(same))
    doubt = MOST_SCORE
    for part in parts:
        doubt = doubt * (MOST_SCORE - part) // MOST_SCORE
    found = MOST_SCORE - doubt
    return found if found >= LEAST_SCORE else 0
