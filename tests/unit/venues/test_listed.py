"""Logs of new pools and launches, encoded with eth_abi, and which venues they tell of."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import example, given
from hypothesis import strategies as st

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.venues import VENUES, amm_v3, amm_v4, launchpad_curve, launchpad_pool
from roundtrip.venues.base import Contracts, Log, VenueListing
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address

CREATED = "PoolCreated(address,address,uint24,int24,address)"
INITIALIZE = "Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)"
LAUNCHED = "TokenLaunched(address,address,address,address,uint256,uint256)"

NO_LAUNCHPAD = replace(CONTRACTS, launchpad_factory=None, launchpad_hook=None, launchpad_router=None)
HOOK = address(0xDEAD00CC)
LIE = address(0x11E)

addresses = st.integers(2**64, 2**160 - 1).map(address)
"""None of the contracts that the tests know, which have small numbers."""


def topics(event: str, *indexed: int | str) -> tuple[str, ...]:
    """The event's hash and its indexed arguments, a word each."""
    rest = [int(one, 16) if isinstance(one, str) else one for one in indexed]
    return ("0x" + keccak(text=event).hex(), *(f"0x{one:064x}" for one in rest))


def created(low: Address, high: Address, fee: int = 3000) -> Log:
    """A v3 factory's log; the pool it names is somebody else's."""
    return Log(CONTRACTS.v3_factory, topics(CREATED, low, high, fee), encode(["int24", "address"], [60, LIE]))


def initialized(
    low: Address, high: Address, fee: int = 3000, spacing: int = 60, hook: Address = ZERO_ADDRESS
) -> Log:
    """A pool manager's log; the id it names is another key's."""
    data = encode(["uint24", "int24", "address", "uint160", "int24"], [fee, spacing, hook, 2**96, -5])
    return Log(CONTRACTS.v4_pool_manager, topics(INITIALIZE, 7, low, high), data)


def launched(token: Address, curve: Address, quote: Address) -> Log:
    """The launchpad factory's log."""
    data = encode(["address", "uint256", "uint256"], [quote, 3, 10**18])
    assert CONTRACTS.launchpad_factory is not None
    return Log(CONTRACTS.launchpad_factory, topics(LAUNCHED, token, curve, LIE), data)


def id_of(low: str, high: str, fee: int, spacing: int, hook: str) -> str:
    """A v4 pool's id, by an independent encoder."""
    key = encode(["address", "address", "uint24", "int24", "address"], [low, high, fee, spacing, hook])
    return "0x" + keccak(key).hex()


# --- v3 --------------------------------------------------------------------------------------------


@given(addresses, addresses, st.integers(0, 2**24 - 1))
@example(BELOW, ABOVE, 2**24 - 1)
def test_a_v3_pool_is_listed_for_either_side(one: Address, two: Address, fee: int) -> None:
    low, high = sorted((one, two))
    pool = amm_v3.pool_address(CONTRACTS.v3_factory, low, high, fee)
    assert amm_v3.decode_listings(created(low, high, fee), CONTRACTS) == (
        VenueListing(low, Venue("amm_v3", high, high, pool, fee)),
        VenueListing(high, Venue("amm_v3", low, low, pool, fee)),
    )


@pytest.mark.parametrize("quote", ["weth", "usdg"])
@pytest.mark.parametrize("token", [BELOW, ABOVE])
@pytest.mark.parametrize("fee", amm_v3.FEE_TIERS_PIPS)
def test_a_standard_v3_pool_is_listed_as_the_candidate_it_is(token: Address, quote: str, fee: int) -> None:
    money = getattr(CONTRACTS, quote)
    low, high = sorted((token, money))
    found = {one.token: one.venue for one in amm_v3.decode_listings(created(low, high, fee), CONTRACTS)}
    assert found[token].quote == quote
    assert found[token] in amm_v3.candidates(token, CONTRACTS)
    assert found[money].quote_address == token


# --- v4 --------------------------------------------------------------------------------------------


@given(
    addresses,
    addresses,
    st.integers(0, 2**24 - 1),
    st.integers(1, 2**15 - 1),
    st.just(ZERO_ADDRESS) | addresses,
)
def test_a_v4_pool_is_listed_for_either_side(
    one: Address, two: Address, fee: int, spacing: int, hook: Address
) -> None:
    low, high = sorted((one, two))
    pool_id = id_of(low, high, fee, spacing, hook)
    hooked = None if hook == ZERO_ADDRESS else hook
    assert amm_v4.decode_listings(initialized(low, high, fee, spacing, hook), CONTRACTS) == (
        VenueListing(low, Venue("amm_v4", high, high, None, fee, spacing, hooked, pool_id)),
        VenueListing(high, Venue("amm_v4", low, low, None, fee, spacing, hooked, pool_id)),
    )


