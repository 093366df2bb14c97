"""What the biggest wallets hold, where only some are remembered, is what a look at all of them says."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.columns import HolderColumns
from roundtrip.domain.holders.hourly_tops import Leaders
from unit.domain.tokens import address

WALLETS = [address(0x100 + number) for number in range(8)]
SKIPPED = frozenset(WALLETS[:1])
changes = st.lists(
    st.tuples(st.sampled_from(WALLETS), st.integers(-1, 9), st.integers(0, 2), st.integers(0, 9)), max_size=60
)
"""A wallet, its new balance, whether somebody looks then (not at 0), and whether all is forgotten (at 9)."""


@settings(max_examples=500, deadline=None)
@given(changes, st.integers(1, 2), st.integers(0, 1))
def test_the_remembered_wallets_are_enough(
    steps: list[tuple[Address, int, int, int]], top: int, more: int
) -> None:
    wallets = {wallet: HolderColumns() for wallet in WALLETS}
    leaders = Leaders(top=top, kept=top + more)
    for wallet, raw, looks, forgets in steps:
        has_grown = raw > wallets[wallet].balance_raw
        wallets[wallet].balance_raw = raw
        if has_grown:
            leaders.note_balance(wallet, raw)
        if forgets == 9:
            leaders.forget()
        if looks:
            held = sorted((wallets[one].balance_raw for one in WALLETS[1:]), reverse=True)
            assert leaders.top_raw(wallets, SKIPPED) == sum(max(raw, 0) for raw in held[:top])


def test_few_wallets_are_remembered_of_many() -> None:
    wallets = {address(number): HolderColumns(number) for number in range(1, 2_001)}
    leaders = Leaders()
    for wallet, holding in wallets.items():
        leaders.note_balance(wallet, holding.balance_raw)
    assert leaders.top_raw(wallets, ()) == sum(range(1_991, 2_001))
    assert (len(leaders.members), leaders.floor_raw) == (100, 1_901)
