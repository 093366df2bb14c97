"""Which token a call sells, by its calldata: every sell that this project plans, and what others send."""

from collections.abc import Callable

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.venues import BY_KIND, abi, amm_v3, amm_v4, launchpad_curve
from roundtrip.venues.base import Call, TradeTerms
from roundtrip.venues.known_calls import SELL_CALLS, find_sold, list_steps
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address
from unit.venues.test_amm_v3 import venue as v3_venue
from unit.venues.test_amm_v4 import venue as v4_venue

SELLER, AMOUNT = address(0x5E11E4), 123_456
ROUTER = CONTRACTS.swap_router02
CURVE = launchpad_curve.curve(ZERO_ADDRESS, address(0xCC), CONTRACTS)
TOKENS = pytest.mark.parametrize("token", [BELOW, ABOVE], ids=["below", "above"])
VENUES = pytest.mark.parametrize(
    ("venue_of", "quote"),
    [(v3_venue, "weth"), (v3_venue, "usdg"), (v4_venue, "eth"), (v4_venue, "weth"), (v4_venue, "usdg")],
    ids=["v3 weth", "v3 usdg", "v4 eth", "v4 weth", "v4 usdg"],
)


def sold(call: Call) -> Address | None:
    return find_sold(call.to, bytes.fromhex(call.data[2:]))


@TOKENS
@VENUES
def test_what_a_planned_trade_gives_away(
    venue_of: Callable[[str, Address], Venue], quote: str, token: Address
) -> None:
    venue = venue_of(quote, token)
    file = BY_KIND[venue.kind]
    for terms in (TradeTerms(), TradeTerms(5, 1_900_000_000)):
        sell = file.plan_sell(venue, token, CONTRACTS, AMOUNT, SELLER, terms=terms)[-1]
        assert sell.data[:10] in SELL_CALLS
        assert sold(sell) == token
        buy = file.plan_buy(venue, token, CONTRACTS, AMOUNT, SELLER, terms)[-1]
        assert sold(buy) == venue.quote_address
    assert sold(file.plan_second_sell(venue, token, CONTRACTS, AMOUNT, SELLER)[-1]) == token


def test_a_curve_s_sell_gives_away_the_curve_s_token() -> None:
    assert CURVE.pool is not None
    assert sold(launchpad_curve.plan_sell(CURVE, BELOW, CONTRACTS, AMOUNT, SELLER)[-1]) == CURVE.pool
    assert sold(launchpad_curve.plan_buy(CURVE, BELOW, CONTRACTS, AMOUNT, SELLER)[-1]) is None


def test_a_path_is_read_from_the_end_that_pays() -> None:
    path = bytes.fromhex(BELOW[2:]) + bytes(3) + bytes.fromhex(ABOVE[2:])
    given_in = encode(["(bytes,address,uint256,uint256)"], [(path, SELLER, 1, 2)])
    for signature, token in (("exactInput", BELOW), ("exactOutput", ABOVE)):
        head = abi.selector(f"{signature}((bytes,address,uint256,uint256))")
        call = bytes.fromhex(head[2:]) + given_in
        assert find_sold(ROUTER, call) == token
        for signature, types in (("bytes[]", ["bytes[]"]), ("uint256,bytes[]", ["uint256", "bytes[]"])):
            values = [[b"", call]] if len(types) == 1 else [7, [b"", call]]
            outer = bytes.fromhex(abi.selector(f"multicall({signature})")[2:]) + encode(types, values)
            assert find_sold(ROUTER, outer) == token
            # A list within a list is not read: anybody can nest without end.
            twice = bytes.fromhex(amm_v3.MULTICALL[2:]) + encode(["bytes[]"], [[outer]])
            assert find_sold(ROUTER, twice) is None
    command = encode(["address", "uint256", "uint256", "bytes", "bool"], [SELLER, 1, 2, path, True])
    for code, token in ((b"\x81", ABOVE), (b"\x00", BELOW)):
        execute = bytes.fromhex(abi.selector("execute(bytes,bytes[])")[2:])
        assert (
            find_sold(CONTRACTS.universal_router, execute + encode(["bytes", "bytes[]"], [code, [command]]))
            == token
        )


def test_an_approval_sells_nothing() -> None:
    assert sold(amm_v4.approve_router(BELOW, CONTRACTS, AMOUNT)[0]) is None


@given(
    st.sampled_from(sorted(SELL_CALLS)), st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=6)
)
def test_no_calldata_breaks_it(head: str, noise: bytes, offsets: list[int]) -> None:
    words = b"".join(number.to_bytes(32, "big") for number in offsets)
    for tail in (noise, words + noise, b"\xff" * 32 + noise):
        found = find_sold(ROUTER, bytes.fromhex(head[2:]) + tail)
        assert found is None or len(found) == 42


@TOKENS
@VENUES
def test_what_a_planned_trade_is_made_of_is_named(
    venue_of: Callable[[str, Address], Venue], quote: str, token: Address
) -> None:
    venue = venue_of(quote, token)
    terms = TradeTerms(5, 1_900_000_000)
    sell = BY_KIND[venue.kind].plan_sell(venue, token, CONTRACTS, AMOUNT, SELLER, terms=terms)[-1]
    steps = list_steps(bytes.fromhex(sell.data[2:]))
    assert steps[0] == ("V4 swap" if venue.kind == "amm_v4" else "exactInputSingle")
    if venue.kind == "amm_v3" and quote == "weth":
        assert steps[1:] == ["unwrapWETH9"]


@given(st.binary(max_size=300))
def test_any_calldata_is_named_or_not(rest: bytes) -> None:
    for head in SELL_CALLS:
        assert len(list_steps(bytes.fromhex(head[2:]) + rest)) <= 16