@given(addresses)
def test_eth_is_money_and_never_the_token(token: Address) -> None:
    (found,) = amm_v4.decode_listings(initialized(ZERO_ADDRESS, token), CONTRACTS)
    assert (found.token, found.venue.quote, found.venue.quote_address) == (token, "eth", ZERO_ADDRESS)


@pytest.mark.parametrize("quote", ["eth", "weth", "usdg"])
@pytest.mark.parametrize("token", [BELOW, ABOVE])
def test_a_standard_v4_pool_is_listed_as_the_candidate_it_is(token: Address, quote: str) -> None:
    money = ZERO_ADDRESS if quote == "eth" else getattr(CONTRACTS, quote)
    low, high = sorted((token, money))
    found = {one.token: one.venue for one in amm_v4.decode_listings(initialized(low, high), CONTRACTS)}
    assert found[token].quote == quote
    assert found[token] in amm_v4.candidates(token, CONTRACTS)


def test_the_dynamic_fee_is_kept_as_it_stands_in_the_key() -> None:
    (found,) = amm_v4.decode_listings(initialized(ZERO_ADDRESS, ABOVE, 0x800000, 10, HOOK), CONTRACTS)
    assert found.venue.dynamic_fee()
    assert found.venue.pool_id == id_of(ZERO_ADDRESS, ABOVE, 0x800000, 10, HOOK)


# --- the launchpad ---------------------------------------------------------------------------------


def test_a_pool_with_the_launchpads_hook_is_the_launchpads_and_no_other() -> None:
    assert CONTRACTS.launchpad_hook is not None
    own, strange = (initialized(BELOW, ABOVE, 0, 200, hook) for hook in (CONTRACTS.launchpad_hook, HOOK))
    assert amm_v4.decode_listings(own, CONTRACTS) == ()
    assert {one.venue.kind for one in launchpad_pool.decode_listings(own, CONTRACTS)} == {"launchpad_pool"}
    assert launchpad_pool.decode_listings(strange, CONTRACTS) == ()
    assert {one.venue.kind for one in amm_v4.decode_listings(strange, CONTRACTS)} == {"amm_v4"}


@pytest.mark.parametrize(
    ("contracts", "hook"),
    [(CONTRACTS, ZERO_ADDRESS), (CONTRACTS, HOOK), (NO_LAUNCHPAD, ZERO_ADDRESS), (NO_LAUNCHPAD, HOOK)],
    ids=["no hook", "a hook", "no launchpad and no hook", "no launchpad and a hook"],
)
def test_a_pool_that_is_not_the_launchpads_is_listed_once(contracts: Contracts, hook: Address) -> None:
    log = initialized(BELOW, ABOVE, hook=hook)
    found = [
        one for file in VENUES if file.listings(contracts) for one in file.decode_listings(log, contracts)
    ]
    assert [(one.token, one.venue.kind) for one in found if one.venue.pool_id] == [
        (BELOW, "amm_v4"),
        (ABOVE, "amm_v4"),
    ]


def test_the_launchpads_pool_of_the_real_chain_is_found_by_its_log() -> None:
    token = Address("0xc9e9ab90654f82893d7fd18b62f694992e8cef29")
    quote = Address("0xd0601ce157db5bdc3162bbac2a2c8af5320d9eec")
    hook = Address("0xe5e702641ea86f4ae6cc3cdaed2b886f976be044")
    log = initialized(token, quote, 0, 200, hook)
    first, second = launchpad_pool.decode_listings(log, replace(CONTRACTS, launchpad_hook=hook))
    pool_id = "0x6eb457f0729bd458608099505990f03d8a6af91202f936124f72ad76c96f6fe1"
    assert first == VenueListing(token, Venue("launchpad_pool", quote, quote, None, 0, 200, hook, pool_id))
    assert second == VenueListing(quote, Venue("launchpad_pool", token, token, None, 0, 200, hook, pool_id))


def test_the_usual_launchpad_pools_are_listed_as_the_candidates_they_are() -> None:
    assert CONTRACTS.launchpad_hook is not None
    for number, money in enumerate((ZERO_ADDRESS, CONTRACTS.weth, CONTRACTS.usdg)):
        low, high = sorted((ABOVE, money))
        log = initialized(low, high, 0, 200, CONTRACTS.launchpad_hook)
        found = {one.token: one.venue for one in launchpad_pool.decode_listings(log, CONTRACTS)}
        assert found[ABOVE] == launchpad_pool.candidates(ABOVE, CONTRACTS)[number]


def test_where_there_is_no_launchpad_nobody_tells_of_launches() -> None:
    assert launchpad_pool.listings(NO_LAUNCHPAD) == ()
    assert launchpad_curve.listings(NO_LAUNCHPAD) == ()
    assert launchpad_pool.candidates(ABOVE, NO_LAUNCHPAD) == ()
    assert launchpad_curve.candidates(ABOVE, CONTRACTS) == ()


