"""Plans on v3 pools, taken apart with eth_abi field by field."""

from typing import Any

import pytest
from eth_abi.abi import decode, encode
from eth_abi.packed import encode_packed
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.domain.check.evidence import QuoteHop
from roundtrip.venues import VENUES, amm_v3
from roundtrip.venues.base import Call, Contracts
from unit.venues.network import ABOVE, BELOW, CONTRACTS, SWAPPED, address

CALLER = address(1)
ROUTER_ITSELF = address(2)
SELLER = address(0x5E11E4)
BUYER = address(0xB0)
AMOUNT = 123_456_789_012_345_678_901

words160 = st.integers(0, 2**160 - 1).map(address)
SINGLE = "(address,address,uint24,address,uint256,uint256,uint160)"

TOKENS = pytest.mark.parametrize("token", [BELOW, ABOVE], ids=["below the quote", "above the quote"])


def venue(quote: str, token: Address, fee: int = 3000, contracts: Contracts = CONTRACTS) -> Venue:
    return next(v for v in amm_v3.candidates(token, contracts) if v.quote == quote and v.fee_pips == fee)


def fields(data: str, signature: str) -> tuple[Any, ...]:
    """The arguments of a call of ``signature``; re-encoding them must give every byte back."""
    name, types = signature.split("(", 1)
    raw = bytes.fromhex(data[2:])
    assert raw[:4] == keccak(text=signature)[:4], name
    kinds = _split(types[:-1])
    values: tuple[Any, ...] = decode(kinds, raw[4:])
    assert encode(kinds, values) == raw[4:]
    return values


def _split(types: str) -> list[str]:
    if not types:
        return []
    return [types] if types.startswith("(") else types.split(",")


def single(data: str) -> tuple[Any, ...]:
    (found,) = fields(data, f"exactInputSingle({SINGLE})")
    return tuple(found)


def output(data: str) -> tuple[Any, ...]:
    """Path, recipient, what is wanted, the most that is paid."""
    (found,) = fields(data, "exactOutput((bytes,address,uint256,uint256))")
    return tuple(found)


def path_of(*parts: str | int) -> bytes:
    """Tokens and the fees between them, as they stand in a path."""
    return encode_packed(["uint24" if isinstance(part, int) else "address" for part in parts], parts)


def calls_in(data: str) -> list[str]:
    (found,) = fields(data, "multicall(bytes[])")
    return ["0x" + item.hex() for item in found]


# --- where pools are -------------------------------------------------------------------------------


def test_the_well_known_pool_of_usdc_and_weth_is_where_it_is() -> None:
    pool = amm_v3.pool_address(
        Address("0x1f98431c8ad98523631ae4a59f267346ea31f984"),
        Address("0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"),
        Address("0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"),
        500,
    )
    assert pool == "0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640"


@given(*[st.integers(1, 2**160 - 1).map(address)] * 3, st.sampled_from(amm_v3.FEE_TIERS_PIPS))
def test_a_pools_address_follows_from_create2(one: Address, two: Address, three: Address, fee: int) -> None:
    pair = sorted([bytes.fromhex(one[2:]), bytes.fromhex(two[2:])])
    salt = keccak(encode(["address", "address", "uint24"], [*pair, fee]))
    code = bytes.fromhex("e34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54")
    created = keccak(b"\xff" + bytes.fromhex(three[2:]) + salt + code)[12:]
    assert amm_v3.pool_address(three, one, two, fee) == "0x" + created.hex()
    assert amm_v3.pool_address(three, two, one, fee) == "0x" + created.hex()


@TOKENS
def test_a_token_is_looked_for_in_every_fee_tier_against_both_quotes(token: Address) -> None:
    found = amm_v3.candidates(token, CONTRACTS)
    assert [(v.quote, v.fee_pips) for v in found] == [
        (quote, fee) for quote in ("weth", "usdg") for fee in (100, 500, 3000, 10_000)
    ]
    assert {v.kind for v in found} == {"amm_v3"}
    assert len({v.pool for v in found}) == 8
    for v in found:
        assert v.quote_address == (CONTRACTS.weth if v.quote == "weth" else CONTRACTS.usdg)
        assert v.pool == amm_v3.pool_address(CONTRACTS.v3_factory, token, v.quote_address, v.fee_pips)


@pytest.mark.parametrize(("token", "quote"), [(CONTRACTS.weth, "usdg"), (CONTRACTS.usdg, "weth")])
def test_nothing_trades_against_itself(token: Address, quote: str) -> None:
    assert {v.quote for v in amm_v3.candidates(token, CONTRACTS)} == {quote}
    assert len(amm_v3.candidates(token, CONTRACTS)) == 4


