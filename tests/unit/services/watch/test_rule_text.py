"""A rule in words."""

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.services.watch.rule_parser import parse
from roundtrip.services.watch.rules import describe_rule

T, W = Address("0x" + "70" * 20), Address("0x" + "c0" * 20)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("any buying", "any wallet buys a token"),
        ("follow buying over 1 eth", "a wallet that you follow buys a token for more than 1 eth"),
        (f"{W} selling over 0.5% on {T}", f"{W} sells {T}, more than 0.5 % of its supply at once"),
        (f"deployer:{T} selling on {T}", f"{W}, the deployer of {T}, sells {T}"),
        (f"creator:{T} launching", f"{W}, the creator of {T}, launches a token"),
        ("any launching over 2 eth", "any wallet launches a token with a first buy of more than 2 eth"),
        ("any graduating", "a token graduates"),
        (f"any graduating on {T}", f"{T} graduates"),
        (
            "follow graduating over 10000 usd",
            "a token launched by a wallet that you follow graduates with more than 10,000 usd raised",
        ),
        ("any moving", "any wallet moves a token from the launchpad"),
        (f"any moving over 1 % on {T}", f"any wallet moves {T}, more than 1 % of its supply at once"),
        (f"any moving over 5 usd on {T}", f"any wallet moves {T} worth more than 5 usd"),
        (f"any draining on {T}", f"any wallet removes liquidity from a pool of {T}"),
        (
            "any draining over 3 eth",
            "any wallet removes liquidity worth more than 3 eth from a pool of a token",
        ),
        ("any draining over 50 %", "any wallet removes more than 50 % of the liquidity of a pool of a token"),
        (
            f"deployer:{T} removing over 1 %",
            f"{W}, the deployer of {T}, removes more than 1 % of the active liquidity of a pool of a token",
        ),
        (
            f"any removing over 3 eth on {T}",
            f"any wallet removes active liquidity worth more than 3 eth from a pool of {T}",
        ),
    ],
)
def test_in_words(rule: str, expected: str) -> None:
    assert describe_rule(parse(rule), W) == expected