@pytest.mark.parametrize(
    ("quote", "name"),
    [(ZERO_ADDRESS, "eth"), (CONTRACTS.weth, "weth"), (CONTRACTS.usdg, "usdg"), (ABOVE, ABOVE)],
)
def test_a_launch_is_listed_at_its_curve(quote: Address, name: Any) -> None:
    curve = address(0xC0)
    (found,) = launchpad_curve.decode_listings(launched(BELOW, curve, quote), CONTRACTS)
    assert found == VenueListing(BELOW, Venue("launchpad_curve", name, quote, curve, 0))


# --- logs that are none ----------------------------------------------------------------------------

Reader = Callable[[Log, Contracts], tuple[VenueListing, ...]]
CUTS: list[tuple[Reader, Log, int]] = [
    (amm_v3.decode_listings, created(BELOW, ABOVE), 0),
    (amm_v4.decode_listings, initialized(BELOW, ABOVE, hook=HOOK), 96),
    (launchpad_pool.decode_listings, initialized(BELOW, ABOVE, hook=CONTRACTS.launchpad_hook or HOOK), 96),
    (launchpad_curve.decode_listings, launched(BELOW, LIE, ABOVE), 32),
]
READERS = pytest.mark.parametrize(("read", "log", "needed"), CUTS, ids=["v3", "v4", "pool", "curve"])
NEEDED_TOPICS: dict[Reader, int] = {
    amm_v3.decode_listings: 4,
    amm_v4.decode_listings: 4,
    launchpad_pool.decode_listings: 4,
    launchpad_curve.decode_listings: 3,
}


@READERS
def test_a_log_whose_data_is_cut_tells_nothing(read: Reader, log: Log, needed: int) -> None:
    assert read(log, CONTRACTS)
    for size in range(len(log.data)):
        assert bool(read(log._replace(data=log.data[:size]), CONTRACTS)) is (size >= needed)


@READERS
def test_a_log_without_all_its_topics_tells_nothing(read: Reader, log: Log, needed: int) -> None:
    for count in range(len(log.topics)):
        cut = log._replace(topics=log.topics[:count])
        assert bool(read(cut, CONTRACTS)) is (count >= NEEDED_TOPICS[read])


@READERS
@pytest.mark.parametrize("bit", [160, 200, 255])
def test_a_topic_that_is_more_than_an_address_tells_nothing(
    read: Reader, log: Log, needed: int, bit: int
) -> None:
    for at in (1, 2) if NEEDED_TOPICS[read] == 3 or read is amm_v3.decode_listings else (2, 3):
        dirty = [*log.topics]
        dirty[at] = f"0x{int(dirty[at], 16) | 1 << bit:064x}"
        assert read(log._replace(topics=tuple(dirty)), CONTRACTS) == ()


def with_word(log: Log, index: int, value: int) -> Log:
    data = bytearray(log.data)
    data[32 * index : 32 * index + 32] = value.to_bytes(32, "big")
    return log._replace(data=bytes(data))


@pytest.mark.parametrize("fee", [2**24, 2**24 + 3000, 2**255, 2**256 - 1])
def test_a_v3_fee_of_more_than_three_bytes_tells_nothing(fee: int) -> None:
    log = created(BELOW, ABOVE)
    assert amm_v3.decode_listings(log._replace(topics=(*log.topics[:3], f"0x{fee:064x}")), CONTRACTS) == ()


@pytest.mark.parametrize(
    ("index", "value"),
    [(0, 2**24), (0, 2**256 - 1), (1, 2**23), (1, 2**24 + 60), (1, 2**256 - 60)],
    ids=["fee", "all of fee", "spacing", "dirty spacing", "spacing below zero"],
)
def test_a_v4_key_that_cannot_be_tells_nothing(index: int, value: int) -> None:
    assert amm_v4.decode_listings(with_word(initialized(BELOW, ABOVE), index, value), CONTRACTS) == ()


@pytest.mark.parametrize("bit", [160, 255])
def test_a_hook_or_a_quote_that_is_more_than_an_address_tells_nothing(bit: int) -> None:
    hooked = initialized(BELOW, ABOVE, hook=HOOK)
    assert amm_v4.decode_listings(with_word(hooked, 2, int(HOOK, 16) | 1 << bit), CONTRACTS) == ()
    paid = launched(BELOW, LIE, ABOVE)
    assert launchpad_curve.decode_listings(with_word(paid, 0, 1 << bit), CONTRACTS) == ()


any_topic = st.integers(0, 2**256 - 1).map(lambda value: f"0x{value:064x}")


@given(st.lists(any_topic, max_size=5), st.binary(max_size=200))
@example([], b"")
def test_no_words_at_all_make_a_reader_raise(words: list[str], data: bytes) -> None:
    for file in VENUES:
        for contracts in (CONTRACTS, NO_LAUNCHPAD):
            assert len(file.decode_listings(Log(LIE, tuple(words), data), contracts)) <= 2