def test_no_two_venue_files_are_of_one_kind() -> None:
    assert len({file.KIND for file in VENUES}) == len(VENUES)
    assert amm_v3 in VENUES


# --- buying ----------------------------------------------------------------------------------------


@TOKENS
def test_a_buy_for_weth_pays_eth_and_takes_back_what_is_left(token: Address) -> None:
    (buy,) = amm_v3.plan_buy(venue("weth", token), token, CONTRACTS, AMOUNT, BUYER)
    assert (buy.to, buy.value_wei) == (CONTRACTS.swap_router02, AMOUNT)
    swap, refund = calls_in(buy.data)
    assert single(swap) == (CONTRACTS.weth, token, 3000, CALLER, AMOUNT, 0, 0)
    assert fields(refund, "refundETH()") == ()


@TOKENS
def test_a_buy_for_usdg_approves_exactly_what_it_spends(token: Address) -> None:
    approve, buy = amm_v3.plan_buy(venue("usdg", token, 500), token, CONTRACTS, AMOUNT, BUYER)
    assert (approve.to, approve.value_wei) == (CONTRACTS.usdg, 0)
    assert fields(approve.data, "approve(address,uint256)") == (CONTRACTS.swap_router02, AMOUNT)
    assert (buy.to, buy.value_wei) == (CONTRACTS.swap_router02, 0)
    assert single(buy.data) == (CONTRACTS.usdg, token, 500, CALLER, AMOUNT, 0, 0)


def test_dollars_are_bought_exactly_and_the_rest_of_the_eth_comes_back() -> None:
    call = amm_v3.plan_eth_to(CONTRACTS, (QuoteHop(CONTRACTS.usdg, 500),), 350_000_000, AMOUNT)
    assert (call.to, call.value_wei) == (CONTRACTS.swap_router02, AMOUNT)
    swap, refund = calls_in(call.data)
    path = path_of(CONTRACTS.usdg, 500, CONTRACTS.weth)
    assert output(swap) == (path, CALLER, 350_000_000, AMOUNT)
    assert fields(refund, "refundETH()") == ()


def test_dollars_are_bought_the_same_way_where_weth_is_the_pools_second_token() -> None:
    swap, _ = calls_in(amm_v3.plan_eth_to(SWAPPED, (QuoteHop(SWAPPED.usdg, 100),), 7, 9).data)
    assert output(swap) == (path_of(SWAPPED.usdg, 100, SWAPPED.weth), CALLER, 7, 9)


@given(
    st.lists(st.tuples(words160, st.integers(0, 2**24 - 1)), min_size=1, max_size=4),
    words160,
    st.integers(0, 2**256 - 1),
    st.integers(0, 2**256 - 1),
)
def test_a_path_is_written_from_where_it_ends_to_where_it_begins(
    hops: list[tuple[Address, int]], start: Address, amount: int, most: int
) -> None:
    data = amm_v3.encode_exact_output(
        start, tuple(QuoteHop(to, fee) for to, fee in hops), BUYER, amount, most
    )
    path, recipient, wanted, paid = output(data)
    assert (recipient, wanted, paid) == (BUYER, amount, most)
    backwards: list[str | int] = [part for hop in reversed(hops) for part in hop]
    assert path == path_of(*backwards, start)
    assert len(path) == 20 + 23 * len(hops)


def test_other_money_is_bought_by_way_of_dollars() -> None:
    route = (QuoteHop(CONTRACTS.usdg, 500), QuoteHop(ABOVE, 10_000))
    call = amm_v3.plan_eth_to(CONTRACTS, route, 7, 9)
    assert call.value_wei == 9
    path, *_ = output(calls_in(call.data)[0])
    assert path.hex() == ABOVE[2:] + "002710" + CONTRACTS.usdg[2:] + "0001f4" + CONTRACTS.weth[2:]


@TOKENS
def test_the_pool_itself_is_asked_to_pay_one_unit_out(token: Address) -> None:
    of = venue("weth", token)
    payer, call = amm_v3.plan_pay_out(of, token, CONTRACTS, SELLER)
    assert payer == of.pool
    assert (call.to, call.value_wei) == (token, 0)
    assert fields(call.data, "transfer(address,uint256)") == (SELLER, 1)


# --- selling ---------------------------------------------------------------------------------------


@TOKENS
def test_a_sell_for_weth_leaves_the_router_as_eth_for_the_seller(token: Address) -> None:
    approve, sell = amm_v3.plan_sell(venue("weth", token, 10_000), token, CONTRACTS, AMOUNT, SELLER)
    assert (approve.to, approve.value_wei) == (token, 0)
    assert fields(approve.data, "approve(address,uint256)") == (CONTRACTS.swap_router02, AMOUNT)
    assert (sell.to, sell.value_wei) == (CONTRACTS.swap_router02, 0)
    swap, unwrap = calls_in(sell.data)
    assert single(swap) == (token, CONTRACTS.weth, 10_000, ROUTER_ITSELF, AMOUNT, 0, 0)
    assert fields(unwrap, "unwrapWETH9(uint256,address)") == (0, SELLER)


