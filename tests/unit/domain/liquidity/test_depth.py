"""Who has how much of the depth: never more than there is, and what is not known is nobody's."""

from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.liquidity.depth import (
    HELD_BY,
    HeldBy,
    HeldPosition,
    PoolDepth,
    Position,
    TokenDepth,
    Withdrawal,
    quote_along_raw,
)

_WALLETS = [Address("0x" + digit * 40) for digit in "abc"]
_QUOTE = Address("0x" + "0" * 40)


def held(
    liquidity: int, held_by: HeldBy, wallet: Address | None = None, is_active: bool = True
) -> HeldPosition:
    position = Position(_QUOTE, 1, -60, 60, liquidity, wallet)
    return HeldPosition(position, is_active, held_by, Withdrawal(wallet) if wallet else None)


def pool(
    liquidity: int, worth_wei: int | None, *positions: HeldPosition, is_curve: bool = False
) -> PoolDepth:
    at = Address("0x" + "9" * 40)
    return PoolDepth(
        Venue("amm_v3", "eth", _QUOTE, at, 3000), liquidity, worth_wei, positions, is_curve=is_curve
    )


def test_what_no_position_accounts_for_is_unknown() -> None:
    depth = TokenDepth.of([pool(100, 10**18, held(60, "burned"), held(10, "free", _WALLETS[0]))])
    assert depth.totals_bps == {
        "free": 1000, "locked": 0, "contract": 0, "burned": 6000, "launchpad": 0, "unknown": 3000,
    }  # fmt: skip


def test_pools_count_by_the_worth_of_their_quote() -> None:
    first = pool(10**6, 3 * 10**18, held(10**6, "free", _WALLETS[0]))
    second = pool(7, 10**18, held(7, "locked"))
    unpriced = pool(10**30, None, held(10**30, "burned"))
    depth = TokenDepth.of([first, second, unpriced])
    assert (depth.totals_bps["free"], depth.totals_bps["locked"]) == (7500, 2500)
    assert depth.totals_bps["burned"] == 0
    (party,) = depth.free_parties()
    assert (party.wallet, party.share_bps) == (_WALLETS[0], 7500)


def test_a_curve_is_the_launchpads_and_out_of_range_is_no_depth() -> None:
    out = held(10**9, "free", _WALLETS[0], is_active=False)
    depth = TokenDepth.of([pool(0, 10**18, is_curve=True), pool(0, 0, out)])
    assert depth.totals_bps["launchpad"] == BPS
    assert depth.free_parties() == ()


_POSITIONS = st.lists(
    st.builds(
        held,
        st.integers(0, 10**24),
        st.sampled_from(HELD_BY),
        st.sampled_from([*_WALLETS, None]),
        st.booleans(),
    ),
    max_size=6,
)


@given(
    st.lists(st.tuples(_POSITIONS, st.integers(0, 10**24), st.integers(0, 10**24) | st.none()), max_size=4)
)
def test_shares_add_up_to_no_more_than_the_whole(
    pools: list[tuple[list[HeldPosition], int, int | None]],
) -> None:
    depths = [
        pool(sum(one.active_liquidity() for one in positions) + more + 1, worth_wei, *positions)
        for positions, more, worth_wei in pools
    ]
    depth = TokenDepth.of(depths)
    whole_wei = sum(one.worth_wei or 0 for one in depths)
    assert sum(depth.totals_bps.values()) <= BPS
    # Every rounding is down, by less than one of these for each pool and status.
    assert not whole_wei or sum(depth.totals_bps.values()) >= BPS - len(HELD_BY) - BPS * 24 // whole_wei - 1
    assert all(0 <= bps <= BPS for bps in depth.totals_bps.values())
    parties = depth.free_parties()
    assert sum(party.share_bps for party in parties) <= BPS
    assert sorted((party.share_bps for party in parties), reverse=True) == [
        party.share_bps for party in parties
    ]


def test_the_quote_along_the_curve_is_that_of_the_whitepaper() -> None:
    # At a price of 4 quote a token, liquidity of 100 holds 200 of quote and 50 of token.
    assert quote_along_raw(2 * 2**96, 100, token_is_zero=True) == 200
    assert quote_along_raw(2 * 2**96, 100, token_is_zero=False) == 50
    assert quote_along_raw(0, 100, token_is_zero=True) == 0
