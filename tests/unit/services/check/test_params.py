"""The parameters of a check: its size, and which requests share an answer."""

import pytest

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.services.check.schema import CheckParams

TOKEN = "0x" + "ab" * 20


@pytest.mark.parametrize(
    ("amount", "wei"),
    [
        ("0.001", 10**15), ("0.0010", 10**15), ("0.05", 5 * 10**16), ("0.5", 5 * 10**17), ("1", 10**18),
        ("9.999999999999999999", 10**19 - 1), ("10", 10**19), ("10.00", 10**19),
        ("0.100000000000000001", 10**17 + 1),
    ],
)  # fmt: skip
def test_an_amount_is_what_the_buy_spends(amount: str, wei: int) -> None:
    assert CheckParams(TOKEN, amount=amount).probe_wei() == wei


@pytest.mark.parametrize("amount", ["0.1", "0.10"])
def test_the_usual_amount_is_the_usual_check(amount: str) -> None:
    assert CheckParams(TOKEN, amount=amount).probe_wei() is None
    assert CheckParams(TOKEN, amount=amount).shared_as() == CheckParams(TOKEN).shared_as()


@pytest.mark.parametrize(
    "amount",
    [
        "", "0", "0.0", "0.0009", "0.00099999", "10.000000000000000001", "11", "100", "-1", "+1", " 1", "1\n",
        "1e0", ".5", "5.", "00.5", "0x1", "1,5", "NaN", "\u0661", "0.1000000000000000001", "9" * 500,
    ],
)  # fmt: skip
def test_what_is_out_of_range_or_no_number_is_said(amount: str) -> None:
    with pytest.raises(CallerFault, match="amount must be from") as raised:
        CheckParams(TOKEN, amount=amount).shared_as()
    assert raised.value.code == "bad_input"


def test_each_size_and_depth_shares_its_own_answer() -> None:
    keys = {
        CheckParams(TOKEN, deep, amount).shared_as() for deep in ("0", "1") for amount in ("0.1", "1", "2")
    }
    assert len(keys) == 6
    assert CheckParams(TOKEN, amount="0.5").shared_as() == CheckParams(TOKEN, "0", "0.50").shared_as()


def test_a_policy_at_a_size_has_another_version_and_the_same_thresholds() -> None:
    sized = POLICY.at_size(5 * 10**17)
    assert (sized.probe_wei, sized.large_wei) == (5 * 10**17, 5 * 10**18)
    assert sized.version != POLICY.version
    assert sized.crowd_sizes_wei == POLICY.crowd_sizes_wei
    assert POLICY.at_size(POLICY.probe_wei).large_wei == POLICY.large_wei