@TOKENS
def test_a_sell_for_usdg_pays_the_seller_without_a_detour(token: Address) -> None:
    approve, sell = amm_v3.plan_sell(venue("usdg", token, 100), token, CONTRACTS, AMOUNT, SELLER)
    assert fields(approve.data, "approve(address,uint256)") == (CONTRACTS.swap_router02, AMOUNT)
    assert (approve.to, sell.to) == (token, CONTRACTS.swap_router02)
    assert single(sell.data) == (token, CONTRACTS.usdg, 100, SELLER, AMOUNT, 0, 0)
    assert (approve.value_wei, sell.value_wei) == (0, 0)


@TOKENS
@pytest.mark.parametrize("quote", ["weth", "usdg"])
def test_the_router_itself_is_asked_to_pull_into_the_pool(token: Address, quote: str) -> None:
    of = venue(quote, token)
    puller, call = amm_v3.plan_pull(of, token, CONTRACTS, AMOUNT, SELLER)
    assert puller == CONTRACTS.swap_router02
    assert (call.to, call.value_wei) == (token, 0)
    moved = fields(call.data, "transferFrom(address,address,uint256)")
    assert moved == (SELLER, of.pool, AMOUNT)


def test_a_swap_carries_the_least_it_accepts() -> None:
    assert single(amm_v3.encode_exact_input_single(BELOW, ABOVE, 500, SELLER, 10, 9))[5] == 9


# --- the state of a pool ---------------------------------------------------------------------------


@TOKENS
def test_a_pool_is_asked_for_price_liquidity_and_what_it_holds_of_the_quote(token: Address) -> None:
    of = venue("usdg", token)
    assert of.pool is not None
    held = "0x70a08231" + encode(["address"], [of.pool]).hex()
    assert amm_v3.fact_calls(of, CONTRACTS) == (
        Call(of.pool, "0x3850c7bd"),
        Call(of.pool, "0x1a686502"),
        Call(CONTRACTS.usdg, held),
    )


PRICE = 2**96 * 59
SLOT0 = encode(
    ["uint160", "int24", "uint16", "uint16", "uint16", "uint8", "bool"], [PRICE, -7, 0, 1, 1, 0, True]
)
LIQUIDITY = encode(["uint128"], [10**24])
RESERVE = encode(["uint256"], [5 * 10**18])
NOTHING = PoolFacts(False, 0, 0, 0)


@pytest.mark.parametrize(
    ("answers", "facts"),
    [
        ((SLOT0, LIQUIDITY, RESERVE), PoolFacts(True, PRICE, 10**24, 5 * 10**18)),
        ((b"", b"", encode(["uint256"], [0])), NOTHING),
        ((None, None, None), NOTHING),
        ((None, LIQUIDITY, RESERVE), NOTHING),
        ((SLOT0[:31], LIQUIDITY, RESERVE), NOTHING),
        ((SLOT0[:32], LIQUIDITY, RESERVE), PoolFacts(True, PRICE, 10**24, 5 * 10**18)),
        ((SLOT0, None, RESERVE), PoolFacts(True, PRICE, 0, 5 * 10**18)),
        ((SLOT0, LIQUIDITY[:31], RESERVE[:31]), PoolFacts(True, PRICE, 0, 0)),
        ((SLOT0, LIQUIDITY, None), PoolFacts(True, PRICE, 10**24, 0)),
        ((bytes(224), bytes(32), bytes(32)), PoolFacts(True, 0, 0, 0)),
    ],
    ids=[
        "a pool", "no code there", "all reverts", "no slot0", "slot0 cut", "slot0 of one word",
        "no liquidity", "others cut", "no reserve", "never initialised",
    ],
)  # fmt: skip
def test_a_pools_state_is_read_from_whole_answers_only(
    answers: tuple[bytes | None, ...], facts: PoolFacts
) -> None:
    assert amm_v3.read_facts(venue("weth", BELOW), BELOW, answers) == facts


@given(st.integers(0, 2**256 - 1), st.binary(max_size=70))
def test_the_output_of_a_multicalls_first_swap_is_read(raw: int, second: bytes) -> None:
    assert amm_v3.read_output(encode(["bytes[]"], [[raw.to_bytes(32, "big"), second]])) == raw
    assert amm_v3.read_output(encode(["bytes[]"], [[raw.to_bytes(32, "big")]])) == raw


@given(st.binary(max_size=200))
def test_an_answer_of_another_shape_never_raises(answer: bytes) -> None:
    amm_v3.read_output(answer)
