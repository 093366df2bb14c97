"""What the codes of routers and pools mean."""

import pytest

from roundtrip.domain.base.router_codes import find_meaning, quote_reason
from roundtrip.domain.check.refusals import POOL_GOT_LESS, PULL_REASONS, ROUTER_REASONS, TOO_LITTLE, TOO_MUCH


@pytest.mark.parametrize(
    ("codes", "says"),
    [
        (PULL_REASONS, "could not take the token"),
        (TOO_LITTLE, "its own minimum"),
        (TOO_MUCH, "its own maximum"),
        (POOL_GOT_LESS, "less of the token reached the pool"),
        (ROUTER_REASONS - PULL_REASONS - {"WrappedError"}, "transfer"),
        ({"SPL", "LOK", "AS"}, ""),
    ],
)
def test_every_code_that_we_know_has_a_meaning(codes: set[str], says: str) -> None:
    for code in codes:
        meaning = find_meaning(code)
        assert meaning is not None
        assert says in meaning


def test_a_tokens_own_reason_is_quoted_alone() -> None:
    assert quote_reason("paused") == '"paused"'
    assert quote_reason("AS") == '"AS", a code of routers and pools: the amount to swap is zero'
    assert [find_meaning(reason) for reason in (None, "", "stf")] == [None] * 3
