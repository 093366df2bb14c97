"""The other usual way to sell on each kind of venue, taken apart with eth_abi."""

import pytest
from eth_abi.abi import decode
from eth_abi.packed import encode_packed

from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.base.venue import TRAITS, Venue
from roundtrip.venues import VENUES, abi, amm_v3, amm_v4, launchpad_curve, launchpad_pool
from roundtrip.venues.base import TradeTerms, VenueFile
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address
from unit.venues.test_amm_v3 import venue as v3_venue
from unit.venues.test_amm_v4 import actions, executed, swap
from unit.venues.test_amm_v4 import venue as v4_venue

SELLER = address(0x5E11E4)
AMOUNT = 123_456_789_012_345_678_901
TOKENS = pytest.mark.parametrize("token", [BELOW, ABOVE], ids=["below the quote", "above the quote"])
CURVE = launchpad_curve.curve(ZERO_ADDRESS, address(0xCC), CONTRACTS)


@pytest.mark.parametrize("approve_raw", [None, abi.MAX_UINT256, 5])
@pytest.mark.parametrize("kind", ["v3", "v4"])
def test_permit2_is_approved_for_the_amount_or_as_the_wallet_approves(
    kind: str, approve_raw: int | None
) -> None:
    file, venue = (amm_v3, v3_venue("weth", BELOW)) if kind == "v3" else (amm_v4, v4_venue("eth", BELOW))
    approve, permit, _ = file.plan_second_sell(venue, BELOW, CONTRACTS, AMOUNT, SELLER, approve_raw)
    raw = AMOUNT if approve_raw is None else approve_raw
    assert (approve.to, approve.value_wei, approve.data[:10]) == (BELOW, 0, "0x095ea7b3")
    assert decode(["address", "uint256"], bytes.fromhex(approve.data[10:])) == (CONTRACTS.permit2, raw)
    assert (permit.to, permit.data[:10]) == (CONTRACTS.permit2, "0x87517c45")
    granted = decode(["address", "address", "uint160", "uint48"], bytes.fromhex(permit.data[10:]))
    router = CONTRACTS.universal_router
    assert granted == (BELOW, router, min(raw, 2**160 - 1), amm_v4.FAR_DEADLINE_S)


@TOKENS
@pytest.mark.parametrize(("quote", "fee"), [("weth", 3000), ("usdg", 500)])
def test_in_a_v3_pool_the_universal_router_swaps_along_a_path(quote: str, token: str, fee: int) -> None:
    venue = v3_venue(quote, token, fee)  # type: ignore[arg-type]
    *_, call = amm_v3.plan_second_sell(venue, token, CONTRACTS, AMOUNT, SELLER)  # type: ignore[arg-type]
    assert call.value_wei == 0
    (command, data), *rest = executed(call)
    types = ["address", "uint256", "uint256", "bytes", "bool", "uint256[]"]
    recipient, amount, least, path, by_user, prices = decode(types, data)
    assert (command, amount, least, by_user, prices) == (0x00, AMOUNT, 0, True, ())
    assert path == encode_packed(["address", "uint24", "address"], [token, fee, venue.quote_address])
    # A router without minimum prices reads the same trade.
    assert decode(types[:5], data) == (recipient, amount, least, path, by_user)
    if quote == "weth":
        assert recipient == amm_v4.ROUTER_ITSELF
        ((unwrap, unwrapped),) = rest
        assert (unwrap, decode(["address", "uint256"], unwrapped)) == (0x0C, (amm_v4.CALLER, 0))
    else:
        assert (recipient, rest) == (amm_v4.CALLER, [])


@pytest.mark.parametrize(
    ("file", "venue"),
    [
        (amm_v3, v3_venue("weth", BELOW)), (amm_v3, v3_venue("usdg", BELOW)),
        (amm_v4, v4_venue("eth", BELOW)), (amm_v4, v4_venue("weth", BELOW)),
    ],
)  # fmt: skip
def test_a_minimum_and_a_deadline_bind_it(file: VenueFile, venue: Venue) -> None:
    terms = TradeTerms(777, 1_800_000_000)
    _, permit, call = file.plan_second_sell(venue, BELOW, CONTRACTS, AMOUNT, SELLER, terms=terms)
    assert permit.data.endswith(format(1_800_000_000, "064x"))
    commands = executed(call, 1_800_000_000)
    by_weth = venue.quote == "weth"
    if by_weth:
        assert decode(["address", "uint256"], commands[-1][1]) == (amm_v4.CALLER, 777)
    if file is amm_v3:
        assert decode(["address", "uint256", "uint256"], commands[0][1])[1:] == (AMOUNT, 777)
    else:
        (_, traded), _, (_, taken) = actions(commands[0][1])
        assert swap(traded)[3] == 777
        assert by_weth or decode(["address", "uint256"], taken)[1] == 777


@TOKENS
@pytest.mark.parametrize("quote", ["eth", "weth", "usdg"])
def test_in_a_v4_pool_the_swap_comes_before_its_payment(quote: str, token: str) -> None:
    venue = v4_venue(quote, token)  # type: ignore[arg-type]
    *_, call = amm_v4.plan_second_sell(venue, token, CONTRACTS, AMOUNT, SELLER)  # type: ignore[arg-type]
    (command, body), *rest = executed(call)
    assert (command, call.value_wei) == (0x10, 0)
    (first, traded), (second, settled), (third, taken) = actions(body)
    assert (first, second) == (0x06, 0x0C)
    actual = swap(traded)
    low, high = sorted((token, venue.quote_address))
    assert actual == ((low, high, 3000, 60, ZERO_ADDRESS), token == low, AMOUNT, 0, 0x140, b"")
    assert decode(["address", "uint256"], settled) == (token, AMOUNT)
    if quote == "weth":
        weth = (CONTRACTS.weth, amm_v4.ROUTER_ITSELF, 0)
        assert (third, decode(["address", "address", "uint256"], taken)) == (0x0E, weth)
        ((unwrap, unwrapped),) = rest
        assert (unwrap, decode(["address", "uint256"], unwrapped)) == (0x0C, (amm_v4.CALLER, 0))
    else:
        assert (third, decode(["address", "uint256"], taken)) == (0x0F, (venue.quote_address, 0))
        assert rest == []


def test_it_is_another_sell_than_the_usual_one() -> None:
    for file, venue in ((amm_v3, v3_venue("weth", BELOW)), (amm_v4, v4_venue("eth", BELOW))):
        usual = file.plan_sell(venue, BELOW, CONTRACTS, AMOUNT, SELLER)
        assert usual[-1] != file.plan_second_sell(venue, BELOW, CONTRACTS, AMOUNT, SELLER)[-1]
    assert launchpad_pool.plan_second_sell is amm_v4.plan_second_sell


def test_a_curve_has_no_other_way_to_sell() -> None:
    assert launchpad_curve.plan_second_sell(CURVE, BELOW, CONTRACTS, AMOUNT, SELLER) == ()


@pytest.mark.parametrize("file", VENUES, ids=lambda file: file.KIND)
def test_every_kind_but_the_curve_has_a_name_for_it(file: object) -> None:
    traits = TRAITS[file.KIND]  # type: ignore[attr-defined]
    assert bool(traits.second_route) is not traits.is_curve
