"""The assets and allowances at which a simulation of a wallet's calls looks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.wallet.calls import Pair
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.services.trade.touched_assets import (
    MAX_AT_FIRST,
    MAX_IN_ALL,
    KnownPlaces,
    address_words,
    drop_known,
    indexed_tokens,
    list_assets,
    widen_assets,
)
from roundtrip.venues import abi, amm_v3, amm_v4, erc20, permit2
from roundtrip.venues.base import Call
from unit.services.pool_books import book
from unit.venues.network import BELOW, CONTRACTS

TOKEN = BELOW
A, B, C, D = (Address("0x" + f"{n:02x}" * 20) for n in (0xA1, 0xB2, 0xC3, 0xD4))
POOL = amm_v3.pool_address(CONTRACTS.v3_factory, TOKEN, CONTRACTS.weth, 3000)
V3 = amm_v3.candidates(TOKEN, CONTRACTS)
V4 = amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, 3000, 60, None)
MONEY = (CONTRACTS.weth, CONTRACTS.usdg)
NOWHERE = KnownPlaces(None, {})


def listed(*venues: Venue) -> KnownPlaces:
    return KnownPlaces(book(*venues), {})


def call(to: Address, *words: int | str, head: str = "0x12345678", tail: str = "") -> Call:
    return Call(to, abi.call(head, *words) + tail)


def many(count: int) -> list[Address]:
    return [Address(f"0x{2**159 + n:040x}") for n in range(count)]


# --- words ------------------------------------------------------------------------------------------


def test_words_that_may_be_addresses() -> None:
    data = abi.call("0x12345678", A, 5, 2**64 - 1, 2**64, 2**160 - 1, 2**160, 2**256 - 1, B)
    ends = Address(f"0x{2**64:040x}"), Address("0x" + "f" * 40)
    assert list(address_words(data)) == [A, *ends, B]


@pytest.mark.parametrize("data", ["0x", "0x12", "0x12345678", "0x1234567890", "0x12345678" + "00" * 31])
def test_short_calldata_has_no_words(data: str) -> None:
    assert list(address_words(data)) == []


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(data=st.binary(max_size=400))
def test_any_calldata_is_read(data: bytes) -> None:
    any_call = Call(A, "0x" + data.hex())
    assets = list_assets((any_call,), CONTRACTS, listed(*V3))
    assert len(assets.watched.tokens) <= MAX_AT_FIRST
    assert all(int(word, 16) >= 2**64 for word in address_words(any_call.data))


# --- the first look ----------------------------------------------------------------------------------


def test_money_targets_and_words_are_looked_at() -> None:
    assets = list_assets((call(A, B, 7), call(C, D)), CONTRACTS, NOWHERE)
    assert assets.watched.tokens == (*MONEY, A, C, B, D)
    assert not assets.overlooked


def test_who_is_called_may_be_the_token_and_a_word_the_spender() -> None:
    assets = list_assets((call(A, B),), CONTRACTS, NOWHERE)
    assert Pair(A, B) in assets.watched.pairs


def test_an_approval_for_all_is_looked_at_as_such() -> None:
    assets = list_assets((call(A, B, 1, head=erc20.SET_APPROVAL_FOR_ALL),), CONTRACTS, NOWHERE)
    assert assets.watched.pairs == (Pair(A, B, "all"),)


def test_an_approval_by_permit2_is_looked_at_as_such() -> None:
    approval = call(CONTRACTS.permit2, A, B, 10**18, 2**48 - 1, head=permit2.APPROVE)
    assets = list_assets((approval,), CONTRACTS, NOWHERE)
    assert assets.watched.pairs == (Pair(A, B, "permit2"),)
    assert {A, B} <= set(assets.watched.tokens)


def test_one_address_is_looked_at_once() -> None:
    assets = list_assets((call(A, A, A), call(A, A)), CONTRACTS, NOWHERE)
    assert assets.watched.tokens == (*MONEY, A)
    assert assets.watched.pairs == (Pair(A, A),)


def test_what_a_node_can_read_at_once_is_bounded_and_what_is_left_is_said() -> None:
    assets = list_assets((call(A, *many(100)),), CONTRACTS, NOWHERE)
    assert len(assets.watched.tokens) == MAX_AT_FIRST
    assert len(assets.watched.pairs) == MAX_AT_FIRST
    assert assets.overlooked
    exact = list_assets((call(A, *many(21)),), CONTRACTS, NOWHERE)
    assert not exact.overlooked


# --- tokens that are known to trade where the calls lead ---------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        abi.call("0x12345678", POOL),
        "0x12345678" + POOL[2:],
        "0x12345678ff" + POOL[2:].upper() + "aa",
        "0x" + POOL[2:],
        abi.call("0x12345678", 5) + (V4.pool_id or "")[2:],
        abi.call("0x12345678", TOKEN),
    ],
    ids=["a word", "packed", "packed oddly", "bare", "a v4 id", "the token itself"],
)
def test_a_token_is_found_by_any_mark_of_its_pool(data: str) -> None:
    known = listed(*V3, V4)
    assert set(indexed_tokens(Call(A, data), known)) == {TOKEN}
    assert TOKEN in list_assets((Call(A, data),), CONTRACTS, known).watched.tokens


def test_a_token_is_found_by_its_pool_as_target() -> None:
    assert list(indexed_tokens(Call(POOL, "0x"), listed(*V3))) == [TOKEN]
    assert list(indexed_tokens(Call(POOL, "0x"), NOWHERE)) == []


def test_tokens_that_are_known_are_looked_at_before_other_words() -> None:
    calls = (call(A, *many(100)), Call(B, "0x12345678" + POOL[2:]))
    assert TOKEN in list_assets(calls, CONTRACTS, listed(*V3)).watched.tokens


# --- what the run tells ------------------------------------------------------------------------------


def test_nothing_new_is_the_same_object() -> None:
    first = list_assets((call(A, B),), CONTRACTS, NOWHERE)
    assert widen_assets(first, (A, B), (Pair(A, B),)) is first


def test_what_is_new_is_added_once() -> None:
    first = list_assets((call(A, B),), CONTRACTS, NOWHERE)
    more = widen_assets(first, (C, A, C), (Pair(C, D), Pair(C, D, "permit2")))
    assert more.watched.tokens == (*first.watched.tokens, C)
    assert more.watched.pairs == (*first.watched.pairs, Pair(C, D), Pair(C, D, "permit2"))
    assert not more.overlooked


def test_what_was_left_over_is_looked_at_behind_what_the_run_tells() -> None:
    first = list_assets((call(A, *many(60)),), CONTRACTS, NOWHERE)
    more = widen_assets(first, (C,), ())
    assert C in more.watched.tokens
    assert set(many(60)) <= set(more.watched.tokens)


def test_too_much_is_overlooked_and_said() -> None:
    first = list_assets((call(A, B),), CONTRACTS, NOWHERE)
    assert widen_assets(first, tuple(many(MAX_IN_ALL)), ()).overlooked
    pairs = tuple(Pair(token, A) for token in many(MAX_IN_ALL))
    assert widen_assets(first, (), pairs).overlooked
    assert not widen_assets(first, tuple(many(MAX_IN_ALL - 4)), ()).overlooked


def test_machinery_pools_and_numbers_are_no_tokens() -> None:
    known = listed(*V3)
    small = Address(f"0x{2**64 - 1:040x}")
    answer = (A, POOL, CONTRACTS.universal_router, CONTRACTS.permit2, TOKEN, small, B)
    # A token of these tests has an address that nobody can make.
    assert drop_known(answer, CONTRACTS, known) == (A, B)
    assert drop_known((POOL,), CONTRACTS, NOWHERE) == (POOL,)
