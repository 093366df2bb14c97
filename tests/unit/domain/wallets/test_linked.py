"""How likely two wallets are one person's: every piece of evidence, and what takes its worth away."""

import pytest

from roundtrip.domain.base.types import BPS
from roundtrip.domain.wallets.linked import (
    EXCHANGE_WALLETS,
    MIN_SCORE,
    TOKENS_SCORE,
    Money,
    SameTokens,
    is_exchange,
    money_score,
    score,
    tokens_score,
    weight_bps,
)


def same(shared: int = 5, of: int = 5, own: int = 5, other: int = 5, weight: int = 5 * BPS) -> SameTokens:
    """Two wallets that traded the same five tokens side by side, and nobody else did."""
    return SameTokens(shared, of, own, other, weight)


@pytest.mark.parametrize(
    ("family", "apart_s", "expected"),
    [
        (2, None, 40), (10, None, 40), (11, None, 25), (100, None, 25), (101, None, 15), (500, None, 15),
        (501, None, 0), (501, 1, 0), (2, 0, 65), (2, 600, 65), (2, 601, 50), (2, 3600, 50), (2, 3601, 40),
    ],
)  # fmt: skip
def test_a_giver_in_common(family: int, apart_s: int | None, expected: int) -> None:
    assert money_score(Money("same_funder", family, apart_s)) == expected


@pytest.mark.parametrize("kind", ["funded", "funded_by"])
@pytest.mark.parametrize(
    ("family", "expected"), [(1, 70), (10, 70), (11, 45), (100, 45), (101, 25), (500, 25), (501, 0)]
)
def test_one_that_gave_to_the_other(kind: str, family: int, expected: int) -> None:
    assert money_score(Money(kind, family)) == expected  # type: ignore[arg-type]


def test_an_exchange_is_who_funded_more_than_so_many() -> None:
    assert (is_exchange(EXCHANGE_WALLETS), is_exchange(EXCHANGE_WALLETS + 1)) == (False, True)


def test_the_same_tokens_and_nothing_else_are_all_that_trades_can_tell() -> None:
    assert tokens_score(same()) == TOKENS_SCORE
    assert tokens_score(same(50, 50, 50, 50, 50 * BPS)) == TOKENS_SCORE


def test_a_token_counts_less_the_more_bought_it() -> None:
    assert [weight_bps(others) for others in (0, 1, 2, 3, 300)] == [10_000, 10_000, 5000, 3333, 33]
    assert tokens_score(same(weight=5 * weight_bps(2))) == TOKENS_SCORE // 2
    assert tokens_score(same(weight=5 * weight_bps(300))) == 0


def test_who_trades_everything_is_kin_of_nobody() -> None:
    """On either side: a bot beside a wallet, and a wallet beside a bot that is asked about."""
    assert tokens_score(same(other=2000)) == 0
    assert tokens_score(same(shared=5, of=100, own=2000, other=5)) == 0
    assert tokens_score(same(other=50)) == TOKENS_SCORE // 5
    assert tokens_score(same(other=51)) == 0
    assert tokens_score(same(other=10)) == TOKENS_SCORE
    assert tokens_score(same(other=20)) == TOKENS_SCORE // 2


def test_two_bots_of_one_person_are_known_by_what_was_looked_at() -> None:
    """A hundred tokens were compared of the thousand that both traded."""
    assert tokens_score(same(100, 100, 1000, 1000, 100 * BPS)) == TOKENS_SCORE
    assert tokens_score(same(10, 100, 1000, 1000, 10 * BPS)) == TOKENS_SCORE // 5


def test_nothing_shared_is_nothing() -> None:
    assert tokens_score(same(0, 0, 0, 0, 0)) == 0
    assert tokens_score(same(0, 5, 5, 0, 0)) == 0


def test_two_tokens_are_chance_unless_money_links_the_two() -> None:
    two = same(2, 2, 2, 2, 2 * BPS)
    three = same(3, 3, 3, 3, 3 * BPS)
    money = Money("same_funder", 5)
    assert (score([], two), score([], three)) == (0, 48)
    assert score([money], two) > score([money], None) == 40


def test_a_funder_that_is_an_exchange_helps_no_tokens() -> None:
    assert score([Money("same_funder", 501, 3)], same(2, 2, 2, 2, 2 * BPS)) == 0


def test_evidence_adds_up_and_never_passes_a_hundred() -> None:
    near = Money("same_funder", 3, 5)
    assert score([], same()) == TOKENS_SCORE
    assert score([near], same()) == 93
    assert score([near, Money("funded", 1), Money("funded_by", 3)], same()) <= 100
    assert score([], None) == 0


def test_what_is_noise_is_nothing() -> None:
    faint = same(5, 5, 5, 5, 1600)
    assert tokens_score(faint) == 2 < MIN_SCORE
    assert score([], faint) == 0
